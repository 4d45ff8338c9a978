"""The time, in one place."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

_correction = timedelta(0)


def now() -> datetime:
    """The current time, aware UTC: that of all machines of the installation."""
    return datetime.now(UTC) + _correction


def machine_time() -> datetime:
    """What this machine's clock says, aware UTC, be it right or wrong."""
    return datetime.now(UTC)


def correct(by: timedelta) -> None:
    """Have :func:`now` differ from this machine's clock from now on."""
    global _correction
    _correction = by


def today() -> date:
    """The current UTC day."""
    return now().date()


def isoformat(moment: datetime) -> str:
    """``moment`` as the API writes times: UTC, ISO 8601, ending in ``Z``, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
