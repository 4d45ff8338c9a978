"""Comparing the values of documents and filters, shared by every engine that compiles the portable filters."""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta

from backends.text import beyond_ascii, normalized

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ISO_DATE = re.compile(r"\d{4}-?(?:\d\d|W\d\d)", re.ASCII)
INT64 = range(-(2**63), 2**63)
"""Whole numbers that engines can store."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_COMPOSED = re.compile(
    "[\x80-\u02ff\u0400-\u0482\u048a-\u052f\u05d0-\u05ea\u0621-\u064a"
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u2328\u232b-\u2adb"
    "\u3001-\u3029\u3041-\u3096\u309d-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U0001f300-\U0001faff]*"
)
"""Frequent characters that NFC never changes, whatever their neighbors are."""


def parse_number(text: str) -> int | float | None:
    """Parse a number; ``None`` for anything else, including infinities, NaN, and whole numbers beyond 64 bits."""
    if _NUMBER.fullmatch(text.strip()) is None:
        return None
    try:
        whole = int(text)
    except ValueError:
        number = float(text)
        # Adding 0.0 turns -0.0 into 0.0.
        return number + 0.0 if math.isfinite(number) else None
    return whole if whole in INT64 else None


def parse_instant(text: str) -> int | None:
    """Parse an ISO 8601 date or date-time into microseconds since the Unix epoch; ``None`` if it is invalid.

    A date means 00:00 UTC of that day; a date-time without an offset is in UTC.
    """
    if _ISO_DATE.match(text) is None:
        return None
    try:
        # RFC 3339 also allows a lower-case z, which ``fromisoformat`` rejects.
        moment = datetime.fromisoformat(text.replace("z", "Z"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None


def parse_filter_instant(text: str) -> int | None:
    """Parse a filter's value, an ISO 8601 date or a number of Unix seconds, into microseconds since the epoch."""
    number = parse_number(text)
    if number is None:
        return parse_instant(text)
    return round(number * 1_000_000) if abs(number) < 1e12 else None


MAX_SORTED_CHARACTERS = 300
"""Number of characters by which texts are sorted."""


def fold_to_sort(text: str) -> str:
    """Normalize a text for sorting: folded case, no accents or surrounding space, truncated."""
    folded = text[: 2 * MAX_SORTED_CHARACTERS].strip().casefold()
    if not folded.isascii():
        letters = normalized("NFKD", folded)
        folded = "".join([char for char in letters if not unicodedata.combining(char)])
    return folded[:MAX_SORTED_CHARACTERS]


def fold_value(text: str) -> str:
    """Normalize a string for equality: folded case, no surrounding space, composed Unicode."""
    return fold_to_bytes(text).decode()


def fold_to_bytes(text: str) -> bytes:
    """Normalize a string as :func:`fold_value` does, but return UTF-8, in which most of the work is done."""
    text = text.strip()
    if text.isascii():
        return text.lower().encode()
    foreign = beyond_ascii(text)
    if foreign.casefold() == foreign and _COMPOSED.fullmatch(foreign):
        return text.encode().lower()  # The other characters have no case, so lowering the ASCII letters is enough.
    return normalized("NFC", text.casefold()).encode()


def value_text(value: str | bool | int | float) -> str:
    """Return a value as the text of a facet value: ``true`` for ``True``, ``5`` for 5 and 5.0."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else number_text(value)


def number_text(value: int | float) -> str:
    """Return a number as the text of a facet value: ``5`` for 5 and 5.0, ``0.5`` for 0.5."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(value) if isinstance(value, int) else repr(value)
