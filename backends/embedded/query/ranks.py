"""Ranks and recency that a site wishes for: factors of scores, for the best hits and those that they may lift."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson
import tantivy

from backends.base import Boost, FieldKind, SearchQuery, bounded_rank, rank_factor
from backends.distinct import LATEST, distinct_field, preference
from backends.embedded.index.documents import sort_text
from backends.embedded.index.schema import (
    DATE,
    SOURCE,
    UPDATED_AT,
    facet_path,
    number_column,
    sort_column,
)
from backends.embedded.index.snapshots import Snapshot, match_count
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.scoring import recency
from backends.field_rules import rank_field, usable_boosts, usable_recency
from backends.filters import OneOf
from backends.values import parse_instant
from backends.versions import highest_versions

Must = tantivy.Occur.Must
_Query = tantivy.Query

WINDOW = 1000
"""Hits that are ordered by rank: so many of all, and of those of each boost that lifts."""

MOST_READ = 100
"""Documents that are read for a date that the index does not have as a number."""

_SIGNS = re.compile(r"[\\.+*?()|\[\]{}^$]")
_MOST_VERSIONS = 1000
_DAY = 86_400_000_000
_Hit = tuple[float, tantivy.DocAddress]


def place_of(address: tantivy.DocAddress) -> tuple[int, int]:
    """An address as a key."""
    return address.segment_ord, address.doc


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors that the score of a hit is multiplied with, beside its words.

    Attributes:
        rank: All ranks that hold, added and bounded.
    """

    rank: float = 0.0
    recency: float = 1.0

    @property
    def product(self) -> float:
        """The factor of the score."""
        return rank_factor(self.rank) * self.recency


@dataclass(frozen=True, slots=True)
class RankedHits:
    """The best hits by score and factors.

    Attributes:
        total: Number of all hits.
    """

    hits: Sequence[_Hit]
    total: int


class Ranks:
    """The ranks and recency of one search.

    Attributes:
        are_neutral: Whether the site wishes for none.
    """

    def __init__(self, snapshot: Snapshot, query: SearchQuery, ranking: Ranking):
        self._snapshot = snapshot
        self._ranking = ranking
        self._recency = usable_recency(query)
        self._recency_is_number = self._recency is not None and (
            FieldKind.NUMBER in query.kinds.get(self._recency.field, ())
        )
        boosts = [*usable_boosts(query), *_preferred(snapshot, query)]
        self._boosts = [(boost.rank, self._members(boost)) for boost in boosts if boost.rank]
        own = snapshot.dynamic_columns.get(rank_field(query))
        self._own = None if own is None else number_column(own)
        self.are_neutral = not self._boosts and self._own is None and self._recency is None

    def order(self, query: tantivy.Query) -> RankedHits:
        """The best hits of a query, with their scores times :meth:`factors`."""
        search = self._snapshot.searcher.search
        first = search(query, limit=WINDOW)
        hits = {place_of(address): (score, address) for score, address in first.hits}
        if self._own is not None:
            lifted = _Query.range_query(
                self._snapshot.schema, self._own, tantivy.FieldType.Float, 0.0, None, False, True
            )
            hits |= _by_place(search(_both(query, lifted), limit=WINDOW, count=False).hits)
        ranks: dict[tuple[int, int], float] = {}
        for rank, members in self._boosts:
            found = _by_place(search(_both(query, members), limit=WINDOW, count=False).hits)
            for place in found:
                ranks[place] = ranks.get(place, 0.0) + rank
            if rank > 0:
                hits |= found
        addresses = [address for _, address in hits.values()]
        changes = self._snapshot.searcher.fast_field_values(UPDATED_AT, addresses)
        products = self._products(addresses, [ranks.get(place, 0.0) for place in hits])
        scored = [
            (score * product, address, changed or 0)
            for (score, address), product, changed in zip(hits.values(), products, changes, strict=True)
        ]
        scored.sort(key=lambda each: (-each[0], each[2]))
        return RankedHits([(score, address) for score, address, _ in scored], match_count(first))

    def factors(self, address: tantivy.DocAddress) -> Factors:
        """The factors of one hit."""
        searcher = self._snapshot.searcher
        ranks = [float(sum(rank for rank, members in self._boosts if has(members, searcher, address)))]
        (rank,), (recency_factor,) = self._with_own([address], ranks), self._recencies([address])
        return Factors(bounded_rank(rank), recency_factor)

    def _products(self, addresses: list[tantivy.DocAddress], ranks: list[float]) -> list[float]:
        """Factors that the scores of hits are multiplied with, given the ranks that boosts give them."""
        ranks = self._with_own(addresses, ranks)
        by_rank = {rank: rank_factor(rank) for rank in set(ranks)}
        return [by_rank[rank] * recent for rank, recent in zip(ranks, self._recencies(addresses), strict=True)]

    def _with_own(self, addresses: list[tantivy.DocAddress], ranks: list[float]) -> list[float]:
        """The ranks of hits with those of the documents themselves."""
        if self._own is None or not addresses:
            return ranks
        own = self._snapshot.searcher.fast_field_values(self._own, addresses)
        return [rank if value is None else rank + bounded_rank(value) for rank, value in zip(ranks, own, strict=True)]

    def _recencies(self, addresses: list[tantivy.DocAddress]) -> list[float]:
        now = time.time() * 1_000_000
        return [
            1.0 if instant is None else self._by_age((now - instant) / _DAY) for instant in self._instants(addresses)
        ]

    def _by_age(self, days: float) -> float:
        return recency(days, self._ranking) if self._recency is None else self._recency.factor(days)

    def _instants(self, addresses: list[tantivy.DocAddress]) -> Sequence[float | None]:
        """The dates of some hits, in microseconds."""
        if not addresses:
            return []
        values = self._snapshot.searcher.fast_field_values
        name = DATE if self._recency is None else self._recency.field
        if name == DATE:
            return values(DATE, addresses)
        column = self._snapshot.dynamic_columns.get(name)
        if column is None:
            return [None] * len(addresses)
        if self._recency_is_number:
            seconds = values(number_column(column), addresses)
            return [None if second is None else second * 1_000_000 for second in seconds]
        read = [self._date_in(address, name) for address in addresses[:MOST_READ]]
        return [*read, *[None] * (len(addresses) - len(read))]

    def _date_in(self, address: tantivy.DocAddress, name: str) -> float | None:
        document = orjson.loads(bytes(self._snapshot.searcher.doc(address).get_first(SOURCE) or b"{}"))
        value = document.get(name)
        return parse_instant(value) if isinstance(value, str) else None

    def _members(self, boost: Boost) -> tantivy.Query:
        filters = self._snapshot.filters
        query = self._of_path(boost.path) if boost.filter is None else filters.compile(boost.filter)
        return _Query.const_score_query(query, 0.0)

    def _of_path(self, path: str) -> tantivy.Query:
        """The documents of a path; remembered for the life of the snapshot, as patterns take long to read."""
        key = ("path", path)
        query: tantivy.Query | None = self._snapshot.cached(key)
        if query is None:
            query = _Query.regex_query(self._snapshot.schema, sort_column("url"), _expression(path))
            self._snapshot.cache(key, query)
        return query


def has(query: tantivy.Query, searcher: tantivy.Searcher, address: tantivy.DocAddress) -> bool:
    """Tell whether a query matches a document."""
    try:
        query.explain(searcher, address)
    except ValueError:
        return False
    return True


def _expression(path: str) -> str:
    """The regular expression for the sort keys of addresses whose path and query fit a pattern."""
    parts = [_SIGNS.sub(r"\\\g<0>", sort_text(part)[1:]) for part in re.split(r"\*+", path)]
    return "1(https?://[^/?#]*)?" + ".*".join(parts) + ("" if path.endswith("*") else "(#.*)?")


def _preferred(snapshot: Snapshot, query: SearchQuery) -> list[Boost]:
    """The boost of what the settings prefer, where one hit of each value is shown; of versions, the highest of all."""
    preferred = preference(query)
    if preferred is None or not distinct_field(query):
        return []
    values = _highest(snapshot, preferred.field) if preferred.value == LATEST else (preferred.value,)
    return [Boost(1, OneOf(preferred.field, values))] if values else []


def _highest(snapshot: Snapshot, field: str) -> tuple[str, ...]:
    """The highest version that a field of any document holds, as documents write it."""
    key = ("highest", field)
    known: tuple[str, ...] | None = snapshot.cached(key)
    if known is None:
        wish = {"terms": {"field": facet_path(field), "size": _MOST_VERSIONS, "segment_size": _MOST_VERSIONS}}
        buckets = snapshot.searcher.aggregate(_Query.all_query(), {"v": wish})["v"]["buckets"]
        known = highest_versions(str(bucket["key"]) for bucket in buckets)
        snapshot.cache(key, known)
    return known


def _by_place(hits: Iterable[_Hit]) -> dict[tuple[int, int], _Hit]:
    return {place_of(address): (score, address) for score, address in hits}


def _both(query: tantivy.Query, condition: tantivy.Query) -> tantivy.Query:
    return _Query.boolean_query([(Must, query), (Must, _Query.const_score_query(condition, 0.0))])
