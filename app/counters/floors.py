"""Figures known elsewhere of a day's usage: a store that went back in time is raised to it before it counts on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import NamedTuple

_DAYS_REMEMBERED = 100_000


class Floor(NamedTuple):
    """Below this, the counts of an account's day must not fall: searches charged, and indexing operations reported."""

    used: int
    indexing: int


class Floors:
    """The days that this process has raised, under which incarnation of its store.

    Attributes:
        read: Gives what is known of an account's day; ``None`` if that cannot be read now, so that the next step asks
            again. Knows of nothing unless it is set.
    """

    def __init__(self) -> None:
        self.read: Callable[[int, date], Floor | None] = lambda account_id, day: Floor(0, 0)
        self._raised: dict[tuple[int, date], str] = {}

    def incarnation_of(self, account_id: int, day: date) -> str:
        """The incarnation under which the day was raised; empty if it was not."""
        return self._raised.get((account_id, day), "")

    def unraised(self, account_id: int, day: date, incarnation: str) -> Floor:
        """The least that the day may still have to be raised to; zeros if it was raised, or if nothing is known now."""
        if self.incarnation_of(account_id, day) == incarnation != "":
            return Floor(0, 0)
        return self.read(account_id, day) or Floor(0, 0)

    def note(self, account_id: int, day: date, incarnation: str) -> None:
        """The day was raised."""
        if len(self._raised) >= _DAYS_REMEMBERED:
            self._raised.clear()
        self._raised[account_id, day] = incarnation

    def forget(self) -> None:
        """All days are to be raised again."""
        self._raised.clear()
