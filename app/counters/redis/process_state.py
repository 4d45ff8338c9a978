"""State that a process keeps between steps: unfinished steps, and the incarnation of the store it knows."""

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
    """A step of a slot. Its number is ``""`` if it need not be remembered."""

    slot: str
    number: int | str


NO_STEP = Step("", "")


class StepLedger:
    """Numbered steps, so that the server does one whose answer was lost once or not at all.

    A thread has a slot to itself during a step. The server remembers the last number of each slot.

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
        """Have a lost step settled by ``settle`` when the server answers again."""
        self._open.append(settle)

    def settle(self) -> None:
        """Settle some of the lost steps. The next call retries failed ones."""
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
    """The incarnation of the store that this process saw last.

    A store that loses its data, or goes back in time, gets a new incarnation, so that cached credentials are loaded
    again.

    Attributes:
        state: Name of the incarnation, and the minimum number of its credential changes.
        doubt: Mark with which the next step gives the store a new incarnation; empty without doubt.
    """

    def __init__(self) -> None:
        self.state = ("", 0)
        self.doubt = ""

    def raise_doubt(self) -> None:
        """Doubt that the store knows of all credential changes."""
        self.doubt = f"*{secrets.token_hex(4)}"

    def note(self, state: tuple[str, int], doubt: str, incarnation: str, changes: int) -> bool:
        """Note what a step reported, and end the doubt that the step was sent with.

        Args:
            state: :attr:`state` before the step was sent.
            doubt: :attr:`doubt` before the step was sent.
            incarnation: Incarnation that the step reported.
            changes: Number of credential changes that the step reported.

        Returns:
            Whether the report was noted; ``False`` if the store went back in time, to fewer changes under the same
            incarnation.
        """
        if incarnation == state[0] and changes < state[1]:
            return False
        if incarnation != self.state[0] or changes > self.state[1]:
            self.state = incarnation, changes
        if doubt and self.doubt == doubt:
            self.doubt = ""
        return True
