"""Admission: the addresses that a run reads."""

from __future__ import annotations

from app.crawl.fetch.addresses import Scope
from app.crawl.fetch.traps import Traps
from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.run.visits.rules import Rules
from app.models import Source


class Admission:
    """Says of addresses why they are not read: another host's, not wanted, or one of too many alike."""

    def __init__(self, source: Source, scope: Scope):
        self._start = source.url
        self.is_in_scope = scope.contains
        """Whether an address is one of the source's host."""
        self.is_wanted = Rules(source.include, source.exclude).allow
        """Whether the source's owner wants an address."""
        self._traps = Traps()

    def refusal(self, url: str) -> str | None:
        """The reason why an address is not read at all, if there is one; to be asked once for each address."""
        if url == self._start:
            return None
        if not self.is_in_scope(url):
            return Reason.OTHER_HOST
        if not self.is_wanted(url):
            return Reason.EXCLUDED
        try:
            self._traps.check(url)
        except NotIndexed as error:
            return error.reason
        return None
