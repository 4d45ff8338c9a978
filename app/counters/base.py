"""The contract of the counter store: request windows, daily searches, and credential versions. Read this first.

Everything that must be exact across threads, worker processes, and machines is counted here. Each method is one atomic
step and one round trip: calls do not interleave, and each returns a consistent state. Once a call has returned, its
counts are visible to every later call from any process, even if the counting process has died. The exception is
``memory://``, which is limited to one process and meant for tests.

**Time.** The caller passes ``now`` (Unix seconds); stores never read a clock to decide what counts. Machines
that share a store must therefore keep their clocks well within a minute of each other (NTP). Times are stored in whole
milliseconds.

**Windows** are fixed. A one-day window is the UTC day. Other windows start with their first hit: a window of
``seconds`` that began at ``t`` counts until ``t + seconds``. After that it no longer exists. A window that ends more
than twice its length in the future can only come from a wrong clock and is restarted.

**Daily searches** follow ``used = searches + Σ over sites of charge_of_site(…)``, see
:func:`app.counters.metering.charge_of_site`. A day is a UTC day.

**Intents** ensure that a search typed letter by letter is counted once. They group related requests of one visitor (see
:func:`app.counters.metering.continues_intent`). The first request is counted and charged on behalf of the whole group,
and is refunded once every request of the group has failed.

**Credential versions** tell processes when to reload cached keys. A process that changes an account's keys, sites, or
plan calls ``begin_credential_change``, commits, and calls ``end_credential_change``. Readers fetch the version first
(it comes with :meth:`CounterStore.consume`), then load the credentials, and cache both only if the version is settled.
A cached entry is valid while its version equals the current one.

**Incarnations.** A store may go back in time: a Redis server that was killed or failed over has lost its last writes,
or a file or snapshot was restored. It may then issue version numbers a second time, for a different state. Its data
therefore contain the name of an incarnation, which is never reused and is part of every credential version. A new
incarnation begins with the first step that detects that the data belong to another store, or that the store has lost
data. Versions of different incarnations are never equal, and each day's usage is raised to its copy elsewhere
(:attr:`CounterStore.floors`) before the next search or report of that day is counted.

Every method may raise :class:`CountersUnavailable` within the store's time budget. The step was then not executed,
unless the error is :class:`AnswerLost`. A report with an idempotency key may have been recorded even so; repeat it.

Stores are thread-safe. They open files and sockets only at first use in a process, so that an object created before
``fork`` works in every child, even if it was used before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from math import ceil
from typing import Literal, NamedTuple

from app.counters.metering import UNLIMITED, Floor, Floors, day_number, milliseconds

Operation = Literal["search", "indexing"]
"""Kinds of work that can be reported."""


class CountersUnavailable(Exception):
    """The counter store is unreachable, locked, full, or too slow. ``__cause__`` is the underlying error.

    The message is for the operator's log, not for callers, because it may name a file.

    Attributes:
        retry_after: Seconds after which a retry makes sense.
    """

    def __init__(self, message: str = "The counter store is unavailable.", *, retry_after: int = 5):
        super().__init__(message)
        self.retry_after = retry_after


class AnswerLost(CountersUnavailable):
    """A step was sent, but its answer did not arrive in time. It may have been executed, or may still be.

    The caller must treat a charge or report as not executed and a refund as executed: this process makes that true as
    soon as the store answers it again.
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
    def has_room(self) -> bool:
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
    """A search that was answered while the store could not count it.

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
    issued them. Its name is empty in a version that must not equal any other.
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
        refused: The full window, or the full window with the longest wait; ``None`` if all had room. If it is set,
            nothing was counted.
        reservation: Receipt of the charged search; ``None`` if none was requested, a window was full, or the daily
            quota is exhausted.
        used_today: Searches charged to the account on ``day``, including this one; ``None`` if no reservation or usage
            was requested. If the quota is exhausted, this is set and ``reservation`` is ``None``.
        day: UTC day of ``now``.
        credential_version: The account's credential version, if requested (also when refused).
        continues: Whether the request continues a charged intent. The intent's windows then neither counted the request
            nor had to have room for it.
    """

    windows: tuple[WindowState, ...]
    refused: WindowState | None
    reservation: Reservation | None
    used_today: int | None
    day: date
    credential_version: CredentialVersion | None
    continues: bool = False

    @property
    def allowed(self) -> bool:
        """Whether every window had room."""
        return self.refused is None


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
    refused: int = 0

    def at_least(self, floor: Floor) -> DayUsage:
        """Return the usage with each count raised to at least its floor."""
        return self._replace(used=max(self.used, floor.used), indexing=max(self.indexing, floor.indexing))


class SiteUsage(NamedTuple):
    """Records of one site on one UTC day, charged or not; see ``charge_of_site``."""

    gateway: int
    trusted: int
    capped: int


class CounterStore(ABC):
    """A counter store. :func:`app.counters.create_counters` creates one from a URL."""

    name: str
    """Kind of store: ``memory``, ``sqlite``, or ``redis``."""

    floors: Floors
    """Minimum usage of each day, from copies elsewhere. Not used by ``memory://``, which ends with its process."""

    @abstractmethod
    def consume(
        self,
        windows: Sequence[WindowRequest],
        *,
        reserve: UsageReservation | None = None,
        intent: IntentRequest | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        """Count one request in all windows or in none, and charge the search that it is about to make.

        If every window has room, all are counted; then, if ``reserve`` is given and ``used`` is below its daily limit,
        one search is charged. A search rejected by the daily limit leaves the windows counted. If any window is full,
        nothing is counted or charged.

        A request that continues an intent is counted only in ``windows``. It is not charged, and it gets a reservation
        even if the daily quota is exhausted.

        Args:
            windows: May be empty. All keys are distinct, including the keys of the intent's windows.
            reserve: The search to charge, if any.
            intent: The intent that the search may belong to; only with ``reserve``.
            credentials_of: The account whose credential version to return.
            now: Unix seconds.
        """

    @abstractmethod
    def peek(
        self,
        windows: Sequence[WindowRequest],
        *,
        usage_of: int | None = None,
        credentials_of: int | None = None,
        now: float,
    ) -> ConsumeOutcome:
        """Return what :meth:`consume` would return, without counting; ``refused`` is the window without room.

        ``used_today`` is for the account ``usage_of``; ``reservation`` is always ``None``.
        """

    @abstractmethod
    def refund(
        self,
        *,
        reservation: Reservation | None = None,
        windows: Sequence[WindowState] = (),
        now: float,
    ) -> None:
        """Undo the charge of a failed search, or hits counted with a stale key, or both.

        A search is refunded on the day that it was charged to. A hit is refunded only while its window lasts. Counts
        never fall below zero. Call this once per receipt; call it again only after a :class:`CountersUnavailable` other
        than :class:`AnswerLost`.

        The search of an intent is refunded once every request of the intent has failed.
        """

    @abstractmethod
    def settle(self, search: UncountedSearch | Reservation, *, once: str, now: float) -> None:
        """Charge a search that ran uncounted during an outage, or refund a search that failed.

        A search is charged to the day on which it ran, regardless of the daily limit. A repeated call within 24 hours
        has no effect.

        Args:
            once: Unique name of this settlement, without spaces.
        """

    @abstractmethod
    def reset(self, keys: Sequence[str]) -> None:
        """Delete windows by their keys."""

    @abstractmethod
    def reset_all(self) -> int:
        """Delete every window, but keep usage and credential versions. Returns the number of deleted windows."""

    @abstractmethod
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
        """Add work done elsewhere to the account's day. No limit applies.

        Searches are charged by the rule of ``charge_of_site``; indexing operations are only recorded. With
        ``idempotency``, looking up the key, storing it, and adding the work are one atomic step.

        Args:
            count: At least 1.
            capped: Whether to charge at most 10 searches per day and site beyond the gateway's count. Applies to
                reports with a public key if the gateway is the only way to the engine.
        """

    @abstractmethod
    def count_refusal(self, account_id: int, *, now: float) -> None:
        """Count a search that a limit of the account's plan rejected."""

    @abstractmethod
    def usage_of_day(self, account_id: int, day: date) -> DayUsage:
        """Return the account's usage on ``day``, raised to its floor; zeros if there was no usage."""

    @abstractmethod
    def usage_between(self, account_id: int, first_day: date, last_day: date) -> list[DayUsage]:
        """Return the days with usage from ``first_day`` to ``last_day`` inclusive, oldest first.

        Usage is kept for at least 62 days. The total of a calendar month is the sum of its days.

        Raises:
            ValueError: The range is longer than 400 days.
        """

    @abstractmethod
    def begin_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        """Announce a change to the account's credentials. Until it ends, cached credentials must not be used."""

    @abstractmethod
    def end_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        """Announce that a change was committed or abandoned.

        If :meth:`heal_credential_epochs` has already ended the change, readers only reload once more.
        """

    @abstractmethod
    def heal_credential_epochs(self, older_than_seconds: float, *, now: float) -> int:
        """End abandoned changes, whose process has probably died: changes that began longer ago than this.

        Returns:
            Number of healed accounts.
        """

    @abstractmethod
    def forget_account(self, account_id: int, *, now: float) -> None:
        """Delete usage and idempotency keys of an account.

        Its credential version is raised instead of deleted. At the next request, processes reload cached keys and find
        that they no longer exist. Windows are deleted by :meth:`reset` or expire.
        """

    @abstractmethod
    def forget_site(self, account_id: int, site_id: int, *, now: float) -> None:
        """Delete the records of a site. Its charges remain on their days."""

    @abstractmethod
    def check(self) -> None:
        """Check that the store can be read and written.

        Raises:
            CountersUnavailable: The check failed.
        """

    @abstractmethod
    def clear(self) -> None:
        """Delete everything. For tests and operators."""

    @abstractmethod
    def close(self) -> None:
        """Release files, sockets, and threads. The store can be used again afterwards."""


def quota_window(outcome: ConsumeOutcome, daily_limit: int) -> WindowState:
    """Return the daily search quota as a window that ends at the next UTC midnight, for the error response."""
    reset_ms = (day_number(outcome.day) + 1) * 86_400_000
    return WindowState("searches", daily_limit, 86_400, 1, outcome.used_today or 0, reset_ms)


def longest_wait(windows: Sequence[WindowState]) -> WindowState | None:
    """Return the full window that ends last (on a tie, the first in order); ``None`` if all have room."""
    full = [window for window in windows if not window.has_room]
    return max(full, key=lambda window: window.reset_ms) if full else None


def settlement_key(once: str) -> str:
    """Return the key under which stores remember a settlement. It contains a space, unlike idempotency keys."""
    return f"settled {once}"
