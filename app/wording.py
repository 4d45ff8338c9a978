"""Formatting numbers, times, durations, and tables for people."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
_FORMULA_STARTS = re.compile("^(?=[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?= *[=+@\uff1d\uff0b\uff0d\uff20-])")
"""Matches where a formula begins in at least one spreadsheet program, including with full-width signs.

Where the comma is the decimal sign, spreadsheets split lines of CSV at semicolons and line breaks within cells.
"""


def number(value: int) -> str:
    """Format a number: ``12,345``."""
    return f"{value:,}"


def counted(value: int, noun: str) -> str:
    """Format a count with a noun that has a regular plural: ``1 site``, ``2,000 sites``, ``3 searches``."""
    plural = noun + ("es" if noun.endswith(("ch", "sh", "s", "x")) else "s")
    return f"{number(value)} {noun if value == 1 else plural}"


def size(count: int) -> str:
    """Format a size in a readable unit: ``512 bytes``, ``12.5 MiB``."""
    value, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count:,} bytes" if unit == "bytes" else f"{value:,.1f} {unit}"


def duration(seconds: int) -> str:
    """Format a wait, rounded up to a readable unit: ``1 second``, ``90 seconds``, ``3 minutes``."""
    for unit, noun in _UNITS:
        if seconds > 2 * unit:
            return counted(-(-seconds // unit), noun)
    return counted(seconds, "second")


def day_text(value: date) -> str:
    """Format a date, or the UTC date of a datetime: ``5 Sep 2024``."""
    if isinstance(value, datetime):
        value = value.astimezone(UTC)
    return f"{value.day} {value:%b %Y}"


def moment_text(value: datetime) -> str:
    """Format a datetime in UTC: ``5 Sep 2024, 14:03 UTC``."""
    value = value.astimezone(UTC)
    return f"{day_text(value)}, {value:%H:%M} UTC"


def operator_text(contact: str) -> str:
    """Format a reference to the operator: ``the operator of this service (help@example.com)``, contact optional."""
    return f"the operator of this service ({contact})" if contact else "the operator of this service"


def printable(text: str) -> str:
    """Make untrusted text safe for an operator's terminal: one line without control characters."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def csv_lines(rows: Iterable[Iterable[object]]) -> str:
    """Format rows as CSV lines, with an apostrophe before each text that a spreadsheet would treat as a formula."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(map(_harmless, row) for row in rows)
    return text.getvalue()


def _harmless(cell: object) -> object:
    return _FORMULA_STARTS.sub("'", cell) if isinstance(cell, str) else cell
