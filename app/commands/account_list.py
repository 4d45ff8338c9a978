"""``account list``: all accounts with usage and quotas. It opens only the database and the plans."""

from __future__ import annotations

from collections.abc import Sequence

import click

from app.clock import today
from app.commands.cli import OperatorCommand, json_option, open_storage, print_result
from app.plans import PlanLimits
from app.services.usage import account_usage
from app.services.usage.account_usage import ORDERS, AccountFilter, AccountUsage, Listed, describe
from app.wording import number, printable

_HEAD = ("id", "plan", "searches today", "this month", "documents", "sites", "keys", "email", "name")
_TEXTS = ("plan", "email", "name")


@click.command("list", cls=OperatorCommand)
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
    database, plans = open_storage(ctx)
    with database.read() as session:
        rows = account_usage.list_accounts(session, plans, today(), AccountFilter(), order)
    print_result(as_json, [describe(*row) for row in rows], usage_table(rows) if rows else "No accounts.")


def usage_table(listed: Sequence[Listed]) -> str:
    """Format usage and quotas as a readable table with one line per account."""
    rows = [_HEAD, *(_row(usage, limits) for usage, limits in listed)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
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
