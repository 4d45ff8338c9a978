"""Look-up of an address: whether it is a document, why not, and what leads to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.crawl.fetch.addresses import Scope, normalize_url
from app.crawl.fetch.values import Reason
from app.crawl.run.frontier import unpack_links
from app.crawl.run.visits.rules import Rules
from app.models import RunPage, Site, Source, SourcePage, SourceRun
from app.models.base import from_microseconds
from app.services.indexing.stored_documents import read_stored

MAX_REFERRERS = 10
"""Most pages that are told to lead to an address."""
MAX_SEARCHED = 5_000
"""Pages of a site whose links are looked at for that."""
_STEP = 500


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
    found_on = _referrers(session, ids, address, [row.found_on for row, _ in rows if row.found_on is not None])
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


def _referrers(session: Session, source_ids: Sequence[str], address: str, first: Iterable[str]) -> list[str]:
    """Pages that lead to an address: the one that did so first in a run, then pages whose links have it."""
    found = dict.fromkeys(first)
    last, searched = ("", ""), 0
    while len(found) < MAX_REFERRERS and searched < MAX_SEARCHED:
        place = (SourcePage.source_id > last[0]) | (SourcePage.source_id == last[0]) & (SourcePage.url > last[1])
        rows = session.execute(
            select(SourcePage.source_id, SourcePage.url, SourcePage.links)
            .where(SourcePage.source_id.in_(source_ids), place)
            .order_by(SourcePage.source_id, SourcePage.url)
            .limit(_STEP)
        ).all()
        found |= dict.fromkeys(row.url for row in rows if row.url != address and address in unpack_links(row.links))
        if len(rows) < _STEP:
            break
        last, searched = (rows[-1].source_id, rows[-1].url), searched + _STEP
    return list(found)[:MAX_REFERRERS]


def _refusal(site: Site, sources: Sequence[Source], address: str) -> str | None:
    """The reason why no source would read an address, if there is one."""
    if not any(Scope.of(url).contains(address) for url in (site.url, *site.domains)):
        return Reason.OTHER_HOST
    refused = [not Rules(source.include, source.exclude).allow(address) for source in sources]
    return Reason.EXCLUDED if refused and all(refused) else None
