"""The current time, read in one place so that tests can replace it."""

from __future__ import annotations

from datetime import UTC, date, datetime


def now() -> datetime:
    """Return the current time as an aware UTC datetime. The machines of an installation must be synchronized by NTP."""
    return datetime.now(UTC)


def today() -> date:
    """Return the current UTC day."""
    return now().date()


def isoformat(moment: datetime) -> str:
    """Return ``moment`` in the API's format: UTC, ISO 8601, ending in ``Z``, with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
