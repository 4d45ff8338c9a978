"""A worker, which executes queued runs concurrently, renews their claims, and hands them back when it stops."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.bounded_process import release_free_memory
from app.crawl.run.execution import execute
from app.crawl.run.state import CrawlParts, RunControl, is_temporary
from app.crawl.sources.runs import Claim, ClaimState, claim_run, count_waiting, renew_claim

RENEW_SECONDS = 10.0
"""Seconds between renewals of claims. A canceled run may continue for up to this time."""

POLL_SECONDS = 2.0
"""Seconds between two polls of the queue."""

STOP_SECONDS = 10.0
"""Seconds that a stopping worker waits for its runs to be handed back; later, their claims must lapse first."""

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Work:
    claim: Claim
    control: RunControl
    thread: threading.Thread


class Worker:
    """Executes queued runs in threads.

    Args:
        runs_at_once: The number of threads.
        only: ID of the only run to execute; :meth:`run` returns when it has ended.
        renew_seconds: Seconds between renewals of claims.
    """

    def __init__(
        self,
        parts: CrawlParts,
        *,
        runs_at_once: int,
        only: str | None = None,
        renew_seconds: float = RENEW_SECONDS,
    ):
        self._parts = parts
        self._runs_at_once = runs_at_once
        self._only = only
        self._renew_seconds = renew_seconds
        self._stopping = threading.Event()
        self._work: dict[str, _Work] = {}

    def stop(self) -> None:
        """Hand back all runs. May be called from any thread and from a signal handler."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether the worker was stopped, or has executed its only run."""
        return self._stopping.is_set()

    def run(self, *, until_idle: bool = False, idle_seconds: float = POLL_SECONDS) -> None:
        """Execute queued runs until :meth:`stop` is called.

        Args:
            until_idle: Whether to return when no runs are left.
            idle_seconds: Seconds between two polls of the queue.
        """
        renewed_at = time.monotonic()
        while not self._stopping.is_set():
            if time.monotonic() - renewed_at >= self._renew_seconds:
                self._renew()
                release_free_memory()
                renewed_at = time.monotonic()
            claim = self._claim() if len(self._work) < self._runs_at_once else None
            if claim is not None:
                self.begin(claim)
                continue
            if until_idle and not self._work:
                break
            self._stopping.wait(idle_seconds if not self._work else min(idle_seconds, self._renew_seconds))
        self._end_all()

    def begin(self, claim: Claim) -> threading.Thread:
        """Execute a claimed run in a separate thread."""
        control = RunControl()
        thread = threading.Thread(target=self._execute, args=(claim, control), name=claim.run_id, daemon=True)
        self._work[claim.run_id] = _Work(claim, control, thread)
        thread.start()
        return thread

    def _claim(self) -> Claim | None:
        def claim() -> Claim | None:
            with self._parts.database.read() as session:
                # A read does not queue behind writers, and an idle worker does not delay them.
                if not count_waiting(session):
                    return None
            with self._parts.database.write() as session:
                return claim_run(session, self._only)

        return _unless_unavailable(claim, None)

    def _execute(self, claim: Claim, control: RunControl) -> None:
        status = execute(self._parts, claim, control)
        log.info("run %s: %s", claim.run_id, status)
        self._work.pop(claim.run_id, None)
        # The next round claims a run that was handed back again.
        if self._only is not None and status != "handed_back":
            self._stopping.set()

    def _renew(self) -> None:
        for work in list(self._work.values()):

            def write(claim: Claim = work.claim) -> ClaimState:
                with self._parts.database.write() as session:
                    return renew_claim(session, claim)

            # While the database is away, the runs continue: no other process can claim them, either.
            state = _unless_unavailable(write, ClaimState.VALID)
            if state is ClaimState.CANCELED:
                work.control.cancel()
            elif state is ClaimState.LOST:
                work.control.lose()

    def _end_all(self) -> None:
        for work in list(self._work.values()):
            work.control.interrupt()
        # All are told first, so that they stop at the same time instead of one after the other.
        for work in list(self._work.values()):
            work.thread.join(timeout=STOP_SECONDS)


def _unless_unavailable(step: Callable[[], T], default: T) -> T:
    """Return ``step()``, or ``default`` while the database is unavailable. The worker tries again soon."""
    try:
        return step()
    except Exception as error:
        if not is_temporary(error):
            raise
        log.warning("the database is unavailable: %s", error)
        return default
