"""x"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache

from app.clock import now
from app.counters.base import ConsumeOutcome, WindowRequest, WindowState, quota_window
from app.errors import ApiError, ErrorCode
from app.plans import PlanLimits
from app.services.access.callers import Caller
from app.wording import counted, duration

MINUTE_SECONDS = 60
DAY_SECONDS = 86_400
ADDRESS_LIMIT = 300
"""Requests a minute of one address without a valid key or session."""
SESSION_LIMIT = 600
"""Requests a minute of one member's sessions."""
VISITOR_LIMIT = 120
"""Requests a minute of one visitor's address with an account's public keys."""
REPORT_LIMIT = 30
"""Usage reports a minute of one visitor's address with a public key."""
LOGGED_LIMIT = 30
"""Logged searches a minute of one visitor's address with a public key that are in analytics."""
FILES_LIMIT = 300
"""Requests per minute for an account's files for agents on large plans: a file may have 5 MiB."""
BOX_FACTOR = 10
"""Multiple of the plan's requests that the box may make beside its searches."""
NEW_SITES_LIMIT = 20
"""Sites that an account may create per day in addition to the number that its plan allows."""
MAX_NEW_SITES = 1_000
"""Sites per day for accounts whose plan has no limit."""
READ_PAGES_LIMIT = 30
"""Pages per minute that an account previews or sends as a file: reading one may take ten CPU seconds."""
PREVIEW_LIMIT = 1_000
"""Searches a day of an account's own people on the trial pages of its sites."""
SETTINGS_PREVIEW_LIMIT = 200
"""Previews of search settings a day and account, by its members; its keys have as many."""
SETTINGS_PREVIEW_RATE = 30
"""Previews of search settings a minute and account, by its members; its keys have as many.

The largest settings take most of a CPU second, more than any other request.
"""


@lru_cache(maxsize=4096)
def address_key(address: str, secret: str) -> str:
    """The name of an address in the counter store: a keyed hash, so that no address is kept."""
    return _keyed_hash(address, secret)


def _keyed_hash(text: str, secret: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), key=secret.encode()[:64], digest_size=12).hexdigest()


def address_window(stranger: str) -> WindowRequest:
    """The window of callers nobody knows. ``stranger`` is what :func:`name_stranger` gives."""
    return WindowRequest(f"ip:{stranger}", ADDRESS_LIMIT, MINUTE_SECONDS)


def name_stranger(address: str, *, is_reader: bool) -> str:
    """The name that callers nobody knows are counted by.

    Who reads open pages or logs in counts apart from programs: a key that was stopped and goes on calling must not
    keep its owner, at the same address, from the login.

    Args:
        address: The address key.
        is_reader: Whether the request is for a page that is for anyone, or logs in, and carries no token.
    """
    return f"{address}:pages" if is_reader else address


def bucket_windows(caller: Caller, *, charged: bool, is_file: bool = False) -> tuple[WindowRequest, ...]:
    """The windows that a caller's account shares; the first is the one that headers describe.

    A member's sessions have a window of their own, of no plan: whatever keys use up, their owner can stop them.

    Args:
        charged: Whether the operation is one that charges searches. Of those whose keys stand in web pages, searches at
            the gateway have the public bucket, and what the box calls beside them has one of its own.
        is_file: Whether the operation answers agents with a file.
    """
    if caller.member is not None:
        return (WindowRequest(f"m{caller.member.id}:m", SESSION_LIMIT, MINUTE_SECONDS),)
    account_id, limits = caller.account.id, caller.account.limits
    if is_file:
        return _account_windows("f", account_id, limits.with_overrides({"requests_per_minute": _files_limit(limits)}))
    if caller.kind not in ("public", "engine"):
        return _account_windows("a", account_id, limits)
    if caller.kind == "engine" and charged:
        return _account_windows("p", account_id, limits)
    return _account_windows("b", account_id, limits, BOX_FACTOR)


def _files_limit(limits: PlanLimits) -> int:
    return FILES_LIMIT if limits.requests_per_minute is None else min(FILES_LIMIT, limits.requests_per_minute)


def daily_requests_window(account_id: int, limits: PlanLimits) -> WindowRequest:
    """The window of an account's requests of a day: those of its private and search keys."""
    return _account_windows("a", account_id, limits)[1]


def visitor_windows(caller: Caller, address: Callable[[], str], *, reports: bool = False) -> tuple[WindowRequest, ...]:
    """The windows of one visitor of an account's sites; none for callers that are no visitors.

    Args:
        address: Gives the address key of where the request comes from.
        reports: Whether the request is a usage report.
    """
    if caller.kind not in ("public", "engine"):
        return ()
    visitor = f"{caller.account.id}:{address()}"
    windows = (WindowRequest(f"v{visitor}", VISITOR_LIMIT, MINUTE_SECONDS),)
    return (*windows, WindowRequest(f"r{visitor}", REPORT_LIMIT, MINUTE_SECONDS)) if reports else windows


def logged_window(account_id: int, address: str) -> WindowRequest:
    """The window of searches that one visitor's address logs with an account's public keys.

    Args:
        address: The address key.
    """
    return WindowRequest(f"l{account_id}:{address}", LOGGED_LIMIT, MINUTE_SECONDS)


def _account_windows(bucket: str, account_id: int, limits: PlanLimits, factor: int = 1) -> tuple[WindowRequest, ...]:
    return (
        WindowRequest(f"{bucket}{account_id}:m", _times(limits.requests_per_minute, factor), MINUTE_SECONDS),
        WindowRequest(f"{bucket}{account_id}:d", _times(limits.requests_per_day, factor), DAY_SECONDS),
    )


def _times(limit: int | None, factor: int) -> int | None:
    return None if limit is None else limit * factor


def new_sites_window(account_id: int, limits: PlanLimits) -> WindowRequest:
    """The daily window for new sites. Deleted sites leave the quota, but creating and removing each one costs work."""
    most = MAX_NEW_SITES if limits.sites is None else limits.sites + NEW_SITES_LIMIT
    return WindowRequest(f"sites{account_id}:d", most, DAY_SECONDS)


def read_pages_window(account_id: int) -> WindowRequest:
    """The window of pages that are read while their caller waits."""
    return WindowRequest(f"reads{account_id}:m", READ_PAGES_LIMIT, MINUTE_SECONDS)


def preview_window(account_id: int) -> WindowRequest:
    """The window of searches on trial pages, which are not charged."""
    return WindowRequest(f"t{account_id}:d", PREVIEW_LIMIT, DAY_SECONDS)


def settings_preview_windows(caller: Caller, *, is_trial: bool) -> tuple[WindowRequest, ...]:
    """The windows of previews of search settings, whose searches are not charged: keys have some, members others.

    Args:
        is_trial: Whether a member looks at a single search, as on the trial page: it is counted there for the day.
    """
    who = f"{caller.account.id}:keys" if caller.member is None else f"{caller.account.id}"
    minute = WindowRequest(f"s{who}:m", SETTINGS_PREVIEW_RATE, MINUTE_SECONDS)
    day = WindowRequest(f"s{who}:d", SETTINGS_PREVIEW_LIMIT, DAY_SECONDS)
    return (minute, preview_window(caller.account.id) if is_trial else day)


def refusal(window: WindowState, what: str = "request") -> str:
    """The message of a request limit's 429; ``what`` it counts, in the singular."""
    assert window.limit is not None  # A window without a limit refuses nothing.
    unit = {MINUTE_SECONDS: "minute", DAY_SECONDS: "day"}.get(window.seconds, f"{window.seconds} seconds")
    wait = duration(window.retry_after(now().timestamp()))
    return f"More than {counted(window.limit, what)} per {unit}; try again in {wait}."


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
