"""Rules for the use of each field of an index, with the same error messages on every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from backends.errors import BackendRejected
from backends.filters import Filter, fields_of
from backends.query import MAX_USED_BOOSTS, Boost, FieldKind, FieldKinds, Recency, SearchQuery, SortKey
from backends.standard_fields import (
    COUNTED_FIELDS,
    REQUIRED_HIT_FIELDS,
    SORTED_FIELDS,
    STANDARD_FIELDS,
    TEXT_FIELDS,
    UNCOUNTED_FIELDS,
)
from backends.values import parse_filter_instant, parse_number

SCALAR_KINDS: Final = frozenset({FieldKind.STRING, FieldKind.NUMBER, FieldKind.BOOLEAN})
"""Kinds of value that documents can be sorted by."""

NUMBER_KINDS: Final = frozenset({FieldKind.NUMBER, FieldKind.NUMBER_LIST})

ONE_ERROR_FROM: Final = 5
"""Minimum length, in letters, of a word that may have one typing error."""

TWO_ERRORS_FROM: Final = 9
"""Minimum length, in letters, of a word that may have two typing errors."""


def check_filter(expression: Filter, kinds: FieldKinds) -> None:
    """Raise :class:`BackendRejected` at the first field of a portable filter that no document has."""
    for position, name in sorted((position, name) for name, position in fields_of(expression).items()):
        _check_known("filters", name, kinds, position)


def check_sort(keys: Sequence[SortKey], kinds: FieldKinds) -> None:
    """Raise :class:`BackendRejected` for a field that is unknown or has no single values."""
    for key in keys:
        name = key.field
        if name in STANDARD_FIELDS and name not in SORTED_FIELDS:
            raise BackendRejected("sort", f"Results cannot be sorted by {name!r}.")
        _check_known("sort", name, kinds)
        if name not in STANDARD_FIELDS and not kinds[name] & SCALAR_KINDS:
            raise BackendRejected("sort", f"Results cannot be sorted by {name!r}: it contains lists.")


def facet_fields(requested_fields: Sequence[str], kinds: FieldKinds) -> list[str]:
    """Return the fields to count, without duplicates and with ``*`` expanded.

    Raises:
        BackendRejected: A field is unknown or cannot be a facet.
    """
    fields: dict[str, None] = {}
    for name in requested_fields:
        if name == "*":
            fields |= dict.fromkeys(COUNTED_FIELDS)
            fields |= dict.fromkeys(sorted(kinds))
            continue
        if name in UNCOUNTED_FIELDS:
            raise BackendRejected("facets", f"The values of {name!r} cannot be counted.")
        _check_known("facets", name, kinds)
        fields[name] = None
    return list(fields)


def first_values(counts: Mapping[str, int], limit: int) -> dict[str, int]:
    """Return the ``limit`` most frequent values of a facet, ordered by count, then value."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit])


def instant_of(value: str, position: int) -> int:
    """Return the instant that a filter compares dates with, in microseconds.

    Raises:
        BackendRejected: The value is not a date.
    """
    instant = parse_filter_instant(value)
    if instant is None:
        message = f"{value!r} is not an ISO 8601 date; write 2024-05-31 or '2024-05-31T12:00:00Z'."
        raise BackendRejected("filters", message, position=position)
    return instant


def number_of(field: str, value: str, position: int) -> int | float:
    """Return the number that a filter compares a custom field with.

    Raises:
        BackendRejected: The value is not a number.
    """
    number = parse_number(value)
    if number is None:
        message = f"{field!r} can only be compared with numbers of at most 64 bits; {value!r} is not one."
        raise BackendRejected("filters", message, position=position)
    return number


def searched_fields(query: SearchQuery) -> tuple[str, ...]:
    """The text fields that a query searches, in order of importance; none if the query names only other fields."""
    return tuple(name for name in TEXT_FIELDS if not query.fields or name in query.fields)


def usable_boosts(query: SearchQuery) -> tuple[Boost, ...]:
    """Return a query's boosts, first from the settings, then from rules, at most :data:`MAX_USED_BOOSTS`.

    Boosts of rank 0, and boosts that name a field that no document has, are skipped.
    """
    custom_fields = query.kinds.keys()
    boosts = (*query.settings.boosts, *query.effects.boosts)
    return tuple([boost for boost in boosts if boost.rank and boost.custom_fields <= custom_fields][:MAX_USED_BOOSTS])


def rank_field(query: SearchQuery) -> str:
    """Return the field with the documents' own ranks, if any document has a number in it; otherwise ``""``."""
    name = query.settings.rank_field
    return name if FieldKind.NUMBER in query.kinds.get(name, ()) else ""


def usable_recency(query: SearchQuery) -> Recency | None:
    """Return the preference for newer documents, if documents can have its field."""
    recency = query.settings.recency
    if recency is None or (recency.field != "date" and not query.kinds.get(recency.field, frozenset()) & SCALAR_KINDS):
        return None
    return recency


def with_required_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document's fields as hits have them: with ``""`` for missing :data:`REQUIRED_HIT_FIELDS`."""
    return {**fields, **{name: "" for name in REQUIRED_HIT_FIELDS if name not in fields}}


def is_known(name: str, kinds: FieldKinds) -> bool:
    """Whether a field is a standard field, or a custom field that a document has had."""
    return name in STANDARD_FIELDS or name in kinds


def _check_known(parameter: str, name: str, kinds: FieldKinds, position: int | None = None) -> None:
    if not is_known(name, kinds):
        raise BackendRejected(parameter, f"No document has a field {name!r}.", position=position)
