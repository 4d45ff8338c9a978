"""Reports over all accounts, for the operators of the service. They contain no queries and no documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import Account, EngineTask, Mail, Site, Source, SourceRun, WebhookDelivery

MAX_FAILED_RUNS = 50
"""Maximum number of failed crawls in a report."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Work that waits for a process.

    Attributes:
        name: Plural noun for people, such as ``E-mails``.
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
    mails = session.scalar(select(func.count()).select_from(Mail)) or 0
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
        Queue("E-mails", mails),
        Queue("Webhook deliveries", deliveries, failing_deliveries),
    ]


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
