"""Reports on single URLs, with status, reason, and referrers, and on a source's dead links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.crawl.fetch.addresses import Scope, normalize_url
from app.crawl.fetch.values import Reason
from app.crawl.run.outcomes import unpack_links
from app.crawl.run.visits.admission import UrlRules
from app.crawl.sources.runs import RUNS_KEPT, list_runs
from app.models import RunPage, Site, Source, SourcePage, SourceRun
from app.models.base import from_microseconds
from app.services.indexing.stored_documents import read_stored
from app.storage.database import read_page
from app.wording import csv_lines

MAX_REFERRERS = 10
"""Maximum number of pages that are reported to link to a URL."""
MAX_SEARCHED_PAGES = 5_000
"""Maximum number of a site's pages whose links are searched for a URL."""
_STEP = 500
_DEAD = {"http_404": 404, "http_410": 410}
"""Reasons that mean a dead link, with the HTTP status."""


@dataclass(frozen=True, slots=True)
class PageLookup:
    """State of a URL.

    Attributes:
        status: ``indexed``, ``left_out``, ``not_seen`` or ``removed``.
        reason: The reason why the URL is not indexed, if it is recorded.
        last_seen: Time of the last visit by a source, or of the last change to the document.
        found_on: URLs of pages, sitemaps, and feeds that contain the URL.
        document: ID of the URL's document, or, for a duplicate, of the document with the same text.
    """

    url: str
    status: str
    reason: str | None = None
    last_seen: datetime | None = None
    found_on: Sequence[str] = ()
    document: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLink:
    """A link from a site's own pages to a page that does not exist.

    Attributes:
        status: HTTP status of the response: 404 or 410.
        found_on: URLs of up to :data:`MAX_REFERRERS` pages, sitemaps, and feeds that contain the link.
    """

    url: str
    status: int
    found_on: Sequence[str]


@dataclass(frozen=True, slots=True)
class DeadLinks:
    """One page of a source's dead links.

    Attributes:
        run: The run that found the links; ``None`` if no run has read pages.
        total: The number of dead links.
    """

    run: SourceRun | None
    links: Sequence[DeadLink] = ()
    total: int = 0


def look_up(session: Session, site: Site, url: str, document_ids: Iterable[str] = ()) -> PageLookup:
    """Look up a URL of a site.

    Args:
        url: An absolute http or https URL.
        document_ids: IDs of the documents with this URL in the engine's index.

    Raises:
        ValueError: The URL is not valid.
    """
    normalized = normalize_url(url)
    sources = session.scalars(select(Source).where(Source.site_id == site.id).order_by(Source.created_at)).all()
    ids = [source.id for source in sources]
    pages = session.scalars(
        select(SourcePage)
        .where(SourcePage.source_id.in_(ids), SourcePage.url == normalized)
        .order_by(SourcePage.fetched_at.desc())
    ).all()
    rows = session.execute(
        select(RunPage, SourceRun)
        .join(SourceRun, SourceRun.id == RunPage.run_id)
        .where(SourceRun.source_id.in_(ids), RunPage.url == normalized)
        .order_by(SourceRun.queued_at.desc(), SourceRun.id.desc())
    ).all()
    recorded = {normalized: [row.found_on for row, _ in rows if row.found_on is not None]}
    found_on = _referrers(session, ids, recorded)[normalized]
    fetched_at = pages[0].fetched_at if pages else None
    page_document_ids = [page.document_id for page in pages if page.document_id is not None]
    for stored in read_stored(
        session, site.id, list(dict.fromkeys((*page_document_ids, normalized, url, *document_ids)))
    ):
        written_at = from_microseconds(stored.changed_at)
        return PageLookup(url, "indexed", None, fetched_at or written_at, found_on, stored.id)
    skipped = next((page for page in pages if page.reason is not None), None)
    if skipped is not None:
        twin = find_twins(session, [skipped]).get(normalized) if skipped.reason == Reason.DUPLICATE else None
        return PageLookup(url, "left_out", skipped.reason, skipped.fetched_at, found_on, twin)
    settled = [(row, run) for row, run in rows if row.status != "waiting"]
    if settled:
        row, run = settled[0]
        status = "removed" if any(row.removed for row, _ in settled) else "left_out"
        return PageLookup(url, status, row.reason, run.finished_at or run.started_at, found_on)
    return PageLookup(url, "not_seen", _rejection_reason(site, sources, normalized), None, found_on)


def find_twins(session: Session, pages: Iterable[SourcePage]) -> dict[str, str]:
    """Map the URLs of duplicate pages to the IDs of documents with the same text, if such documents exist."""
    twins = {}
    for page in pages:
        twin = session.scalar(
            select(SourcePage.document_id)
            .where(
                SourcePage.source_id == page.source_id,
                SourcePage.text_digest == page.text_digest,
                SourcePage.document_id.is_not(None),
            )
            .limit(1)
        )
        if twin is not None:
            twins[page.url] = twin
    return twins


def twins_of_run(session: Session, run: SourceRun, pages: Iterable[RunPage]) -> dict[str, str]:
    """Map the URLs of a run's duplicate pages to the IDs of documents with the same text."""
    urls = [page.url for page in pages if page.reason == Reason.DUPLICATE]
    query = select(SourcePage).where(SourcePage.source_id == run.source_id, SourcePage.url.in_(urls))
    return find_twins(session, session.scalars(query))


def list_dead_links(session: Session, source: Source, *, limit: int, offset: int) -> DeadLinks:
    """Return one page of the dead links of a source, in the order of their discovery.

    The links come from the last run that read pages and was not canceled. Runs of single URLs do not count, since they
    follow no links.
    """
    runs, _ = list_runs(session, source, limit=RUNS_KEPT, offset=0)
    ended = (run for run in runs if run.status in ("finished", "failed") and "urls" not in run.options)
    run = next((run for run in ended if run.indexed + run.unchanged), None)
    if run is None:
        return DeadLinks(None)
    # URLs from one of several sitemaps have a depth but no ``found_on``.
    dead = select(RunPage).where(
        RunPage.run_id == run.id, RunPage.reason.in_(_DEAD), or_(RunPage.found_on.is_not(None), RunPage.depth > 0)
    )
    pages, total = read_page(session, dead.order_by(RunPage.position, RunPage.url), limit=limit, offset=offset)
    recorded = {page.url: [page.found_on] if page.found_on is not None else [] for page in pages}
    found_on = _referrers(session, [source.id], recorded)
    links = [DeadLink(page.url, _DEAD[page.reason or ""], found_on[page.url]) for page in pages]
    return DeadLinks(run, links, total)


def encode_dead_links(links: Iterable[DeadLink]) -> str:
    """Encode dead links as CSV, one line per link; spaces separate the URLs in ``found_on``."""
    rows = ((link.url, link.status, " ".join(link.found_on)) for link in links)
    return csv_lines([("url", "status", "found_on"), *rows])


def _referrers(
    session: Session, source_ids: Sequence[str], recorded: Mapping[str, Iterable[str]]
) -> dict[str, list[str]]:
    """Return the pages that contain each URL: first ``recorded`` pages, then pages whose stored links contain it."""
    referrers = {url: dict.fromkeys(pages) for url, pages in recorded.items()}
    last, searched = ("", ""), 0
    while searched < MAX_SEARCHED_PAGES and (
        incomplete := {url for url, pages in referrers.items() if len(pages) < MAX_REFERRERS}
    ):
        is_next = (SourcePage.source_id > last[0]) | (SourcePage.source_id == last[0]) & (SourcePage.url > last[1])
        rows = session.execute(
            select(SourcePage.source_id, SourcePage.url, SourcePage.links)
            .where(SourcePage.source_id.in_(source_ids), is_next)
            .order_by(SourcePage.source_id, SourcePage.url)
            .limit(_STEP)
        ).all()
        for row in rows:
            for url in incomplete.intersection(unpack_links(row.links)) - {row.url}:
                referrers[url][row.url] = None
        if len(rows) < _STEP:
            break
        last, searched = (rows[-1].source_id, rows[-1].url), searched + _STEP
    return {url: list(pages)[:MAX_REFERRERS] for url, pages in referrers.items()}


def _rejection_reason(site: Site, sources: Sequence[Source], url: str) -> str | None:
    """Return the reason why no source would read a URL; ``None`` if a source would."""
    if not any(Scope.of(start).contains(url) for start in (site.url, *site.domains)):
        return Reason.OTHER_HOST
    excluded = [not UrlRules(source.include, source.exclude).allow(url) for source in sources]
    return Reason.EXCLUDED if excluded and all(excluded) else None
