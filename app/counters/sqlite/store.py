"""Counters in a SQLite file: exact across the processes of one machine, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path

from app.counters.base import CounterStore
from app.counters.metering import RaisedDays, day_from_number, day_number, milliseconds
from app.counters.sqlite import schema, steps
from app.counters.sqlite.file import MemoryFile, SharedFile
from app.counters.sqlite.housekeeper import Execute
from app.counters.values import (
    ConsumeOutcome,
    CredentialVersion,
    DayUsage,
    IdempotencyKey,
    IntentRequest,
    Operation,
    ReportOutcome,
    Reservation,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
    WindowState,
)


class SqliteCounters(CounterStore):
    """Counters in one file; see :class:`~app.counters.sqlite.file.SharedFile` for its guarantees.

    Args:
        path: The file; ``None`` counts in the memory of this process only.
        busy_seconds: Seconds that a step may wait for its turn at the file.
    """

    name = "sqlite"

    def __init__(self, path: Path | None, raised_days: RaisedDays, *, busy_seconds: float) -> None:
        self._latest = schema.Latest()
        self.raised_days = raised_days
        housekeep, begin = partial(schema.sweep, self._latest), partial(_begin, self.raised_days)
        self._file: SharedFile | MemoryFile
        if path is None:
            self.name = "memory"
            self._file = MemoryFile(schema=schema.SCHEMA, housekeep=housekeep, begin=begin)
        else:
            self._file = SharedFile(
                path,
                schema=schema.SCHEMA,
                version=schema.VERSION,
                busy_seconds=busy_seconds,
                housekeep=housekeep,
                begin=begin,
            )
        self._run = self._file.run

    def consume(
        self,
        windows: Sequence[WindowRequest],
        *,
        reserve: UsageReservation | None = None,
        intent: IntentRequest | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        now_ms = milliseconds(now)
        self._latest.now_ms = now_ms
        if reserve is not None:
            self._raise_day(reserve.account_id, now_ms)
        return self._run(steps.consume, windows, reserve, intent, credentials_of, now_ms)

    def peek(
        self,
        windows: Sequence[WindowRequest],
        *,
        usage_of: int | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        # Reading a version may create it. Anything else is also read from a file that is locked or cannot grow.
        return self._run(
            steps.peek, windows, usage_of, credentials_of, milliseconds(now), reading=credentials_of is None
        )

    def refund(
        self,
        *,
        reservation: Reservation | None = None,
        windows: Sequence[WindowState] = (),
        now: float,
    ) -> None:
        self._run(steps.refund, reservation, windows, milliseconds(now))

    def settle(self, search: UncountedSearch | Reservation, *, once: str, now: float) -> None:
        if isinstance(search, UncountedSearch):
            self._raise_day(search.account_id, milliseconds(search.searched_at))
        self._run(steps.settle, search, once, milliseconds(now))

    def reset(self, keys: Sequence[str]) -> None:
        self._run(steps.reset, keys)

    def reset_all(self) -> int:
        return self._run(steps.reset_all)

    def report_usage(
        self,
        account_id: int,
        site_id: int,
        operation: Operation,
        count: int,
        *,
        capped: bool,
        idempotency: IdempotencyKey | None = None,
        now: float,
    ) -> ReportOutcome:
        now_ms = milliseconds(now)
        self._raise_day(account_id, now_ms)
        return self._run(steps.report, account_id, site_id, operation, count, capped, idempotency, now_ms)

    def count_rejection(self, account_id: int, *, now: float) -> None:
        self._run(steps.count_rejection, account_id, milliseconds(now))

    def usage_of_day(self, account_id: int, day: date) -> DayUsage:
        days = self.usage_between(account_id, day, day)
        usage = days[0] if days else DayUsage(day, 0, 0)
        return usage.at_least(self.raised_days.missing_usage(account_id, day, self.name))

    def usage_between(self, account_id: int, first_day: date, last_day: date) -> list[DayUsage]:
        if (last_day - first_day).days > 400:
            raise ValueError("A usage range can be at most 400 days long.")
        rows = self._run(steps.read_days, account_id, day_number(first_day), day_number(last_day), reading=True)
        return [DayUsage(day_from_number(day), *counts) for day, *counts in rows]

    def begin_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        return self._run(steps.begin_change, account_id, milliseconds(now))

    def end_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        return self._run(steps.end_change, account_id, milliseconds(now))

    def heal_credential_epochs(self, older_than_seconds: float, *, now: float) -> int:
        return self._run(steps.heal, milliseconds(now - older_than_seconds))

    def forget_account(self, account_id: int, *, now: float) -> None:
        self._run(steps.forget_account, account_id, milliseconds(now))

    def forget_site(self, account_id: int, site_id: int, *, now: float) -> None:
        self._run(steps.forget_site, account_id, site_id)

    def check(self) -> None:
        self._run(steps.check)

    def clear(self) -> None:
        self._latest.now_ms = None
        self._run(steps.clear)

    def close(self) -> None:
        self._file.close()

    def _raise_day(self, account_id: int, now_ms: int) -> None:
        """Raise the account's day to its copy elsewhere, once after each opening of the file."""
        day = day_from_number(now_ms // 86_400_000)
        if self.raised_days.incarnation_of(account_id, day):
            return
        # Before the step that counts, since this queries SQL, and no step may hold the file's lock meanwhile.
        minimum = self.raised_days.read(account_id, day)
        if minimum is not None:
            self._run(steps.raise_day, account_id, day_number(day), minimum)
            self.raised_days.record(account_id, day, self.name)


def _begin(raised_days: RaisedDays, execute: Execute) -> None:
    steps.begin_incarnation(execute)
    # The file may have been restored or deleted since the last opening, so the days must be raised again.
    raised_days.forget()
