"""Counters in the memory of one process: for tests, and as the model that the other stores must match."""

from __future__ import annotations

import secrets
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
    Intent,
    IntentRequest,
    Operation,
    ReportOutcome,
    ReportStatus,
    Reservation,
    SiteUsage,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
    WindowState,
    longest_wait,
    settlement_key,
)
from app.counters.metering import (
    IDEMPOTENCY_SECONDS,
    INTENT_KEPT_SECONDS,
    USAGE_DAYS_KEPT,
    Floors,
    charge_of_site,
    continues_intent,
    day_of,
    milliseconds,
    window_end,
)

_SWEEP_EVERY = 1000


@dataclass(slots=True)
class _Day:
    used: int = 0
    indexing: int = 0
    refused: int = 0
    sites: dict[int, SiteUsage] = field(default_factory=dict)


@dataclass(slots=True)
class _Epoch:
    started: int
    finished: int
    begun_ms: int


@dataclass(slots=True)
class _Intent:
    began_ms: int
    day: date
    text: str
    last_ms: int
    requests: int = 1
    failed: int = 0


class MemoryCounters(CounterStore):
    """Counters of one process. Thread-safe."""

    name = "memory"

    def __init__(self) -> None:
        self.floors = Floors()
        self._lock = threading.RLock()
        self._calls = 0
        self.clear()

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
        today = day_of(now)
        with self._lock:
            self._sweep(now_ms, today)
            credential_version = self._epoch(credentials_of, now_ms)
            states = tuple(self._state(window, now_ms) for window in windows)
            extra = () if intent is None else tuple(self._state(window, now_ms) for window in intent.windows)
            open_intent = None if intent is None else self._open_intent(intent, now_ms)
            if open_intent is None:
                states, extra = states + extra, ()
            refused = longest_wait(states)
            if refused is not None:
                return ConsumeOutcome(states + extra, refused, None, None, today, credential_version)
            states = tuple(state._replace(hits=state.hits + state.cost) for state in states)
            for state in states:
                self._windows[state.key] = (state.hits, state.reset_ms)
            if reserve is None:
                return ConsumeOutcome(states, None, None, None, today, credential_version)
            usage = self._days.setdefault((reserve.account_id, today), _Day())
            if intent is not None and open_intent is not None:
                open_intent.text, open_intent.last_ms = intent.text, now_ms
                open_intent.requests += 1
                receipt = Intent(intent.key, open_intent.began_ms)
                reservation = Reservation(reserve.account_id, reserve.gateway_site_id, open_intent.day, receipt)
                return ConsumeOutcome(
                    states + extra, None, reservation, usage.used, today, credential_version, continues=True
                )
            if reserve.daily_limit is not None and usage.used >= reserve.daily_limit:
                return ConsumeOutcome(states, None, None, usage.used, today, credential_version)
            self._charge(usage, reserve.gateway_site_id, 1)
            begun = None if intent is None else self._begin_intent(intent, now_ms, today)
            reservation = Reservation(reserve.account_id, reserve.gateway_site_id, today, begun)
            return ConsumeOutcome(states, None, reservation, usage.used, today, credential_version)

    def _open_intent(self, intent: IntentRequest, now_ms: int) -> _Intent | None:
        """Return the visitor's last intent if the request continues it."""
        intents = self._intents.get(intent.key)
        if not intents:
            return None
        last = intents[-1]
        is_continued = continues_intent(intent.text, last.began_ms, last.last_ms, last.requests, last.text, now_ms)
        return last if is_continued else None

    def _begin_intent(self, intent: IntentRequest, now_ms: int, today: date) -> Intent:
        intents = self._intents.setdefault(intent.key, [])
        began_ms = max(now_ms, intents[-1].began_ms + 1) if intents else now_ms
        intents.append(_Intent(began_ms, today, intent.text, now_ms))
        return Intent(intent.key, began_ms)

    def _fails_whole(self, intent: Intent) -> bool:
        """Record that a request of an intent failed. Returns whether all of them have, which ends the intent."""
        intents = self._intents.get(intent.key, [])
        active = next((each for each in intents if each.began_ms == intent.began_ms), None)
        if active is None:
            return False
        active.failed += 1
        if active.failed < active.requests:
            return False
        intents.remove(active)
        return True

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
            if reservation is not None and (reservation.intent is None or self._fails_whole(reservation.intent)):
                usage = self._days.get((reservation.account_id, reservation.day))
                if usage is not None:
                    self._charge(usage, reservation.gateway_site_id, -1)

    def settle(self, search: UncountedSearch | Reservation, *, once: str, now: float) -> None:
        now_ms = milliseconds(now)
        with self._lock:
            settlement = search.account_id, settlement_key(once)
            if self._reports.get(settlement, ("", 0))[1] > now_ms:
                return
            self._reports[settlement] = ("", now_ms + IDEMPOTENCY_SECONDS * 1000)
            if isinstance(search, Reservation):
                self.refund(reservation=search, now=now)
            else:
                reserve = UsageReservation(search.account_id, None, search.gateway_site_id)
                self.consume([], reserve=reserve, intent=search.intent, now=search.searched_at)

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

    def count_refusal(self, account_id: int, *, now: float) -> None:
        with self._lock:
            self._days.setdefault((account_id, day_of(now)), _Day()).refused += 1

    def usage_of_day(self, account_id: int, day: date) -> DayUsage:
        with self._lock:
            usage = self._days.get((account_id, day), _Day())
            return DayUsage(day, usage.used, usage.indexing, usage.refused)

    def usage_between(self, account_id: int, first_day: date, last_day: date) -> list[DayUsage]:
        if (last_day - first_day).days > 400:
            raise ValueError("A usage range can be at most 400 days long.")
        with self._lock:
            return sorted(
                DayUsage(day, usage.used, usage.indexing, usage.refused)
                for (owner, day), usage in self._days.items()
                if owner == account_id
                and first_day <= day <= last_day
                and (usage.used or usage.indexing or usage.refused)
            )

    def begin_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        now_ms = milliseconds(now)
        with self._lock:
            self._epoch(account_id, now_ms)
            credential_version = self._epochs[account_id]
            credential_version.started += 1
            credential_version.begun_ms = now_ms
            return CredentialVersion(credential_version.started, credential_version.finished, self._incarnation)

    def end_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        with self._lock:
            self._epoch(account_id, milliseconds(now))
            credential_version = self._epochs[account_id]
            credential_version.finished += 1
            credential_version.started = max(credential_version.started, credential_version.finished)
            return CredentialVersion(credential_version.started, credential_version.finished, self._incarnation)

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
            for report_key in [key for key in self._reports if key[0] == account_id]:
                del self._reports[report_key]

    def forget_site(self, account_id: int, site_id: int, *, now: float) -> None:
        with self._lock:
            for (owner, _), usage in self._days.items():
                if owner == account_id:
                    usage.sites.pop(site_id, None)

    def check(self) -> None:
        """Memory is always available."""

    def clear(self) -> None:
        with self._lock:
            self._incarnation = secrets.token_hex(8)
            self._windows: dict[str, tuple[int, int]] = {}
            self._days: dict[tuple[int, date], _Day] = {}
            self._reports: dict[tuple[int, str], tuple[str, int]] = {}
            self._epochs: dict[int, _Epoch] = {}
            self._intents: dict[str, list[_Intent]] = {}
            """Intents of each visitor, oldest first."""

    def close(self) -> None:
        """Do nothing. The counts stay for as long as the object exists."""

    def _state(self, window: WindowRequest, now_ms: int) -> WindowState:
        length_ms = window.seconds * 1000
        hits, reset_ms = self._windows.get(window.key, (0, 0))
        if not now_ms < reset_ms <= now_ms + 2 * length_ms:
            hits, reset_ms = 0, window_end(now_ms, window.seconds)
        return WindowState(*window, hits, reset_ms)

    def _epoch(self, account_id: int | None, now_ms: int) -> CredentialVersion | None:
        if account_id is None:
            return None
        credential_version = self._epochs.setdefault(account_id, _Epoch(now_ms, now_ms, 0))
        return CredentialVersion(credential_version.started, credential_version.finished, self._incarnation)

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
        kept_from_ms = now_ms - INTENT_KEPT_SECONDS * 1000
        self._intents = {
            key: remaining
            for key, intents in self._intents.items()
            if (remaining := [intent for intent in intents if intent.last_ms > kept_from_ms])
        }
        self._days = {key: usage for key, usage in self._days.items() if key[1] >= oldest}
