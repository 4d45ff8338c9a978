"""A fake clock, so that tests of timeouts and waits do not sleep."""

from __future__ import annotations


class Clock:
    """Time that advances only during sleep."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
