"""Sources of a site: where the crawler finds its pages, and how it reads them."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.crawl.fetch.addresses import normalize_url
from app.crawl.fetch.values import RANK
from app.crawl.sources.checks import check_field_rules, check_selectors, check_url
from app.crawl.sources.runs import OPEN, newest_runs, request_run, source_status
from app.crawl.sources.schedule import next_run_at
from app.errors import ApiError, ErrorCode, field_error
from app.models import Account, Site, Source, SourcePage, SourceRun
from app.services.sites import account_suspended, get_site, listed, site_inactive
from app.storage.database import ROW_LOCK, read_page
from app.tokens import make_hook_token, read_hook_token
from app.wording import counted

MAX_SOURCES = 20
"""Maximum number of sources per site."""

READING_FIELDS = frozenset({"selectors", "fields", "headers", "render"})
"""Fields that determine how pages are read. When one changes, all pages are fetched again."""


@dataclass(frozen=True, slots=True)
class SourceView:
    """The public view of a source, without its request headers.

    Attributes:
        hook_salt: Salt for the token of its deploy hook.
    """

    id: str
    site_id: int
    kind: str
    url: str
    schedule: str
    include: list[str]
    exclude: list[str]
    selectors: dict[str, str]
    fields: list[dict[str, Any]]
    max_pages: int | None
    max_depth: int | None
    render: str
    status: str
    last_run: SourceRun | None
    created_at: datetime
    updated_at: datetime
    hook_salt: str


def view(source: Source, last_run: SourceRun | None) -> SourceView:
    """Return the public view of a source with its newest run."""
    names = {member.name for member in fields(SourceView)} - {"status", "last_run"}
    columns = {name: getattr(source, name) for name in names}
    return SourceView(**columns, status=source_status(last_run), last_run=last_run)


_SOURCE_ID = re.compile(r"src_[0-9a-f]{16}", re.ASCII)


def get_source(session: Session, account_id: int, site_id: int, source_id: str, *, lock: bool = False) -> Source:
    """Load a source for a caller.

    Args:
        lock: Whether to lock the source until the transaction ends.

    Raises:
        ApiError: 404: ``site_not_found`` if the account has no such site, otherwise ``source_not_found``.
    """
    site = get_site(session, account_id, site_id)
    query = select(Source).where(Source.id == source_id, Source.site_id == site.id)
    is_id = _SOURCE_ID.fullmatch(source_id) is not None  # PostgreSQL rejects text with NUL.
    source = session.scalar(query.with_for_update(**ROW_LOCK) if lock else query) if is_id else None
    if source is None:
        raise ApiError(ErrorCode.SOURCE_NOT_FOUND, "Source not found.")
    return source


def find_by_hook(session: Session, token: str, secret: str, *, lock: bool = False) -> tuple[Source, Site]:
    """Return the source of a deploy hook, and the source's site.

    Args:
        secret: The server's secret key.
        lock: Whether to lock the source until the transaction ends.

    Raises:
        ApiError: 404; 403 when the site is paused or deleted, or its account suspended.
    """
    query = select(Source).where(Source.id == read_hook_token(token))
    source = session.scalar(query.with_for_update(**ROW_LOCK) if lock else query)
    # Compared in constant time, so that response times reveal nothing about the token.
    if source is None or not hmac.compare_digest(make_hook_token(source.id, source.hook_salt, secret), token):
        raise ApiError(ErrorCode.SOURCE_NOT_FOUND, "This deploy hook does not exist.")
    site = session.get_one(Site, source.site_id)
    account = session.get_one(Account, site.account_id)
    if account.suspended_at is not None:
        raise account_suspended(account.suspension_reason)
    if not site.active:
        raise site_inactive(deleted=site.deleted_at is not None)
    return source, site


def list_sources(
    session: Session, account_id: int, site_id: int, *, limit: int, offset: int
) -> tuple[Sequence[Source], int]:
    """Return one page of a site's sources, oldest first, and their total number.

    Raises:
        ApiError: 404.
    """
    site = get_site(session, account_id, site_id)
    oldest = select(Source).where(Source.site_id == site.id).order_by(Source.created_at, Source.id)
    return read_page(session, oldest, limit=limit, offset=offset)


def count_sources(session: Session, site_id: int) -> int:
    """Return the number of a site's sources."""
    return session.scalar(select(func.count()).select_from(Source).where(Source.site_id == site_id)) or 0


@dataclass(frozen=True, slots=True)
class FailedSource:
    """A source whose newest run failed."""

    id: str
    site_id: int
    site_name: str
    url: str
    error: dict[str, str] | None
    failed_at: datetime | None


def list_failed(session: Session, account_id: int) -> list[FailedSource]:
    """Return the account's sources whose newest run failed, the latest failure first."""
    rows = session.execute(
        select(Source, Site.name)
        .join(Site, Site.id == Source.site_id)
        .where(
            listed(account_id),
            select(SourceRun.id).where(SourceRun.source_id == Source.id, SourceRun.status == "failed").exists(),
        )
    ).all()
    newest = newest_runs(session, [source.id for source, _ in rows])
    failed = [
        FailedSource(source.id, source.site_id, name, source.url, run.error, run.finished_at)
        for source, name in rows
        if (run := newest[source.id]).status == "failed"
    ]
    return sorted(failed, key=lambda source: source.failed_at or now(), reverse=True)


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A queued or running run.

    Attributes:
        settled_count: Number of URLs with an outcome.
        url_count: Number of discovered URLs.
    """

    source_id: str
    site_id: int
    url: str
    is_started: bool
    settled_count: int
    url_count: int


def list_open_runs(session: Session, account_id: int) -> list[OpenRun]:
    """Return the account's queued and running runs, the oldest first."""
    rows = session.execute(
        select(Source, SourceRun)
        .join(Site, Site.id == Source.site_id)
        .join(SourceRun, SourceRun.source_id == Source.id)
        .where(listed(account_id), SourceRun.status.in_(OPEN))
        .order_by(SourceRun.queued_at, SourceRun.id)
    ).all()
    return [
        OpenRun(
            source.id,
            source.site_id,
            source.url,
            run.status == "running",
            run.indexed + run.unchanged + run.skipped + run.failed,
            run.found,
        )
        for source, run in rows
    ]


def find_first_crawl(session: Session, site: Site) -> OpenRun | None:
    """Return the queued or running run of a site that has not ended any run yet; ``None`` without such a run."""
    runs = select(SourceRun).join(Source, Source.id == SourceRun.source_id).where(Source.site_id == site.id)
    if session.scalar(runs.where(SourceRun.status.not_in(OPEN)).exists().select()):
        return None
    return next((run for run in list_open_runs(session, site.account_id) if run.site_id == site.id), None)


def find_site_url(session: Session, site: Site, source: Source, run: SourceRun | None) -> str | None:
    """Suggest another URL for a site, if a crawled website's URL differs from it only in scheme or ``www.``.

    Returns ``None`` without a suggestion, or if any of the site's sources has the scheme and host of the site's URL.

    Args:
        run: The source's newest run.
    """
    if source.kind != "website" or run is None or not run.indexed + run.unchanged:
        return None
    try:
        current, crawled = urlsplit(normalize_url(site.url)), urlsplit(source.url)
    except ValueError:
        return None  # The site's URL was changed to an invalid one after the source was added.
    urls = session.scalars(select(Source.url).where(Source.site_id == site.id)).all()
    if current.netloc.removeprefix("www.") != crawled.netloc.removeprefix("www."):
        return None
    if any((current.scheme, current.netloc) == (other.scheme, other.netloc) for other in map(urlsplit, urls)):
        return None
    return current._replace(scheme=crawled.scheme, netloc=crawled.netloc).geturl()


def create_source(
    session: Session, account_id: int, site_id: int, fields: Mapping[str, Any], *, private_addresses: bool
) -> tuple[Source, SourceRun]:
    """Add a source and queue its first run.

    Args:
        private_addresses: Whether the crawler may connect to private IP addresses.

    Raises:
        ApiError: 404; 403 when the site is paused or has the maximum number of sources; 400 for a URL that does not
            belong to the site or already is a source of this kind.
    """
    site = get_site(session, account_id, site_id, lock=True)
    if not site.active:
        raise site_inactive()
    if count_sources(session, site.id) >= MAX_SOURCES:
        raise ApiError(
            ErrorCode.SOURCE_LIMIT_REACHED, f"A site can have {counted(MAX_SOURCES, 'source')}; delete one first."
        )
    url = check_url(site, fields["url"], private_addresses=private_addresses)
    check_selectors(fields["selectors"])
    check_field_rules(fields["fields"])
    _reject_duplicate(session, site, fields["kind"], url)
    moment = now()
    source_id = f"src_{secrets.token_hex(8)}"
    source = Source(
        **{**fields, "url": url},
        id=source_id,
        site_id=site.id,
        next_run_at=next_run_at(source_id, fields["schedule"], moment),
        created_at=moment,
        updated_at=moment,
    )
    session.add(source)
    if not site.search_settings and not site.document_count:
        # The new site is filled by crawls, so its settings use the ranks that pages declare.
        site.search_settings = {"rank_field": RANK}
    session.flush()
    return source, request_run(session, source)


def update_source(
    session: Session,
    account_id: int,
    site_id: int,
    source_id: str,
    changes: Mapping[str, Any],
    *,
    private_addresses: bool,
) -> Source:
    """Change a source. The change takes effect with the next run.

    Raises:
        ApiError: 404; 400 for a change of the kind, or an invalid URL as in :func:`create_source`.
    """
    site = get_site(session, account_id, site_id, lock=True)
    source = get_source(session, account_id, site_id, source_id, lock=True)
    if changes.get("kind", source.kind) != source.kind:
        raise field_error("kind", "immutable", "cannot be changed; create a new source")
    moment = now()
    values = dict(changes)
    if "url" in values:
        values["url"] = check_url(site, values["url"], private_addresses=private_addresses)
        if values["url"] != source.url:
            _reject_duplicate(session, site, source.kind, values["url"])
    check_selectors(values.get("selectors", {}))
    check_field_rules(values.get("fields", []))
    if values.get("schedule", source.schedule) != source.schedule:
        source.next_run_at = next_run_at(source.id, values["schedule"], moment)
    if any(values[name] != getattr(source, name) for name in READING_FIELDS & values.keys()):
        _forget_contents(session, source)
    for name, value in values.items():
        setattr(source, name, value)
    source.updated_at = moment
    session.flush()
    return source


def _reject_duplicate(session: Session, site: Site, kind: str, url: str) -> None:
    query = select(Source.id).where(Source.site_id == site.id, Source.kind == kind, Source.url == url)
    if session.scalar(query) is not None:
        raise field_error("url", "taken", "is already a source of this kind")


def forget_contents_of_site(session: Session, site: Site) -> None:
    """Make the next runs of a site's sources fetch and index every page again, even if it has not changed."""
    for source in session.scalars(select(Source).where(Source.site_id == site.id)):
        _forget_contents(session, source)


def _forget_contents(session: Session, source: Source) -> None:
    session.execute(
        update(SourcePage).where(SourcePage.source_id == source.id).values(etag=None, last_modified=None, digest=None)
    )
