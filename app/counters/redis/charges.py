"""Counting requests, charging searches, and undoing both. Each is one script, executed at most once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from app.counters.metering import (
    INTENT_KEPT_SECONDS,
    INTENT_PAUSE_SECONDS,
    INTENT_REQUESTS,
    INTENT_SECONDS,
    day_from_number,
    day_number,
    milliseconds,
    window_end,
)
from app.counters.redis import names
from app.counters.redis.charge_scripts import GIVE_BACK, HIT
from app.counters.redis.client import NO_STEP, Step
from app.counters.redis.server import DAY_KEPT_MS, SLOT_KEPT_MS, Once, Server
from app.counters.values import (
    ConsumeOutcome,
    CredentialVersion,
    Intent,
    IntentRequest,
    Reservation,
    ResponseLost,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
    WindowState,
    longest_wait,
    settlement_key,
)

_UNRAISED = 2


class Charges:
    """Charges and refunds on one server, by the rules of :class:`~app.counters.base.CounterStore`."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def consume(
        self,
        counting: bool,
        windows: Sequence[WindowRequest],
        reserve: UsageReservation | None,
        intent: IntentRequest | None,
        usage_of: int | None,
        credentials_of: int | None,
        now: float,
        once: Once | None = None,
    ) -> ConsumeOutcome:
        """Count a request and charge its search, or only read what that would do.

        Args:
            counting: Whether to count; otherwise as :meth:`~app.counters.base.CounterStore.peek`.
            usage_of: The account whose usage to return, without a reservation.
            once: Executes the step only once; afterwards it only reads.
        """
        now_ms = milliseconds(now)
        day = now_ms // 86_400_000
        today = day_from_number(day)
        if reserve is None:
            account_id, daily_limit, site_id = usage_of, None, None
        else:
            account_id, daily_limit, site_id = reserve
        if intent is not None:
            windows = [*windows, *intent.windows]
        keys = [names.window(window.key) for window in windows]
        # Always the same number of keys, used or not, since the script counts them from the end.
        keys += [names.day(account_id, day), names.sites(account_id, day), names.epoch(credentials_of)]
        keys += [names.last_intent(intent), names.INCARNATION]
        arguments: list[Any] = [
            int(counting),
            now_ms,
            int(reserve is not None),
            int(account_id is not None),
            -1 if daily_limit is None else daily_limit,
            "" if site_id is None else site_id,
            int(credentials_of is not None),
            DAY_KEPT_MS,
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
        step = NO_STEP if reserve is None or once is not None else self._server.steps.begin()
        state, doubt = self._server.known.state, self._server.known.doubt
        keys.append(step.slot)
        arguments += [step.number, SLOT_KEPT_MS, doubt]
        try:
            response = self._server.run_raised(
                HIT, keys, arguments, account_id if reserve else None, today, _UNRAISED, once
            )
        # The caller treats the search as uncharged, so the charge must be canceled or refunded.
        except ResponseLost:
            if reserve is not None and step != NO_STEP:
                self._server.steps.postpone(partial(self._cancel, step, reserve, intent, now))
            raise
        self._server.steps.give_back(step)
        *counts, incarnation, changes = response
        name = self._server.record_incarnation(state, doubt, incarnation.decode(), changes)
        rejected, reserved, used, started, finished, continues, began_ms, charged_day, *counts = counts
        states = tuple(map(WindowState, *zip(*windows, strict=True), counts[::2], counts[1::2])) if windows else ()
        reservation = None
        if reserve is not None and reserved:
            receipt = None if intent is None else Intent(intent.key, began_ms)
            reservation = Reservation(reserve.account_id, site_id, day_from_number(charged_day), receipt)
        # Windows of a continued intent were not counted, so they cannot be the reason for a rejection.
        own_states = states[: len(states) - len(intent.windows)] if continues and intent is not None else states
        return ConsumeOutcome(
            states,
            longest_wait(own_states) if rejected else None,
            reservation,
            # As in the SQLite store, a rejected request reports no usage.
            None if account_id is None or (rejected and counting) else used,
            today,
            None if credentials_of is None else CredentialVersion(started, finished, name),
            continues=bool(continues and not rejected),
        )

    def refund(self, reservation: Reservation | None, windows: Sequence[WindowState], now: float) -> None:
        """Undo a charge, or hits, or both."""
        step = self._server.steps.begin()
        give_back = self._giving_back(step, reservation, windows, now)
        try:
            give_back()
        # The step is numbered, so sending it again later refunds at most once.
        except ResponseLost:
            self._server.steps.postpone(give_back)
            raise
        self._server.steps.give_back(step)

    def settle(self, search: UncountedSearch | Reservation, once: str, now: float) -> None:
        """Charge a search that ran uncounted, or refund a search that failed, only once."""
        once_key = Once(search.account_id, settlement_key(once), milliseconds(now))
        if isinstance(search, Reservation):
            self._giving_back(NO_STEP, search, (), now, once_key)()
        else:
            reserve = UsageReservation(search.account_id, None, search.gateway_site_id)
            self.consume(True, (), reserve, search.intent, None, None, search.searched_at, once_key)

    def _giving_back(
        self,
        step: Step,
        reservation: Reservation | None,
        windows: Sequence[WindowState],
        now: float,
        once: Once | None = None,
    ) -> Callable[[], object]:
        """Return a function that makes a refund once, even if it is called repeatedly."""
        keys = [names.window(window.key) for window in windows]
        arguments: list[Any] = [milliseconds(now), 0, "", DAY_KEPT_MS, 0]
        if reservation is None:
            # The script counts its keys from the end, and leaves these alone.
            keys += [names.day(0, 0), names.sites(0, 0), names.intent(None)]
        else:
            account_id, site_id, today, intent = reservation
            day = day_number(today)
            keys += [names.day(account_id, day), names.sites(account_id, day), names.intent(intent)]
            arguments[1:3] = [1, "" if site_id is None else site_id]
            arguments[4] = int(intent is not None)
        for window in windows:
            arguments += [window.reset_ms, window.cost]
        return partial(self._server.run, GIVE_BACK, [*keys, step.slot], [*arguments, step.number, SLOT_KEPT_MS], once)

    def _cancel(self, step: Step, reserve: UsageReservation, intent: IntentRequest | None, now: float) -> None:
        response = self._server.cancel(step)
        if response is None:
            return
        began_ms, day = map(int, response.split())
        receipt = None if intent is None else Intent(intent.key, began_ms)
        reservation = Reservation(reserve.account_id, reserve.gateway_site_id, day_from_number(day), receipt)
        # The refund has its own number, since its response may be lost, too.
        self._server.steps.postpone(self._giving_back(self._server.steps.begin(), reservation, (), now))
