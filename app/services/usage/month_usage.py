"""Usage of accounts in a calendar month (UTC), as customers see it and as an invoice needs it.

The usage of the current month is computed from its days. An hour after the month, the figures are stored once for each
account and never change again (:func:`close_months`), so that an invoice can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date, timedelta

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from app.clock import now, start_of, today
from app.counters.base import CounterStore
from app.errors import field_error
from app.models import Account, Site, UsageDay, UsageMonth
from app.services.sites import get_account
from app.services.usage.daily_usage import merge_copies
from app.storage.database import ROW_LOCK, Database
from app.wording import csv_lines

CLOSED_AFTER = timedelta(hours=1)
"""Time after the end of a month when its usage is stored. Copies and refunds of the last searches take minutes."""
ACCOUNTS_AT_ONCE = 100
"""Maximum number of accounts whose months are stored in one transaction."""


@dataclass(frozen=True, slots=True)
class MonthUsage:
    """One account's usage in one month.

    Attributes:
        searches: Charged searches.
        refused_searches: Searches that a limit of the plan rejected.
        indexing_operations: Documents written or deleted through this service, and reported operations.
        most_documents: Highest number of documents stored at any time.
        pages_crawled: Pages that crawls indexed or confirmed as unchanged.
    """

    searches: int
    refused_searches: int
    indexing_operations: int
    most_documents: int
    pages_crawled: int


def first_of_next_month(month: date) -> date:
    """Return the first day of the month after ``month``."""
    return (month.replace(day=1) + timedelta(days=32)).replace(day=1)


def first_of_last_month(day: date) -> date:
    """Return the first day of the month before the month of ``day``."""
    return (day.replace(day=1) - timedelta(days=1)).replace(day=1)


def usage_of_month(
    session: Session, counters: CounterStore | None, account_ids: Sequence[int], month: date
) -> dict[int, MonthUsage]:
    """Compute the usage of accounts in a month from its days.

    Args:
        counters: ``None`` to read the copies of its counts only.
        month: First day of the month.

    Raises:
        CountersUnavailable: Usage cannot be read.
    """
    last = first_of_next_month(month) - timedelta(days=1)
    copies: dict[int, list[UsageDay]] = {account_id: [] for account_id in account_ids}
    of_month = UsageDay.account_id.in_(account_ids), UsageDay.day >= month, UsageDay.day <= last
    for copied in session.scalars(select(UsageDay).where(*of_month)):
        copies[copied.account_id].append(copied)
    documents = _documents_after(session, account_ids, last)
    usages = {}
    for account_id, days in copies.items():
        counted_days = [] if counters is None else counters.usage_between(account_id, month, last)
        merged = merge_copies(counted_days, days)
        stored = [day.most_documents for day in days if day.most_documents is not None]
        usages[account_id] = MonthUsage(
            searches=sum(day.used for day in merged),
            refused_searches=sum(day.rejected for day in merged),
            indexing_operations=sum(day.indexing for day in merged),
            # Without a change in the month, the number was the same at all times.
            most_documents=max(stored, default=documents.get(account_id, 0)),
            pages_crawled=sum(day.pages_crawled for day in days),
        )
    return usages


def _documents_after(session: Session, account_ids: Sequence[int], last: date) -> dict[int, int]:
    """Return the number of documents stored at the end of a day: before the next change, or now if there was none."""
    counts = (
        select(Site.account_id, func.sum(Site.document_count))
        .where(Site.account_id.in_(account_ids), Site.deleted_at.is_(None))
        .group_by(Site.account_id)
    )
    documents = {account_id: int(count) for account_id, count in session.execute(counts)}
    changed = UsageDay.account_id.in_(account_ids), UsageDay.day > last, UsageDay.documents_before.is_not(None)
    next_days = select(UsageDay.account_id, func.min(UsageDay.day).label("day")).where(*changed)
    next_day = next_days.group_by(UsageDay.account_id).subquery()
    before = select(UsageDay.account_id, UsageDay.documents_before).join(
        next_day, (next_day.c.account_id == UsageDay.account_id) & (next_day.c.day == UsageDay.day)
    )
    return documents | {account_id: count or 0 for account_id, count in session.execute(before)}


@dataclass(frozen=True, slots=True)
class MonthReport:
    """Usage of all accounts in a month, oldest account first.

    Attributes:
        is_final: Whether the figures no longer change.
    """

    accounts: Sequence[tuple[Account, MonthUsage]]
    is_final: bool


def report_month(session: Session, counters: CounterStore, month: date) -> MonthReport:
    """Report the usage of all accounts that existed in a month.

    Args:
        month: First day of the month.

    Raises:
        CountersUnavailable: Usage cannot be read.
    """
    accounts = session.scalars(select(Account).where(_existed(month)).order_by(Account.id)).all()
    stored = {
        row.account_id: _stored_usage(row)
        for row in session.scalars(select(UsageMonth).where(UsageMonth.month == month))
    }
    missing = [account.id for account in accounts if account.id not in stored]
    for start in range(0, len(missing), ACCOUNTS_AT_ONCE):
        stored |= usage_of_month(session, counters, missing[start : start + ACCOUNTS_AT_ONCE], month)
    # The usage of an account that was deleted meanwhile may be incomplete, and the event of its deletion has all of it.
    existing = set(session.scalars(select(Account.id).where(_existed(month))))
    listed = [(account, stored[account.id]) for account in accounts if account.id in existing]
    return MonthReport(listed, is_final=not missing and _is_over(month))


@dataclass(frozen=True, slots=True)
class AccountMonth:
    """An account's usage in a month.

    Attributes:
        month: First day of the month.
        is_final: Whether the figures no longer change.
    """

    month: date
    usage: MonthUsage
    is_final: bool


def account_month(session: Session, counters: CounterStore | None, account_id: int, month: date) -> AccountMonth:
    """Return an account's usage in a month as :func:`report_month` reports it.

    Args:
        counters: ``None`` to read the copies of its counts only.
        month: First day of the month.

    Raises:
        CountersUnavailable: Usage cannot be read.
    """
    row = session.get(UsageMonth, (account_id, month))
    if row is not None:
        return AccountMonth(month, _stored_usage(row), is_final=True)
    usage = usage_of_month(session, counters, [account_id], month)[account_id]
    return AccountMonth(month, usage, is_final=False)


def list_months(session: Session, account_id: int) -> list[date]:
    """Return the first days of the months in which an account existed, newest first."""
    first = get_account(session, account_id).created_at.date().replace(day=1)
    months = [today().replace(day=1)]
    while months[-1] > first:
        months.append(first_of_last_month(months[-1]))
    return months


def find_month(
    session: Session, counters: CounterStore | None, account_id: int, month: date | None
) -> tuple[AccountMonth, list[date]]:
    """Return an account's usage in the requested month, and all its months, newest first.

    Args:
        counters: As in :func:`account_month`.
        month: First day of the month; ``None`` for the current month.

    Raises:
        ApiError: 400 for a month in the future or before the account existed.
        CountersUnavailable: Usage cannot be read.
    """
    months = list_months(session, account_id)
    month = months[0] if month is None else month
    if month > months[0]:
        raise field_error("month", "out_of_range", "must not be in the future")
    if month < months[-1]:
        raise field_error(
            "month", "out_of_range", f"must not be before {months[-1]:%Y-%m}, when the account was created"
        )
    return account_month(session, counters, account_id, month), months


def encode_csv(months: Iterable[AccountMonth]) -> str:
    """Return the usage in months as CSV (RFC 4180)."""
    names = [member.name for member in fields(MonthUsage)]
    rows = (
        (f"{report.month:%Y-%m}", *(getattr(report.usage, name) for name in names), str(report.is_final).lower())
        for report in months
    )
    return csv_lines([("month", *names, "final"), *rows])


def close_months(database: Database, counters: CounterStore) -> int:
    """Store the usage of past months for all accounts that lack it, and return the number of stored rows.

    Continues with the last month that was stored, because the service may have been off at the end of a month. Several
    processes may call this simultaneously.

    Raises:
        CountersUnavailable: Usage cannot be read. The next call continues.
    """
    last = first_of_last_month(now().date())
    with database.read() as session:
        month = min(session.scalar(select(func.max(UsageMonth.month))) or last, last)
    closed = 0
    while month <= last and _is_over(month):
        closed += _close_month(database, counters, month)
        month = first_of_next_month(month)
    return closed


def _close_month(database: Database, counters: CounterStore, month: date) -> int:
    closed = 0
    while True:
        with database.read() as session:
            has_row = select(UsageMonth.account_id).where(UsageMonth.month == month)
            without = select(Account.id).where(_existed(month), Account.id.not_in(has_row))
            ids = session.scalars(without.order_by(Account.id).limit(ACCOUNTS_AT_ONCE)).all()
            usages = usage_of_month(session, counters, ids, month) if ids else {}
        if not ids:
            return closed
        with database.write() as session:
            for account_id, usage in usages.items():
                # The lock serializes processes, and the account may have been deleted meanwhile.
                account = session.get(Account, account_id, with_for_update=ROW_LOCK)
                if account is not None and session.get(UsageMonth, (account_id, month)) is None:
                    session.add(UsageMonth(account_id=account_id, month=month, **asdict(usage)))
                    closed += 1


def _stored_usage(row: UsageMonth) -> MonthUsage:
    return MonthUsage(
        row.searches, row.refused_searches, row.indexing_operations, row.most_documents, row.pages_crawled
    )


def _existed(month: date) -> ColumnElement[bool]:
    return Account.created_at < start_of(first_of_next_month(month))


def _is_over(month: date) -> bool:
    return now() >= start_of(first_of_next_month(month)) + CLOSED_AFTER
