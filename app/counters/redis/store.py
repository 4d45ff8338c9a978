"""Counters in Redis: exact across machines."""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import redis

from app.counters.base import CounterStore
from app.counters.metering import (
    IDEMPOTENCY_SECONDS,
    INTENT_KEPT_SECONDS,
    INTENT_PAUSE_SECONDS,
    INTENT_REQUESTS,
    INTENT_SECONDS,
    USAGE_DAYS_KEPT,
    Floor,
    Floors,
    day_from_number,
    day_number,
    milliseconds,
    window_end,
)
from app.counters.redis import scripts
from app.counters.redis.client import NO_STEP, Connections, KnownIncarnation, Step, StepLedger
from app.counters.values import (
    AnswerLost,
    ConsumeOutcome,
    CountersUnavailable,
    CredentialVersion,
    DayUsage,
    IdempotencyKey,
    Intent,
    IntentRequest,
    Operation,
    ReportOutcome,
    ReportStatus,
    Reservation,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
    WindowState,
    longest_wait,
    settlement_key,
)

_PREFIX = "sitesearch:counters:"
_OPEN_CHANGES = f"{_PREFIX}open-changes"
_INCARNATION = f"{_PREFIX}incarnation"
_DAY_KEPT_MS = USAGE_DAYS_KEPT * 86_400_000
_SLOT_KEPT_MS = 3_600_000
_TRIES = 3
_HIT_UNRAISED, _REPORT_UNRAISED = 2, 3
_STATUSES = (ReportStatus.RECORDED, ReportStatus.DUPLICATE, ReportStatus.CONFLICT)


class RedisCounters(CounterStore):
    """Counters in one Redis server (or a compatible one); not for a cluster, whose scripts cannot span nodes.

    Each step is one script. The server must not evict keys (``maxmemory-policy noeviction``) and should use an
    append-only file.

    The callers' clocks decide what counts. Redis's own clock only removes keys that expired a minute ago.

    Steps that charge, refund, or report are numbered within a slot, which a thread uses exclusively during a step. A
    step whose response was lost can therefore be canceled or sent again: the server executes it at most once.

    Args:
        url: A ``redis://``, ``rediss://``, or ``unix://`` URL in redis-py's format.
        timeout_seconds: Time budget of a step: a third for connecting, and a third for each response, including the
            response to the greeting on a new connection.
    """

    name = "redis"

    def __init__(self, url: str, *, timeout_seconds: float) -> None:
        self.floors = Floors()
        self._connections = Connections(
            url, timeout_seconds=timeout_seconds, greeting=("EVAL", scripts.GREET, 1, _INCARNATION)
        )
        self._begin()
        _stores.add(self)

    def consume(
        self,
        windows: Sequence[WindowRequest],
        *,
        reserve: UsageReservation | None = None,
        intent: IntentRequest | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        return self._consume(True, windows, reserve, intent, None, credentials_of, now)

    def peek(
        self,
        windows: Sequence[WindowRequest],
        *,
        usage_of: int | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        return self._consume(False, windows, None, None, usage_of, credentials_of, now)

    def refund(
        self,
        *,
        reservation: Reservation | None = None,
        windows: Sequence[WindowState] = (),
        now: float,
    ) -> None:
        step = self._steps.take()
        give_back = self._giving_back(step, reservation, windows, now)
        try:
            give_back()
        # The step is numbered, so sending it again later refunds at most once.
        except AnswerLost:
            self._steps.postpone(give_back)
            raise
        self._steps.give_back(step)

    def settle(self, search: UncountedSearch | Reservation, *, once: str, now: float) -> None:
        once_key = _Once(search.account_id, settlement_key(once), milliseconds(now))
        if isinstance(search, Reservation):
            self._giving_back(NO_STEP, search, (), now, once_key)()
        else:
            reserve = UsageReservation(search.account_id, None, search.gateway_site_id)
            self._consume(True, (), reserve, search.intent, None, None, search.searched_at, once_key)

    def reset(self, keys: Sequence[str]) -> None:
        if keys:
            self._do("DEL", *map(_window, keys))

    def reset_all(self) -> int:
        return self._delete(_window("*"))

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
        step = self._steps.take()
        report = partial(self._report, account_id, site_id, operation, capped, milliseconds(now))
        try:
            outcome = report(step, count, idempotency)
        except AnswerLost:
            if idempotency is None:
                self._steps.postpone(partial(self._call_off_report, step, partial(report, count=-count)))
            raise
        self._steps.give_back(step)
        return outcome

    def count_refusal(self, account_id: int, *, now: float) -> None:
        day = _day(account_id, milliseconds(now) // 86_400_000)
        self._run(_REFUSED, [day], [_DAY_KEPT_MS])

    def usage_of_day(self, account_id: int, day: date) -> DayUsage:
        days = self.usage_between(account_id, day, day)
        usage = days[0] if days else DayUsage(day, 0, 0)
        return usage.at_least(self.floors.unraised(account_id, day, self._known.state[0]))

    def usage_between(self, account_id: int, first_day: date, last_day: date) -> list[DayUsage]:
        if (last_day - first_day).days > 400:
            raise ValueError("A usage range can be at most 400 days long.")
        days = [first_day + timedelta(days=passed) for passed in range((last_day - first_day).days + 1)]
        counts = self._run(_DAYS, [_day(account_id, day_number(day)) for day in days], [])
        usage = map(DayUsage, days, counts[::3], counts[1::3], counts[2::3])
        return [day for day in usage if day.used or day.indexing or day.refused]

    def begin_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        return self._change(account_id, "begin", now)

    def end_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        return self._change(account_id, "end", now)

    def heal_credential_epochs(self, older_than_seconds: float, *, now: float) -> int:
        begun_before_ms = milliseconds(now - older_than_seconds)
        healed: int = self._run(_HEAL, [_OPEN_CHANGES], [begun_before_ms, _epoch("")])
        return healed

    def forget_account(self, account_id: int, *, now: float) -> None:
        self._change(account_id, "forget", now)
        days = _kept_days(now)
        owned = chain((_day(account_id, day) for day in days), (_sites(account_id, day) for day in days))
        self._do("DEL", *owned, *_reports(account_id))

    def forget_site(self, account_id: int, site_id: int, *, now: float) -> None:
        self._run(_FORGET_SITE, [_sites(account_id, day) for day in _kept_days(now)], [site_id])

    def check(self) -> None:
        self._check(self._known.state, self._known.doubt)

    def clear(self) -> None:
        self._delete(f"{_PREFIX}*")

    def close(self) -> None:
        self._connections.close()

    def _begin(self) -> None:
        """Reset the state to the initial state of a process."""
        self._steps = StepLedger(f"{_PREFIX}slot:")
        self._known = KnownIncarnation()

    def _consume(
        self,
        counting: bool,
        windows: Sequence[WindowRequest],
        reserve: UsageReservation | None,
        intent: IntentRequest | None,
        usage_of: int | None,
        credentials_of: int | None,
        now: float,
        once: _Once | None = None,
    ) -> ConsumeOutcome:
        now_ms = milliseconds(now)
        day = now_ms // 86_400_000
        today = day_from_number(day)
        if reserve is None:
            account_id, daily_limit, site_id = usage_of, None, None
        else:
            account_id, daily_limit, site_id = reserve
        if intent is not None:
            windows = [*windows, *intent.windows]
        keys = [_window(window.key) for window in windows]
        keys += [_day(account_id, day), _sites(account_id, day), _epoch(credentials_of)]
        keys += [f"{_PREFIX}intent:{'' if intent is None else intent.key}", _INCARNATION]
        arguments: list[Any] = [
            int(counting),
            now_ms,
            int(reserve is not None),
            int(account_id is not None),
            -1 if daily_limit is None else daily_limit,
            "" if site_id is None else site_id,
            int(credentials_of is not None),
            _DAY_KEPT_MS,
            -1 if intent is None else len(intent.windows),
            "" if intent is None else intent.text,
            INTENT_PAUSE_SECONDS * 1000,
            INTENT_SECONDS * 1000,
            INTENT_REQUESTS,
            INTENT_KEPT_SECONDS * 1000,
        ]
        for window in windows:
            limit = -1 if window.limit is None else window.limit
            arguments += [limit, window.seconds * 1000, window.cost, window_end(now_ms, window.seconds)]
        # Only charges are numbered. A step with ``once`` is remembered under that name instead.
        step = NO_STEP if reserve is None or once is not None else self._steps.take()
        state, doubt = self._known.state, self._known.doubt
        keys.append(step.slot)
        arguments += [step.number, _SLOT_KEPT_MS, doubt]
        try:
            answer = self._run_raised(
                _HIT, keys, arguments, account_id if reserve else None, today, _HIT_UNRAISED, once
            )
        # The caller treats the search as uncharged, so the charge must be canceled or refunded.
        except AnswerLost:
            if reserve is not None and step != NO_STEP:
                self._steps.postpone(partial(self._call_off_charge, step, reserve, intent, now))
            raise
        self._steps.give_back(step)
        *counts, incarnation, changes = answer
        name = self._note_incarnation(state, doubt, incarnation.decode(), changes)
        refused, reserved, used, started, finished, continues, began_ms, charged_day, *counts = counts
        states = tuple(map(WindowState, *zip(*windows, strict=True), counts[::2], counts[1::2])) if windows else ()
        reservation = None
        if reserve is not None and reserved:
            receipt = None if intent is None else Intent(intent.key, began_ms)
            reservation = Reservation(reserve.account_id, site_id, day_from_number(charged_day), receipt)
        # Windows of a continued intent were not counted, so they cannot be the reason for a rejection.
        own_states = states[: len(states) - len(intent.windows)] if continues and intent is not None else states
        return ConsumeOutcome(
            states,
            longest_wait(own_states) if refused else None,
            reservation,
            None if account_id is None or (refused and counting) else used,
            today,
            None if credentials_of is None else CredentialVersion(started, finished, name),
            continues=bool(continues and not refused),
        )

    def _giving_back(
        self,
        step: Step,
        reservation: Reservation | None,
        windows: Sequence[WindowState],
        now: float,
        once: _Once | None = None,
    ) -> Callable[[], object]:
        """Return a function that makes a refund once, even if it is called repeatedly."""
        keys = [_window(window.key) for window in windows]
        arguments: list[Any] = [milliseconds(now), 0, "", _DAY_KEPT_MS, 0]
        if reservation is None:
            keys += [_day(0, 0), _sites(0, 0), _intent(None)]
        else:
            account_id, site_id, today, intent = reservation
            keys += [_day(account_id, day_number(today)), _sites(account_id, day_number(today)), _intent(intent)]
            arguments[1:3] = [1, "" if site_id is None else site_id]
            arguments[4] = int(intent is not None)
        for window in windows:
            arguments += [window.reset_ms, window.cost]
        return partial(self._run, _GIVE_BACK, [*keys, step.slot], [*arguments, step.number, _SLOT_KEPT_MS], once)

    def _report(
        self,
        account_id: int,
        site_id: int,
        operation: Operation,
        capped: bool,
        now_ms: int,
        step: Step,
        count: int,
        idempotency: IdempotencyKey | None = None,
    ) -> ReportOutcome:
        day = now_ms // 86_400_000
        keys = [_day(account_id, day), _sites(account_id, day), *_reports(account_id), _INCARNATION, step.slot]
        arguments = [
            now_ms,
            operation,
            count,
            int(capped),
            site_id,
            _DAY_KEPT_MS,
            *(idempotency or ("", "")),
            IDEMPOTENCY_SECONDS * 1000,
            step.number,
            _SLOT_KEPT_MS,
        ]
        today = day_from_number(day)
        answer = self._run_raised(_REPORT, keys, arguments, account_id, today, _REPORT_UNRAISED)
        if answer is None:  # The step was canceled, or this is a repetition.
            return ReportOutcome(ReportStatus.RECORDED, 0)
        status, used, _ = answer
        return ReportOutcome(_STATUSES[status], used)

    def _run_raised(
        self,
        script: _Script,
        keys: Sequence[str],
        arguments: Sequence[Any],
        account_id: int | None,
        day: date,
        unraised: int,
        once: _Once | None = None,
    ) -> Any:
        """Run a script. It counts only after the account's day is raised to its floor under the current incarnation."""
        if account_id is None:
            return self._run(script, keys, [*arguments, "", "", ""], once)
        under: str = self.floors.incarnation_of(account_id, day)
        floor: Floor | None = None
        for _ in range(_TRIES):
            answer = self._run(script, keys, [*arguments, under, *(floor or ("", ""))], once)
            # The answer is empty if the step was canceled before it arrived.
            if not answer or answer[0] != unraised:
                if floor is not None:
                    self.floors.note(account_id, day, under)
                return answer
            # The script refused to count under this incarnation until the day is raised to its floor.
            under = next(item for item in answer if isinstance(item, bytes)).decode()
            floor = self.floors.read(account_id, day)
        raise CountersUnavailable(f"The counter store at {self._connections.address} keeps changing its incarnation.")

    def _change(self, account_id: int, step: str, now: float) -> CredentialVersion:
        keys = [_epoch(account_id), _OPEN_CHANGES, _INCARNATION]
        state = self._known.state
        try:
            started, finished, incarnation, changes = self._run(_CHANGE, keys, [milliseconds(now), step, account_id])
        except CountersUnavailable:
            if step != "begin":
                # The server may have lost the start of the change, too. Then entries that other processes cached
                # meanwhile would seem current.
                self._known.raise_doubt()
            raise
        return CredentialVersion(started, finished, self._note_incarnation(state, "", incarnation.decode(), changes))

    def _note_incarnation(self, state: tuple[str, int], doubt: str, incarnation: str, changes: int) -> str:
        """Return the incarnation that an answer belongs to: a new one if the store went back in time.

        Args:
            state: State that was known before the step was sent.
            doubt: The doubt that was sent with the step.
        """
        if self._known.note(state, doubt, incarnation, changes):
            return incarnation
        return self._check(("", 0), incarnation)

    def _check(self, state: tuple[str, int], doubt: str) -> str:
        incarnation, changes = self._run(_CHECK, [_INCARNATION, f"{_PREFIX}check"], [doubt])
        return self._note_incarnation(state, doubt, incarnation.decode(), changes)

    def _call_off(self, step: Step) -> bytes | None:
        """Cancel a step, so that it is not executed later. Returns its answer if it was already executed."""
        answer: bytes | None = self._run(_CALL_OFF, [step.slot], [step.number, _SLOT_KEPT_MS])
        return answer

    def _call_off_charge(self, step: Step, reserve: UsageReservation, intent: IntentRequest | None, now: float) -> None:
        answer = self._call_off(step)
        if answer is None:
            return
        began_ms, day = map(int, answer.split())
        receipt = None if intent is None else Intent(intent.key, began_ms)
        reservation = Reservation(reserve.account_id, reserve.gateway_site_id, day_from_number(day), receipt)
        # The refund has its own number, since its answer may be lost, too.
        self._steps.postpone(self._giving_back(self._steps.take(), reservation, (), now))

    def _call_off_report(self, step: Step, take_back: Callable[[Step], ReportOutcome]) -> None:
        if self._call_off(step) is not None:
            self._steps.postpone(partial(take_back, self._steps.take()))

    def _delete(self, pattern: str) -> int:
        # SCAN in steps, because KEYS would block the server for all callers.
        deleted, cursor = 0, None
        while cursor != b"0":
            cursor, keys = self._do("SCAN", cursor or 0, "MATCH", pattern, "COUNT", 1000)
            if keys:
                deleted += self._do("DEL", *keys)
        return deleted

    def _run(self, script: _Script, keys: Sequence[str], arguments: Sequence[Any], once: _Once | None = None) -> Any:
        if once is not None:
            keys = [*keys, *_reports(once.account_id)]
            arguments = [*arguments, once.name, once.now_ms, IDEMPOTENCY_SECONDS * 1000]
            script = _ONCE[script]
        try:
            return self._do("EVALSHA", script.sha, len(keys), *keys, *arguments)
        # EVAL also stores the script, so that the next call finds it by its hash.
        except redis.exceptions.NoScriptError:
            return self._do("EVAL", script.text, len(keys), *keys, *arguments)

    def _do(self, *command: Any) -> Any:
        answer = self._connections.ask(*command)
        self._steps.settle()
        return answer


class _Once(NamedTuple):
    """The name under which the server remembers a step, so that the step is executed only once."""

    account_id: int
    name: str
    now_ms: int


class _Script:
    def __init__(self, text: str) -> None:
        self.text = text
        # Redis identifies a script by its SHA-1.
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


_HIT = _Script(scripts.HIT)
_GIVE_BACK = _Script(scripts.GIVE_BACK)
_ONCE = {_HIT: _Script(scripts.HIT_ONCE), _GIVE_BACK: _Script(scripts.GIVE_BACK_ONCE)}
_REPORT = _Script(scripts.REPORT)
_REFUSED = _Script(scripts.REFUSED)
_DAYS = _Script(scripts.DAYS)
_CALL_OFF = _Script(scripts.CALL_OFF)
_CHECK = _Script(scripts.CHECK)
_CHANGE = _Script(scripts.CHANGE)
_HEAL = _Script(scripts.HEAL)
_FORGET_SITE = _Script(scripts.FORGET_SITE)


def _window(key: str) -> str:
    return f"{_PREFIX}window:{key}"


def _day(account_id: int | None, day: int) -> str:
    return f"{_PREFIX}day:{account_id}:{day}"


def _sites(account_id: int | None, day: int) -> str:
    return f"{_PREFIX}sites:{account_id}:{day}"


def _intent(intent: Intent | None) -> str:
    return f"{_PREFIX}intent:" + ("" if intent is None else f"{intent.key}:{intent.began_ms}")


def _reports(account_id: int) -> tuple[str, str]:
    return f"{_PREFIX}reports:{account_id}", f"{_PREFIX}report-ends:{account_id}"


def _epoch(account_id: int | str | None) -> str:
    return f"{_PREFIX}epoch:{account_id}"


def _kept_days(now: float) -> range:
    today = milliseconds(now) // 86_400_000
    # Includes tomorrow, in which a machine whose clock is ahead may already count.
    return range(today - USAGE_DAYS_KEPT, today + 2)


_stores: weakref.WeakSet[RedisCounters] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    # A slot belongs to one thread of one process, so the child must not use its parent's slots.
    for store in list(_stores):
        store._begin()


os.register_at_fork(after_in_child=_after_fork_in_child)
