"""Standard fields: the fields that every index has, whatever its documents contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class StandardField:
    """A field with a fixed meaning.

    Attributes:
        required: Whether every document must have it.
        searched: Its rank by importance among the searched fields, from 1; 0 if it is not searched.
        sorted: Whether results can be sorted by it.
        counted: Whether it can be a facet; false if nearly every document has a different value.
        returned: Whether every hit contains it, as ``""`` if the document lacks it.
    """

    name: str
    kind: Literal["identifier", "text", "address", "date"]
    required: bool = False
    searched: int = 0
    sorted: bool = True
    counted: bool = False
    returned: bool = False


STANDARD: Final = (
    StandardField("id", "identifier", required=True, counted=True, returned=True),
    StandardField("title", "text", required=True, searched=1, returned=True),
    StandardField("content", "text", required=True, searched=3, sorted=False, returned=True),
    StandardField("url", "address", required=True, returned=True),
    StandardField("excerpt", "text", searched=2, returned=True),
    StandardField("author", "text", counted=True),
    StandardField("date", "date", counted=True),
)
"""All standard fields; the constants below are derived from this table."""

STANDARD_FIELDS: Final = tuple(field.name for field in STANDARD)
REQUIRED_FIELDS: Final = tuple(field.name for field in STANDARD if field.required)
REQUIRED_HIT_FIELDS: Final = tuple(field.name for field in STANDARD if field.returned)
SORTED_FIELDS: Final = tuple(field.name for field in STANDARD if field.sorted)
COUNTED_FIELDS: Final = tuple(field.name for field in STANDARD if field.counted)
UNCOUNTED_FIELDS: Final = frozenset(STANDARD_FIELDS).difference(COUNTED_FIELDS)
STRING_FIELDS: Final = tuple(field.name for field in STANDARD if field.kind == "text")
"""Fields with text for people to read; matches are marked only in these."""
TEXT_FIELDS: Final = tuple(field.name for field in sorted(STANDARD, key=lambda field: field.searched) if field.searched)
"""Searched fields, in order of importance."""
