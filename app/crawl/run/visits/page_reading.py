"""Fetching and reading pages, in threads."""

from __future__ import annotations

from dataclasses import dataclass

from app.crawl.fetch.values import Fetched, FieldRules, NotIndexed, Page, Selectors, Validators
from app.crawl.read.reader import PageReader
from app.crawl.run.frontier import Address, Frontier
from app.crawl.run.visits.visitor import Place, Visitor
from app.models import Source


@dataclass(frozen=True, slots=True)
class Reading:
    """A page as it was fetched and read.

    Attributes:
        fetched: The answer; its body is gone.
        page: ``None`` if it did not change.
    """

    fetched: Fetched
    page: Page | None


def field_rules(source: Source) -> FieldRules:
    """The rules of a source for further fields, as pages are read by them."""
    return FieldRules(tuple(source.fields or ()), source.url)


class PageReading:
    """Fetches and reads the pages of one run. Thread-safe."""

    def __init__(self, visitor: Visitor, reader: PageReader, source: Source, frontier: Frontier):
        self._visitor = visitor
        self._reader = reader
        self._selectors = Selectors(**source.selectors)
        self._rules = field_rules(source)
        self._frontier = frontier

    def read(self, address: Address, anew: bool, place: Place) -> Reading | NotIndexed:
        """Fetch and read a page, or learn why it is none.

        Args:
            anew: Whether it is read also if it did not change.
            place: When it may be asked for.
        """
        try:
            try:
                fetched = self._visitor.ask_for_page(
                    address.url, lambda url: None if anew else self._validators(url), place
                )
            finally:
                place.asked.set()
            if fetched.status == 304:
                return Reading(fetched, None)
            page = self._reader.read(fetched, self._selectors, self._rules)
        except NotIndexed as error:
            return error
        return Reading(Fetched(fetched.url, fetched.status, fetched.headers, b"", fetched.redirects), page)

    def _validators(self, url: str) -> Validators | None:
        """Validators that the server sent with a page, unless its document is gone and must be written anew."""
        known = self._frontier.known(url)
        if known is None or (known.document_id is not None and not known.document_is_there):
            return None
        validators = Validators(known.etag, known.last_modified)
        return validators if validators != Validators() else None
