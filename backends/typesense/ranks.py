"""Ranking of Typesense's hits, which have no scores to multiply, only classes of equally good matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backends.servers.ranks import WINDOW, Ranks, Values
from backends.servers.sort_text import facet_text
from backends.standard_fields import STANDARD_FIELDS
from backends.typesense.schema import native_name

LIMITS = "Typesense has no scores: ranks and recency only order pages that match a query equally well."


def columns(ranks: Ranks, types: Mapping[str, str]) -> list[str]:
    """The Typesense fields that contain the fields that ranks depend on."""
    names = [name for field in ranks.fields for name in _columns_of(field, types)]
    return [name for name in dict.fromkeys(names) if name in types]


def in_order(hits: Sequence[Mapping[str, Any]], ranks: Ranks, types: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Typesense's hits, with equally good matches ordered by rank within the first :data:`WINDOW` hits."""

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
    """The fields that ranks depend on, with values as texts, and numbers as both texts and numbers."""
    values_by_field = {}
    for field in ranks.fields:
        values: list[Any] = []
        for column in _columns_of(field, types):
            value = document.get(column, [])
            members = value if isinstance(value, list) else [value]
            values += map(facet_text, members) if column.startswith("_v_") else members
        if values:
            values_by_field[field] = values if field not in STANDARD_FIELDS else values[0]
    return values_by_field
