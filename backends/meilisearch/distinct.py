"""Grouping of hits beyond Meilisearch's own ``distinct``: pinned hits, the preferred hit of a value, and list values,
of which Meilisearch treats every member as a value."""

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

MAX_VERSIONS = 1000
"""Maximum number of hits among which the preferred ones of a page are searched for."""

MAX_READ = 10_000
"""Maximum number of hits that are read to group them here."""

EngineHit = Mapping[str, Any]
"""A hit from Meilisearch."""


def first_of_each(hits: Iterable[EngineHit], field: str) -> list[EngineHit]:
    """The first hit of each value of a field, and every hit without a single value."""
    values: set[str] = set()
    groups: list[EngineHit] = []
    for hit in hits:
        value = distinct_value(hit.get(attribute(field)))
        if value is None or (folded := fold_value(value)) not in values:
            groups.append(hit)
        if value is not None:
            values.add(folded)
    return groups


def in_order_of(ids: Sequence[str], hits: Iterable[EngineHit]) -> list[EngineHit]:
    """Sort hits in the order of their ids, without ids that no longer exist."""
    by_id = {hit["id"]: hit for hit in hits}
    return [by_id[id] for id in ids if id in by_id]


class DistinctHits:
    """Chooses the hits of a distinct search."""

    def __init__(self, query: SearchQuery, compiled: CompiledQuery):
        self.query = query
        self.compiled = compiled

    def first_of(self, pins: Sequence[EngineHit]) -> tuple[list[EngineHit], list[str]]:
        """The pinned hits to show, and filters that exclude other hits with their values."""
        first_pins: list[EngineHit] = []
        values: dict[str, None] = {}
        for pin in pins:
            value = self._value(pin)
            if value is None or value not in values:
                first_pins.append(pin)
            if value is not None:
                values[value] = None
        return first_pins, [self._filter(Not(OneOf(self.compiled.distinct, tuple(values))))] if values else []

    def prefer(
        self, hits: Sequence[EngineHit], ask: Callable[[dict[str, Any]], Sequence[EngineHit]]
    ) -> Sequence[EngineHit]:
        """Replace hits by the preferred hits of their values.

        Args:
            ask: Returns the hits of a query.
        """
        preferred = preference(self.query)
        values = {value: None for each in hits if (value := self._value(each)) is not None}
        if preferred is None or not values:
            return hits
        field = self.compiled.distinct
        selection: Filter = OneOf(field, tuple(values))
        if preferred.value != LATEST and preferred.field != "date":
            selection = And((selection, Comparison(preferred.field, "=", preferred.value)))
        names = (field, preferred.field)
        rivals = ask(self.compiled.values_query(names, hits=MAX_VERSIONS, extra_filters=[self._filter(selection)]))
        read = [[rival.get(attribute(name)) for name in names] for rival in rivals]
        chosen = choose(
            preferred,
            [
                (value, texts_of(of_version), rival["id"])
                for (of_value, of_version), rival in zip(read, rivals, strict=True)
                if (value := distinct_value(of_value)) in values and value is not None
            ],
        )
        ids = set(chosen.values()) - {each["id"] for each in hits}
        if not ids:
            return hits
        fetched = ask(self.compiled.by_ids(sorted(ids)))
        by_id = {each["id"]: each for each in (*hits, *fetched)}
        pairs = [(by_id[chosen.get(self._value(each) or "", each["id"])], each["id"]) for each in hits]
        return [each if each["id"] == best else {**each, PREFERRED_OVER: best} for each, best in pairs]

    def _value(self, hit: EngineHit) -> str | None:
        return distinct_value(orjson.loads(hit["_doc"]).get(self.compiled.distinct))

    def _filter(self, node: Filter) -> str:
        return compile_filter(node, self.query, frozenset(self.query.kinds))
