"""Flask-Limiter over the counter store: rate limits of requests, and their headers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import flask
from flask_limiter import Limit, Limiter, RateLimitExceeded
from limits.storage import Storage

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.metering import UNLIMITED, milliseconds, window_end
from app.counters.values import (
    ConsumeOutcome,
    CountersUnavailable,
    IntentRequest,
    UsageReservation,
    WindowRequest,
    WindowState,
)

SCHEME = "counters+"
"""Prefix of a store's URL for the ``limits`` package."""

_ANY_LENGTH_SECONDS = 100 * 366 * 86_400


class CounterStorage(Storage):
    """A storage backend for the ``limits`` package that counts in a counter store.

    Args:
        uri: ``counters+sqlite:///path``, ``counters+redis://…``, ``counters+memory://``, and so on.
        store: An existing store to use instead of creating one from ``uri``.
    """

    STORAGE_SCHEME = [  # noqa: RUF012 - the library's own declaration
        "counters+sqlite",
        "counters+redis",
        "counters+rediss",
        "counters+unix",
        "counters+memory",
    ]

    def __init__(
        self,
        uri: str | None = None,
        wrap_exceptions: bool = False,
        store: CounterStore | None = None,
        **options: Any,
    ) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self.store = store or create_counters((uri or "").removeprefix("counters+"), **options)

    @property
    def base_exceptions(self) -> type[Exception]:
        return CountersUnavailable

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count ``amount`` hits in the window of ``key``, which lasts ``expiry`` seconds. Returns the new total."""
        return self.store.consume([WindowRequest(key, None, expiry, amount)], now=time.time()).windows[0].hits

    def get(self, key: str) -> int:
        """Return the hits in the window of ``key``."""
        # The library does not pass the window's length here. With a shorter one, the store would treat the window as
        # begun by a wrong clock, and report 0.
        return self.store.peek([WindowRequest(key, None, _ANY_LENGTH_SECONDS)], now=time.time()).windows[0].hits

    def get_expiry(self, key: str) -> float:
        """Return the end of the window of ``key`` in Unix seconds, or the current time without a window."""
        now = time.time()
        window = self.store.peek([WindowRequest(key, None, _ANY_LENGTH_SECONDS)], now=now).windows[0]
        return window.reset_ms / 1000 if window.hits else now

    def check(self) -> bool:
        """Whether the store responds."""
        try:
            self.store.check()
        except CountersUnavailable:
            return False
        return True

    def reset(self) -> int:
        """Delete all windows, but keep usage. Returns the number of deleted windows."""
        return self.store.reset_all()

    def clear(self, key: str) -> None:
        """Delete the window of ``key``."""
        self.store.reset([key])


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits that the current request must pass.

    Attributes:
        windows: Windows to count the request in. If any window is full, the request is not counted.
        reserve: The search to charge now, if any.
        intent: The intent that the search may belong to.
        credentials_of: Account whose credential version to return.
    """

    windows: tuple[WindowRequest, ...]
    reserve: UsageReservation | None = None
    intent: IntentRequest | None = None
    credentials_of: int | None = None

    def unused(self, now: float) -> tuple[WindowState, ...]:
        """Return the windows as they are before any request."""
        now_ms = milliseconds(now)
        return tuple(WindowState(*window, 0, window_end(now_ms, window.seconds)) for window in self.windows)


class RequestLimitExceeded(RateLimitExceeded):
    """A limit was exceeded.

    Attributes:
        window: The limit, with its current state.
        retry_after: Whole seconds until it has room, at least 1.
        outcome: The result of the counting step, if the limit was exceeded in one.
    """

    def __init__(self, window: WindowState, now: float, outcome: ConsumeOutcome | None = None) -> None:
        (limit,) = Limit(_limit_text(window), key_function=lambda: window.key, shared=True)
        super().__init__(limit)
        self.window = window
        self.retry_after: int = window.retry_after(now)
        self.outcome = outcome


class RequestLimiter(Limiter):
    """Flask-Limiter over a counter store."""

    def __init__(self, store: CounterStore) -> None:
        super().__init__(
            lambda: flask.request.remote_addr or "",
            storage_uri=f"{SCHEME}{store.name}://",
            storage_options=cast("dict[str, str | int]", {"store": store}),
            # The library's headers cover only the limits that it checks. ``rate_headers`` covers all of them.
            headers_enabled=False,
            swallow_errors=False,
        )
        self.store = store

    def check_request_limits(self, limits: RequestLimits, *, now: float) -> ConsumeOutcome:
        """Count a request and charge its search, in one step of the store.

        An exhausted daily quota does not raise here, because other errors take precedence over it. The outcome shows it
        (``reservation`` is ``None``).

        Raises:
            RequestLimitExceeded: A window was full; nothing was counted.
            CountersUnavailable: The store is unavailable.
        """
        outcome = self.store.consume(
            limits.windows,
            reserve=limits.reserve,
            intent=limits.intent,
            credentials_of=limits.credentials_of,
            now=now,
        )
        if outcome.rejected is not None:
            raise RequestLimitExceeded(outcome.rejected, now, outcome)
        return outcome


def shown_window(windows: Iterable[WindowState]) -> WindowState | None:
    """Return the one-minute window with the fewest hits left, which the headers describe; ``None`` without one."""
    fullest: WindowState | None = None
    for window in windows:
        if window.seconds == 60 and (fullest is None or window.remaining < fullest.remaining):
            fullest = window
    return fullest


def rate_headers(window: WindowState) -> tuple[tuple[str, str], ...]:
    """Return the headers that describe a window. ``Retry-After`` is not one of them, since it belongs to rejections."""
    return (
        ("X-RateLimit-Limit", str(_amount(window))),
        ("X-RateLimit-Remaining", str(window.remaining)),
        ("X-RateLimit-Reset", str(window.reset_at)),
    )


_UNITS = {1: "second", 60: "minute", 3600: "hour", 86_400: "day"}


def _amount(window: WindowState) -> int:
    return UNLIMITED if window.limit is None else window.limit


def _limit_text(window: WindowState) -> str:
    unit = _UNITS.get(window.seconds)
    return f"{_amount(window)} per 1 {unit}" if unit else f"{_amount(window)} per {window.seconds} second"
