"""Troubles of an account at the moment, in plain words: what works, and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import case, func, or_, select
from sqlalchemy.orm import Session

from app.clock import now
from app.models import Site, Source, SourceRun
from app.services.health.health import COUNTERS, DATABASE, DISK, HealthMonitor
from app.services.indexing.lagging import lagging_since
from app.services.sites import listed

LATE = timedelta(minutes=2)
"""After which stored changes that cannot be found yet are late."""
STUCK = timedelta(minutes=10)
"""After which a run that nobody works on is stuck."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that does not work as it should.

    Attributes:
        kind: ``engine``, ``index``, ``indexing``, ``database``, ``disk``, ``counters`` or ``sources``.
        title: What it is: a sentence.
        effect: What works all the same, and what does not: sentences.
        since: When it was noticed or began, aware.
    """

    kind: str
    title: str
    effect: str
    since: datetime


def find_troubles(session: Session, health: HealthMonitor, account_id: int) -> list[Trouble]:
    """Troubles with what an account depends on, the gravest first.

    Asks no server but the database: of the others it is known what the last look at them found.
    """
    sites = session.scalars(select(Site).where(listed(account_id)).order_by(Site.id)).all()
    return [
        *_of_searches(health, sites),
        *_of_changes(health),
        *_of_late_changes(session, health, sites),
        *_of_runs(session, account_id),
    ]


def _of_searches(health: HealthMonitor, sites: Sequence[Site]) -> list[Trouble]:
    failing = {site.engine: since for site in sites if (since := health.engine_failing_since(site.engine))}
    if failing:
        away = [site for site in sites if site.engine in failing]
        return [
            Trouble(
                "engine",
                "The search engine does not answer.",
                f"Searches of {_named(away, sites)} fail. Pages that you send are stored, and can be found once it is "
                "back.",
                min(failing.values()),
            )
        ]
    missing = [site for site in sites if site.id in health.missing_indexes]
    if not missing:
        return []
    return [
        Trouble(
            "index",
            "An index is being rebuilt from the stored pages.",
            f"Searches of {_named(missing, sites)} fail until it is complete. No page is lost, and you need not send "
            "any again.",
            min(health.missing_indexes[site.id] for site in missing),
        )
    ]


def _of_changes(health: HealthMonitor) -> list[Trouble]:
    troubles = []
    if since := health.failing_since(DISK):
        troubles.append(
            Trouble(
                "disk",
                "The service cannot store anything.",
                "Searches work, but some may be missing in the analytics. New pages and other changes may be refused; "
                "send them again later.",
                since,
            )
        )
    if since := health.failing_since(DATABASE):
        troubles.append(
            Trouble(
                "database",
                "Nothing can be changed.",
                "Searches work, and appear in the analytics later. New pages and changes of sites and keys are "
                "refused; send them again later.",
                since,
            )
        )
    if since := health.failing_since(COUNTERS):
        troubles.append(
            Trouble(
                "counters",
                "Usage cannot be counted.",
                "Searches work and are not charged. New pages and changes of sites and keys are refused; send them "
                "again later. The usage shown here may be too low.",
                since,
            )
        )
    return troubles


def _of_late_changes(session: Session, health: HealthMonitor, sites: Sequence[Site]) -> list[Trouble]:
    """Changes that are stored and not in the index, although the engine and the index are there."""
    late: dict[int, datetime] = {}
    for site in sites:
        known = health.engine_failing_since(site.engine) is not None or site.id in health.missing_indexes
        if known or site.applied_revision >= site.revision:
            continue
        since = lagging_since(session, site)
        if since is not None and since < now() - LATE:
            late[site.id] = since
    if not late:
        return []
    named = _named([site for site in sites if site.id in late], sites)
    return [
        Trouble(
            "indexing",
            "Changes take longer than usual to be found.",
            f"Searches work. Some changes of {named} are stored, but cannot be found yet; you need not send them "
            "again.",
            min(late.values()),
        )
    ]


def _of_runs(session: Session, account_id: int) -> list[Trouble]:
    limit = now() - STUCK
    since = session.scalar(
        select(func.min(case((SourceRun.status == "running", SourceRun.lease_until), else_=SourceRun.waiting_since)))
        .join(Source, Source.id == SourceRun.source_id)
        .join(Site, Site.id == Source.site_id)
        .where(
            listed(account_id),
            or_(
                (SourceRun.status == "queued") & (SourceRun.waiting_since < limit),
                (SourceRun.status == "running") & (SourceRun.lease_until < limit),
            ),
        )
    )
    if since is None:
        return []
    effect = "Searches work. Pages of sources are not brought up to date until crawling goes on by itself."
    return [Trouble("sources", "Sources wait to be crawled.", effect, since)]


def _named(sites: Sequence[Site], of: Sequence[Site]) -> str:
    if len(sites) == len(of):
        return "your site" if len(of) == 1 else "your sites"
    return ", ".join(site.name for site in sites)
