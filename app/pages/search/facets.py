"""Facets of the search page: values that narrow the results down, kept in the address as ``f=field:value``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from flask import request

SHOWN_VALUES = 8
MAX_CHOSEN = 10
HIDDEN = frozenset({"date", "id"})
"""Fields with a value per document: nothing to choose from."""


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value to choose, or one that is chosen.

    Attributes:
        address: Where choosing it, or giving it up, leads.
    """

    text: str
    count: int | None
    chosen: bool
    address: str


def chosen_facets() -> list[tuple[str, str]]:
    """Fields and values that the address asks for."""
    pairs = [sent.partition(":") for sent in request.args.getlist("f")[:MAX_CHOSEN]]
    return list(dict.fromkeys((field, value) for field, colon, value in pairs if field and colon))


def filter_of(chosen: Sequence[tuple[str, str]]) -> str:
    """The filter that the chosen values mean: any value of a field, and every field."""
    fields: dict[str, list[str]] = {}
    for field, value in chosen:
        fields.setdefault(field, []).append(_quoted(value))
    return " AND ".join(f"{_quoted(field)} IN [{', '.join(values)}]" for field, values in fields.items())


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def groups_of(
    facets: Mapping[str, Mapping[str, int]], chosen: Sequence[tuple[str, str]]
) -> list[tuple[str, list[FacetValue]]]:
    """Facets to narrow down results: fields with the values that most of them have."""
    groups = []
    for field, counts in facets.items():
        values = [(value, count) for value, count in counts.items() if count]
        picked = [value for name, value in chosen if name == field]
        tells_apart = len(values) > 1 and any(count > 1 for _, count in values)
        if field in HIDDEN or not (tells_apart or picked):
            continue
        offered = list(dict.fromkeys([*picked, *(value for value, _ in values[:SHOWN_VALUES])]))
        groups.append((field, [FacetValue(v, counts.get(v), v in picked, _toggled(chosen, field, v)) for v in offered]))
    return groups


def _toggled(chosen: Sequence[tuple[str, str]], field: str, value: str) -> str:
    rest = [pair for pair in chosen if pair != (field, value)]
    if len(rest) == len(chosen):
        rest.append((field, value))
    return search_address(rest)


def search_address(chosen: Sequence[tuple[str, str]], page: int = 1) -> str:
    """The address of the same search with these facets, on this page."""
    query = [("q", request.args.get("q", "")), *(("f", f"{field}:{value}") for field, value in chosen)]
    return "?" + urlencode([*query, ("page", str(page))] if page > 1 else query)
