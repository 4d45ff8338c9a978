"""Look-up of addresses: whether one is a document, why not, and what leads to it; which links lead nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app.crawl.fetch.addresses import Scope, normalize_url
from app.crawl.fetch.values import Reason
from app.crawl.run.frontier import unpack_links
from app.crawl.run.visits.rules import Rules
from app.crawl.sources.runs import RUNS_KEPT, list_runs
from app.models import RunPage, Site, Source, SourcePage, SourceRun
from app.models.base import from_microseconds
from app.services.csv_export import csv_lines
from app.services.indexing.stored_documents import read_stored

MAX_REFERRERS = 10
"""Most pages that are told to lead to an address."""
MAX_SEARCHED = 5_000
"""Pages of a site whose links are looked at for that."""
_STEP = 500
_DEAD = {"http_404": 404, "http_410": 410}
"""Reasons of pages that are not there, and what their server answered."""


@dataclass(frozen=True, slots=True)
class PageLookup:
    """State of an address.

    Attributes:
        status: ``indexed``, ``left_out``, ``not_seen`` or ``removed``.
        reason: Why it is no document, as far as is known.
        last_seen: When a source visited it last, or its document was written.
        found_on: Pages, sitemaps, and feeds that lead to it.
        document: The id of its document; of a duplicate, of the document with the same text.
    """

    url: str
    status: str
    reason: str | None = None
    last_seen: datetime | None = None
    found_on: Sequence[str] = ()
    document: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLink:
    """A link of a site's own pages to one that is not there.

    Attributes:
        status: What its server answered: 404 or 410.
        found_on: Pages, sitemaps, and feeds that have it, at most :data:`MAX_REFERRERS`.
    """

    url: str
    status: int
    found_on: Sequence[str]


@dataclass(frozen=True, slots=True)
class DeadLinks:
    """One page of a source's dead links.

    Attributes:
        run: The run that found them; ``None`` if none has read pages.
        total: How many there are.
    """

    run: SourceRun | None
    links: Sequence[DeadLink] = ()
    total: int = 0


def look_up(session: Session, site: Site, url: str, document_ids: Iterable[str] = ()) -> PageLookup:
    """Look up an address of a site.

    Args:
        url: An absolute http or https URL.
        document_ids: Ids of documents at this address, by the engine.

    Raises:
        ValueError: It is no address.
    """
    address = normalize_url(url)
    sources = session.scalars(select(Source).where(Source.site_id == site.id).order_by(Source.created_at)).all()
    ids = [source.id for source in sources]
    pages = session.scalars(
        select(SourcePage)
        .where(SourcePage.source_id.in_(ids), SourcePage.url == address)
        .order_by(SourcePage.fetched_at.desc())
    ).all()
    rows = session.execute(
        select(RunPage, SourceRun)
        .join(SourceRun, SourceRun.id == RunPage.run_id)
        .where(SourceRun.source_id.in_(ids), RunPage.url == address)
        .order_by(SourceRun.queued_at.desc(), SourceRun.id.desc())
    ).all()
    first = {address: [row.found_on for row, _ in rows if row.found_on is not None]}
    found_on = _referrers(session, ids, first)[address]
    fetched_at = pages[0].fetched_at if pages else None
    of_pages = [page.document_id for page in pages if page.document_id is not None]
    for stored in read_stored(session, site.id, list(dict.fromkeys((*of_pages, address, url, *document_ids)))):
        written_at = from_microseconds(stored.changed_at)
        return PageLookup(url, "indexed", None, fetched_at or written_at, found_on, stored.id)
    left_out = next((page for page in pages if page.reason is not None), None)
    if left_out is not None:
        twin = find_twins(session, [left_out]).get(address) if left_out.reason == Reason.DUPLICATE else None
        return PageLookup(url, "left_out", left_out.reason, left_out.fetched_at, found_on, twin)
    known = [(row, run) for row, run in rows if row.status != "waiting"]
    if known:
        row, run = known[0]
        status = "removed" if any(row.removed for row, _ in known) else "left_out"
        return PageLookup(url, status, row.reason, run.finished_at or run.started_at, found_on)
    return PageLookup(url, "not_seen", _refusal(site, sources, address), None, found_on)


def find_twins(session: Session, pages: Iterable[SourcePage]) -> dict[str, str]:
    """Address of each page that is a duplicate to the id of the document with its text, as far as there is one."""
    found = {}
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
            found[page.url] = twin
    return found


def twins_of_run(session: Session, run: SourceRun, pages: Iterable[RunPage]) -> dict[str, str]:
    """The same for those of a run's pages that are duplicates."""
    urls = [page.url for page in pages if page.reason == Reason.DUPLICATE]
    query = select(SourcePage).where(SourcePage.source_id == run.source_id, SourcePage.url.in_(urls))
    return find_twins(session, session.scalars(query))


def list_dead_links(session: Session, source: Source, *, limit: int, offset: int) -> DeadLinks:
    """One page of the links that led to pages that are not there when the source was last read, as they were found.

    Its last run counts that read pages and has ended by itself. A run of single addresses does not, since it follows
    no links.
    """
    runs, _ = list_runs(session, source, limit=RUNS_KEPT, offset=0)
    ended = (run for run in runs if run.status in ("finished", "failed") and "urls" not in run.options)
    run = next((run for run in ended if run.indexed + run.unchanged), None)
    if run is None:
        return DeadLinks(None)
    # What is listed in one of several sitemaps has a depth, but nothing that is named for it.
    found = select(RunPage).where(
        RunPage.run_id == run.id, RunPage.reason.in_(_DEAD), or_(RunPage.found_on.is_not(None), RunPage.depth > 0)
    )
    pages = session.scalars(found.order_by(RunPage.position, RunPage.url).limit(limit).offset(offset)).all()
    first = {page.url: [page.found_on] if page.found_on is not None else [] for page in pages}
    found_on = _referrers(session, [source.id], first)
    links = [DeadLink(page.url, _DEAD[page.reason or ""], found_on[page.url]) for page in pages]
    return DeadLinks(run, links, session.scalar(select(func.count()).select_from(found.subquery())) or 0)


def encode_dead_links(links: Iterable[DeadLink]) -> str:
    """Dead links as CSV, one line each; spaces separate the pages that have one."""
    rows = ((link.url, link.status, " ".join(link.found_on)) for link in links)
    return csv_lines([("url", "status", "found_on"), *rows])


def _referrers(session: Session, source_ids: Sequence[str], first: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Pages that lead to each address: those that are named ``first``, then pages whose links have it."""
    found = {address: dict.fromkeys(pages) for address, pages in first.items()}
    last, searched = ("", ""), 0
    while searched < MAX_SEARCHED and (wanted := {url for url, on in found.items() if len(on) < MAX_REFERRERS}):
        place = (SourcePage.source_id > last[0]) | (SourcePage.source_id == last[0]) & (SourcePage.url > last[1])
        rows = session.execute(
            select(SourcePage.source_id, SourcePage.url, SourcePage.links)
            .where(SourcePage.source_id.in_(source_ids), place)
            .order_by(SourcePage.source_id, SourcePage.url)
            .limit(_STEP)
        ).all()
        for row in rows:
            for address in wanted.intersection(unpack_links(row.links)) - {row.url}:
                found[address][row.url] = None
        if len(rows) < _STEP:
            break
        last, searched = (rows[-1].source_id, rows[-1].url), searched + _STEP
    return {address: list(pages)[:MAX_REFERRERS] for address, pages in found.items()}


def _refusal(site: Site, sources: Sequence[Source], address: str) -> str | None:
    """The reason why no source would read an address, if there is one."""
    if not any(Scope.of(url).contains(address) for url in (site.url, *site.domains)):
        return Reason.OTHER_HOST
    refused = [not Rules(source.include, source.exclude).allow(address) for source in sources]
    return Reason.EXCLUDED if refused and all(refused) else None
