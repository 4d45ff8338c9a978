"""One caller's share of a worker's threads, so that what one does slowly leaves the others room."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from app.errors import ApiError, ErrorCode

MOST_WAITING = 32
"""Requests of one caller that wait for their turn in a process: more than pages send at once."""
MOST_WAITING_IN_ALL = 128
"""Those of all callers: each has a thread, which costs memory although it does nothing."""
WAIT_SECONDS = 30.0
"""How long a request waits for its turn."""
RETRY_SECONDS = 2


@dataclass(slots=True)
class _Caller:
    """Requests of one caller: how many are at work, and those that wait, in the order in which they came."""

    at_work: int = 0
    waiting: deque[threading.Event] = field(default_factory=deque)


class ThreadShares:
    """Requests at work in this process, by caller: at most half of the threads are one caller's.

    What comes beyond that waits for its turn, which comes when one of the caller's own ends. Only so many wait, for so
    long; more is refused.

    Attributes:
        most: Requests of one caller at work at a time; ``None`` for any number.
    """

    def __init__(self) -> None:
        self.most: int | None = None
        self._aside: Callable[[], AbstractContextManager[None]] = nullcontext
        self._lock = threading.Lock()
        self._callers: dict[object, _Caller] = {}
        self._waiting = 0

    def share_out(self, threads: int, aside: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Say how many threads there are.

        Args:
            aside: What a thread does in there, which is waiting, takes none of them.
        """
        self.most = max(1, threads // 2)
        self._aside = aside

    def enter(self, who: object) -> None:
        """Begin a request of a caller, when it is its turn.

        Raises:
            ApiError: 503 ``server_busy``.
        """
        with self._lock:
            caller = self._callers.setdefault(who, _Caller())
            if self.most is None or caller.at_work < self.most:
                caller.at_work += 1
                return
            if len(caller.waiting) >= MOST_WAITING or self._waiting >= MOST_WAITING_IN_ALL:
                raise _busy()
            turn = threading.Event()
            caller.waiting.append(turn)
            self._waiting += 1
        with self._aside():
            turn.wait(WAIT_SECONDS)
        with self._lock:
            self._waiting -= 1
            if not turn.is_set():
                caller.waiting.remove(turn)
                raise _busy()

    def leave(self, who: object) -> None:
        """End a request; its place is the caller's next one's, if one waits."""
        with self._lock:
            caller = self._callers[who]
            if caller.waiting:
                caller.waiting.popleft().set()
                return
            caller.at_work -= 1
            if not caller.at_work:
                del self._callers[who]


def _busy() -> ApiError:
    return ApiError(
        ErrorCode.SERVER_BUSY,
        "Too many of your requests are waiting for your share of this server; try again when some have finished.",
        retry_after=RETRY_SECONDS,
    )
