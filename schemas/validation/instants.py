"""Parsing instants in documents and parameters."""

from __future__ import annotations

import re
from datetime import UTC, datetime


def parse_instant(text: str) -> datetime:
    """Parse an ISO 8601 date or date-time as an aware UTC datetime. A date means 00:00 UTC; the default offset is UTC.

    Raises:
        ValueError: The text is neither.
    """
    if not _ISO.fullmatch(text):
        raise ValueError("not an ISO 8601 date or date-time")
    moment = datetime.fromisoformat(text.replace("z", "Z").replace("t", "T"))
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("out of range") from error


_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d{2}(?::?\d{2})?)?)?", re.ASCII
)
