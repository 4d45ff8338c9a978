"""How much is allowed: which windows a request counts in, and the searches of a day."""

from __future__ import annotations

from collections.abc import Callable

from app.clock import now
from app.counters.base import ConsumeOutcome, WindowRequest, WindowState, quota_window
from app.errors import ApiError, ErrorCode
from app.plans import PlanLimits
from app.web.auth import Caller
from app.wording import counted, duration

MINUTE_SECONDS = 60
DAY_SECONDS = 86_400
ADDRESS_LIMIT = 300
"""Requests a minute of one address without a valid key or session."""
VISITOR_LIMIT = 120
"""Requests a minute of one visitor's address with an account's public keys."""
REPORT_LIMIT = 30
"""Usage reports a minute of one visitor's address with a public key."""


def address_window(address: str) -> WindowRequest:
    """The window of callers nobody knows. ``address`` is an address key."""
    return WindowRequest(f"ip:{address}", ADDRESS_LIMIT, MINUTE_SECONDS)


def caller_windows(caller: Caller, address: Callable[[], str], *, reports: bool = False) -> list[WindowRequest]:
    """The windows of a known caller's request; the first is the one that headers describe.

    Args:
        address: Gives the address key of where it comes from.
        reports: Whether the request is a usage report.
    """
    if caller.kind in ("public", "engine"):
        return public_windows(caller.account.id, caller.account.limits, address(), reports=reports)
    return _account_windows("a", caller.account.id, caller.account.limits)


def public_windows(account_id: int, limits: PlanLimits, address: str, *, reports: bool = False) -> list[WindowRequest]:
    """The windows of the public bucket: its own pair, and the visitor's."""
    windows = _account_windows("p", account_id, limits)
    windows.append(WindowRequest(f"v{account_id}:{address}", VISITOR_LIMIT, MINUTE_SECONDS))
    if reports:
        windows.append(WindowRequest(f"r{account_id}:{address}", REPORT_LIMIT, MINUTE_SECONDS))
    return windows


def _account_windows(bucket: str, account_id: int, limits: PlanLimits) -> list[WindowRequest]:
    return [
        WindowRequest(f"{bucket}{account_id}:m", limits.requests_per_minute, MINUTE_SECONDS),
        WindowRequest(f"{bucket}{account_id}:d", limits.requests_per_day, DAY_SECONDS),
    ]


def refusal(window: WindowState) -> str:
    """What the 429 of a request limit says."""
    assert window.limit is not None  # A window without a limit refuses nothing.
    unit = {MINUTE_SECONDS: "minute", DAY_SECONDS: "day"}.get(window.seconds, f"{window.seconds} seconds")
    wait = duration(window.retry_after(now().timestamp()))
    return f"More than {counted(window.limit, 'request')} per {unit}; try again in {wait}."


class RateLimited(ApiError):
    """A 429. ``window`` is the limit that was hit, for the headers."""

    def __init__(self, message: str, wait: float, window: WindowState):
        super().__init__(ErrorCode.RATE_LIMIT_EXCEEDED, message, retry_after=wait)
        self.window = window


def rate_limited(message: str, wait: float, window: WindowState) -> RateLimited:
    """A 429."""
    return RateLimited(message, wait, window)


def out_of_searches(outcome: ConsumeOutcome, limits: PlanLimits) -> ApiError:
    """The 429 of a day whose searches are used up."""
    limit = limits.searches_per_day or 0
    window = quota_window(outcome, limit)
    return rate_limited(
        f"The plan allows {counted(limit, 'search')} per day; none are left until 00:00 UTC.",
        window.retry_after(now().timestamp()),
        window,
    )
