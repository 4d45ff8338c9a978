"""Runs of sources: a queue in SQL for the workers of all machines, and reports on ended runs.

A worker claims a run for a limited time and renews its claim. A killed process does not renew its claim, so the claim
lapses and another process continues the run from its state in SQL.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, NamedTuple

from prometheus_client import Counter
from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from app.clock import now
from app.errors import ApiError, ErrorCode
from app.models import Account, RunPage, Site, Source, SourceRun
from app.models.base import has_come
from app.storage.database import ROW_LOCK, read_page

ENDED_RUNS = Counter("search_source_runs_total", "Runs of sources that ended.", ["status"])
for _status in ("finished", "failed", "cancelled"):
    ENDED_RUNS.labels(_status)  # Exported as 0 from the start, so that the first increase is visible.

RUNS_KEPT = 50
"""Number of newest runs that are kept for each source."""

MAX_REQUESTED_URLS = 10_000
"""Maximum number of URLs that a run can be limited to; a run for more URLs crawls everything."""

LEASE = timedelta(seconds=60)
"""Lifetime of a claim, which is renewed well before its end."""

OPEN = ("queued", "running")

INCOMPLETE = "incomplete"
"""The error code of a run that could not read many pages for temporary reasons."""


class Claim(NamedTuple):
    """The exclusive right to execute a run, until it lapses or is released."""

    run_id: str
    lease: str


class ClaimState(Enum):
    """The result of a renewal."""

    VALID = "valid"
    CANCELED = "cancelled"
    """The run must stop; the claim is still valid."""
    LOST = "lost"
    """The claim lapsed and another process has the run, or the run was deleted."""


def run_not_found() -> ApiError:
    """Return the 404 for a run that does not exist, belongs to another source, or has ended."""
    return ApiError(ErrorCode.RUN_NOT_FOUND, "Run not found.")


def find_open_run(session: Session, source: Source) -> SourceRun | None:
    """Return the queued or running run of a source, if there is one."""
    return session.scalar(_open_run(source))


def _open_run(source: Source) -> Select[SourceRun]:
    return select(SourceRun).where(SourceRun.source_id == source.id, SourceRun.status.in_(OPEN))


def request_run(
    session: Session, source: Source, *, urls: Sequence[str] | None = None, max_removed_percent: int | None = None
) -> SourceRun:
    """Queue a run, unless one is already queued or running. Return the new or the existing run.

    Args:
        urls: Limit the run to these URLs, without removing documents; ``None`` crawls everything.
        max_removed_percent: Maximum share of the source's documents that this run may remove; overrides the default.
    """
    # A concurrent request waits here and then finds the new run.
    session.execute(select(Source.id).where(Source.id == source.id).with_for_update(**ROW_LOCK))
    run = find_open_run(session, source)
    if run is not None:
        if run.cancelled:  # The run stops within seconds, and this request must survive it.
            source.next_options = _widened(source.next_options, urls)
        return run
    options: dict[str, Any] = {}
    if urls is not None:
        options["urls"] = list(urls)
    if max_removed_percent is not None:
        options["max_removed_percent"] = max_removed_percent
    moment = now()
    run = SourceRun(
        id=f"run_{secrets.token_hex(10)}",
        source_id=source.id,
        status="queued",
        options=options,
        queued_at=moment,
        waiting_since=moment,
    )
    session.add(run)
    session.flush()
    return run


def ensure_later_run(session: Session, source: Source, urls: Sequence[str] | None) -> SourceRun:
    """Ensure that a crawl starts after this call: reuse the queued run, or queue one behind the current run.

    Args:
        urls: Limit the run to these URLs; ``None`` crawls everything.

    Returns:
        The queued run, or the current run that the new run follows.
    """
    # The source is always locked before its run. The lock also keeps workers from claiming the run meanwhile.
    session.execute(select(Source.id).where(Source.id == source.id).with_for_update(**ROW_LOCK))
    run = session.scalar(_open_run(source).with_for_update(**ROW_LOCK))
    if run is None:
        return request_run(session, source, urls=urls)
    if run.status == "queued":
        run.options = _widened(run.options, urls)
    else:
        source.next_options = _widened(source.next_options, urls)
    session.flush()
    return run


def _widened(options: Mapping[str, Any] | None, urls: Sequence[str] | None) -> dict[str, Any]:
    """Add URLs to a run's options. If they exceed :data:`MAX_REQUESTED_URLS`, the run crawls everything."""
    options = {"urls": []} if options is None else dict(options)
    previous = options.pop("urls", None)
    if previous is None or urls is None:
        return options
    all_urls = list(dict.fromkeys((*previous, *urls)))
    return options if len(all_urls) > MAX_REQUESTED_URLS else {**options, "urls": all_urls}


def follow_run(session: Session, source: Source, run: SourceRun) -> None:
    """Queue the run that was requested during a run that has ended.

    Canceling a run discards earlier requests; requests made while it stops are queued.

    Args:
        source: The source, locked by the caller.
    """
    options, source.next_options = source.next_options, None
    if options is not None and session.get_one(Site, source.site_id).active:
        request_run(session, source, urls=options.get("urls"))


def cancel_run(session: Session, source: Source) -> SourceRun:
    """Cancel the queued or running run. A running run stops within seconds and keeps the documents it has written.

    Raises:
        ApiError: 404 if no run is queued or running.
    """
    run = session.scalar(_open_run(source).with_for_update(**ROW_LOCK))
    if run is None:
        raise run_not_found()
    source.next_options = None
    _cancel(run)
    session.flush()
    return run


def cancel_runs_of_sites(session: Session, site_ids: Sequence[int]) -> None:
    """Cancel all runs of some sites, including requested ones."""
    of_sites = select(Source.id).where(Source.site_id.in_(site_ids))
    for source in session.scalars(
        select(Source).where(Source.site_id.in_(site_ids)).order_by(Source.id).with_for_update(**ROW_LOCK)
    ):
        source.next_options = None
    for run in session.scalars(
        select(SourceRun)
        .where(SourceRun.source_id.in_(of_sites), SourceRun.status.in_(OPEN))
        .order_by(SourceRun.id)
        .with_for_update(**ROW_LOCK)
    ):
        _cancel(run)
    session.flush()


def _cancel(run: SourceRun) -> None:
    run.cancelled = True
    if run.status == "queued":
        run.status = "cancelled"
        run.finished_at = now()


def list_runs(session: Session, source: Source, *, limit: int, offset: int) -> tuple[Sequence[SourceRun], int]:
    """Return one page of a source's runs, newest first, and their total number."""
    query = select(SourceRun).where(SourceRun.source_id == source.id)
    return read_page(session, newest_first(query), limit=limit, offset=offset)


_RUN_ID = re.compile(r"run_[0-9a-f]{20}", re.ASCII)


def get_run(session: Session, source: Source, run_id: str) -> SourceRun:
    """Return one run of a source.

    Raises:
        ApiError: 404.
    """
    is_id = _RUN_ID.fullmatch(run_id) is not None  # PostgreSQL rejects text with NUL.
    run = session.get(SourceRun, run_id) if is_id else None
    if run is None or run.source_id != source.id:
        raise run_not_found()
    return run


IN_INDEX = ("indexed", "unchanged")
"""Outcomes of pages that are documents."""


def _is_reported() -> ColumnElement[bool]:
    """Return the SQL condition that a run's report lists a URL: it was not indexed, or it was, but with a remark."""
    return RunPage.status.in_(("skipped", "failed")) | RunPage.status.in_(IN_INDEX) & RunPage.reason.is_not(None)


def list_reported(session: Session, run: SourceRun, *, limit: int, offset: int) -> tuple[Sequence[RunPage], int]:
    """Return one page of a run's report, in order of discovery, and the total number of its URLs.

    The report lists the URLs that the run did not index, and indexed ones with a remark.
    """
    query = select(RunPage).where(RunPage.run_id == run.id, _is_reported())
    return read_page(session, query.order_by(RunPage.position, RunPage.url), limit=limit, offset=offset)


def count_reasons(session: Session, run: SourceRun) -> dict[str, int]:
    """Return the number of URLs in a run's report for each reason, most frequent first."""
    count = func.count()
    rows = session.execute(
        select(RunPage.reason, count)
        .where(RunPage.run_id == run.id, _is_reported())
        .group_by(RunPage.reason)
        .order_by(count.desc(), RunPage.reason)
    )
    return {reason: number for reason, number in rows if reason is not None}


def newest_runs(session: Session, source_ids: Iterable[str]) -> dict[str, SourceRun]:
    """Return the newest run of each source that has one."""
    later = aliased(SourceRun)
    newest = select(SourceRun).where(
        SourceRun.source_id.in_(list(source_ids)),
        ~select(later.id)
        .where(
            later.source_id == SourceRun.source_id,
            or_(
                later.queued_at > SourceRun.queued_at,
                (later.queued_at == SourceRun.queued_at) & (later.id > SourceRun.id),
            ),
        )
        .exists(),
    )
    return {run.source_id: run for run in session.scalars(newest)}


def source_status(run: SourceRun | None) -> str:
    """Return a source's status, from its newest run: ``idle``, ``queued``, ``running`` or ``failed``."""
    return run.status if run is not None and run.status in (*OPEN, "failed") else "idle"


def claim_run(session: Session, run_id: str | None = None) -> Claim | None:
    """Claim the next run that is queued or has a lapsed claim. Returns ``None`` if no such run exists.

    Accounts take turns: the next run belongs to an account with the fewest running runs. Among these accounts' waiting
    runs, the run that has waited longest is next. Runs of suspended accounts keep waiting, except for canceled runs,
    which only need to be ended.

    Args:
        run_id: The only run to claim.
    """
    moment = now()
    source, site = aliased(Source), aliased(Site)
    running, running_source, running_site = aliased(SourceRun), aliased(Source), aliased(Site)
    running_count = (
        select(func.count())
        .select_from(running)
        .join(running_source, running_source.id == running.source_id)
        .join(running_site, running_site.id == running_source.site_id)
        # Lapsed claims do not count, or a killed worker would put its accounts at a disadvantage.
        .where(running.status == "running", running.lease_until > moment, running_site.account_id == site.account_id)
        .correlate(site)
        .scalar_subquery()
    )
    waiting = (
        select(SourceRun)
        .join(source, source.id == SourceRun.source_id)
        .join(site, site.id == source.site_id)
        .join(Account, Account.id == site.account_id)
        .where(_is_waiting(moment))
        .order_by(running_count, SourceRun.waiting_since, SourceRun.id)
        .limit(1)
        # Concurrent workers skip each other's choice instead of waiting for it.
        .with_for_update(of=SourceRun, skip_locked=True)
    )
    if run_id is not None:
        waiting = waiting.where(SourceRun.id == run_id)
    run = session.scalar(waiting)
    if run is None:
        return None
    # A run that was handed back has no lease, so only killed processes count.
    run.lapses += run.lease is not None
    run.status = "running"
    run.started_at = run.started_at or moment
    # A new name with each claim: a process that was only slow finds that its name is gone, and stops writing.
    run.lease = secrets.token_hex(10)
    run.lease_until = moment + LEASE
    session.flush()
    return Claim(run.id, run.lease)


_ANY_OPEN = select(SourceRun.id).where(SourceRun.status.in_(["queued", "running"])).limit(1)
"""Built once, because idle workers run it every two seconds, and the queries of waiting runs take three times as long.
"""


def _is_waiting(moment: Any) -> Any:
    """Return the SQL condition that a run, joined with its account, can be claimed at ``moment``."""
    lapsed = or_(SourceRun.lease_until.is_(None), has_come(SourceRun.lease_until, moment, 2 * LEASE))
    return and_(
        or_(SourceRun.status == "queued", (SourceRun.status == "running") & lapsed),
        or_(Account.suspended_at.is_(None), SourceRun.cancelled),
    )


def count_waiting(session: Session) -> int:
    """Return the number of runs that could be claimed now."""
    if session.scalar(_ANY_OPEN) is None:
        return 0
    waiting = select(func.count(SourceRun.id)).join(Source, Source.id == SourceRun.source_id)
    waiting = waiting.join(Site, Site.id == Source.site_id).join(Account, Account.id == Site.account_id)
    return session.scalar(waiting.where(_is_waiting(now()))) or 0


def renew_claim(session: Session, claim: Claim) -> ClaimState:
    """Extend a claim, and return its state."""
    run = lock_claimed_run(session, claim)
    if run is None:
        return ClaimState.LOST
    run.lease_until = now() + LEASE
    return ClaimState.CANCELED if run.cancelled or _is_suspended(session, run) else ClaimState.VALID


def _is_suspended(session: Session, run: SourceRun) -> bool:
    suspended = select(Account.suspended_at).join(Site, Site.account_id == Account.id)
    suspended = suspended.join(Source, Source.site_id == Site.id).where(Source.id == run.source_id)
    return session.scalar(suspended) is not None


def lock_claimed_run(session: Session, claim: Claim) -> SourceRun | None:
    """Load and lock the run of a claim; ``None`` if the claim is lost.

    A process that has lost its claim must stop writing, since another process executes the run.
    """
    return session.scalar(
        select(SourceRun)
        .where(SourceRun.id == claim.run_id, SourceRun.status == "running", SourceRun.lease == claim.lease)
        .with_for_update(**ROW_LOCK)
    )


def hand_back(session: Session, claim: Claim) -> None:
    """Release a claim, so that any process, including this one, can claim the run again."""
    session.execute(
        update(SourceRun)
        .where(SourceRun.id == claim.run_id, SourceRun.lease == claim.lease, SourceRun.status == "running")
        .values(lease=None, lease_until=None, waiting_since=now())
    )


def end_run(run: SourceRun, status: str, *, error: dict[str, str] | None = None) -> None:
    """End a claimed run with a status: ``finished``, ``failed`` or ``cancelled``."""
    run.status = status
    run.error = error
    run.finished_at = now()
    run.lease = run.lease_until = None


def delete_old_runs(session: Session, source_id: str) -> None:
    """Delete all but the newest :data:`RUNS_KEPT` runs of a source."""
    newest = newest_first(select(SourceRun.id).where(SourceRun.source_id == source_id)).limit(RUNS_KEPT)
    session.execute(
        delete(SourceRun).where(
            SourceRun.source_id == source_id, SourceRun.status.not_in(OPEN), SourceRun.id.not_in(newest)
        )
    )


def newest_first(query: Select[Any]) -> Select[Any]:
    """Order a query of runs."""
    return query.order_by(SourceRun.queued_at.desc(), SourceRun.id.desc())
