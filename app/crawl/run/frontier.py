"""The URLs of a run in SQL: waiting URLs, outcomes of settled URLs, and page records of earlier runs.

The functions over a run's state may be repeated; callers retry them. The functions over a session are steps of
transactions in ``stored_run.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, insert, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.crawl.fetch.addresses import MAX_URL_CHARACTERS
from app.crawl.fetch.unexpected import guarded
from app.crawl.fetch.values import NotIndexed
from app.crawl.run.outcomes import DiscoveredUrl, PageRecord, QueuedPage, unpack_links
from app.crawl.run.state import RunState
from app.crawl.run.visits.admission import Admission
from app.crawl.sources.runs import IN_INDEX
from app.models import RunPage, Source, SourcePage, SourceRun, StoredDocument
from app.plans import PlanLimits

MAX_URLS = 1_000_000
"""Maximum number of URLs that a run stores on any plan. A run that discovers more doesn't remove documents."""

MIN_URLS = 20_000
"""Number of URLs that a run may store on the smallest plan."""

URLS_PER_DOCUMENT = 10
"""Number of URLs that a run may store per document of the plan's limit, since excluded pages have rows, too."""

LATEST_CHANGE = 2**33 - 1
"""Unix seconds of the latest change that affects the order, in the year 2242."""

MIN_REQUESTS = 1_000
"""Number of pages that a run of a source with few ``max_pages`` may request."""

REQUESTS_PER_PAGE = 10
"""Number of pages that a run may request for each page in ``max_pages``, since many may not be indexed."""

_STEP = 500
_QUEUE_STEP = 50


def max_urls(limits: PlanLimits) -> int:
    """Return the number of URLs that a run may store on a plan."""
    if limits.documents is None:
        return MAX_URLS
    return min(MAX_URLS, max(MIN_URLS, URLS_PER_DOCUMENT * limits.documents))


def max_requests(max_pages: int | None, urls: int) -> int:
    """Return the number of pages that a run may request.

    Args:
        max_pages: The maximum number of pages to index, if the source limits it.
        urls: The number of URLs that the run may store.
    """
    return urls if max_pages is None else min(urls, max(MIN_REQUESTS, REQUESTS_PER_PAGE * max_pages))


def next_page(state: RunState, *, deferred: bool) -> QueuedPage | None:
    """Return the next waiting page, or ``None``. Successive calls never return the same page.

    Pages with a date in a sitemap come first, most recently changed first. The other pages follow, breadth first.

    Args:
        deferred: ``True`` to return only deferred pages, ``False`` to return only other pages.
    """
    queue = state.deferred if deferred else state.waiting
    if not queue.pages:
        has_deferral = RunPage.reason.is_not(None) if deferred else RunPage.reason.is_(None)
        with state.parts.database.read() as session:
            rows = session.execute(
                select(RunPage.url, RunPage.depth, RunPage.position, RunPage.reason)
                .where(
                    RunPage.run_id == state.run.id,
                    RunPage.status == "waiting",
                    # Start after the last loaded page, because pages being read still have the status "waiting".
                    RunPage.position > queue.position,
                    has_deferral,
                )
                .order_by(RunPage.position)
                .limit(_QUEUE_STEP)
            ).all()
        if not rows:
            return None
        queue.position = rows[-1].position
        queue.pages.extend(QueuedPage(row.url, row.depth, row.reason) for row in rows)
    return queue.pages.popleft()


def read_status(state: RunState, url: str) -> str | None:
    """Return the stored outcome of a URL in this run; ``None`` if the run has not stored the URL."""
    with state.parts.database.read() as session:
        return session.scalar(select(RunPage.status).where(RunPage.run_id == state.run.id, RunPage.url == url))


def has_document_elsewhere(state: RunState, url: str) -> bool:
    """Whether the site has a document of a URL that another source or an API client wrote."""
    document, page = StoredDocument, SourcePage
    other_ids = select(page.document_id).join(Source, Source.id == page.source_id)
    other_ids = other_ids.where(Source.site_id == state.site.id, page.url == url, page.document_id.is_not(None))
    query = select(document.id).where(
        document.site_id == state.site.id,
        document.id.in_(other_ids) | (document.id == url),
        document.source != state.source.id,
        document.body.is_not(None),
    )
    with state.parts.database.read() as session:
        return session.scalar(query.limit(1)) is not None


def read_record(state: RunState, url: str) -> PageRecord | None:
    """Return the record of a page as this or an earlier run stored it."""
    with state.parts.database.read() as session:
        row = session.execute(
            select(SourcePage, StoredDocument.id)
            .outerjoin(
                StoredDocument,
                (StoredDocument.site_id == state.source.site_id)
                & (StoredDocument.id == SourcePage.document_id)
                & StoredDocument.body.is_not(None),
            )
            .where(SourcePage.source_id == state.source.id, SourcePage.url == url)
        ).one_or_none()
    if row is None:
        return None
    page, document_id = row
    return PageRecord(
        page.document_id, document_id is not None, page.reason, page.etag or "", page.last_modified or "",
        page.digest, page.text_digest, page.title, page.document_title, page.path_section,
        unpack_links(page.links),
    )  # fmt: skip


def pages_like(state: RunState, url: str, document_id: str, text_digest: bytes) -> dict[str, str | None]:
    """Map the source's other indexed pages with the same text or ID to their status in this run."""
    same = (SourcePage.text_digest == text_digest) | (SourcePage.document_id == document_id)
    with state.parts.database.read() as session:
        rows = session.execute(
            select(SourcePage.url, RunPage.status)
            .outerjoin(RunPage, (RunPage.run_id == state.run.id) & (RunPage.url == SourcePage.url))
            .where(
                SourcePage.source_id == state.source.id,
                same,
                SourcePage.document_id.is_not(None),
                SourcePage.url != url,
                # A page with another canonical URL is replaced by it, unless that URL turned out to be wrong.
                SourcePage.reason.is_(None) | RunPage.status.in_(IN_INDEX),
            )
            .limit(_STEP)
        ).all()
    return {row[0]: row[1] for row in rows}


def lost_pages(state: RunState) -> list[str]:
    """Return a batch of URLs of pages that an earlier run indexed and this run has not discovered."""
    with state.parts.database.read() as session:
        return list(session.scalars(_undiscovered(state, SourcePage.url).limit(_STEP)))


def lost_documents(state: RunState, after: str) -> list[tuple[str, str]]:
    """Return the next lost pages after the URL ``after``, in order of URLs, with the IDs of their documents."""
    query = _undiscovered(state, SourcePage.url, SourcePage.document_id).where(SourcePage.url > after)
    with state.parts.database.read() as session:
        return [(row[0], row[1]) for row in session.execute(query.order_by(SourcePage.url).limit(_STEP))]


def _undiscovered(state: RunState, *columns: Any) -> Select[Any]:
    return select(*columns).where(
        SourcePage.source_id == state.source.id, SourcePage.document_id.is_not(None), ~is_discovered(state.run.id)
    )


def is_discovered(run_id: str, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition for a source's pages that a run has discovered.

    Args:
        conditions: Further conditions for the page in the run.
    """
    return select(RunPage.url).where(RunPage.run_id == run_id, RunPage.url == SourcePage.url, *conditions).exists()


def add_urls(
    session: Session, run: SourceRun, discovered: Iterable[DiscoveredUrl], admission: Admission, limit: int
) -> None:
    """Store the URLs that a run has not stored yet, and count them. The caller must have locked the run.

    Args:
        limit: The number of URLs that the run may store.
    """
    new_urls: dict[str, DiscoveredUrl] = {}
    for discovery in discovered:
        # Longer URLs, which redirects and feeds may contain, don't fit in a row.
        if len(discovery.url) <= MAX_URL_CHARACTERS:
            new_urls.setdefault(discovery.url, discovery)
    urls = list(new_urls)
    for start in range(0, len(urls), _STEP):
        step = urls[start : start + _STEP]
        # Read instead of ON CONFLICT, because the order and the counts must not have gaps for known URLs.
        for url in session.scalars(select(RunPage.url).where(RunPage.run_id == run.id, RunPage.url.in_(step))).all():
            del new_urls[url]
    # The run will not see all pages, so it must not remove the documents of pages that it has not seen.
    if run.found + len(new_urls) > limit:
        run.complete = False
    rows = [
        {
            "run_id": run.id,
            "url": discovery.url,
            "position": _position(number, discovery.modified),
            "depth": discovery.depth,
            "status": "waiting" if reason is None else "skipped",
            "reason": reason,
            "found_on": discovery.found_on,
        }
        for number, discovery in enumerate(new_urls.values(), run.found)
        if number < limit
        for reason in [_rejection_reason(admission, discovery.url)]
    ]
    if rows:
        session.execute(insert(RunPage), rows)
        run.found += len(rows)
        run.skipped += sum(row["status"] == "skipped" for row in rows)


def _rejection_reason(admission: Admission, url: str) -> str | None:
    try:
        with guarded("page", url):
            return admission.rejection_reason(url)
    except NotIndexed as error:
        return error.reason


def _position(number: int, modified: int | None) -> int:
    """Return a URL's unique position in the run's order.

    ``number`` counts the URLs as they are discovered and is below :data:`MAX_URLS`, so dated URLs, with negative
    positions, precede all others.
    """
    return number if modified is None else number - MAX_URLS * (1 + min(max(0, modified), LATEST_CHANGE))


def settle_url(
    session: Session, run: SourceRun, url: str, status: str, reason: str | None, *, removed: bool = False
) -> None:
    """Store the outcome of a waiting URL, and count it. The caller must have locked the run.

    Args:
        removed: Whether the page's document was removed.
    """
    changed = session.execute(
        update(RunPage)
        # Only waiting URLs, so that a retry does not count a URL twice.
        .where(RunPage.run_id == run.id, RunPage.url == url, RunPage.status == "waiting")
        .values(status=status, reason=reason, removed=removed),
        execution_options={"synchronize_session": False},
    )
    if status != "waiting" and changed.rowcount:  # type: ignore[attr-defined]  # An UPDATE's result has one.
        setattr(run, status, getattr(run, status) + 1)


def store_record(session: Session, source_id: str, url: str, values: Mapping[str, Any]) -> None:
    """Store the record of a page for the next run."""
    page = session.get(SourcePage, (source_id, url))
    if page is None:
        page = SourcePage(source_id=source_id, url=url)
        session.add(page)
    for name, value in values.items():
        setattr(page, name, value)
    page.fetched_at = now()


def delete_record(session: Session, source_id: str, url: str) -> None:
    """Delete the record of a page that no longer exists."""
    session.execute(delete(SourcePage).where(SourcePage.source_id == source_id, SourcePage.url == url))
