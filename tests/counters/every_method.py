"""One call of every public method of a counter store, so that fault tests cover all methods."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from typing import Any, TypeVar

from app.counters.base import CounterStore
from app.counters.values import CountersUnavailable, Reservation, UsageReservation, WindowRequest
from tests.patience import PATIENCE_SECONDS

Result = TypeVar("Result")
NOW = 1_700_000_000.0
TODAY = date(2023, 11, 14)

_CALLS: dict[str, Callable[[CounterStore], Any]] = {
    "consume": lambda store: store.consume(
        [WindowRequest("day", 9, 86_400)], reserve=UsageReservation(1, 9), credentials_of=1, now=NOW
    ),
    "peek": lambda store: store.peek([WindowRequest("day", 9, 86_400)], usage_of=1, credentials_of=1, now=NOW),
    "refund": lambda store: store.refund(reservation=Reservation(1, None, TODAY), now=NOW),
    "settle": lambda store: store.settle(Reservation(1, None, TODAY), once="every", now=NOW),
    "reset": lambda store: store.reset(["day"]),
    "reset_all": lambda store: store.reset_all(),
    "report_usage": lambda store: store.report_usage(1, 7, "search", 1, capped=False, now=NOW),
    "count_rejection": lambda store: store.count_rejection(1, now=NOW),
    "usage_of_day": lambda store: store.usage_of_day(1, TODAY),
    "usage_between": lambda store: store.usage_between(1, TODAY, TODAY),
    "begin_credential_change": lambda store: store.begin_credential_change(1, now=NOW),
    "end_credential_change": lambda store: store.end_credential_change(1, now=NOW),
    "heal_credential_epochs": lambda store: store.heal_credential_epochs(60, now=NOW),
    "forget_account": lambda store: store.forget_account(1, now=NOW),
    "forget_site": lambda store: store.forget_site(1, 7, now=NOW),
    "check": lambda store: store.check(),
    "clear": lambda store: store.clear(),
}

EVERY_METHOD = sorted(CounterStore.__abstractmethods__ - {"close"})
"""All public methods; :func:`call` fails for a method without a call above."""


def call(store: CounterStore, method: str) -> Any:
    return _CALLS[method](store)


def until_it_is_back(step: Callable[[], Result]) -> Result:
    """Repeat a step of a store with a short timeout until it succeeds, even on a busy machine."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return step()
        except CountersUnavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
