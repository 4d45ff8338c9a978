"""The order of Meilisearch's hits: its scores multiplied by factors, and grouping beyond its own ``distinct``.

Meilisearch supports neither pinned hits nor preferred hits, and treats every member of a list as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from backends.distinct import LATEST, choose_preferred, distinct_value, preference, texts_of
from backends.filters import And, Comparison, Filter, Not, OneOf
from backends.meilisearch.query import CompiledQuery, attribute, compile_filter
from backends.query import SearchQuery
from backends.servers.ranks import PREFERRED_OVER, WINDOW, Ranks
from backends.servers.tokenizer import spell_signs, split_words
from backends.values import fold_value

EXACT_TITLE: Final = 2.0
"""Factor for a page whose title equals the query.

Meilisearch's scores of pages with every word are between 0.6 and 1, so rank 1 alone would lift others above it. With
this factor, as in the embedded engine, rank 3 does not, and rank 5 does.
"""


Run = Callable[[Sequence[Mapping[str, Any]], SearchQuery], list[dict[str, Any]]]
"""Runs queries in Meilisearch's form for a search, and returns their results in order."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The page that a search requests.

    Attributes:
        offset: Number of hits to skip, not counting pinned hits.
        others: Filters that exclude hits that are shown already.
    """

    query: SearchQuery
    compiled: CompiledQuery
    ranks: Ranks
    offset: int
    others: tuple[str, ...]

    @property
    def is_ordered_here(self) -> bool:
        """Whether the adapter must order the hits, or choose the hit of each group, because Meilisearch cannot."""
        return (not self.ranks.are_neutral and self.offset < WINDOW) or bool(
            self.compiled.distinct and self.compiled.has_lists
        )


@dataclass(frozen=True, slots=True)
class Order:
    """The ordered hits.

    Attributes:
        ids: Ids as sent, in order, as far as they have been read.
        total: Number of all hits or groups.
    """

    ids: Sequence[str]
    total: int


@dataclass(frozen=True, slots=True)
class HitPage:
    """The hits of a page that are not pinned; as many as the whole page has, although pinned hits need some positions.

    Attributes:
        hits: Hits from Meilisearch, in order.
        total: Number of all hits or groups.
        facet_result: Meilisearch's result with the facets.
    """

    hits: Sequence[Mapping[str, Any]]
    total: int
    facet_result: Mapping[str, Any]


def columns(ranks: Ranks) -> list[str]:
    """Return the fields of hits that their order depends on."""
    return [*ranks.fields, "title"]


def in_order(hits: Sequence[Mapping[str, Any]], ranks: Ranks, compiled: CompiledQuery) -> list[Mapping[str, Any]]:
    """Return the hits with the first :data:`~backends.servers.ranks.WINDOW` of them sorted by score and rank."""
    if ranks.are_neutral:
        return list(hits)
    words = [word for part in compiled.typed if not part.excluded for word in part.words]

    def score(hit: Mapping[str, Any]) -> float:
        values = {name: hit[attribute(name)] for name in ranks.fields if attribute(name) in hit}
        is_title = split_words(spell_signs(str(hit.get("title", "")))) == words
        return float(hit["_rankingScore"]) * ranks.factor(values) * (EXACT_TITLE if is_title else 1.0)

    return [*sorted(hits[:WINDOW], key=score, reverse=True), *hits[WINDOW:]]


MAX_VERSIONS = 1000
"""Maximum number of hits among which the preferred ones of a page are searched for."""

MAX_READ = 10_000
"""Maximum number of hits that the adapter reads to group them itself."""

EngineHit = Mapping[str, Any]
"""A hit from Meilisearch."""


def first_of_each(hits: Iterable[EngineHit], field: str) -> list[EngineHit]:
    """Return the first hit of each value of a field, and every hit without a single value."""
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
    """Return the hits with these IDs, in the order of ``ids``; IDs without a hit are skipped."""
    by_id = {hit["id"]: hit for hit in hits}
    return [by_id[id] for id in ids if id in by_id]


class DistinctHits:
    """Chooses the hits of a distinct search."""

    def __init__(self, query: SearchQuery, compiled: CompiledQuery):
        self.query = query
        self.compiled = compiled

    def first_of(self, pins: Sequence[EngineHit]) -> tuple[list[EngineHit], list[str]]:
        """Return the pinned hits to show, and filters that exclude other hits with the same values."""
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
        """Replace each hit with the preferred hit that has the same value in the distinct field.

        Args:
            ask: Runs a query and returns its hits.
        """
        preferred = preference(self.query)
        values = {value: None for hit in hits if (value := self._value(hit)) is not None}
        if preferred is None or not values:
            return hits
        field = self.compiled.distinct
        selection: Filter = OneOf(field, tuple(values))
        if preferred.value != LATEST and preferred.field != "date":
            selection = And((selection, Comparison(preferred.field, "=", preferred.value)))
        names = (field, preferred.field)
        rivals = ask(self.compiled.values_query(names, hits=MAX_VERSIONS, extra_filters=[self._filter(selection)]))
        read = [[rival.get(attribute(name)) for name in names] for rival in rivals]
        chosen = choose_preferred(
            preferred,
            [
                (value, texts_of(of_version), rival["id"])
                for (of_value, of_version), rival in zip(read, rivals, strict=True)
                if (value := distinct_value(of_value)) in values and value is not None
            ],
        )
        ids = set(chosen.values()) - {hit["id"] for hit in hits}
        if not ids:
            return hits
        fetched = ask(self.compiled.by_ids(sorted(ids)))
        by_id = {hit["id"]: hit for hit in (*hits, *fetched)}
        pairs = [(by_id[chosen.get(self._value(hit) or "", hit["id"])], hit["id"]) for hit in hits]
        return [hit if hit["id"] == best else {**hit, PREFERRED_OVER: best} for hit, best in pairs]

    def _value(self, hit: EngineHit) -> str | None:
        return distinct_value(orjson.loads(hit["_doc"]).get(self.compiled.distinct))

    def _filter(self, node: Filter) -> str:
        return compile_filter(node, self.query, frozenset(self.query.kinds))
