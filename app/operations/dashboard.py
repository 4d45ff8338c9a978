"""The dashboard of an account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy.orm import Session

from app.counters.base import CounterStore
from app.crawl.sources.sources import FailedSource, list_failed
from app.plans import PlanLimits, limit_or_unlimited, per_month
from app.services.access.key_sightings import ExposedKey, list_exposed
from app.services.health import HealthMonitor, Trouble, find_troubles
from app.services.sites import count_documents, count_keys, count_sites
from app.services.usage.daily_usage import usage_between


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Counts, limits, and problems of an account, as the API shows them."""

    siteCount: int
    apiKeyCount: int
    plan: str
    usage: dict[str, int]
    limits: dict[str, int | bool]
    failed_sources: list[FailedSource]
    troubles: list[Trouble]
    exposed_keys: Sequence[ExposedKey]


def get_dashboard(
    session: Session,
    counters: CounterStore | None,
    health: HealthMonitor,
    account_id: int,
    plan: str,
    limits: PlanLimits,
    today: date,
) -> Dashboard:
    """Return an account's sites and limits, its usage in this calendar month (UTC), and problems with dependencies.

    Args:
        counters: The counter store, or ``None`` to use the last copy of its counts.

    Raises:
        CountersUnavailable: Usage cannot be read.
    """
    month = usage_between(session, counters, account_id, today.replace(day=1), today)
    monthly = per_month(limits.searches_per_day)
    return Dashboard(
        siteCount=count_sites(session, account_id),
        apiKeyCount=count_keys(session, account_id),
        plan=plan,
        usage={
            "searches_this_month": sum(day.used for day in month),
            "indexed_pages": count_documents(session, account_id),
            "indexing_operations_this_month": sum(day.indexing for day in month),
            "refused_searches_this_month": sum(day.refused for day in month),
        },
        limits={
            "max_sites": limit_or_unlimited(limits.sites),
            "max_api_keys": limit_or_unlimited(limits.keys),
            "searches_per_month": limit_or_unlimited(monthly),
            "unlimited": limits.sites is None and limits.keys is None and monthly is None,
        },
        failed_sources=list_failed(session, account_id),
        troubles=find_troubles(session, health, account_id),
        exposed_keys=list_exposed(session, account_id),
    )
