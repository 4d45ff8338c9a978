"""Rate limits: the windows in which a request counts, and the errors once a limit is reached.

This is the entrance to usage and quotas. ``daily_usage.py`` copies usage to SQL and charges searches after an outage of
the counter store; ``cpu_limits.py`` shares out CPU time and threads.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from app.clock import now
from app.counters.base import CounterStore
from app.counters.values import ConsumeOutcome, WindowRequest, WindowState, quota_window
from app.errors import ApiError, ErrorCode
from app.plans import PlanLimits
from app.services.access.callers import Caller
from app.wording import counted, duration

MINUTE_SECONDS = 60
HOUR_SECONDS = 3_600
DAY_SECONDS = 86_400
ADDRESS_LIMIT = 300
"""Requests per minute from one IP address without a valid key or session."""
SESSION_LIMIT = 600
"""Requests per minute by one member's sessions."""
MEMBERS_FACTOR = 2
"""Multiple of one member's limits that an account's members have together.

An account may have a hundred members, and replace them. With twice a member's limit, no member can use up the limits of
the others.
"""
VISITOR_LIMIT = 300
"""Requests per minute from one visitor's IP address with an account's public keys."""
REPORT_LIMIT = 30
"""Usage reports per minute from one visitor's IP address with a public key."""
LOGGED_LIMIT = 30
"""Searches per minute that analytics record from one visitor's IP address with a public key."""
FILES_LIMIT = 300
"""Requests per minute for an account's agent files on large plans. A file may have 5 MiB."""
BOX_FACTOR = 10
"""Multiple of the plan's request limits that applies to the search box's requests other than searches."""
ASKS_PER_MINUTE, ASKS_PER_HOUR = 10, 60
"""Questions that one visitor of an account's sites may ask a language model."""
OPERATOR_WINDOW = WindowRequest("operator", 600, MINUTE_SECONDS)
"""Requests per minute with the operator token."""
NEW_SITES_LIMIT = 20
"""Number of sites that an account may create per day, in addition to its plan's number of sites."""
MAX_NEW_SITES = 1_000
"""Number of sites that an account without a site limit may create per day."""
READ_PAGES_LIMIT = 30
"""Pages per minute that an account may preview or upload. Reading a page may take ten CPU seconds."""
PREVIEW_LIMIT = 1_000
"""Searches per day by an account's members on the search preview pages of its sites."""
SETTINGS_PREVIEW_LIMIT = 200
"""Previews of search settings per day by an account's members. Its keys have a limit of the same size."""
SETTINGS_PREVIEW_RATE = 30
"""Previews of search settings per minute by an account's members. Its keys have a limit of the same size.

Previewing the largest settings takes most of a CPU second, more than any other request.
"""


@lru_cache(maxsize=4096)
def address_key(address: str, secret: str) -> str:
    """Return the counter store's key for an IP address: a keyed hash, so that no address is stored."""
    return _keyed_hash(address, secret)


def _keyed_hash(text: str, secret: str) -> str:
    # blake2b accepts keys of at most 64 bytes.
    return hashlib.blake2b(text.encode("utf-8", "replace"), key=secret.encode()[:64], digest_size=12).hexdigest()


def address_window(stranger: str) -> WindowRequest:
    """Return the window for callers without credentials. ``stranger`` comes from :func:`name_stranger`."""
    return WindowRequest(f"ip:{stranger}", ADDRESS_LIMIT, MINUTE_SECONDS)


def name_stranger(address: str, *, is_reader: bool) -> str:
    """Return the name under which callers without credentials are counted.

    Reading public pages and logging in count separately from programs. Otherwise, a program that keeps calling with a
    disabled key could lock its owner, at the same IP address, out of the login.

    Args:
        address: The address key.
        is_reader: Whether the request has no token and is for a public page or a login.
    """
    return f"{address}:pages" if is_reader else address


def bucket_windows(caller: Caller, *, charged: bool, is_file: bool = False) -> tuple[WindowRequest, ...]:
    """Return the windows that a caller's account shares. Response headers describe the first one.

    A member's sessions have their own window, and all members of an account have another one, independent of the plan:
    even if keys have used up their limits, their owner can still disable them.

    Args:
        charged: Whether the operation charges searches. For keys in web pages, searches at the gateway use the public
            bucket, and other requests of the search box use a separate bucket.
        is_file: Whether the response is a file for agents.
    """
    if caller.member is not None:
        return (
            WindowRequest(f"m{caller.member.id}:m", SESSION_LIMIT, MINUTE_SECONDS),
            WindowRequest(f"ma{caller.account.id}:m", MEMBERS_FACTOR * SESSION_LIMIT, MINUTE_SECONDS),
        )
    account_id, limits = caller.account.id, caller.account.limits
    if is_file:
        return _account_windows("f", account_id, limits.with_overrides({"requests_per_minute": _files_limit(limits)}))
    if caller.kind not in ("public", "engine"):
        return _account_windows("a", account_id, limits)
    if caller.kind == "engine" and charged and not caller.is_preview:
        return _account_windows("p", account_id, limits)
    return _account_windows("b", account_id, limits, BOX_FACTOR)


def _files_limit(limits: PlanLimits) -> int:
    return FILES_LIMIT if limits.requests_per_minute is None else min(FILES_LIMIT, limits.requests_per_minute)


def daily_requests_window(account_id: int, limits: PlanLimits) -> WindowRequest:
    """Return the daily window of an account's requests with private and search keys."""
    return _account_windows("a", account_id, limits)[1]


def visitor_windows(caller: Caller, address: str, *, reports: bool = False) -> tuple[WindowRequest, ...]:
    """Return the windows of one visitor of an account's sites; empty for callers that are not visitors.

    Args:
        address: The address key of the client.
        reports: Whether the request is a usage report.
    """
    if caller.kind not in ("public", "engine"):
        return ()
    visitor = f"{caller.account.id}:{address}"
    windows = (WindowRequest(f"v{visitor}", VISITOR_LIMIT, MINUTE_SECONDS),)
    return (*windows, WindowRequest(f"r{visitor}", REPORT_LIMIT, MINUTE_SECONDS)) if reports else windows


def logged_window(account_id: int, address: str) -> WindowRequest:
    """Return the window of recorded searches from one visitor's IP address with an account's public keys.

    Args:
        address: The address key.
    """
    return WindowRequest(f"l{account_id}:{address}", LOGGED_LIMIT, MINUTE_SECONDS)


def _account_windows(bucket: str, account_id: int, limits: PlanLimits, factor: int = 1) -> tuple[WindowRequest, ...]:
    by_minute, by_day = limits.requests_per_minute, limits.requests_per_day
    return (
        WindowRequest(f"{bucket}{account_id}:m", by_minute and by_minute * factor, MINUTE_SECONDS),
        WindowRequest(f"{bucket}{account_id}:d", by_day and by_day * factor, DAY_SECONDS),
    )


def new_sites_window(account_id: int, limits: PlanLimits) -> WindowRequest:
    """Return the daily window for new sites.

    Deleted sites no longer count toward the quota, but creating and deleting each site costs work.
    """
    limit = MAX_NEW_SITES if limits.sites is None else limits.sites + NEW_SITES_LIMIT
    return WindowRequest(f"sites{account_id}:d", limit, DAY_SECONDS)


def read_pages_window(account_id: int) -> WindowRequest:
    """Return the window of pages that are read while the caller waits."""
    return WindowRequest(f"reads{account_id}:m", READ_PAGES_LIMIT, MINUTE_SECONDS)


def preview_window(account_id: int) -> WindowRequest:
    """Return the window of searches on search preview pages, which are not charged."""
    return WindowRequest(f"t{account_id}:d", PREVIEW_LIMIT, DAY_SECONDS)


def ask_windows(account_id: int, limits: PlanLimits, visitor: str) -> tuple[WindowRequest, ...]:
    """Return the windows of a question for the language model.

    Args:
        visitor: Key of the visitor, without personal data.
    """
    return (
        WindowRequest(f"q{account_id}:{visitor}:m", ASKS_PER_MINUTE, MINUTE_SECONDS),
        WindowRequest(f"q{account_id}:{visitor}:h", ASKS_PER_HOUR, HOUR_SECONDS),
        daily_asks_window(account_id, limits),
    )


def daily_asks_window(account_id: int, limits: PlanLimits) -> WindowRequest:
    """Return the daily window of an account's questions for the language model."""
    return WindowRequest(f"q{account_id}:d", limits.asks_per_day, DAY_SECONDS)


def asks_today(counters: CounterStore, account_id: int, limits: PlanLimits) -> int:
    """Return the number of an account's questions on this UTC day.

    Raises:
        CountersUnavailable: The counter store is unavailable.
    """
    return counters.peek([daily_asks_window(account_id, limits)], now=now().timestamp()).windows[0].hits


def settings_preview_windows(caller: Caller, *, is_trial: bool) -> tuple[WindowRequest, ...]:
    """Return the windows for previews of search settings, whose searches are not charged.

    Keys and members have separate windows.

    Args:
        is_trial: Whether a member previews a single search, which counts like a search on the search preview page.
    """
    group = f"{caller.account.id}:keys" if caller.member is None else f"{caller.account.id}"
    minute = WindowRequest(f"s{group}:m", SETTINGS_PREVIEW_RATE, MINUTE_SECONDS)
    day = WindowRequest(f"s{group}:d", SETTINGS_PREVIEW_LIMIT, DAY_SECONDS)
    return (minute, preview_window(caller.account.id) if is_trial else day)


def rejection_message(window: WindowState, noun: str = "request") -> str:
    """Return the message of a 429 for an exceeded request limit.

    Args:
        noun: The counted unit, in the singular.
    """
    assert window.limit is not None  # A window without a limit rejects nothing.
    unit = {MINUTE_SECONDS: "minute", HOUR_SECONDS: "hour", DAY_SECONDS: "day"}.get(
        window.seconds, f"{window.seconds} seconds"
    )
    wait = duration(window.retry_after(now().timestamp()))
    return f"More than {counted(window.limit, noun)} per {unit}; try again in {wait}."


class RateLimited(ApiError):
    """A 429. The response headers describe ``window``, the exceeded limit."""

    def __init__(self, message: str, wait: float, window: WindowState):
        super().__init__(ErrorCode.RATE_LIMIT_EXCEEDED, message, retry_after=wait)
        self.window = window


def rate_limited(message: str, wait: float, window: WindowState) -> RateLimited:
    """Return a 429."""
    return RateLimited(message, wait, window)


def out_of_searches(outcome: ConsumeOutcome, limits: PlanLimits) -> ApiError:
    """Return the 429 for an exhausted daily search quota."""
    limit = limits.searches_per_day or 0
    window = quota_window(outcome, limit)
    return rate_limited(
        f"The plan allows {counted(limit, 'search')} per day; none are left until 00:00 UTC.",
        window.retry_after(now().timestamp()),
        window,
    )
