"""Traits that a source's pages share: the end of titles, sections by paths; and documents that differ from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import func, select, update

from app.crawl.read.html.titles import own_title, shared_suffix
from app.crawl.run.documents.page_documents import retitle
from app.crawl.run.documents.path_sections import PathSections
from app.models import Source, SourcePage
from app.services.indexing.stored_documents import read_stored
from app.storage.database import Database
from schemas.validation.documents import ValidDocument

SAMPLE = 1_000
"""Titles that are compared, spread evenly over the source's pages."""

STEP = 200


@dataclass(frozen=True, slots=True)
class Retitled:
    """A page whose document is to have another title, or another section.

    Attributes:
        section: By its address, empty for none; ``None`` if the page names it itself.
    """

    url: str
    document_id: str
    title: str
    section: str | None


def strip(title: str, suffix: str | None) -> str:
    """A title without what its site's titles share; one that is nothing else stays."""
    return own_title(title, suffix or "")


class Titles:
    """The titles of one source's pages."""

    def __init__(self, database: Database, source: Source):
        self._database = database
        self._source_id = source.id
        self._site_id = source.site_id
        self._titled = (
            SourcePage.source_id == source.id, SourcePage.document_id.is_not(None), SourcePage.title.is_not(None),
        )  # fmt: skip

    def learn_suffix(self) -> str | None:
        """Find what the titles share at their end, and keep it; ``None`` if nothing."""
        suffix = shared_suffix(self._sample()) or None
        with self._database.write() as session:
            session.execute(update(Source).where(Source.id == self._source_id).values(title_suffix=suffix))
        return suffix

    def sections(self) -> PathSections:
        """Count the pages that are documents by the first segments of their paths."""
        with self._database.read() as session:
            urls = session.scalars(select(SourcePage.url).where(*self._titled).execution_options(yield_per=SAMPLE))
            return PathSections(urls)

    def _sample(self) -> list[str]:
        """Titles of pages that are documents, the same ones as long as the pages are."""
        with self._database.read() as session:
            count = session.scalar(select(func.count()).select_from(SourcePage).where(*self._titled)) or 0
            stride = -(-count // SAMPLE) or 1
            titles = session.scalars(
                select(SourcePage.title)
                .where(*self._titled)
                .order_by(SourcePage.url)
                .execution_options(yield_per=SAMPLE)
            )
            return [title for number, title in enumerate(titles) if number % stride == 0 and title is not None]

    def pages_to_retitle(self, suffix: str | None, sections: PathSections, after: str) -> list[Retitled]:
        """The next pages whose document has another title or section than it should, in order of their addresses.

        Args:
            after: The last address of the step before.
        """
        page = SourcePage
        columns = page.url, page.document_id, page.title, page.document_title, page.path_section
        while True:
            with self._database.read() as session:
                rows = session.execute(
                    select(*columns).where(*self._titled, SourcePage.url > after).order_by(SourcePage.url).limit(STEP)
                ).all()
            found = []
            for row in rows:
                title = strip(row.title or "", suffix)
                section = None if row.path_section is None else sections.section(row.url)
                if (title, section) != (row.document_title, row.path_section):
                    found.append(Retitled(row.url, row.document_id or "", title, section))
            if found or not rows:
                return found
            after = rows[-1].url

    def retitled(self, pages: Sequence[Retitled]) -> list[ValidDocument]:
        """The documents of pages, with their titles and sections; but those that are not the source's any more."""
        wanted = {page.document_id: page for page in pages}
        with self._database.read() as session:
            return [
                retitle(orjson.loads(stored.body), wanted[stored.id].title, wanted[stored.id].section)
                for stored in read_stored(session, self._site_id, list(wanted))
                if stored.origin.source == self._source_id
            ]

    def keep(self, pages: Sequence[Retitled]) -> None:
        """Note the titles and sections that documents have now."""
        with self._database.write() as session:
            for page in pages:
                session.execute(
                    update(SourcePage)
                    .where(SourcePage.source_id == self._source_id, SourcePage.url == page.url)
                    .values(document_title=page.title, path_section=page.section)
                )
