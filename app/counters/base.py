"""The contract of the counter store: request windows, searches of a day, credential versions. Read this first.

Everything that must be exact across threads, worker processes and machines is counted here. Each
method is one atomic step and one round trip: what a call returns was true at one instant, and no two
calls are mixed. What a call counted is seen by every later call of any process, and outlives the
process that counted it (not with ``memory://``, which is per process and for tests).

**Time.** The caller passes ``now`` (Unix seconds); stores never read a clock to decide what counts.
Machines that share a store must therefore agree on the time to well below a minute (NTP). Times are
kept in whole milliseconds.

**Windows** are fixed. One of a day is the UTC day; others start with their first hit: a window of ``seconds``
begun at ``t`` counts until ``t + seconds``. It is then as if it had never been. A window whose end lies more
than twice its length ahead can only come from a clock that was wrong, and is begun anew.

**Searches of a day** follow ``used = searches + Σ over sites of charge_of_site(…)``, see
:func:`app.counters.metering.charge_of_site`. A day is a UTC day.

**Intents** make a search that is typed letter by letter one search: of the requests of one visitor that
belong together (see :func:`app.counters.metering.continues_intent`), the first is counted and charged for all.
It is given back when all of them have failed.

**Credential versions** tell processes that cache keys when to load them again. Whoever changes
anything about an account's keys, sites or plan calls ``begin_credential_change``, commits, then
calls ``end_credential_change``. Whoever reads takes the version first (it comes with :meth:`CounterStore.consume`),
then loads, and keeps what was loaded together with that version, if it was settled. It may be used as
long as the version of the moment equals the one kept.

**Incarnations.** A store may go back in time: a Redis that was killed or failed over has lost its last moments, a file
or a snapshot was restored. What it says then may have been said before, of another state. So its data bear the name of
an incarnation, which is never given twice, and which is part of every credential version. A new one begins with the
first step that finds the store to be another than that of its data, or to know less than it once said. No version of
an earlier incarnation equals a later one, and each day's usage is raised to what is known elsewhere
(:attr:`CounterStore.floors`) before the next search or report of it is counted.

Every method may raise :class:`CountersUnavailable` within the store's time budget. The step then was not done, unless
it is :class:`AnswerLost`. A report with an idempotency key may have been done then: it is to be repeated.

Stores are used by several threads at once. They open files and sockets only at first use in a
process, so that an object made before ``fork`` works in every child, also if it was used before.
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
    """The counter store cannot be asked now: away, locked, full or too slow. The cause is kept in ``__cause__``.

    The message is for the operator's log, not for callers: it may name a file.

    Attributes:
        retry_after: Seconds after which trying again makes sense.
    """

    def __init__(self, message: str = "The counter store is unavailable.", *, retry_after: int = 5):
        super().__init__(message)
        self.retry_after = retry_after


class AnswerLost(CountersUnavailable):
    """A step was sent, and its answer did not come in time: it may have been done, or may be done yet.

    Of a charge or a report it then holds that it was not done, and of what was to be given back that it was: the store
    sees to that as soon as it answers this process again.
    """


class CountersDamaged(CountersUnavailable):
    """The store holds something that is not ours or is broken; an operator must act."""


class WindowRequest(NamedTuple):
    """One request to be counted in one window.

    Attributes:
        key: Name of the bucket; equal keys share a window. It may be written to disk: put no address or
            other personal data in it, but a keyed hash.
        limit: Hits allowed in a window; ``None`` counts without ever refusing.
        seconds: Length of the window, at least 1; 86,400 is the UTC day. A key is always used with the same length.
        cost: Hits this request is worth, at least 1.
    """

    key: str
    limit: int | None
    seconds: int
    cost: int = 1


class WindowState(NamedTuple):
    """A window as it stands after a step.

    Attributes:
        key, limit, seconds, cost: As asked.
        hits: Hits counted, this request's included if it was counted.
        reset_ms: When the window ends, in milliseconds since the Unix epoch; for one that has not begun: when
            it would end if it began now.
    """

    key: str
    limit: int | None
    seconds: int
    cost: int
    hits: int
    reset_ms: int

    @property
    def remaining(self) -> int:
        """Hits left, never negative; :data:`~app.counters.metering.UNLIMITED` without a limit."""
        return UNLIMITED if self.limit is None else max(0, self.limit - self.hits)

    @property
    def has_room(self) -> bool:
        """Whether one more hit of the same cost would be accepted."""
        return self.limit is None or self.hits + self.cost <= self.limit

    @property
    def reset_at(self) -> int:
        """The moment at which the window has surely ended, in whole Unix seconds."""
        return -(-self.reset_ms // 1000)

    def retry_after(self, now: float) -> int:
        """Whole seconds until the window ends, rounded up, at least 1."""
        return max(1, ceil((self.reset_ms - milliseconds(now)) / 1000))


class UsageReservation(NamedTuple):
    """One search to be charged to an account's day before it is run.

    Attributes:
        account_id: Whose quota.
        daily_limit: Searches a day; ``None`` for no limit.
        gateway_site_id: The site, if the gateway serves the search (it then counts by the ``max`` rule
            with what is reported for that site); ``None`` for a search of the service's own endpoint.
    """

    account_id: int
    daily_limit: int | None
    gateway_site_id: int | None = None


class IntentRequest(NamedTuple):
    """A request of a visitor who may be in the middle of typing.

    Attributes:
        key: Names the visitor: a keyed hash, no personal data.
        text: What they search, in normal form; not empty.
        windows: Counted when an intent begins, and never for what continues it.
    """

    key: str
    text: str
    windows: tuple[WindowRequest, ...] = ()


class Intent(NamedTuple):
    """The intent that a request belongs to.

    Attributes:
        key: The visitor's.
        began_ms: When it began, in milliseconds since the Unix epoch; no two of a visitor's have the same.
    """

    key: str
    began_ms: int


class Reservation(NamedTuple):
    """A search that was charged, or that an intent charged before pays for; what :meth:`CounterStore.refund` takes.

    Attributes:
        account_id: Who was charged.
        gateway_site_id: As reserved.
        day: When it was charged.
        intent: What it belongs to, if it was charged with an intent.
    """

    account_id: int
    gateway_site_id: int | None
    day: date
    intent: Intent | None = None


class UncountedSearch(NamedTuple):
    """A search that was answered while the store could not count it.

    Attributes:
        account_id: Who is to be charged.
        gateway_site_id: As in :class:`UsageReservation`.
        searched_at: When it was asked, in Unix seconds.
        intent: Whose typing it may belong to; its windows are not counted any more.
    """

    account_id: int
    gateway_site_id: int | None
    searched_at: float
    intent: IntentRequest | None = None


class CredentialVersion(NamedTuple):
    """The number of times an account's credentials began and finished changing. Only equality has a meaning.

    Numbers start at the time the store first hears of the account. They are worth something only with the incarnation
    of the store that gave them, which has no name where nothing is to equal it.
    """

    started: int
    finished: int
    incarnation: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether no change is in progress, so that data loaded now may be cached with this version."""
        return self.started == self.finished


class ConsumeOutcome(NamedTuple):
    """The outcome of :meth:`CounterStore.consume` or :meth:`CounterStore.peek`.

    Attributes:
        windows: The windows in the order asked, then those of the intent, as they stand now.
        refused: The window that had no room, the one with the longest wait if there are several; ``None`` if
            all had room. When it is set, nothing was counted.
        reservation: The receipt of the search that was charged; ``None`` if none was asked for, a window
            refused, or the day's searches are used up.
        used_today: Searches charged to the account on ``day``, this one included; ``None`` if neither
            reserved nor asked for. With ``reservation`` ``None`` and this set, the quota is used up.
        day: The UTC day of ``now``.
        credential_version: The account's credential version, if asked for (also when refused).
        continues: Whether the request goes on with an intent that was charged before: then the windows of the intent
            were not counted, and had no need of room.
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
    """Makes a repeated report harmless.

    Attributes:
        key: What the caller sent, 1 to 255 characters; counted per account.
        fingerprint: Stands for the body: equal for equal bodies, at most 128 characters.
    """

    key: str
    fingerprint: str


class ReportStatus(StrEnum):
    """The status of a usage report."""

    RECORDED = "recorded"
    """It was added."""

    DUPLICATE = "duplicate"
    """The same key came with the same body within 24 hours; nothing was added."""

    CONFLICT = "conflict"
    """The same key came with another body within 24 hours; nothing was added."""


class ReportOutcome(NamedTuple):
    """The outcome of :meth:`CounterStore.report_usage`, and the account's searches of today afterwards."""

    status: ReportStatus
    used_today: int


class DayUsage(NamedTuple):
    """An account's usage on one UTC day: searches charged, indexing operations reported, and searches refused."""

    day: date
    used: int
    indexing: int
    refused: int = 0

    def at_least(self, floor: Floor) -> DayUsage:
        """The usage, raised to what is known elsewhere."""
        return self._replace(used=max(self.used, floor.used), indexing=max(self.indexing, floor.indexing))


class SiteUsage(NamedTuple):
    """The records kept for one site on one UTC day, charged or not; see ``charge_of_site``."""

    gateway: int
    trusted: int
    capped: int


class CounterStore(ABC):
    """One counter store. Built from a URL by :func:`app.counters.registry.create_counters`."""

    name: str
    """The kind of store: ``memory``, ``sqlite`` or ``redis``."""

    floors: Floors
    """What is known elsewhere of a day's usage; ``memory://`` does not ask, for it ends with who counted."""

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
        """Count one request in all windows or in none, and charge the search it is about to run.

        If every window has room, all are counted; then, if ``reserve`` is given and ``used`` is below its daily
        limit, one search is charged. A search that the daily limit refuses leaves the windows counted.
        If any window has no room, nothing is counted or charged.

        A request that continues an intent is counted in ``windows`` only, is charged nothing, and has a reservation
        though the day's searches are used up.

        Args:
            windows: May be empty; keys are distinct, those of the intent's windows too.
            reserve: The search to charge, if any.
            intent: Whose typing the search may belong to; only with ``reserve``.
            credentials_of: The account whose credential version is to be returned.
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
        """See what :meth:`consume` would find, without counting; ``refused`` is the window that would refuse.

        ``used_today`` is given for the account ``usage_of``; ``reservation`` is always ``None``.
        """

    @abstractmethod
    def refund(
        self,
        *,
        reservation: Reservation | None = None,
        windows: Sequence[WindowState] = (),
        now: float,
    ) -> None:
        """Undo a charged search (it failed: it costs nothing), or counted hits (the key was stale), or both.

        A search is given back to the day it was charged to. A hit is given back only while the window it was
        counted in runs. Counts never fall below zero. To be called at most once per receipt, unless it raises
        :class:`CountersUnavailable` that is not :class:`AnswerLost`.

        A search of an intent is given back with the last of its requests that has not failed.
        """

    @abstractmethod
    def settle(self, search: UncountedSearch | Reservation, *, once: str, now: float) -> None:
        """Do what the store was not there for: charge a search that went on uncounted, or give back one that failed.

        A search is charged to the day on which it was asked, whatever the daily limit. Asked again within 24 hours,
        nothing is done.

        Args:
            once: Names what is to be done, in one word.
        """

    @abstractmethod
    def reset(self, keys: Sequence[str]) -> None:
        """Forget windows by their keys, as if they had never been hit."""

    @abstractmethod
    def reset_all(self) -> int:
        """Forget every window, but no usage and no credential version; returns how many windows were forgotten."""

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
        """Add work done elsewhere to the account's day. No limit refuses it.

        Searches are charged by the rule of ``charge_of_site``; indexing operations are only recorded. With
        ``idempotency``, looking the key up, remembering it and adding are the same atomic step.

        Args:
            count: At least 1.
            capped: Whether searches beyond the gateway's count are charged only up to 10 a day and site: the
                report came with a public key, and the gateway is the only way to the engine.
        """

    @abstractmethod
    def count_refusal(self, account_id: int, *, now: float) -> None:
        """Count a search that a limit of the account's plan refused."""

    @abstractmethod
    def usage_of_day(self, account_id: int, day: date) -> DayUsage:
        """The account's usage on ``day``, at least what is known of it elsewhere; zeros if there was none."""

    @abstractmethod
    def usage_between(self, account_id: int, first_day: date, last_day: date) -> list[DayUsage]:
        """Days with usage from ``first_day`` to ``last_day``, both included, oldest first.

        Days are kept for at least 62 days. A calendar month's sum is the sum over its days.

        Raises:
            ValueError: The range is longer than 400 days.
        """

    @abstractmethod
    def begin_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        """Say that the account's credentials are about to change: until the end, nothing cached may be used."""

    @abstractmethod
    def end_credential_change(self, account_id: int, *, now: float) -> CredentialVersion:
        """Say that a change begun before is committed, or was given up.

        Harmless after the change was healed: readers load once more.
        """

    @abstractmethod
    def heal_credential_epochs(self, older_than_seconds: float, *, now: float) -> int:
        """End changes whose process died before it could: accounts whose last begin is longer ago than that.

        Returns:
            How many accounts were healed.
        """

    @abstractmethod
    def forget_account(self, account_id: int, *, now: float) -> None:
        """Remove usage and idempotency keys of an account.

        Its credential version moves on instead of going, so that keys cached anywhere are loaded, and found missing, at
        the next request. Windows go by :meth:`reset` or end by themselves.
        """

    @abstractmethod
    def forget_site(self, account_id: int, site_id: int, *, now: float) -> None:
        """Remove what is recorded of a site. What it was charged stays charged to its days."""

    @abstractmethod
    def check(self) -> None:
        """Return if the store can be read and written.

        Raises:
            CountersUnavailable: It cannot.
        """

    @abstractmethod
    def clear(self) -> None:
        """Forget everything. For tests and operators."""

    @abstractmethod
    def close(self) -> None:
        """Give back files, sockets and threads. The store can be used again afterwards."""


def quota_window(outcome: ConsumeOutcome, daily_limit: int) -> WindowState:
    """The day's searches as a window that ends at the next UTC midnight, to be named in a refusal."""
    reset_ms = (day_number(outcome.day) + 1) * 86_400_000
    return WindowState("searches", daily_limit, 86_400, 1, outcome.used_today or 0, reset_ms)


def longest_wait(windows: Sequence[WindowState]) -> WindowState | None:
    """Of the windows without room, the one that ends last (the first of them on a tie); ``None`` if all have room."""
    full = [window for window in windows if not window.has_room]
    return max(full, key=lambda window: window.reset_ms) if full else None


def settlement_key(once: str) -> str:
    """Under which key stores remember what was settled, beside the idempotency keys of clients: those have no space."""
    return f"settled {once}"
