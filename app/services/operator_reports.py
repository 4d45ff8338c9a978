"""Reports over all accounts, for the operators of the service. They contain no queries and no documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, func, select, type_coerce
from sqlalchemy.orm import Session

from app.models import Account, EngineTask, QueuedEmail, SearchEvent, Site, Source, SourceRun, UsageDay, WebhookDelivery
from app.models.events import DAY_MICROSECONDS
from app.services.analytics.reports import EPOCH
from app.services.analytics.search_times import MAX_SEARCHES, DayTimes, percentiles
from app.services.engines import Engines
from app.services.sites import MAX_INT64
from app.wording import counted

MAX_FAILED_RUNS = 50
"""Maximum number of failed crawls in a report."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Work that waits for a process.

    Attributes:
        name: Plural noun for people, such as ``Emails``.
        failing: Number of items whose last attempt failed; ``None`` if attempts are not recorded.
    """

    name: str
    waiting: int
    failing: int | None = None


def list_queues(session: Session) -> list[Queue]:
    """Return all queues of the installation."""
    open_runs = select(SourceRun.status, func.count()).where(SourceRun.status.in_(("queued", "running")))
    runs = dict(session.execute(open_runs.group_by(SourceRun.status)).all())
    tasks, failing_tasks = session.execute(
        select(func.count(), func.count().filter(EngineTask.attempts > 0)).select_from(EngineTask)
    ).one()
    indexes, failing_indexes = session.execute(
        select(func.count(), func.count(Site.indexing_error)).where(Site.applied_revision < Site.revision)
    ).one()
    queued_emails = session.scalar(select(func.count()).select_from(QueuedEmail)) or 0
    deliveries, failing_deliveries = session.execute(
        select(func.count(), func.count().filter(WebhookDelivery.attempts > 0)).where(
            WebhookDelivery.status == "waiting"
        )
    ).one()
    return [
        Queue("Crawls waiting", runs.get("queued", 0)),
        Queue("Crawls running", runs.get("running", 0)),
        Queue("Indexes behind their documents", indexes, failing_indexes),
        Queue("Engine tasks", tasks, failing_tasks),
        Queue("Emails", queued_emails),
        Queue("Webhook deliveries", deliveries, failing_deliveries),
    ]


@dataclass(frozen=True, slots=True)
class EngineUsage:
    """An engine with the sites whose index is on it. Deleted sites that can still be restored don't count.

    Attributes:
        identity: Kind of the engine, with its name if the URL gives one, such as ``typesense:second``.
        is_configured: Whether SEARCH_URL has the engine; otherwise, all searches of its sites fail.
    """

    identity: str
    is_configured: bool
    sites: int
    documents: int


def list_engine_usage(session: Session, engines: Engines) -> list[EngineUsage]:
    """Return the engines of SEARCH_URL in order, then engines on which only existing sites are."""
    rows = session.execute(
        select(Site.engine, func.count(), func.sum(Site.document_count))
        .where(Site.deleted_at.is_(None), Site.searched_sites.is_(None))
        .group_by(Site.engine)
        .order_by(Site.engine)
    )
    counts = {identity: (sites, int(documents)) for identity, sites, documents in rows}
    identities = dict.fromkeys([*(engine.identity for engine in engines.all()), *counts])
    return [EngineUsage(identity, engines.knows(identity), *counts.get(identity, (0, 0))) for identity in identities]


def describe_missing_engine(usage: EngineUsage) -> str:
    """Return the problem of an engine that SEARCH_URL does not have, as a sentence."""
    sites = counted(usage.sites, "site")
    return (
        f"SEARCH_URL has no engine {usage.identity}, which has {sites} with {counted(usage.documents, 'document')}: "
        "all their searches fail."
    )


def missing_engine_remedy(usage: EngineUsage) -> str:
    """Return both remedies for an engine that SEARCH_URL does not have, as a sentence."""
    return (
        "Add the engine to SEARCH_URL again, and restart the service. Or move its sites to another engine, which is "
        f"rebuilt from the stored documents: `search move --from {usage.identity} --to NAME`."
    )


def list_sites(session: Session, *, account_id: int | None = None, engine: str | None = None) -> Sequence[Site]:
    """Return the sites of all accounts, by ID, without deleted sites.

    Args:
        account_id: The only account; ``None`` for all.
        engine: Identity of the only engine; ``None`` for all.
    """
    if account_id is not None and not 0 < account_id <= MAX_INT64:
        return ()
    query = select(Site).where(Site.deleted_at.is_(None), Site.searched_sites.is_(None)).order_by(Site.id)
    if account_id is not None:
        query = query.where(Site.account_id == account_id)
    if engine is not None:
        query = query.where(Site.engine == engine)
    return session.scalars(query).all()


def describe_site(site: Site) -> dict[str, Any]:
    """Return a site with its engine as JSON values."""
    return {
        "id": site.id,
        "account_id": site.account_id,
        "name": site.name,
        "url": site.url,
        "engine": site.engine,
        "documents": site.document_count,
    }


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed crawl.

    Attributes:
        kind: Kind of the source, such as ``website``.
        reason: Error code. The message is omitted, because it may contain text of a page.
    """

    account_id: int
    account_name: str
    site_name: str
    kind: str
    reason: str
    finished_at: datetime | None


def list_failed_runs(session: Session) -> Sequence[FailedRun]:
    """Return the latest failed crawls of all accounts, in the order in which they were last queued."""
    rows = session.execute(
        select(Account.id, Account.name, Site.name, Source.kind, SourceRun.error, SourceRun.finished_at)
        .select_from(SourceRun)
        .join(Source, Source.id == SourceRun.source_id)
        .join(Site, Site.id == Source.site_id)
        .join(Account, Account.id == Site.account_id)
        .where(SourceRun.status == "failed")
        .order_by(SourceRun.waiting_since.desc())
        .limit(MAX_FAILED_RUNS)
    )
    return [
        FailedRun(account_id, account, site, kind, (error or {}).get("code", "unknown"), finished_at)
        for account_id, account, site, kind, error, finished_at in rows
    ]


@dataclass(frozen=True, slots=True)
class ServiceDay:
    """Searches of all accounts on a UTC day.

    Attributes:
        searches: Charged searches, from copies up to a minute old.
        refused_searches: Searches rejected by a limit of a plan.
    """

    date: date
    searches: int
    refused_searches: int


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """Searches and response times of all accounts, with the same days in both, oldest first."""

    days: Sequence[ServiceDay]
    times: Sequence[DayTimes]


def report_service(session: Session, last: date, day_count: int) -> ServiceReport:
    """Return the report for the days up to ``last``.

    Response times come from the newest :data:`~app.services.analytics.search_times.MAX_SEARCHES` stored searches. They
    are looked up by primary key, so that the work does not grow with the table. Earlier days have no response times.
    """
    dates = [last - timedelta(days=before) for before in reversed(range(day_count))]
    usage = session.execute(
        select(UsageDay.day, func.sum(UsageDay.searches), func.sum(UsageDay.refused_searches))
        .where(UsageDay.day >= dates[0], UsageDay.day <= last)
        .group_by(UsageDay.day)
    )
    counts = {day: (int(searches), int(rejected)) for day, searches, rejected in usage}
    by_day = _count_response_times(session)
    return ServiceReport(
        [ServiceDay(day, *counts.get(day, (0, 0))) for day in dates],
        [DayTimes(day, *percentiles(by_day.get((day - EPOCH).days, {}))) for day in dates],
    )


def _count_response_times(session: Session) -> dict[int, Counter[int]]:
    """Count the newest searches by day since 1970-01-01 and response time, without an incomplete first day."""
    newest = session.scalar(select(func.max(SearchEvent.id))) or 0
    oldest = session.scalar(select(func.min(SearchEvent.id))) or 0
    day = type_coerce(SearchEvent.occurred_at, BigInteger) // DAY_MICROSECONDS
    rows = session.execute(
        select(day, SearchEvent.response_ms, func.count())
        .where(SearchEvent.id > newest - MAX_SEARCHES, SearchEvent.counted)
        .group_by(day, SearchEvent.response_ms)
    )
    by_day: dict[int, Counter[int]] = {}
    for number, response_ms, count in rows:
        if response_ms is not None:
            by_day.setdefault(int(number), Counter())[response_ms] += count
    if oldest <= newest - MAX_SEARCHES and len(by_day) > 1:
        del by_day[min(by_day)]
    return by_day
