"""Numbers, times and durations in sentences for people."""

from __future__ import annotations

from datetime import UTC, date, datetime

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def number(value: int) -> str:
    """``12,345``."""
    return f"{value:,}"


def counted(value: int, noun: str) -> str:
    """A number with its noun, whose plural is a regular one: ``1 site``, ``2,000 sites``, ``3 searches``."""
    plural = noun + ("es" if noun.endswith(("ch", "sh", "s", "x")) else "s")
    return f"{number(value)} {noun if value == 1 else plural}"


def size(count: int) -> str:
    """Bytes in a unit that reads easily: ``512 bytes``, ``12.5 MiB``."""
    value, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count:,} bytes" if unit == "bytes" else f"{value:,.1f} {unit}"


def duration(seconds: int) -> str:
    """A time to wait, rounded up to a unit that reads easily: ``1 second``, ``90 seconds``, ``3 minutes``."""
    for unit, noun in _UNITS:
        if seconds > 2 * unit:
            return counted(-(-seconds // unit), noun)
    return counted(seconds, "second")


def day_text(value: date) -> str:
    """``5 May 2024``; of a moment, its day in UTC."""
    if isinstance(value, datetime):
        value = value.astimezone(UTC)
    return f"{value.day} {value:%b %Y}"


def moment_text(value: datetime) -> str:
    """``5 May 2024, 14:03 UTC``."""
    value = value.astimezone(UTC)
    return f"{day_text(value)}, {value:%H:%M} UTC"


def operator_text(contact: str) -> str:
    """The operator as text: ``the operator of this service (help@example.com)``, or without an unknown address."""
    return f"the operator of this service ({contact})" if contact else "the operator of this service"


def printable(text: str) -> str:
    """A text that others chose, for an operator's terminal: one line, in which nothing is a command to the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
