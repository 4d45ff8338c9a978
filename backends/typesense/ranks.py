"""Ranks of Typesense's hits: it gives no scores to multiply, only classes of hits that match equally well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backends.servers.ranks import WINDOW, Ranks, Values
from backends.servers.sort_text import facet_text
from backends.standard_fields import STANDARD_FIELDS
from backends.typesense.schema import native_name

LIMITS = "Typesense has no scores: ranks and recency only order pages that match a query equally well."


def columns(ranks: Ranks, types: Mapping[str, str]) -> list[str]:
    """The Typesense fields in which the fields that decide are."""
    names = [name for field in ranks.fields for name in _columns_of(field, types)]
    return [name for name in dict.fromkeys(names) if name in types]


def in_order(hits: Sequence[Mapping[str, Any]], ranks: Ranks, types: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Hits as Typesense gives them, but those that match equally well by rank; the first :data:`WINDOW` of them."""

    def place(hit: Mapping[str, Any]) -> tuple[int, float]:
        return -int(hit["text_match"]), -ranks.factor(_values(hit["document"], ranks, types))

    return [*sorted(hits[:WINDOW], key=place), *hits[WINDOW:]]


def _columns_of(field: str, types: Mapping[str, str]) -> Sequence[str]:
    if field == "id":
        return ("_id",)
    if field in ("date", "author"):
        return (f"_v_{field}",)
    return (field,) if field in STANDARD_FIELDS else (f"_v_{field}", native_name(field, "number", types))


def _values(document: Mapping[str, Any], ranks: Ranks, types: Mapping[str, str]) -> Values:
    """The fields that decide, with values as texts, and numbers as both."""
    found = {}
    for field in ranks.fields:
        values: list[Any] = []
        for column in _columns_of(field, types):
            held = document.get(column, [])
            members = held if isinstance(held, list) else [held]
            values += map(facet_text, members) if column.startswith("_v_") else members
        if values:
            found[field] = values if field not in STANDARD_FIELDS else values[0]
    return found
