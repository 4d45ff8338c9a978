"""Counting rules that all stores share: windows, days, charges per site, intents, and minimum usage."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import NamedTuple

_DAYS_REMEMBERED = 100_000
"""Maximum number of raised days that a process remembers."""


class MinimumUsage(NamedTuple):
    """Minimum usage of an account on one day, read from a copy: charged searches and indexing operations."""

    used: int
    indexing: int


NO_MINIMUM = MinimumUsage(0, 0)
ReadMinimum = Callable[[int, date], MinimumUsage | None]


class RaisedDays:
    """The days that this process has raised to their minimum usage, with the store's incarnation at that time.

    Args:
        read: Returns the copy of an account's usage on a day, or ``None`` if it cannot be read now and the next step
            should try again. By default there are no copies.
    """

    def __init__(self, read: ReadMinimum | None = None) -> None:
        self.read = read or (lambda account_id, day: NO_MINIMUM)
        self._raised: dict[tuple[int, date], str] = {}

    def incarnation_of(self, account_id: int, day: date) -> str:
        """Return the incarnation under which the day was raised; empty if the day was not raised."""
        return self._raised.get((account_id, day), "")

    def missing_usage(self, account_id: int, day: date, incarnation: str) -> MinimumUsage:
        """Return the minimum to which a day must still be raised; zeros if it was raised or its minimum is unknown."""
        if self.incarnation_of(account_id, day) == incarnation != "":
            return NO_MINIMUM
        return self.read(account_id, day) or NO_MINIMUM

    def record(self, account_id: int, day: date, incarnation: str) -> None:
        """Record that the day's counts were raised to their copy in SQL."""
        # Forgetting is harmless: each day that is still in use costs one more query.
        if len(self._raised) >= _DAYS_REMEMBERED:
            self._raised.clear()
        self._raised[account_id, day] = incarnation

    def forget(self) -> None:
        """Forget which days were raised, so that they are raised again."""
        self._raised.clear()


UNLIMITED = 2147483647
"""Placeholder for "no limit" where a number is required."""

CAPPED_REPORTS_CHARGED = 10
"""Maximum number of capped reports charged per day and site beyond the gateway's count."""

USAGE_DAYS_KEPT = 70
"""Days for which usage is kept; more than two calendar months (62)."""

IDEMPOTENCY_SECONDS = 86_400
"""Seconds for which a report's idempotency key is remembered."""

INTENT_PAUSE_SECONDS = 30
"""Seconds after a request within which the next one still belongs to the same intent."""

INTENT_SECONDS = 120
"""Maximum duration of an intent in seconds."""

INTENT_REQUESTS = 60
"""Maximum number of requests of an intent."""

INTENT_KEPT_SECONDS = 3600
"""Seconds for which a finished intent is kept, so that its late failures are refunded."""

_FIRST_DAY = date(1970, 1, 1).toordinal()
_DAY_SECONDS = 86_400


def milliseconds(now: float) -> int:
    """Convert a Unix time to milliseconds, rounded because floats represent most fractions inexactly."""
    return round(now * 1000)


def window_end(now_ms: int, seconds: int) -> int:
    """Return the end of a window that begins now, in milliseconds. One-day windows end with the UTC day."""
    length_ms = seconds * 1000
    return (now_ms // length_ms + 1) * length_ms if seconds == _DAY_SECONDS else now_ms + length_ms


def day_of(now: float) -> date:
    """Return the UTC day of a Unix time."""
    return day_from_number(milliseconds(now) // 86_400_000)


def day_number(day: date) -> int:
    """Return the number of days since 1970-01-01, the stores' encoding of a day."""
    return day.toordinal() - _FIRST_DAY


@lru_cache(maxsize=8)
def day_from_number(number: int) -> date:
    """Return the day with this number; the inverse of :func:`day_number`."""
    return date.fromordinal(number + _FIRST_DAY)


def charge_of_site(gateway: int, trusted: int, capped: int) -> int:
    """Return the searches charged for one site and UTC day.

    The rule is ``max(gateway, reported)``: a report first uses up the searches that the gateway has counted. At most
    :data:`CAPPED_REPORTS_CHARGED` capped reports are charged beyond the gateway's count and trusted reports, so that
    the holder of a public key cannot use up the daily quota::

        certain = max(gateway, trusted)
        charge  = certain + min(10, max(0, trusted + capped - certain))

    Trusted reports use up the gateway's count before capped reports do. Otherwise, capped reports of the same searches
    could push trusted reports beyond it. If ``capped`` is 0, the charge is ``max(gateway, trusted)``. The charge never
    falls when an argument grows, never exceeds ``max(gateway, trusted + capped)``, and never exceeds
    ``max(gateway, trusted)`` by more than 10.

    Args:
        gateway: Searches that the gateway served for the site.
        trusted: Searches reported and charged in full.
        capped: Searches reported with public keys while the gateway is the only way to the engine.
    """
    certain = max(gateway, trusted)
    return certain + min(CAPPED_REPORTS_CHARGED, max(0, trusted + capped - certain))


def continues_intent(text: str, began_ms: int, last_ms: int, requests: int, last_text: str, now_ms: int) -> bool:
    """Whether a request continues a visitor's intent: more typing, deleting, another page, or a filter.

    Args:
        text: The normalized query.
        began_ms: Beginning of the intent, in milliseconds since the Unix epoch.
        last_ms: Time of its last request.
        requests: Number of its requests.
        last_text: Query of the last request.
    """
    return (
        requests < INTENT_REQUESTS
        and now_ms <= last_ms + INTENT_PAUSE_SECONDS * 1000
        and now_ms <= began_ms + INTENT_SECONDS * 1000
        and (text.startswith(last_text) or last_text.startswith(text))
    )
