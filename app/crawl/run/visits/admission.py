"""Selection of the URLs that a run reads, by the source's ``include`` and ``exclude`` globs and limits for traps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from app.crawl.fetch.addresses import Scope
from app.crawl.fetch.traps import Traps
from app.crawl.fetch.values import NotIndexed, Reason
from app.models import Source

_Glob = tuple[str, ...]
"""The literals between the stars of a glob."""


class Rules:
    """The ``include`` and ``exclude`` globs of a source, which match path and query.

    ``*`` matches any number of characters, across segments.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str]):
        self._include = _compile(include)
        self._exclude = _compile(exclude)

    def allow(self, url: str) -> bool:
        """Whether a URL may be read and indexed. ``exclude`` takes precedence over ``include``."""
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        if any(_matches(glob, path) for glob in self._exclude):
            return False
        return not self._include or any(_matches(glob, path) for glob in self._include)


def _compile(globs: Sequence[str]) -> list[_Glob]:
    return [tuple(re.split(r"\*+", glob)) for glob in globs]


def _matches(glob: _Glob, path: str) -> bool:
    # Searching for the literals in turn takes linear time. A regular expression with several stars would backtrack,
    # and customers choose the globs.
    first, *others = glob
    if not others:
        return path == first
    *middle, last = others
    if not path.startswith(first):
        return False
    position = len(first)
    for literal in middle:
        start = path.find(literal, position)
        if start < 0:
            return False
        position = start + len(literal)
    return len(path) - len(last) >= position and path.endswith(last)


class Admission:
    """Decides which URLs a run reads."""

    def __init__(self, source: Source, scope: Scope):
        self._start = source.url
        self.is_in_scope = scope.contains
        """Returns whether a URL is on the source's host."""
        self.is_included = Rules(source.include, source.exclude).allow
        """Returns whether ``include`` and ``exclude`` allow a URL."""
        self._traps = Traps()

    def refusal(self, url: str) -> str | None:
        """Return the reason not to read a URL, or ``None``. Call this once per URL, since it counts similar URLs."""
        if url == self._start:
            return None
        if not self.is_in_scope(url):
            return Reason.OTHER_HOST
        if not self.is_included(url):
            return Reason.EXCLUDED
        try:
            self._traps.check(url)
        except NotIndexed as error:
            return error.reason
        return None
