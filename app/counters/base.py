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
(:attr:`CounterStore.raised_days`) before the next search or report of that day is counted.

Every method may raise :class:`CountersUnavailable` within the store's time budget. The step was then not executed,
unless the error is :class:`ResponseLost`. A report with an idempotency key may have been recorded even so; repeat it.

Stores are thread-safe. They open files and sockets only at first use in a process, so that an object created before
``fork`` works in every child, even if it was used before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date

from app.counters.metering import RaisedDays
from app.counters.values import (
    ConsumeOutcome,
    CredentialVersion,
    DayUsage,
    IdempotencyKey,
    IntentRequest,
    Operation,
    ReportOutcome,
    Reservation,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
    WindowState,
)


class CounterStore(ABC):
    """A counter store. :func:`app.counters.create_counters` creates one from a URL."""

    name: str
    """Kind of store: ``memory``, ``sqlite``, or ``redis``."""

    raised_days: RaisedDays
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
        """Return what :meth:`consume` would return, without counting; ``rejected`` is the window without room.

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
        than :class:`ResponseLost`.

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
    def count_rejection(self, account_id: int, *, now: float) -> None:
        """Count a search that a limit of the account's plan rejected."""

    @abstractmethod
    def usage_of_day(self, account_id: int, day: date) -> DayUsage:
        """Return the account's usage on ``day``, raised to its minimum; zeros if there was no usage."""

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
        """End changes that began more than ``older_than_seconds`` ago, since their processes have probably died.

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
