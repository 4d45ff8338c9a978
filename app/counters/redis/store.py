"""Counters in Redis: exact across machines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import chain

from app.counters.base import CounterStore
from app.counters.metering import RaisedDays, day_number, milliseconds
from app.counters.redis import names, scripts
from app.counters.redis.charges import Charges
from app.counters.redis.reports import Reports
from app.counters.redis.server import DAY_KEPT_MS, Server
from app.counters.values import (
    ConsumeOutcome,
    CountersUnavailable,
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

    def __init__(self, url: str, raised_days: RaisedDays, *, timeout_seconds: float) -> None:
        self.raised_days = raised_days
        self._server = Server(url, raised_days, timeout_seconds=timeout_seconds)
        self._charges = Charges(self._server)
        self._reports = Reports(self._server)

    def consume(
        self,
        windows: Sequence[WindowRequest],
        *,
        reserve: UsageReservation | None = None,
        intent: IntentRequest | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        return self._charges.consume(True, windows, reserve, intent, None, credentials_of, now)

    def peek(
        self,
        windows: Sequence[WindowRequest],
        *,
        usage_of: int | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        return self._charges.consume(False, windows, None, None, usage_of, credentials_of, now)

    def refund(
        self,
        *,
        reservation: Reservation | None = None,
        windows: Sequence[WindowState] = (),
        now: float,
    ) -> None:
        self._charges.refund(reservation, windows, now)

    def settle(self, search: UncountedSearch | Reservation, *, once: str, now: float) -> None:
        self._charges.settle(search, once, now)

    def reset(self, keys: Sequence[str]) -> None:
        if keys:
            self._server.do("DEL", *map(names.window, keys))

    def reset_all(self) -> int:
        return self._server.delete(names.window("*"))

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
        return self._reports.record(
            account_id, site_id, operation, count, capped=capped, idempotency=idempotency, now=now
        )

    def count_rejection(self, account_id: int, *, now: float) -> None:
        day = names.day(account_id, milliseconds(now) // 86_400_000)
        self._server.run(scripts.REFUSED, [day], [DAY_KEPT_MS])

    def usage_of_day(self, account_id: int, day: date) -> DayUsage:
        days = self.usage_between(account_id, day, day)
        usage = days[0] if days else DayUsage(day, 0, 0)
        return usage.at_least(self.raised_days.missing_usage(account_id, day, self._server.known.state[0]))

    def usage_between(self, account_id: int, first_day: date, last_day: date) -> list[DayUsage]:
        if (last_day - first_day).days > 400:
            raise ValueError("A usage range can be at most 400 days long.")
        days = [first_day + timedelta(days=passed) for passed in range((last_day - first_day).days + 1)]
        counts = self._server.run(scripts.DAYS, [names.day(account_id, day_number(day)) for day in days], [])
        usage = map(DayUsage, days, counts[::3], counts[1::3], counts[2::3])
        return [day for day in usage if day.used or day.indexing or day.rejected]

    def begin_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        return self._change(account_id, "begin", now)

    def end_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        return self._change(account_id, "end", now)

    def heal_credential_epochs(self, older_than_seconds: float, *, now: float) -> int:
        begun_before_ms = milliseconds(now - older_than_seconds)
        healed: int = self._server.run(scripts.HEAL, [names.OPEN_CHANGES], [begun_before_ms, names.epoch("")])
        return healed

    def forget_account(self, account_id: int, *, now: float) -> None:
        # The version first: if the deletion of the counts fails, cached credentials are invalid already.
        self._change(account_id, "forget", now)
        days = names.kept_days(now)
        owned = chain((names.day(account_id, day) for day in days), (names.sites(account_id, day) for day in days))
        self._server.do("DEL", *owned, *names.reports(account_id))

    def forget_site(self, account_id: int, site_id: int, *, now: float) -> None:
        self._server.run(scripts.FORGET_SITE, [names.sites(account_id, day) for day in names.kept_days(now)], [site_id])

    def check(self) -> None:
        self._server.check()

    def clear(self) -> None:
        self._server.delete(f"{names.PREFIX}*")

    def close(self) -> None:
        self._server.connections.close()

    def _change(self, account_id: int, step: str, now: float) -> CredentialVersion:
        keys = [names.epoch(account_id), names.OPEN_CHANGES, names.INCARNATION]
        state = self._server.known.state
        try:
            response = self._server.run(scripts.CHANGE, keys, [milliseconds(now), step, account_id])
        except CountersUnavailable:
            if step != "begin":
                # The server may have lost the start of the change, too. Then entries that other processes cached
                # meanwhile would seem current.
                self._server.known.raise_doubt()
            raise
        started, finished, incarnation, changes = response
        return CredentialVersion(
            started, finished, self._server.record_incarnation(state, "", incarnation.decode(), changes)
        )
