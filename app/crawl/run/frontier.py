"""The addresses of a run: which of them wait, what became of the others, and what was known of each before."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, insert, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.models import RunPage, Source, SourcePage, SourceRun, StoredDocument
from app.plans import PlanLimits
from app.storage.database import Database

MAX_ADDRESSES = 1_000_000
"""Addresses that a run stores on any plan. If it finds more, it removes no documents."""

MIN_ADDRESSES = 20_000
"""Addresses that a run may store on the smallest plan."""

ADDRESSES_PER_DOCUMENT = 10
"""Addresses that a run may store for each document that the plan allows: excluded pages have rows, too."""

MAX_LINK_BYTES = 262_144
"""Bytes of a page's links that are stored, before compression."""

LATEST = 2**33 - 1
"""The last moment that counts as that of a change, in Unix seconds: in the year 2242."""

_FIRST = -(2**62)
_STEP = 500
_TAKEN_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Address:
    """An address that waits to be read.

    Attributes:
        url: Normalized.
        depth: Links from the start page.
        deferred: Whether it was put last because another page has its text: it is a duplicate if that one still has.
    """

    url: str
    depth: int
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """Traces that earlier runs left of a page.

    Attributes:
        document_id: The document that it became, ``None`` if none.
        document_is_there: Whether the site still has that document, whoever wrote it last.
        reason: Why it became none.
        path_section: The section that its document has by its address, ``""`` if none; ``None`` if the page names one.
        links: Where it leads.
    """

    document_id: str | None
    document_is_there: bool
    reason: str | None
    etag: str
    last_modified: str
    digest: bytes | None
    text_digest: bytes | None
    title: str | None
    document_title: str | None
    path_section: str | None
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """An address that a run found.

    Attributes:
        depth: Links from the start page.
        found_on: What led to it: a page, a sitemap, or a feed.
        modified: Unix seconds of its last change, as a sitemap tells it; such addresses are read first, the latest
            change before the others.
    """

    url: str
    depth: int
    found_on: str | None = None
    modified: int | None = None


def max_addresses(limits: PlanLimits) -> int:
    """The number of addresses that a run may store on a plan."""
    if limits.documents is None:
        return MAX_ADDRESSES
    return min(MAX_ADDRESSES, max(MIN_ADDRESSES, ADDRESSES_PER_DOCUMENT * limits.documents))


def pack_links(links: Sequence[str]) -> bytes | None:
    """Compress a page's links for storage, the first ones up to :data:`MAX_LINK_BYTES`."""
    text = "\n".join(links)
    if len(text) > MAX_LINK_BYTES:
        text = text[: text.rfind("\n", 0, MAX_LINK_BYTES)]
    return zlib.compress(text.encode(), 6) if text else None


def unpack_links(packed: bytes | None) -> tuple[str, ...]:
    """Links that :func:`pack_links` packed."""
    return tuple(zlib.decompress(packed).decode().split("\n")) if packed else ()


class Frontier:
    """Reads the addresses of one run: what sitemaps date, the newest first, then breadth first.

    It holds a few of them in memory, however many there are.
    """

    def __init__(self, database: Database, run_id: str, source: Source):
        self._database = database
        self._run_id = run_id
        self._source_id = source.id
        self._site_id = source.site_id
        self._taken: dict[bool, deque[Address]] = {False: deque(), True: deque()}
        self._position = {False: _FIRST, True: _FIRST}

    def take(self) -> Address | None:
        """The next address that waits, but for those that were deferred. Each is given once."""
        return self._take(deferred=False)

    def take_deferred(self) -> Address | None:
        """The next address that was deferred. Each is given once."""
        return self._take(deferred=True)

    def _take(self, *, deferred: bool) -> Address | None:
        taken = self._taken[deferred]
        if not taken:
            taken.extend(self._read(deferred=deferred))
        return taken.popleft() if taken else None

    def _read(self, *, deferred: bool) -> list[Address]:
        put_last = RunPage.reason.is_not(None) if deferred else RunPage.reason.is_(None)
        with self._database.read() as session:
            rows = session.execute(
                select(RunPage.url, RunPage.depth, RunPage.position)
                .where(
                    RunPage.run_id == self._run_id,
                    RunPage.status == "waiting",
                    RunPage.position > self._position[deferred],
                    put_last,
                )
                .order_by(RunPage.position)
                .limit(_TAKEN_AT_ONCE)
            ).all()
        if rows:
            self._position[deferred] = rows[-1].position
        return [Address(row.url, row.depth, deferred) for row in rows]

    def status_of(self, url: str) -> str | None:
        """The outcome of an address in this run, as far as it is stored; ``None`` if the run does not know it."""
        with self._database.read() as session:
            return session.scalar(select(RunPage.status).where(RunPage.run_id == self._run_id, RunPage.url == url))

    def known(self, url: str) -> Known | None:
        """Traces that earlier runs, and this one, left of a page."""
        with self._database.read() as session:
            row = session.execute(
                select(SourcePage, StoredDocument.id)
                .outerjoin(
                    StoredDocument,
                    (StoredDocument.site_id == self._site_id)
                    & (StoredDocument.id == SourcePage.document_id)
                    & StoredDocument.body.is_not(None),
                )
                .where(SourcePage.source_id == self._source_id, SourcePage.url == url)
            ).one_or_none()
        if row is None:
            return None
        page, document_id = row
        return Known(
            page.document_id, document_id is not None, page.reason, page.etag or "", page.last_modified or "",
            page.digest, page.text_digest, page.title, page.document_title, page.path_section,
            unpack_links(page.links),
        )  # fmt: skip

    def pages_like(self, url: str, document_id: str, text_digest: bytes) -> dict[str, str | None]:
        """Other pages of the source that are documents with the same text or id, and their status in this run."""
        same = (SourcePage.text_digest == text_digest) | (SourcePage.document_id == document_id)
        with self._database.read() as session:
            rows = session.execute(
                select(SourcePage.url, RunPage.status)
                .outerjoin(RunPage, (RunPage.run_id == self._run_id) & (RunPage.url == SourcePage.url))
                .where(
                    SourcePage.source_id == self._source_id,
                    same,
                    SourcePage.document_id.is_not(None),
                    SourcePage.url != url,
                )
                .limit(_STEP)
            ).all()
        return {row[0]: row[1] for row in rows}

    def lost_pages(self, limit: int = _STEP) -> list[str]:
        """Pages that are documents since an earlier run and that this one has not found."""
        with self._database.read() as session:
            return list(session.scalars(self._unfound(SourcePage.url).limit(limit)))

    def lost_documents(self, after: str, limit: int = _STEP) -> list[tuple[str, str]]:
        """Address and document of such pages, in order of their addresses, ``after`` one of them."""
        query = self._unfound(SourcePage.url, SourcePage.document_id).where(SourcePage.url > after)
        with self._database.read() as session:
            return [(row[0], row[1]) for row in session.execute(query.order_by(SourcePage.url).limit(limit))]

    def _unfound(self, *columns: Any) -> Select[Any]:
        found = select(RunPage.url).where(RunPage.run_id == self._run_id, RunPage.url == SourcePage.url)
        return select(*columns).where(
            SourcePage.source_id == self._source_id, SourcePage.document_id.is_not(None), ~found.exists()
        )


def add_found(
    session: Session,
    run: SourceRun,
    found: Iterable[Found],
    judge: Callable[[str], str | None],
    most: int = MAX_ADDRESSES,
) -> None:
    """Add the addresses that a run does not know yet, and count them. The run is locked by the caller.

    Args:
        judge: Gives the reason why an address is not to be read at all; asked once for each.
        most: The number of addresses that the run may store.
    """
    fresh: dict[str, Found] = {}
    for address in found:
        fresh.setdefault(address.url, address)
    urls = list(fresh)
    for start in range(0, len(urls), _STEP):
        step = urls[start : start + _STEP]
        for url in session.scalars(select(RunPage.url).where(RunPage.run_id == run.id, RunPage.url.in_(step))).all():
            del fresh[url]
    if run.found + len(fresh) > most:
        run.complete = False
    rows = [
        {
            "run_id": run.id,
            "url": address.url,
            "position": _place(number, address.modified),
            "depth": address.depth,
            "status": "waiting" if reason is None else "skipped",
            "reason": reason,
            "found_on": address.found_on,
        }
        for number, address in enumerate(fresh.values(), run.found)
        if number < most
        for reason in [judge(address.url)]
    ]
    if rows:
        session.execute(insert(RunPage), rows)
        run.found += len(rows)
        run.skipped += sum(row["status"] == "skipped" for row in rows)


def _place(number: int, modified: int | None) -> int:
    """The place of an address in the order of a run, which is that of no other; its ``number`` is that as found."""
    return number if modified is None else number - MAX_ADDRESSES * (1 + min(max(0, modified), LATEST))


def settle(
    session: Session, run: SourceRun, url: str, status: str, reason: str | None, *, removed: bool = False
) -> None:
    """Note what became of an address that waits, and count it. The run is locked by the caller.

    Args:
        removed: Whether it was a document until now.
    """
    changed = session.execute(
        update(RunPage)
        .where(RunPage.run_id == run.id, RunPage.url == url, RunPage.status == "waiting")
        .values(status=status, reason=reason, removed=removed),
        execution_options={"synchronize_session": False},
    )
    if status != "waiting" and changed.rowcount:  # type: ignore[attr-defined]  # An UPDATE's result has one.
        setattr(run, status, getattr(run, status) + 1)


def keep_page(session: Session, source_id: str, url: str, values: Mapping[str, Any]) -> None:
    """Keep what the next run must know of a page."""
    page = session.get(SourcePage, (source_id, url))
    if page is None:
        page = SourcePage(source_id=source_id, url=url)
        session.add(page)
    for name, value in values.items():
        setattr(page, name, value)
    page.fetched_at = now()


def forget_page(session: Session, source_id: str, url: str) -> None:
    """Forget what is known of a page that is none any more."""
    session.execute(delete(SourcePage).where(SourcePage.source_id == source_id, SourcePage.url == url))
