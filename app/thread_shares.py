"""One caller's share of a worker's threads, so that what one does slowly leaves the others room."""

from __future__ import annotations

import threading
import time

from app.errors import ApiError, ErrorCode

SLOW_SECONDS = 1.0
"""A request that runs longer is slow."""
RETRY_SECONDS = 2


class ThreadShares:
    """Requests at work in this process, by caller: at most half of the threads are one caller's.

    What comes beyond that waits for one of the caller's own to end, so that a burst of fast requests is answered. It
    is refused after ``SLOW_SECONDS``, and at once while all of those at work are slow.

    Attributes:
        most: Requests of one caller at work at a time; ``None`` for any number.
    """

    def __init__(self) -> None:
        self.most: int | None = None
        self._turn = threading.Condition(threading.Lock())
        self._begun: dict[object, list[float]] = {}
        """When each of a caller's requests at work began, in this order."""
        self._waiting = 0

    def share_out(self, threads: int) -> None:
        """Say how many threads there are."""
        self.most = max(1, threads // 2)

    def enter(self, who: object) -> float:
        """Begin a request of a caller; gives what :meth:`leave` wants.

        Raises:
            ApiError: 503 ``server_busy``.
        """
        came = time.monotonic()
        with self._turn:
            while True:
                now = time.monotonic()
                begun = self._begun.setdefault(who, [])
                if self.most is None or len(begun) < self.most:
                    begun.append(now)
                    return now
                patience = min(came, begun[-1]) + SLOW_SECONDS - now
                if patience <= 0:
                    raise ApiError(
                        ErrorCode.SERVER_BUSY,
                        "Your slow requests use all of your share of this server; try again when they have finished.",
                        retry_after=RETRY_SECONDS,
                    )
                self._waiting += 1
                self._turn.wait(patience)
                self._waiting -= 1

    def leave(self, who: object, began: float) -> None:
        """End a request."""
        with self._turn:
            begun = self._begun[who]
            begun.remove(began)
            if not begun:
                del self._begun[who]
            if self._waiting:
                self._turn.notify_all()
