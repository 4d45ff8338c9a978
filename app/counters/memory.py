"""Counters in this process' memory: for tests, and for knowing what the other stores must do."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from app.counters.base import (
    ConsumeOutcome,
    CounterStore,
    CredentialVersion,
    DayUsage,
    IdempotencyKey,
    Operation,
    ReportOutcome,
    ReportStatus,
    Reservation,
    SiteUsage,
    UsageReservation,
    WindowRequest,
    WindowState,
    longest_wait,
)
from app.counters.metering import IDEMPOTENCY_SECONDS, USAGE_DAYS_KEPT, charge_of_site, day_of, milliseconds

_SWEEP_EVERY = 1000


@dataclass(slots=True)
class _Day:
    used: int = 0
    indexing: int = 0
    sites: dict[int, SiteUsage] = field(default_factory=dict)


@dataclass(slots=True)
class _Epoch:
    started: int
    finished: int
    begun_ms: int


class MemoryCounters(CounterStore):
    """Counters of one process; several threads may use it."""

    name = "memory"

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._calls = 0
        self.clear()

    def consume(
        self,
        windows: Sequence[WindowRequest],
        *,
        reserve: UsageReservation | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        now_ms = milliseconds(now)
        today = day_of(now)
        with self._lock:
            self._sweep(now_ms, today)
            credential_version = self._epoch(credentials_of, now_ms)
            states = tuple(self._state(window, now_ms) for window in windows)
            refused = longest_wait(states)
            if refused is not None:
                return ConsumeOutcome(states, refused, None, None, today, credential_version)
            states = tuple(state._replace(hits=state.hits + state.cost) for state in states)
            for state in states:
                self._windows[state.key] = (state.hits, state.reset_ms)
            if reserve is None:
                return ConsumeOutcome(states, None, None, None, today, credential_version)
            usage = self._days.setdefault((reserve.account_id, today), _Day())
            reservation = None
            if reserve.daily_limit is None or usage.used < reserve.daily_limit:
                reservation = Reservation(reserve.account_id, reserve.gateway_site_id, today)
                self._charge(usage, reserve.gateway_site_id, 1)
            return ConsumeOutcome(states, None, reservation, usage.used, today, credential_version)

    def peek(
        self,
        windows: Sequence[WindowRequest],
        *,
        usage_of: int | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        now_ms = milliseconds(now)
        today = day_of(now)
        with self._lock:
            states = tuple(self._state(window, now_ms) for window in windows)
            used = None if usage_of is None else self.usage_of_day(usage_of, today).used
            return ConsumeOutcome(states, longest_wait(states), None, used, today, self._epoch(credentials_of, now_ms))

    def refund(
        self,
        *,
        reservation: Reservation | None = None,
        windows: Sequence[WindowState] = (),
        now: float,
    ) -> None:
        now_ms = milliseconds(now)
        with self._lock:
            for window in windows:
                hits, reset_ms = self._windows.get(window.key, (0, 0))
                if reset_ms == window.reset_ms > now_ms:
                    self._windows[window.key] = (max(0, hits - window.cost), reset_ms)
            if reservation is not None:
                usage = self._days.get((reservation.account_id, reservation.day))
                if usage is not None:
                    self._charge(usage, reservation.gateway_site_id, -1)

    def reset(self, keys: Sequence[str]) -> None:
        with self._lock:
            for key in keys:
                self._windows.pop(key, None)

    def reset_all(self) -> int:
        with self._lock:
            forgotten = len(self._windows)
            self._windows.clear()
            return forgotten

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
        today = day_of(now)
        with self._lock:
            usage = self._days.setdefault((account_id, today), _Day())
            if idempotency is not None:
                fingerprint, until_ms = self._reports.get((account_id, idempotency.key), ("", 0))
                if until_ms > now_ms:
                    same = fingerprint == idempotency.fingerprint
                    return ReportOutcome(ReportStatus.DUPLICATE if same else ReportStatus.CONFLICT, usage.used)
                until_ms = now_ms + IDEMPOTENCY_SECONDS * 1000
                self._reports[account_id, idempotency.key] = (idempotency.fingerprint, until_ms)
            if operation == "indexing":
                usage.indexing += count
            else:
                old = usage.sites.get(site_id, SiteUsage(0, 0, 0))
                new = old._replace(capped=old.capped + count) if capped else old._replace(trusted=old.trusted + count)
                usage.sites[site_id] = new
                usage.used += charge_of_site(*new) - charge_of_site(*old)
            return ReportOutcome(ReportStatus.RECORDED, usage.used)

    def usage_of_day(self, account_id: int, day: date) -> DayUsage:
        with self._lock:
            usage = self._days.get((account_id, day), _Day())
            return DayUsage(day, usage.used, usage.indexing)

    def usage_between(self, account_id: int, first_day: date, last_day: date) -> list[DayUsage]:
        if (last_day - first_day).days > 400:
            raise ValueError("A range of usage is at most 400 days long.")
        with self._lock:
            return sorted(
                DayUsage(day, usage.used, usage.indexing)
                for (owner, day), usage in self._days.items()
                if owner == account_id and first_day <= day <= last_day and (usage.used or usage.indexing)
            )

    def begin_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        now_ms = milliseconds(now)
        with self._lock:
            self._epoch(account_id, now_ms)
            credential_version = self._epochs[account_id]
            credential_version.started += 1
            credential_version.begun_ms = now_ms
            return CredentialVersion(credential_version.started, credential_version.finished)

    def end_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        with self._lock:
            self._epoch(account_id, milliseconds(now))
            credential_version = self._epochs[account_id]
            credential_version.finished += 1
            credential_version.started = max(credential_version.started, credential_version.finished)
            return CredentialVersion(credential_version.started, credential_version.finished)

    def heal_credential_epochs(self, older_than_seconds: float, *, now: float) -> int:
        begun_before_ms = milliseconds(now - older_than_seconds)
        with self._lock:
            stuck = [
                credential_version
                for credential_version in self._epochs.values()
                if credential_version.finished < credential_version.started
                and credential_version.begun_ms < begun_before_ms
            ]
            for credential_version in stuck:
                credential_version.finished = credential_version.started
            return len(stuck)

    def forget_account(self, account_id: int, *, now: float) -> None:
        with self._lock:
            self._epoch(account_id, milliseconds(now))
            credential_version = self._epochs[account_id]
            credential_version.started = credential_version.finished = credential_version.started + 1
            for owned in [key for key in self._days if key[0] == account_id]:
                del self._days[owned]
            for kept in [key for key in self._reports if key[0] == account_id]:
                del self._reports[kept]

    def forget_site(self, account_id: int, site_id: int, *, now: float) -> None:
        with self._lock:
            for (owner, _), usage in self._days.items():
                if owner == account_id:
                    usage.sites.pop(site_id, None)

    def check(self) -> None:
        """Memory is always there."""

    def clear(self) -> None:
        with self._lock:
            self._windows: dict[str, tuple[int, int]] = {}
            self._days: dict[tuple[int, date], _Day] = {}
            self._reports: dict[tuple[int, str], tuple[str, int]] = {}
            self._epochs: dict[int, _Epoch] = {}

    def close(self) -> None:
        """Nothing is open; what was counted stays for as long as the object does."""

    def _state(self, window: WindowRequest, now_ms: int) -> WindowState:
        length_ms = window.seconds * 1000
        hits, reset_ms = self._windows.get(window.key, (0, 0))
        if not now_ms < reset_ms <= now_ms + 2 * length_ms:
            hits, reset_ms = 0, now_ms + length_ms
        return WindowState(*window, hits, reset_ms)

    def _epoch(self, account_id: int | None, now_ms: int) -> CredentialVersion | None:
        if account_id is None:
            return None
        credential_version = self._epochs.setdefault(account_id, _Epoch(now_ms, now_ms, 0))
        return CredentialVersion(credential_version.started, credential_version.finished)

    @staticmethod
    def _charge(usage: _Day, gateway_site_id: int | None, searches: int) -> None:
        if gateway_site_id is None:
            usage.used = max(0, usage.used + searches)
            return
        old = usage.sites.get(gateway_site_id, SiteUsage(0, 0, 0))
        new = old._replace(gateway=max(0, old.gateway + searches))
        usage.sites[gateway_site_id] = new
        usage.used += charge_of_site(*new) - charge_of_site(*old)

    def _sweep(self, now_ms: int, today: date) -> None:
        self._calls += 1
        if self._calls % _SWEEP_EVERY:
            return
        oldest = today - timedelta(days=USAGE_DAYS_KEPT)
        self._windows = {key: state for key, state in self._windows.items() if state[1] > now_ms}
        self._reports = {key: report for key, report in self._reports.items() if report[1] > now_ms}
        self._days = {key: usage for key, usage in self._days.items() if key[1] >= oldest}
