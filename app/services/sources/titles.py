"""The part that the titles of a source's pages share at their end, and documents whose title still has it or lacks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from app.models import SourcePage
from app.services.indexing.stored_documents import read_stored
from app.storage.database import Database

SAMPLE = 1_000
"""Titles that are compared, spread evenly over the source's pages."""

STEP = 200


@dataclass(frozen=True, slots=True)
class Retitled:
    """A page whose document is to have another title."""

    url: str
    document_id: str
    title: str


def sample_titles(database: Database, source_id: str) -> list[str]:
    """Titles of pages that are documents, the same ones as long as the pages are."""
    titled = (SourcePage.source_id == source_id, SourcePage.document_id.is_not(None), SourcePage.title.is_not(None))
    with database.read() as session:
        count = session.scalar(select(func.count()).select_from(SourcePage).where(*titled)) or 0
        stride = -(-count // SAMPLE) or 1
        titles = session.scalars(
            select(SourcePage.title).where(*titled).order_by(SourcePage.url).execution_options(yield_per=SAMPLE)
        )
        return [title for number, title in enumerate(titles) if number % stride == 0 and title is not None]


def pages_to_retitle(database: Database, source_id: str, strip: "Strip") -> Iterator[list[Retitled]]:
    """Pages whose document has another title than it should, in steps. Each step is to be settled before the next."""
    after = ""
    while True:
        with database.read() as session:
            rows = session.execute(
                select(SourcePage.url, SourcePage.document_id, SourcePage.title, SourcePage.document_title)
                .where(
                    SourcePage.source_id == source_id,
                    SourcePage.document_id.is_not(None),
                    SourcePage.title.is_not(None),
                    SourcePage.url > after,
                )
                .order_by(SourcePage.url)
                .limit(STEP)
            ).all()
        if not rows:
            return
        after = rows[-1].url
        found = [
            Retitled(row.url, row.document_id, strip(row.title)) for row in rows if strip(row.title) != row.document_title
        ]
        if found:
            yield found
