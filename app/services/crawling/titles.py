"""What titles of a source share at their end, and documents whose title still has it or lacks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import func, select, update

from app.crawler.reading.titles import own_title, shared_suffix
from app.models import Source, SourcePage
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


def _sample(database: Database, source_id: str) -> list[str]:
    """Titles of pages that are documents, the same ones as long as the pages are."""
    titled = (SourcePage.source_id == source_id, SourcePage.document_id.is_not(None), SourcePage.title.is_not(None))
    with database.read() as session:
        count = session.scalar(select(func.count()).select_from(SourcePage).where(*titled)) or 0
        stride = -(-count // SAMPLE) or 1
        titles = session.scalars(
            select(SourcePage.title).where(*titled).order_by(SourcePage.url).execution_options(yield_per=SAMPLE)
        )
        return [title for number, title in enumerate(titles) if number % stride == 0 and title is not None]


def learn_suffix(database: Database, source_id: str) -> str | None:
    """Find what the titles of a source share at their end, and keep it; ``None`` if nothing."""
    suffix = shared_suffix(_sample(database, source_id)) or None
    with database.write() as session:
        session.execute(update(Source).where(Source.id == source_id).values(title_suffix=suffix))
    return suffix


def strip(title: str, suffix: str | None) -> str:
    """A title without what its site's titles share; one that is nothing else stays."""
    return own_title(title, suffix or "")


def pages_to_retitle(database: Database, source_id: str, suffix: str | None) -> Iterator[list[Retitled]]:
    """Pages whose document has another title than it should, in steps."""
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
        titled = [(row, strip(row.title, suffix)) for row in rows]
        found = [Retitled(row.url, row.document_id, title) for row, title in titled if title != row.document_title]
        if found:
            yield found


def keep(database: Database, source_id: str, pages: list[Retitled]) -> None:
    """Note the titles that documents have now."""
    with database.write() as session:
        for page in pages:
            session.execute(
                update(SourcePage)
                .where(SourcePage.source_id == source_id, SourcePage.url == page.url)
                .values(document_title=page.title)
            )
