"""``account list``: all accounts with usage and quotas. It opens only the database and the plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import click

from app.clock import isoformat, today
from app.commands.cli import installation, json_option, show
from app.models import Account
from app.plans import PlanLimits, PlanTable
from app.services.accounts.members import email_key
from app.services.usage.daily_usage import AccountUsage, list_account_usage
from app.wording import number, printable

Listed = tuple[AccountUsage, PlanLimits | None]
"""An account's usage and limits; the limits are ``None`` if its plan is no longer in the plans file."""

ORDERS: dict[str, Callable[[Listed], Any]] = {
    "id": lambda listed: listed[0].account.id,
    "email": lambda listed: email_key(listed[0].account.email),
    "plan": lambda listed: listed[0].account.plan,
    "searches": lambda listed: (-listed[0].searches_today, -listed[0].searches_this_month),
    "documents": lambda listed: -listed[0].documents,
    "sites": lambda listed: -listed[0].sites,
    "keys": lambda listed: -listed[0].keys,
    "quota": lambda listed: 0.0 if listed[1] is None else -listed[0].share(listed[1]),
}
"""Maps each sort order to its key function. Numbers sort in descending order."""

_HEAD = ("id", "plan", "searches today", "this month", "documents", "sites", "keys", "e-mail", "name")
_TEXTS = ("plan", "e-mail", "name")


@click.command("list")
@click.option(
    "--sort",
    "order",
    type=click.Choice(list(ORDERS)),
    default="id",
    show_default=True,
    help="Sort order; numbers are descending. quota: the account's most used quota.",
)
@json_option
@click.pass_context
def list_accounts(ctx: click.Context, order: str, as_json: bool) -> None:
    """List all accounts with their usage and quotas. Searches are up to a minute behind."""
    database, plans = installation(ctx)
    with database.read() as session:
        usages = list_account_usage(session, today())
    rows = sort_accounts(((usage, limits_of(plans, usage.account)) for usage in usages), order)
    records = [{**account_record(usage.account), **shown_usage(usage, limits)} for usage, limits in rows]
    show(as_json, records, usage_table(rows) if rows else "No accounts.")


def account_record(account: Account) -> dict[str, Any]:
    """Return the account's fields as operator commands print them in JSON."""
    return {
        "id": account.id,
        "email": account.email,
        "name": account.name,
        "plan": account.plan,
        "limits": account.limit_overrides,
        "suspended_at": None if account.suspended_at is None else isoformat(account.suspended_at),
        "suspension_reason": account.suspension_reason,
        "created_at": isoformat(account.created_at),
    }


def limits_of(plans: PlanTable, account: Account) -> PlanLimits | None:
    """Return the limits of an account; ``None`` if its plan is no longer in the plans file."""
    return plans.limits_of(account.plan, account.limit_overrides) if account.plan in plans else None


def sort_accounts(listed: Iterable[Listed], order: str) -> list[Listed]:
    """Sort accounts by one of :data:`ORDERS`. Accounts with equal keys keep their relative order."""
    return sorted(listed, key=ORDERS[order])


def shown_usage(usage: AccountUsage, limits: PlanLimits | None) -> dict[str, Any]:
    """Return usage and quotas as JSON values. Unlimited quotas are null; ``quotas`` is null if the plan is unknown."""
    return {
        "usage": {
            "searches_today": usage.searches_today,
            "searches_this_month": usage.searches_this_month,
            "documents": usage.documents,
            "sites": usage.sites,
            "keys": usage.keys,
        },
        "quotas": None if limits is None else asdict(limits),
    }


def usage_table(listed: Sequence[Listed]) -> str:
    """Format usage and quotas as a readable table with one line per account."""
    rows = [_HEAD, *(_row(usage, limits) for usage, limits in listed)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    return "\n".join("  ".join(map(_padded, _HEAD, row, widths)).rstrip() for row in rows)


def _row(usage: AccountUsage, limits: PlanLimits | None) -> tuple[str, ...]:
    def of(used: int, limit: int | None) -> str:
        return f"{number(used)} of {'unlimited' if limit is None else number(limit)}"

    account = usage.account
    used: Sequence[str]
    if limits is None:
        used = [number(count) for count in (usage.searches_today, usage.documents, usage.sites, usage.keys)]
    else:
        used = (
            of(usage.searches_today, limits.searches_per_day),
            of(usage.documents, limits.documents),
            of(usage.sites, limits.sites),
            of(usage.keys, limits.keys),
        )
    searches, *others = used
    plan = account.plan if limits is not None else f"{account.plan} (unknown)"
    if account.suspended_at is not None:
        plan = f"{plan}, suspended"
    texts = (account.email, printable(account.name))
    return (str(account.id), plan, searches, number(usage.searches_this_month), *others, *texts)


def _padded(name: str, cell: str, width: int) -> str:
    return cell.ljust(width) if name in _TEXTS else cell.rjust(width)
