"""State that a process keeps between steps: unfinished steps, and the last known incarnation of the store."""

from __future__ import annotations

import logging
import secrets
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from app.counters.base import CountersUnavailable

log = logging.getLogger(__name__)

_SETTLED_AT_ONCE = 10


class Step(NamedTuple):
    """A numbered step in a slot. The number is ``""`` if the server need not remember the step."""

    slot: str
    number: int | str


NO_STEP = Step("", "")


class StepLedger:
    """Numbers for steps, so that the server executes a step at most once even if its answer was lost.

    During a step, a thread has exclusive use of a slot. The server remembers the last number of each slot.

    Args:
        prefix: Beginning of the slots' keys.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._free: deque[Step] = deque()
        """The last steps of free slots."""
        self._open: deque[Callable[[], object]] = deque()
        self._settling = Lock()

    def take(self) -> Step:
        """Return the next step of a free slot, which is reserved until :meth:`give_back`."""
        try:
            slot, number = self._free.pop()
        except IndexError:
            return Step(f"{self._prefix}{secrets.token_hex(8)}", 1)
        return Step(slot, int(number) + 1)

    def give_back(self, step: Step) -> None:
        """Free the slot of a step whose answer arrived."""
        if step != NO_STEP:
            self._free.append(step)

    def postpone(self, settle: Callable[[], object]) -> None:
        """Schedule ``settle``, which settles a lost step, for when the server answers again."""
        self._open.append(settle)

    def settle(self) -> None:
        """Settle some of the lost steps. The next call retries those that failed."""
        # Another thread is already settling. Do not delay the step of this one.
        if not self._open or not self._settling.acquire(blocking=False):
            return
        try:
            # Limited, because the caller's own step has succeeded and waits for this.
            for _ in range(_SETTLED_AT_ONCE):
                if not self._open:
                    return
                settle = self._open.popleft()
                try:
                    settle()
                except CountersUnavailable as error:
                    self._open.appendleft(settle)
                    log.warning("the outcome of a counter step is still unknown: %s", error)
                    return
        finally:
            self._settling.release()


class KnownIncarnation:
    """The last incarnation of the store that this process has seen.

    A store that loses its data, or goes back in time, gets a new incarnation, so that cached credentials are loaded
    again.

    Attributes:
        state: Name of the incarnation, and a lower bound for its number of credential changes.
        doubt: Token that tells the next step to start a new incarnation; empty if there is no doubt.
    """

    def __init__(self) -> None:
        self.state = ("", 0)
        self.doubt = ""

    def raise_doubt(self) -> None:
        """Start a new incarnation with the next step, because the store may have lost credential changes."""
        self.doubt = f"*{secrets.token_hex(4)}"

    def note(self, state: tuple[str, int], doubt: str, incarnation: str, changes: int) -> bool:
        """Record the state that a step reported, and clear the doubt that was sent with the step.

        Args:
            state: :attr:`state` before the step was sent.
            doubt: :attr:`doubt` before the step was sent.
            incarnation: Incarnation that the step reported.
            changes: Number of credential changes that the step reported.

        Returns:
            Whether the state was recorded; ``False`` if the store went back in time: the same incarnation, but fewer
            changes.
        """
        if incarnation == state[0] and changes < state[1]:
            return False
        if incarnation != self.state[0] or changes > self.state[1]:
            self.state = incarnation, changes
        if doubt and self.doubt == doubt:
            self.doubt = ""
        return True
