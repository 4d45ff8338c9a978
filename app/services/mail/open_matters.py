"""Matters that are still open on an account, beside what its visitors did not find: failed crawls and quotas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import Account, UsageDay
from app.plans import PlanTable
from app.services.sites import count_documents
from app.wording import number

WARNING_PERCENT = 80
"""Used percent of a quota from which it is told."""
PERIOD_DAYS = 7


class FailedCrawl(Protocol):
    """A source whose newest run failed."""

    @property
    def id(self) -> str: ...

    @property
    def site_id(self) -> int: ...

    @property
    def site_name(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def error(self) -> dict[str, str] | None: ...


ListFailed = Callable[[Session, int], Sequence[FailedCrawl]]
"""Gives the failed crawls of an account."""


@dataclass(frozen=True, slots=True)
class OpenMatter:
    """Something to see to.

    Attributes:
        link: What the link says.
        path: Where something can be done, at the service.
    """

    text: str
    link: str
    path: str


def list_open_matters(
    session: Session, account: Account, plans: PlanTable, list_failed: ListFailed, week: date
) -> list[OpenMatter]:
    """The failed crawls of an account, and its quotas that are or were nearly used up.

    Args:
        week: The Monday after the days whose searches are looked at.
    """
    crawls = [
        OpenMatter(
            f"The last crawl of {crawl.url} for {crawl.site_name} failed."
            + (f" {crawl.error['message']}" if crawl.error else ""),
            f"Open this source of {crawl.site_name}",
            f"/api/sites/{crawl.site_id}/sources/{crawl.id}",
        )
        for crawl in list_failed(session, account.id)
    ]
    return crawls + _quotas(session, account, plans, week)


def _quotas(session: Session, account: Account, plans: PlanTable, week: date) -> list[OpenMatter]:
    if account.plan not in plans:
        return []
    limits = plans.limits_of(account.plan, account.limit_overrides)
    documents = count_documents(session, account.id)
    first = week - timedelta(days=PERIOD_DAYS)
    searches = session.scalar(
        select(func.max(UsageDay.searches)).where(
            UsageDay.account_id == account.id, UsageDay.day >= first, UsageDay.day < week
        )
    )
    uses = (
        ("Your sites have {used} of the {allowed} pages of your plan.", documents, limits.documents),
        (
            "On the busiest day of the week, {used} of the {allowed} searches a day of your plan were used.",
            searches,
            limits.searches_per_day,
        ),
    )
    return [
        OpenMatter(text.format(used=number(int(used)), allowed=number(allowed)), "Compare the plans", "/plans")
        for text, used, allowed in uses
        if allowed and used and 100 * used >= WARNING_PERCENT * allowed
    ]
