"""x"""

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


UNLIMITED = 2147483647
"""How "no limit" is written where a number must stand."""

CAPPED_REPORTS_CHARGED = 10
"""How many capped reports beyond the gateway's count are charged, a day and site."""

USAGE_DAYS_KEPT = 70
"""Days a day's usage is kept; more than two calendar months' worth of any month sum (62)."""

IDEMPOTENCY_SECONDS = 86_400
"""How long a report's idempotency key is remembered."""

INTENT_PAUSE_SECONDS = 30
"""How long after a request the next one still belongs to the same intent."""

INTENT_SECONDS = 120
"""How long an intent lasts at most."""

INTENT_REQUESTS = 60
"""How many requests an intent holds at most."""

INTENT_KEPT_SECONDS = 3600
"""How long an intent that is over is kept, so that searches of it that fail late are given back."""

_FIRST_DAY = date(1970, 1, 1).toordinal()
_DAY_SECONDS = 86_400


def milliseconds(now: float) -> int:
    """A Unix time as all stores count it; rounded, since floats miss most fractions by a little."""
    return round(now * 1000)


def window_end(now_ms: int, seconds: int) -> int:
    """The end of a window that begins now, in milliseconds: one of a day with the UTC day, others by their length."""
    length_ms = seconds * 1000
    return (now_ms // length_ms + 1) * length_ms if seconds == _DAY_SECONDS else now_ms + length_ms


def day_of(now: float) -> date:
    """The UTC day of a Unix time."""
    return day_from_number(milliseconds(now) // 86_400_000)


def day_number(day: date) -> int:
    """Days since 1970-01-01, as the stores write a day."""
    return day.toordinal() - _FIRST_DAY


def day_from_number(number: int) -> date:
    """Inverse of :func:`day_number`."""
    return date.fromordinal(number + _FIRST_DAY)


def charge_of_site(gateway: int, trusted: int, capped: int) -> int:
    """Searches charged for one site and UTC day.

    The rule is ``max(gateway, reported)``: a report first uses up what the gateway has counted. Of
    capped reports, at most :data:`CAPPED_REPORTS_CHARGED` are charged beyond what the gateway counted and
    trusted reports claim, so that whoever holds a public key cannot spend the day's quota::

        certain = max(gateway, trusted)
        charge  = certain + min(10, max(0, trusted + capped - certain))

    Trusted reports use up the gateway's count before capped ones do; otherwise capped reports could
    push trusted ones, which tell of the same searches, beyond it. With ``capped`` at 0 the charge is
    ``max(gateway, trusted)``. It never falls when one of the three grows, is never above
    ``max(gateway, trusted + capped)`` and never more than 10 above ``max(gateway, trusted)``.

    Args:
        gateway: Searches the gateway served for the site.
        trusted: Searches reported and charged in full.
        capped: Searches reported with public keys while the gateway is the only way to the engine.
    """
    certain = max(gateway, trusted)
    return certain + min(CAPPED_REPORTS_CHARGED, max(0, trusted + capped - certain))


def continues_intent(text: str, began_ms: int, last_ms: int, requests: int, last_text: str, now_ms: int) -> bool:
    """Whether a request continues a visitor's intent: typing on, erasing, turning the page, or filtering.

    Args:
        text: What is searched, in normal form.
        began_ms: When the intent began, in milliseconds since the Unix epoch.
        last_ms: When its last request came.
        requests: How many it has.
        last_text: What the last one searched.
    """
    return (
        requests < INTENT_REQUESTS
        and now_ms <= last_ms + INTENT_PAUSE_SECONDS * 1000
        and now_ms <= began_ms + INTENT_SECONDS * 1000
        and (text.startswith(last_text) or last_text.startswith(text))
    )
