"""Working on runs that wait, several at once: their claims are renewed meanwhile, and given back at the end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.bounded_process import release_free_memory
from app.crawl.run.control import RunControl, is_passing
from app.crawl.run.execution import CrawlParts, execute
from app.crawl.sources.runs import Claim, ClaimState, claim_run, renew_claim

RENEW_SECONDS = 10.0
"""How often claims are renewed; so long a cancelled run may go on."""

POLL_SECONDS = 2.0
"""How often a worker looks for runs that wait."""

STOP_SECONDS = 10.0
"""How long a worker that stops waits for its runs to be handed back; after that they are when their claims lapse."""

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Work:
    claim: Claim
    control: RunControl
    thread: threading.Thread


class Worker:
    """Works on runs.

    Args:
        runs_at_once: How many.
        only: The one run to work on; when it has ended, so does :meth:`run`.
        renew_seconds: How often claims are renewed.
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
        """Hand back all runs; to be called from any thread, or from a signal's handler."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Tell whether it was told to stop, or has nothing more to do."""
        return self._stopping.is_set()

    def run(self, *, until_idle: bool = False, idle_seconds: float = POLL_SECONDS) -> None:
        """Work on runs that wait until :meth:`stop` is called.

        Args:
            until_idle: Whether to end as well when none is left.
            idle_seconds: How long to wait between two looks.
        """
        renewed_at = time.monotonic()
        while not self._stopping.is_set():
            if time.monotonic() - renewed_at >= self._renew_seconds:
                self._renew()
                release_free_memory()
                renewed_at = time.monotonic()
            claimed = self._claim() if len(self._work) < self._runs_at_once else None
            if claimed is not None:
                self.begin(claimed)
                continue
            if until_idle and not self._work:
                break
            self._stopping.wait(idle_seconds if not self._work else min(idle_seconds, self._renew_seconds))
        self._end_all()

    def begin(self, claim: Claim) -> threading.Thread:
        """Work on a claimed run in a thread of its own."""
        control = RunControl()
        thread = threading.Thread(target=self._execute, args=(claim, control), name=claim.run_id, daemon=True)
        self._work[claim.run_id] = _Work(claim, control, thread)
        thread.start()
        return thread

    def _claim(self) -> Claim | None:
        def write() -> Claim | None:
            with self._parts.database.write() as session:
                return claim_run(session, self._only)

        return _unless_away(write, None)

    def _execute(self, claimed: Claim, control: RunControl) -> None:
        status = execute(self._parts, claimed, control)
        log.info("run %s: %s", claimed.run_id, status)
        self._work.pop(claimed.run_id, None)
        if self._only is not None and status != "handed_back":
            self._stopping.set()

    def _renew(self) -> None:
        for work in list(self._work.values()):

            def write(claim: Claim = work.claim) -> ClaimState:
                with self._parts.database.write() as session:
                    return renew_claim(session, claim)

            state = _unless_away(write, ClaimState.HELD)
            if state is ClaimState.CANCELLED:
                work.control.cancel()
            elif state is ClaimState.LOST:
                work.control.lose()

    def _end_all(self) -> None:
        for work in list(self._work.values()):
            work.control.interrupt()
        for work in list(self._work.values()):
            work.thread.join(timeout=STOP_SECONDS)


def _unless_away(work: Callable[[], T], otherwise: T) -> T:
    """Give what ``work`` gives, or ``otherwise`` while the database is away: it is tried again soon."""
    try:
        return work()
    except Exception as error:
        if not is_passing(error):
            raise
        log.warning("the database is away: %s", error)
        return otherwise
