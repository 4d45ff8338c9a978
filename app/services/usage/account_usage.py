"""Accounts with their usage and quotas, for the operator: listing, searching, and sorting them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, case, func, select, true
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.clock import start_of
from app.models import Account, Ask, Key, Site, UsageDay
from app.plans import PlanLimits, PlanTable
from app.services.sites import MAX_INT64, account_status, describe_account


@dataclass(frozen=True, slots=True)
class AccountUsage:
    """Usage of one account.

    Attributes:
        searches_today, searches_this_month: Charged searches in the UTC day and month, from copies up to a minute old.
        asks_this_month: Questions to the language model in the UTC month, as analytics recorded them.
        keys: Number of keys, including disabled and expired keys.
    """

    account: Account
    searches_today: int
    searches_this_month: int
    asks_this_month: int
    documents: int
    sites: int
    keys: int

    def share(self, limits: PlanLimits) -> float:
        """Return the used share of the most used quota; 1.0 means that it is exhausted."""
        used = (
            (self.searches_today, limits.searches_per_day),
            (self.documents, limits.documents),
            (self.sites, limits.sites),
            (self.keys, limits.keys),
        )
        return max((count / max(limit, 1) for count, limit in used if limit is not None), default=0.0)


def list_account_usage(session: Session, today: date, account_id: int | None = None) -> Sequence[AccountUsage]:
    """Return accounts with their usage, oldest first. The number of SQL queries is fixed.

    Args:
        account_id: The only account to return; ``None`` for all.
    """
    if account_id is not None and not 0 < account_id <= MAX_INT64:
        return ()

    def is_selected(column: InstrumentedAttribute[int]) -> ColumnElement[bool]:
        return true() if account_id is None else column == account_id

    month = (
        select(
            UsageDay.account_id,
            func.sum(UsageDay.searches),
            func.sum(case((UsageDay.day == today, UsageDay.searches), else_=0)),
        )
        .where(UsageDay.day >= today.replace(day=1), UsageDay.day <= today, is_selected(UsageDay.account_id))
        .group_by(UsageDay.account_id)
    )
    searches = {account_id: (int(in_month), int(of_day)) for account_id, in_month, of_day in session.execute(month)}
    asked = (
        select(Site.account_id, func.count())
        .join(Ask, Ask.site_id == Site.id)
        .where(Ask.occurred_at >= start_of(today.replace(day=1)), is_selected(Site.account_id))
        .group_by(Site.account_id)
    )
    asks = dict(session.execute(asked).all())
    in_use = Site.deleted_at.is_(None) & is_selected(Site.account_id)
    counted = (
        select(Site.account_id, func.count(), func.sum(Site.document_count))
        .where(in_use, Site.searched_sites.is_(None))
        .group_by(Site.account_id)
    )
    sites = {account_id: (count, int(documents)) for account_id, count, documents in session.execute(counted)}
    of_accounts = select(Key.account_id, func.count()).join(Site).where(in_use).group_by(Key.account_id)
    keys = dict(session.execute(of_accounts).all())
    listed = []
    for account in session.scalars(select(Account).where(is_selected(Account.id)).order_by(Account.id)):
        in_month, of_day = searches.get(account.id, (0, 0))
        count, documents = sites.get(account.id, (0, 0))
        asks_in_month, key_count = asks.get(account.id, 0), keys.get(account.id, 0)
        listed.append(AccountUsage(account, of_day, in_month, asks_in_month, documents, count, key_count))
    return listed


Listed = tuple[AccountUsage, PlanLimits | None]
"""An account's usage and limits; the limits are ``None`` if its plan is no longer in the plans file."""

ORDERS: dict[str, Callable[[Listed], Any]] = {
    "id": lambda listed: listed[0].account.id,
    "created_at": lambda listed: (-listed[0].account.created_at.timestamp(), -listed[0].account.id),
    "email": lambda listed: listed[0].account.email_key,
    "plan": lambda listed: listed[0].account.plan,
    "searches": lambda listed: (-listed[0].searches_today, -listed[0].searches_this_month),
    "documents": lambda listed: -listed[0].documents,
    "sites": lambda listed: -listed[0].sites,
    "keys": lambda listed: -listed[0].keys,
    "quota": lambda listed: 0.0 if listed[1] is None else -listed[0].share(listed[1]),
}
"""Maps each sort order to its key function. Numbers and times sort in descending order."""


@dataclass(frozen=True, slots=True)
class AccountFilter:
    """A selection of accounts.

    Attributes:
        text: Part of the name or email address, in any case, or the ID; empty for all accounts.
        plan: Name of the plan; ``None`` for all.
        status: ``active`` or ``suspended``; ``None`` for both.
    """

    text: str = ""
    plan: str | None = None
    status: str | None = None

    def matches(self, account: Account) -> bool:
        """Whether the account belongs to the selection."""
        text = self.text.strip().casefold()
        return (
            (text in account.name.casefold() or text in account.email_key or text == str(account.id))
            and self.plan in (None, account.plan)
            and self.status in (None, account_status(account))
        )


def list_accounts(
    session: Session, plans: PlanTable, today: date, selection: AccountFilter, order: str
) -> list[Listed]:
    """Return the selected accounts with usage and limits, sorted by one of :data:`ORDERS`."""
    usages = (usage for usage in list_account_usage(session, today) if selection.matches(usage.account))
    return sort_accounts(((usage, limits_of(plans, usage.account)) for usage in usages), order)


def show_account(session: Session, plans: PlanTable, today: date, account_id: int) -> dict[str, Any] | None:
    """Return an account with usage and quotas as JSON values; ``None`` if it does not exist."""
    usages = list_account_usage(session, today, account_id)
    return describe(usages[0], limits_of(plans, usages[0].account)) if usages else None


def describe(usage: AccountUsage, limits: PlanLimits | None) -> dict[str, Any]:
    """Return an account with usage and quotas as JSON values."""
    return {**describe_account(usage.account), **encode_usage(usage, limits)}


def limits_of(plans: PlanTable, account: Account) -> PlanLimits | None:
    """Return the limits of an account; ``None`` if its plan is no longer in the plans file."""
    return plans.limits_of(account.plan, account.limit_overrides) if account.plan in plans else None


def sort_accounts(listed: Iterable[Listed], order: str) -> list[Listed]:
    """Sort accounts by one of :data:`ORDERS`. Accounts with equal keys keep their relative order."""
    return sorted(listed, key=ORDERS[order])


def encode_usage(usage: AccountUsage, limits: PlanLimits | None) -> dict[str, Any]:
    """Return usage and quotas as JSON values. Unlimited quotas are null; ``quotas`` is null if the plan is unknown."""
    return {
        "usage": {
            "searches_today": usage.searches_today,
            "searches_this_month": usage.searches_this_month,
            "asks_this_month": usage.asks_this_month,
            "documents": usage.documents,
            "sites": usage.sites,
            "keys": usage.keys,
        },
        "quotas": None if limits is None else asdict(limits),
    }
