"""Properties that a source's pages share (titles, sections by path), and updates of documents with them.

A suffix is, for example, `` | Acme`` or `` — Python 3.13 documentation``. All functions that take a run's state may be
repeated; callers retry them, except :func:`update_titles`, which retries its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import orjson
from sqlalchemy import func, select, update

from app.crawl.fetch.unexpected import guarded
from app.crawl.fetch.values import NotIndexed
from app.crawl.read.error_pages import TITLE_SEPARATOR
from app.crawl.run.frontier import is_discovered
from app.crawl.run.page_documents import MIN_TITLES, PathSections, TitleRules, retitle, strip_title
from app.crawl.run.recorder import put_documents
from app.crawl.run.state import RunState
from app.models import Source, SourcePage
from app.services.indexing.stored_documents import read_stored
from schemas.validation.documents import ValidDocument

MIN_SHARE = 0.5
"""Minimum share of a site's titles that begin or end with the shared part."""


def shared_suffix(titles: Iterable[str]) -> str:
    """Return the suffix that most titles of a site share, including the separator before it; empty without one.

    The most frequent suffix wins; ties go to the longest. There is no shared suffix for fewer than three distinct
    titles.
    """
    return _shared_part(titles, _suffixes)


def shared_prefix(titles: Iterable[str]) -> str:
    """Return the prefix that most titles of a site share, including the separator after it; empty without one.

    See :func:`shared_suffix`.
    """
    return _shared_part(titles, _prefixes)


def _shared_part(titles: Iterable[str], parts: Callable[[str], Iterator[str]]) -> str:
    distinct = set(titles)
    counts = Counter(part for title in distinct for part in set(parts(title)))
    min_count = max(MIN_TITLES, MIN_SHARE * len(distinct))
    frequent = [(count, len(part), part) for part, count in counts.items() if count >= min_count]
    return max(frequent)[2] if frequent else ""


def _suffixes(title: str) -> Iterator[str]:
    return (title[match.start() :] for match in TITLE_SEPARATOR.finditer(title) if match.start() > 0)


def _prefixes(title: str) -> Iterator[str]:
    # A blank before a parenthesis does not separate a prefix: the parenthesis only explains the words before it.
    separators = (match for match in TITLE_SEPARATOR.finditer(title) if match[0].strip())
    return (title[: match.end()] for match in separators if match.start() > 0 and match.end() < len(title))


SAMPLE_TITLES = 1_000
"""Number of titles to compare, spread evenly over the source's pages."""
MAX_SHARED = 1_000
"""Maximum number of titles that alternatives replace because several pages have them."""
MAX_HEADINGS = 300_000
"""Maximum number of alternatives that are counted."""

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


def learn_titles(state: RunState) -> TitleRules:
    """Determine the title rules from the source's pages, and store the prefix and the suffix."""
    titles = _count_shared(state)
    sample = _sample_titles(state, titles)
    suffix = shared_suffix(sample)
    prefix = shared_prefix([strip_title(title, "", suffix) for title in sample])
    with state.parts.database.write() as session:
        values = {"title_prefix": prefix or None, "title_suffix": suffix or None}
        session.execute(update(Source).where(Source.id == state.source.id).values(**values))
    return replace(titles, prefix=prefix, suffix=suffix)


def load_titles(state: RunState) -> TitleRules:
    """Return the title rules, with the stored prefix and suffix."""
    with state.parts.database.read() as session:
        source = session.get_one(Source, state.source.id)
    return replace(_count_shared(state), prefix=source.title_prefix or "", suffix=source.title_suffix or "")


def _count_shared(state: RunState) -> TitleRules:
    """Count the pages with the same title, and the alternatives of these pages."""
    page, count = SourcePage, func.count()
    shared = select(page.title, count).where(*_titled(state)).group_by(page.title).having(count >= MIN_TITLES)
    headings: Counter[int] = Counter()
    with state.parts.database.read() as session:
        rows = session.execute(shared.order_by(count.desc()).limit(MAX_SHARED))
        pages = {row[0]: row[1] for row in rows if row[0] is not None}
        if pages:
            query = select(page.title, page.headings).where(*_titled(state), page.headings.is_not(None))
            for row in session.execute(query.execution_options(yield_per=SAMPLE_TITLES)):
                if row.title in pages and len(headings) < MAX_HEADINGS:
                    headings.update(hash((row.title, heading)) for heading in row.headings.split("\n"))
    return TitleRules(pages=pages, headings=headings)


def _sample_titles(state: RunState, titles: TitleRules) -> list[str]:
    # Every n-th page by URL, not a random sample, so that the suffix stays the same while the pages do.
    with state.parts.database.read() as session:
        count = session.scalar(select(func.count()).select_from(SourcePage).where(*_titled(state))) or 0
        stride = -(-count // SAMPLE_TITLES) or 1
        rows = session.execute(
            select(SourcePage.title, SourcePage.headings)
            .where(*_titled(state))
            .order_by(SourcePage.url)
            .execution_options(yield_per=SAMPLE_TITLES)
        )
        return [titles.choose(row.title, row.headings) for number, row in enumerate(rows) if number % stride == 0]


def count_sections(state: RunState) -> PathSections:
    """Count the pages that are documents by the first segments of their paths."""
    with state.parts.database.read() as session:
        urls = session.scalars(select(SourcePage.url).where(*_titled(state)).execution_options(yield_per=SAMPLE_TITLES))
        return PathSections(urls)


def pages_to_retitle(state: RunState, titles: TitleRules, sections: PathSections, after: str) -> list[Retitled]:
    """Return the next pages, by URL, whose documents have an outdated title or section.

    Args:
        after: The last URL of the previous step.
    """
    page = SourcePage
    columns = page.url, page.document_id, page.title, page.headings, page.document_title, page.path_section
    while True:
        with state.parts.database.read() as session:
            rows = session.execute(
                select(*columns).where(*_remaining(state), page.url > after).order_by(page.url).limit(RETITLE_STEP)
            ).all()
        outdated = []
        for row in rows:
            title = titles.document_title(row.title or "", row.headings)
            section = None if row.path_section is None else sections.section(row.url)
            if (title, section) != (row.document_title, row.path_section):
                outdated.append(Retitled(row.url, row.document_id or "", title, section))
        if outdated or not rows:
            return outdated
        after = rows[-1].url


def _remaining(state: RunState) -> tuple[Any, ...]:
    """Return the conditions for pages that the run keeps: not lost ones, which writing their documents would keep."""
    if state.urls is not None or state.source.kind == "feed":
        return _titled(state)
    return *_titled(state), is_discovered(state.run.id)


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


def update_titles(state: RunState) -> None:
    """Remove the prefix and suffix that titles share, and update sections, also on unchanged pages.

    Raises:
        EndsRun: The run was stopped.
        ApiError: 404 for the site or the sync; 403 when the site is paused.
    """
    # A run of single pages sees too few titles to learn from, so it uses the suffix of the last complete run.
    titles = state.retry(learn_titles if state.urls is None else load_titles)
    sections = state.retry(count_sections)
    after = ""
    while pages := state.retry(pages_to_retitle, titles, sections, after):
        try:
            with guarded("writing", f"titles of run {state.run.id}"):
                _retitle(state, pages)
        except NotIndexed:
            for page in pages:
                _retitle_alone(state, page)
        after = pages[-1].url
        state.control.check()


def _retitle(state: RunState, pages: Sequence[Retitled]) -> None:
    documents = state.retry(retitled_documents, pages)
    state.retry(put_documents, documents)
    state.retry(store_titles, pages)


def _retitle_alone(state: RunState, page: Retitled) -> None:
    # The page keeps its former title, and the log says why.
    with suppress(NotIndexed), guarded("writing", page.url):
        _retitle(state, [page])
