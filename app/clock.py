"""The time, in one place."""

from __future__ import annotations

from datetime import UTC, date, datetime


def now() -> datetime:
    """The current time, aware UTC. Machines of an installation keep their clocks alike by NTP."""
    return datetime.now(UTC)


def today() -> date:
    """The current UTC day."""
    return now().date()


def isoformat(moment: datetime) -> str:
    """``moment`` as the API writes times: UTC, ISO 8601, ending in ``Z``, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
