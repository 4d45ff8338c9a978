"""Flask-Limiter as this product uses it: all limits of a request in one step of the counter store.

Flask-Limiter decides limit by limit, one round trip each, and when it does, the caller's identity is not known
yet. So its :class:`~flask_limiter.Limiter` is given our storage, our strategy, and one more method:
:meth:`RequestLimiter.check_request_limits`, which the application calls at the moment the order of errors asks
for. What it raises, what ``current_limit`` tells and what decorators such as ``@limiter.limit("5/minute")`` do
is Flask-Limiter's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import flask
from flask_limiter import Limit, Limiter, RateLimitExceeded, RequestLimit
from limits import RateLimitItem, WindowStats, parse

from app import clock
from app.counters.base import (
    ConsumeOutcome,
    CounterStore,
    CountersUnavailable,
    IntentRequest,
    UsageReservation,
    WindowRequest,
    WindowState,
)
from app.counters.metering import UNLIMITED, milliseconds
from app.counters.storage import STRATEGY, CountersRateLimiter


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What the current request must pass.

    Attributes:
        windows: The buckets it is counted in; all have room, or none counts it.
        reserve: The search it is about to run, if it is to be charged now.
        intent: Whose typing the search may belong to.
        credentials_of: Account whose credential version is wanted.
        shown: Keys of the windows the ``X-RateLimit-*`` headers may describe: of these, the one with the fewest hits
            left. Empty for the first window.
    """

    windows: tuple[WindowRequest, ...]
    reserve: UsageReservation | None = None
    intent: IntentRequest | None = None
    credentials_of: int | None = None
    shown: tuple[str, ...] = ()

    def window_shown(self, states: tuple[WindowState, ...]) -> WindowState | None:
        """The state the headers describe; ``None`` without windows."""
        eligible = [state for state in states if state.key in self.shown] if self.shown else states[:1]
        return min(eligible, key=lambda state: state.remaining, default=None)


class RequestLimitExceeded(RateLimitExceeded):
    """A limit was hit.

    Attributes:
        window: The limit, as it stands.
        retry_after: Whole seconds until it has room, at least 1.
        outcome: What the store said, where the limit was hit while counting.
    """

    def __init__(self, window: WindowState, now: float, outcome: ConsumeOutcome | None = None) -> None:
        (limit,) = Limit(_limit_text(window), key_function=lambda: window.key, shared=True)
        super().__init__(limit)
        self.window = window
        self.retry_after: int = window.retry_after(now)
        self.outcome = outcome


class CountedLimit(RequestLimit):
    """What ``limiter.current_limit`` tells of a window that was counted together with others."""

    def __init__(self, extension: Limiter, state: WindowState, breached: bool) -> None:
        super().__init__(extension, _limit_item(_limit_text(state)), [state.key], breached, shared=True)
        self.state = state

    @property
    def window(self) -> WindowStats:
        return WindowStats(self.state.reset_ms / 1000, self.state.remaining)

    @property
    def reset_at(self) -> int:
        """Whole Unix seconds, rounded up."""
        return self.state.reset_at


class RequestLimiter(Limiter):
    """Flask-Limiter over a counter store.

    Every answer of a request that was checked, or for which :meth:`show` was called, gets
    ``X-RateLimit-Limit``, ``-Remaining`` and ``-Reset``. ``Retry-After`` is left to the error handler, for it
    belongs on refusals only.
    """

    def __init__(self, store: CounterStore) -> None:
        super().__init__(
            lambda: flask.request.remote_addr or "",
            storage_uri=f"counters+{store.name}://",
            storage_options=cast("dict[str, str | int]", {"store": store}),
            strategy=STRATEGY,
            headers_enabled=False,
            swallow_errors=False,
        )
        self.store = store

    @property
    def context(self) -> Any:
        """Flask-Limiter's knowledge of the current request; looked up once a request, not five times."""
        state = flask.g._get_current_object()
        context = state.get("limiter_context")
        if context is None:
            context = state.limiter_context = super().context
        return context

    def init_app(self, app: flask.Flask) -> None:
        """Register with the application."""
        super().init_app(app)
        app.after_request(self._write_headers)

    def check_request_limits(self, limits: RequestLimits, *, now: float | None = None) -> ConsumeOutcome:
        """Count the current request and charge its search, in one step of the store.

        A used-up daily quota does not raise here: it comes late in the order of errors. The outcome tells
        (``reservation`` is ``None``).

        Raises:
            RequestLimitExceeded: A window had no room; nothing was counted.
            CountersUnavailable: The store is away. The headers then describe an untouched window.
        """
        now = clock.now().timestamp() if now is None else now
        strategy = cast(CountersRateLimiter, self.limiter)
        try:
            outcome = strategy.hit_all(
                limits.windows,
                reserve=limits.reserve,
                intent=limits.intent,
                credentials_of=limits.credentials_of,
                now=now,
            )
        except CountersUnavailable:
            untouched = (
                WindowState(*window, 0, milliseconds(now) + window.seconds * 1000) for window in limits.windows
            )
            self.show(limits.window_shown(tuple(untouched)))
            raise
        if outcome.refused is not None:
            self.show(outcome.refused, breached=True)
            raise RequestLimitExceeded(outcome.refused, now, outcome)
        self.show(limits.window_shown(outcome.windows))
        return outcome

    def show(self, window: WindowState | None, *, breached: bool = False) -> None:
        """Let the headers of the current answer describe this window; ``None`` for none."""
        self.context.view_rate_limit = None if window is None else CountedLimit(self, window, breached)

    def _check_request_limit(self, callable_name: str | None = None, in_middleware: bool = True) -> None:
        """Flask-Limiter's own hook, which runs before every request and for every decorated view.

        Before a request it has something to check only if a blueprint is decorated; looking for limits costs more than
        checking ours, so it is passed over otherwise.
        """
        if not in_middleware or self.limit_manager._blueprint_limits:
            super()._check_request_limit(callable_name, in_middleware)

    def _write_headers(self, response: flask.Response) -> flask.Response:
        current = self.current_limit
        if current is not None:
            headers = response.headers
            headers.add("X-RateLimit-Limit", str(current.limit.amount))
            headers.add("X-RateLimit-Remaining", str(current.remaining))
            headers.add("X-RateLimit-Reset", str(current.reset_at))
        return response


_UNITS = {1: "second", 60: "minute", 3600: "hour", 86_400: "day"}


def _limit_text(window: WindowState) -> str:
    amount = UNLIMITED if window.limit is None else window.limit
    unit = _UNITS.get(window.seconds)
    return f"{amount} per 1 {unit}" if unit else f"{amount} per {window.seconds} second"


@lru_cache(maxsize=256)
def _limit_item(text: str) -> RateLimitItem:
    return parse(text)
