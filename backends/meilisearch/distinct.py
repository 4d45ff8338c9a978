"""Beside Meilisearch's own ``distinct``: pinned hits, which hit of a value is preferred, and lists, of which it takes
every member for a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from backends.base import SearchQuery
from backends.distinct import LATEST, choose, distinct_value, preference, texts_of
from backends.filters import And, Comparison, Filter, Not, OneOf
from backends.meilisearch.query import CompiledQuery, attribute, compile_filter
from backends.servers.ranks import PREFERRED_OVER
from backends.values import fold_value

MOST_VERSIONS = 1000
"""Hits among which the preferred ones of a page are looked for."""

MOST_READ = 10_000
"""Hits that are read where they are chosen here."""

Found = Mapping[str, Any]
"""A hit as Meilisearch gives it."""


def first_of_each(hits: Iterable[Found], field: str) -> list[Found]:
    """The first hit of each value of a field, and each hit without a single one."""
    seen: set[str] = set()
    shown: list[Found] = []
    for hit in hits:
        value = distinct_value(hit.get(attribute(field)))
        if value is None or (folded := fold_value(value)) not in seen:
            shown.append(hit)
        if value is not None:
            seen.add(folded)
    return shown


def in_order_of(ids: Sequence[str], hits: Iterable[Found]) -> list[Found]:
    """Hits in the order of their ids; those that are gone by now are left out."""
    by_id = {hit["id"]: hit for hit in hits}
    return [by_id[id] for id in ids if id in by_id]


class DistinctHits:
    """The hits of a search that shows one of each value."""

    def __init__(self, query: SearchQuery, compiled: CompiledQuery):
        self.query = query
        self.compiled = compiled

    def first_of(self, pins: Sequence[Found]) -> tuple[list[Found], list[str]]:
        """The pinned hits that are shown, and the expressions that leave out others with their values."""
        shown: list[Found] = []
        values: dict[str, None] = {}
        for pin in pins:
            value = self._value(pin)
            if value is None or value not in values:
                shown.append(pin)
            if value is not None:
                values[value] = None
        return shown, [self._filter(Not(OneOf(self.compiled.distinct, tuple(values))))] if values else []

    def prefer(self, found: Sequence[Found], ask: Callable[[dict[str, Any]], Sequence[Found]]) -> Sequence[Found]:
        """The hits to show for the values of some that are shown.

        Args:
            ask: Gives the hits of a query.
        """
        preferred = preference(self.query)
        values = {value: None for each in found if (value := self._value(each)) is not None}
        if preferred is None or not values:
            return found
        field = self.compiled.distinct
        wanted: Filter = OneOf(field, tuple(values))
        if preferred.value != LATEST and preferred.field != "date":
            wanted = And((wanted, Comparison(preferred.field, "=", preferred.value)))
        names = (field, preferred.field)
        rivals = ask(self.compiled.values_query(names, hits=MOST_VERSIONS, more=[self._filter(wanted)]))
        read = [[rival.get(attribute(name)) for name in names] for rival in rivals]
        chosen = choose(
            preferred,
            [
                (value, texts_of(of_version), rival["id"])
                for (of_value, of_version), rival in zip(read, rivals, strict=True)
                if (value := distinct_value(of_value)) in values and value is not None
            ],
        )
        ids = set(chosen.values()) - {each["id"] for each in found}
        if not ids:
            return found
        fetched = ask(self.compiled.by_ids(sorted(ids)))
        by_id = {each["id"]: each for each in (*found, *fetched)}
        shown = [(by_id[chosen.get(self._value(each) or "", each["id"])], each["id"]) for each in found]
        return [each if each["id"] == best else {**each, PREFERRED_OVER: best} for each, best in shown]

    def _value(self, found: Found) -> str | None:
        return distinct_value(orjson.loads(found["_doc"]).get(self.compiled.distinct))

    def _filter(self, node: Filter) -> str:
        return compile_filter(node, self.query, frozenset(self.query.kinds))
