"""Arguments and results of the counter store: requests, reservations, outcomes, and usage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from math import ceil
from typing import Literal, NamedTuple

from app.counters.metering import UNLIMITED, MinimumUsage, day_number, milliseconds

Operation = Literal["search", "indexing"]
"""Kinds of work that can be reported."""


class CountersUnavailable(Exception):
    """The counter store is unreachable, locked, full, or too slow. ``__cause__`` is the underlying error.

    The message is for the operator's log, not for callers, because it may name a file.
    """

    retry_after = 5
    """Seconds after which a retry makes sense."""


class ResponseLost(CountersUnavailable):
    """A step was sent, but its response did not arrive in time. It may have been executed, or may still be.

    The caller must treat a charge or report as not executed and a refund as executed: this process makes that true as
    soon as the store responds again.
    """


class CountersDamaged(CountersUnavailable):
    """The store contains foreign or broken data; an operator must act."""


class WindowRequest(NamedTuple):
    """One request to count in one window.

    Attributes:
        key: Name of the bucket; equal keys share a window. It may be written to disk, so it must not contain an address
            or other personal data, only a keyed hash.
        limit: Hits allowed in a window; ``None`` counts without a limit.
        seconds: Length of the window, at least 1; 86,400 is the UTC day. A key always has the same length.
        cost: Hits that this request counts, at least 1.
    """

    key: str
    limit: int | None
    seconds: int
    cost: int = 1


class WindowState(NamedTuple):
    """A window after a step.

    Attributes:
        key, limit, seconds, cost: As in the :class:`WindowRequest`.
        hits: Counted hits, including this request's if it was counted.
        reset_ms: End of the window, in milliseconds since the Unix epoch; for a window that has not begun, the end if
            it began now.
    """

    key: str
    limit: int | None
    seconds: int
    cost: int
    hits: int
    reset_ms: int

    @property
    def remaining(self) -> int:
        """Remaining hits, never negative; :data:`~app.counters.metering.UNLIMITED` without a limit."""
        return UNLIMITED if self.limit is None else max(0, self.limit - self.hits)

    @property
    def accepts_hit(self) -> bool:
        """Whether one more hit of the same cost would be counted."""
        return self.limit is None or self.hits + self.cost <= self.limit

    @property
    def reset_at(self) -> int:
        """End of the window in Unix seconds, rounded up."""
        return -(-self.reset_ms // 1000)

    def retry_after(self, now: float) -> int:
        """Return the whole seconds until the window ends, rounded up, at least 1."""
        return max(1, ceil((self.reset_ms - milliseconds(now)) / 1000))


class UsageReservation(NamedTuple):
    """One search to charge to an account's day before it is run.

    Attributes:
        account_id: The charged account.
        daily_limit: Searches per day; ``None`` for no limit.
        gateway_site_id: The site, if the gateway serves the search (which then counts by the ``max`` rule together with
            reports for that site); ``None`` for a search of the service's own endpoint.
    """

    account_id: int
    daily_limit: int | None
    gateway_site_id: int | None = None


class IntentRequest(NamedTuple):
    """A search request that may belong to an intent.

    Attributes:
        key: Keyed hash that identifies the visitor, without personal data.
        text: The normalized query; not empty.
        windows: Windows that count only the first request of an intent.
    """

    key: str
    text: str
    windows: tuple[WindowRequest, ...] = ()


class Intent(NamedTuple):
    """The intent that a request belongs to.

    Attributes:
        key: Key of the visitor.
        began_ms: Beginning, in milliseconds since the Unix epoch; unique for each visitor.
    """

    key: str
    began_ms: int


class Reservation(NamedTuple):
    """Receipt for a search that was charged, itself or with its intent; :meth:`CounterStore.refund` accepts it.

    Attributes:
        account_id: The charged account.
        gateway_site_id: As in the :class:`UsageReservation`.
        day: Day of the charge.
        intent: The intent of the search, if it belongs to one.
    """

    account_id: int
    gateway_site_id: int | None
    day: date
    intent: Intent | None = None


class UncountedSearch(NamedTuple):
    """A search that was served while the store could not count it.

    Attributes:
        account_id: The account to charge.
        gateway_site_id: As in :class:`UsageReservation`.
        searched_at: Time of the search, in Unix seconds.
        intent: The intent that the search may belong to; its windows are ignored.
    """

    account_id: int
    gateway_site_id: int | None
    searched_at: float
    intent: IntentRequest | None = None


class CredentialVersion(NamedTuple):
    """Numbers of started and finished changes to an account's credentials. Only equality is meaningful.

    Both numbers start at the time when the store first sees the account. They are valid only with the incarnation that
    issued them. A version with an empty incarnation name never equals another version.
    """

    started: int
    finished: int
    incarnation: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether no change is in progress, so that credentials loaded now may be cached with this version."""
        return self.started == self.finished


class ConsumeOutcome(NamedTuple):
    """Result of :meth:`CounterStore.consume` or :meth:`CounterStore.peek`.

    Attributes:
        windows: The requested windows, followed by the intent's windows, in their state after the step.
        rejected: The full window, or the full window with the longest wait; ``None`` if all had room. If it is set,
            nothing was counted.
        reservation: Receipt of the charged search; ``None`` if none was requested, a window was full, or the daily
            quota is exhausted.
        used_today: Searches charged to the account on ``day``, including this one; ``None`` if no reservation or usage
            was requested. If the quota is exhausted, this is set and ``reservation`` is ``None``.
        day: UTC day of ``now``.
        credential_version: The account's credential version, if requested (also when rejected).
        continues: Whether the request continues a charged intent. If so, the intent's windows neither counted nor
            limited the request.
    """

    windows: tuple[WindowState, ...]
    rejected: WindowState | None
    reservation: Reservation | None
    used_today: int | None
    day: date
    credential_version: CredentialVersion | None
    continues: bool = False

    @property
    def allowed(self) -> bool:
        """Whether every window had room."""
        return self.rejected is None


class IdempotencyKey(NamedTuple):
    """A key that makes it safe to repeat a report.

    Attributes:
        key: The key that the caller sent, 1 to 255 characters; unique per account.
        fingerprint: Hash of the body, at most 128 characters.
    """

    key: str
    fingerprint: str


class ReportStatus(StrEnum):
    """Status of a usage report."""

    RECORDED = "recorded"
    """The report was added."""

    DUPLICATE = "duplicate"
    """The same key was sent with the same body within 24 hours; nothing was added."""

    CONFLICT = "conflict"
    """The same key was sent with a different body within 24 hours; nothing was added."""


class ReportOutcome(NamedTuple):
    """Result of :meth:`CounterStore.report_usage`, with the account's updated number of searches today."""

    status: ReportStatus
    used_today: int


class DayUsage(NamedTuple):
    """An account's usage on one UTC day: charged searches, reported indexing operations, and rejected searches."""

    day: date
    used: int
    indexing: int
    rejected: int = 0

    def at_least(self, minimum: MinimumUsage) -> DayUsage:
        """Return the usage with each count raised to at least its minimum."""
        return self._replace(used=max(self.used, minimum.used), indexing=max(self.indexing, minimum.indexing))


class SiteUsage(NamedTuple):
    """Records of one site on one UTC day, charged or not; see ``charge_of_site``."""

    gateway: int
    trusted: int
    capped: int


def quota_window(outcome: ConsumeOutcome, daily_limit: int) -> WindowState:
    """Return the daily search quota as a window that ends at the next UTC midnight, for the error response."""
    reset_ms = (day_number(outcome.day) + 1) * 86_400_000
    return WindowState("searches", daily_limit, 86_400, 1, outcome.used_today or 0, reset_ms)


def longest_wait(windows: Sequence[WindowState]) -> WindowState | None:
    """Return the full window that ends last (on a tie, the first in order); ``None`` if all have room."""
    full = [window for window in windows if not window.accepts_hit]
    return max(full, key=lambda window: window.reset_ms) if full else None


def settlement_key(once: str) -> str:
    """Return the key under which stores remember a settlement. It contains a space, unlike idempotency keys."""
    return f"settled {once}"
