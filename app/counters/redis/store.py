"""Counters in Redis: exact across machines."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - a name's look-up would import it, and a fork during an import hangs the child
import hashlib
import os
import time
import weakref
from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from itertools import chain
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from app.counters.base import (
    ConsumeOutcome,
    CounterStore,
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
    UsageReservation,
    WindowRequest,
    WindowState,
    longest_wait,
)
from app.counters.metering import (
    IDEMPOTENCY_SECONDS,
    INTENT_KEPT_SECONDS,
    INTENT_PAUSE_SECONDS,
    INTENT_REQUESTS,
    INTENT_SECONDS,
    USAGE_DAYS_KEPT,
    day_from_number,
    day_number,
    milliseconds,
)
from app.counters.redis import scripts

_PREFIX = "sitesearch:counters:"
_OPEN_CHANGES = f"{_PREFIX}open-changes"
_DAY_KEPT_MS = USAGE_DAYS_KEPT * 86_400_000
_FAILURES_BEFORE_PAUSE = 3
_PAUSE_SECONDS = 1.0
_STATUSES = (ReportStatus.RECORDED, ReportStatus.DUPLICATE, ReportStatus.CONFLICT)


class RedisCounters(CounterStore):
    """Counters in one Redis server (or its like); not for a cluster, whose scripts cannot span nodes.

    Each step is one script. Nothing is ever sent twice: a step whose answer was lost may have counted. The server
    must not evict keys (``maxmemory-policy noeviction``) and should keep an append-only file.

    What counts is decided by the callers' clocks. Redis' own clock only removes what ended a minute ago.

    After three failures in a row, steps fail at once for a second instead of each waiting out its time.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``, as redis-py understands it.
        timeout_seconds: Budget of a step: a third for connecting, a third for each answer.
    """

    name = "redis"

    def __init__(self, url: str, *, timeout_seconds: float) -> None:
        third = timeout_seconds / 3
        self._make_client = partial(
            redis.Redis.from_url,
            url,
            socket_timeout=third,
            socket_connect_timeout=third,
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
            driver_info=None,  # naming the client costs two round trips, and imports that do not survive a fork
        )
        self._connect()
        self._address = _address(self._client)
        self._failures = 0
        self._paused_until = 0.0
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
        self._run(_GIVE_BACK, keys, arguments)

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
        day = milliseconds(now) // 86_400_000
        status, used = self._run(
            _REPORT,
            [_day(account_id, day), _sites(account_id, day), *_reports(account_id)],
            [
                milliseconds(now),
                operation,
                count,
                int(capped),
                site_id,
                _DAY_KEPT_MS,
                *(idempotency or ("", "")),
                IDEMPOTENCY_SECONDS * 1000,
            ],
        )
        return ReportOutcome(_STATUSES[status], used)

    def count_refusal(self, account_id: int, *, now: float) -> None:
        day = _day(account_id, milliseconds(now) // 86_400_000)
        self._run(_REFUSED, [day], [_DAY_KEPT_MS])

    def usage_of_day(self, account_id: int, day: date) -> DayUsage:
        found = self.usage_between(account_id, day, day)
        return found[0] if found else DayUsage(day, 0, 0)

    def usage_between(self, account_id: int, first_day: date, last_day: date) -> list[DayUsage]:
        if (last_day - first_day).days > 400:
            raise ValueError("A range of usage is at most 400 days long.")
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
        self._do("SET", f"{_PREFIX}check", 1, "PX", 1000)

    def clear(self) -> None:
        self._delete(f"{_PREFIX}*")

    def close(self) -> None:
        self._client.close()
        self._client.connection_pool.disconnect()

    def _connect(self) -> None:
        """Begin with a new client: nothing is sent before the first step."""
        self._client: redis.Redis = self._make_client()
        self._execute: Any = self._client.execute_command

    def _consume(
        self,
        counting: bool,
        windows: Sequence[WindowRequest],
        reserve: UsageReservation | None,
        intent: IntentRequest | None,
        usage_of: int | None,
        credentials_of: int | None,
        now: float,
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
        keys.append(f"{_PREFIX}intent:{'' if intent is None else intent.key}")
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
            arguments += [-1 if window.limit is None else window.limit, window.seconds * 1000, window.cost]
        refused, reserved, used, started, finished, continues, began_ms, charged_day, *counts = self._run(
            _HIT, keys, arguments
        )
        states = tuple(map(WindowState, *zip(*windows, strict=True), counts[::2], counts[1::2])) if windows else ()
        reservation = None
        if reserve is not None and reserved:
            receipt = None if intent is None else Intent(intent.key, began_ms)
            reservation = Reservation(reserve.account_id, site_id, day_from_number(charged_day), receipt)
        asked = states[: len(states) - len(intent.windows)] if continues and intent is not None else states
        return ConsumeOutcome(
            states,
            longest_wait(asked) if refused else None,
            reservation,
            None if account_id is None or (refused and counting) else used,
            today,
            None if credentials_of is None else CredentialVersion(started, finished),
            continues=bool(continues and not refused),
        )

    def _change(self, account_id: int, step: str, now: float) -> CredentialVersion:
        answer = self._run(_CHANGE, [_epoch(account_id), _OPEN_CHANGES], [milliseconds(now), step, account_id])
        return CredentialVersion(*answer)

    def _delete(self, pattern: str) -> int:
        deleted, cursor = 0, -1
        while cursor != 0:
            cursor, keys = self._do("SCAN", max(0, cursor), "MATCH", pattern, "COUNT", 1000)
            if keys:
                deleted += self._do("DEL", *keys)
        return deleted

    def _run(self, script: _Script, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        try:
            return self._do("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError:
            return self._do("EVAL", script.text, len(keys), *keys, *arguments)

    def _do(self, *command: Any) -> Any:
        if self._failures >= _FAILURES_BEFORE_PAUSE:
            moment = time.monotonic()
            if moment < self._paused_until:
                raise CountersUnavailable(f"The counter store at {self._address} is away.")
            self._paused_until = moment + _PAUSE_SECONDS  # the others go on failing at once while this step tries
        return self._send(command)

    def _send(self, command: tuple[Any, ...]) -> Any:
        try:
            answer = self._execute(*command)
        except redis.exceptions.NoScriptError:
            self._failures = 0  # It answers; a server that was started again has only forgotten its scripts.
            raise
        except (redis.exceptions.RedisError, OSError) as error:
            self._failures += 1
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            raise CountersUnavailable(f"The counter store at {self._address} cannot be used: {error}") from error
        self._failures = 0
        return answer


class _Script:
    def __init__(self, text: str) -> None:
        self.text = text
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


_HIT = _Script(scripts.HIT)
_GIVE_BACK = _Script(scripts.GIVE_BACK)
_REPORT = _Script(scripts.REPORT)
_REFUSED = _Script(scripts.REFUSED)
_DAYS = _Script(scripts.DAYS)
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
    return range(today - USAGE_DAYS_KEPT, today + 2)


def _address(client: redis.Redis) -> str:
    options = client.connection_pool.connection_kwargs
    return str(options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}")


_stores: weakref.WeakSet[RedisCounters] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    # Another thread of the parent may have held one of the client's locks; here nobody would ever release it.
    for store in list(_stores):
        store._connect()


os.register_at_fork(after_in_child=_after_fork_in_child)
