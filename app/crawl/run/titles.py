"""Properties that a source's pages share (title suffix, sections by path), and updates of documents with them.

A suffix is, for example, `` | Acme`` or `` — Python 3.13 documentation``. All functions that take a run's state may be
repeated; callers retry them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import func, select, update

from app.crawl.read.html_pages import TITLE_SEPARATOR
from app.crawl.run.page_documents import PathSections, retitle
from app.crawl.run.state import RunState
from app.models import Source, SourcePage
from app.services.indexing.stored_documents import read_stored
from schemas.validation.documents import ValidDocument

MIN_TITLES = 3
MIN_SHARE = 0.5
"""Minimum share of a site's titles that end with the shared suffix."""


def shared_suffix(titles: Iterable[str]) -> str:
    """The suffix that most titles of a site share, including the separator before it; empty without one.

    The most frequent suffix wins; ties go to the longest. There is no shared suffix for fewer than three distinct
    titles.
    """
    distinct = set(titles)
    counts = Counter(suffix for title in distinct for suffix in set(_suffixes(title)))
    min_count = max(MIN_TITLES, MIN_SHARE * len(distinct))
    frequent = [(count, len(suffix), suffix) for suffix, count in counts.items() if count >= min_count]
    return max(frequent)[2] if frequent else ""


def strip_suffix(title: str, suffix: str | None) -> str:
    """Return a title without the site's shared suffix. A title that consists only of the suffix stays unchanged."""
    return title.removesuffix(suffix or "").strip() or title


def _suffixes(title: str) -> Iterator[str]:
    return (title[match.start() :] for match in TITLE_SEPARATOR.finditer(title) if match.start() > 0)


SAMPLE_TITLES = 1_000
"""Number of titles to compare, spread evenly over the source's pages."""

RETITLE_STEP = 200


@dataclass(frozen=True, slots=True)
class Retitled:
    """A page whose document needs another title or section.

    Attributes:
        section: The section from the URL's path, empty for none; ``None`` if the page itself declares a section.
    """

    url: str
    document_id: str
    title: str
    section: str | None


def _titled(state: RunState) -> tuple[Any, ...]:
    page = SourcePage
    return page.source_id == state.source.id, page.document_id.is_not(None), page.title.is_not(None)


def learn_suffix(state: RunState) -> str | None:
    """Determine and store the suffix that the titles share. Returns the suffix, or ``None`` without one."""
    suffix = shared_suffix(_sample_titles(state)) or None
    with state.parts.database.write() as session:
        session.execute(update(Source).where(Source.id == state.source.id).values(title_suffix=suffix))
    return suffix


def _sample_titles(state: RunState) -> list[str]:
    # Every n-th page by URL, not a random sample, so that the suffix stays the same while the pages do.
    with state.parts.database.read() as session:
        count = session.scalar(select(func.count()).select_from(SourcePage).where(*_titled(state))) or 0
        stride = -(-count // SAMPLE_TITLES) or 1
        titles = session.scalars(
            select(SourcePage.title)
            .where(*_titled(state))
            .order_by(SourcePage.url)
            .execution_options(yield_per=SAMPLE_TITLES)
        )
        return [title for number, title in enumerate(titles) if number % stride == 0 and title is not None]


def count_sections(state: RunState) -> PathSections:
    """Count the pages that are documents by the first segments of their paths."""
    with state.parts.database.read() as session:
        urls = session.scalars(select(SourcePage.url).where(*_titled(state)).execution_options(yield_per=SAMPLE_TITLES))
        return PathSections(urls)


def pages_to_retitle(state: RunState, suffix: str | None, sections: PathSections, after: str) -> list[Retitled]:
    """Return the next pages, by URL, whose documents have an outdated title or section.

    Args:
        after: The last URL of the previous step.
    """
    page = SourcePage
    columns = page.url, page.document_id, page.title, page.document_title, page.path_section
    while True:
        with state.parts.database.read() as session:
            rows = session.execute(
                select(*columns).where(*_titled(state), page.url > after).order_by(page.url).limit(RETITLE_STEP)
            ).all()
        outdated = []
        for row in rows:
            title = strip_suffix(row.title or "", suffix)
            section = None if row.path_section is None else sections.section(row.url)
            if (title, section) != (row.document_title, row.path_section):
                outdated.append(Retitled(row.url, row.document_id or "", title, section))
        if outdated or not rows:
            return outdated
        after = rows[-1].url


def retitled_documents(state: RunState, pages: Sequence[Retitled]) -> list[ValidDocument]:
    """Return the pages' documents with new titles and sections, except documents that now belong to another source."""
    by_id = {page.document_id: page for page in pages}
    with state.parts.database.read() as session:
        return [
            retitle(orjson.loads(stored.body), by_id[stored.id].title, by_id[stored.id].section)
            for stored in read_stored(session, state.source.site_id, list(by_id))
            if stored.origin.source == state.source.id
        ]


def store_titles(state: RunState, pages: Sequence[Retitled]) -> None:
    """Store the current titles and sections of the pages' documents."""
    with state.parts.database.write() as session:
        for page in pages:
            session.execute(
                update(SourcePage)
                .where(SourcePage.source_id == state.source.id, SourcePage.url == page.url)
                .values(document_title=page.title, path_section=page.section)
            )
