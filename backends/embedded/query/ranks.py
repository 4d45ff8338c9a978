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
    """What the score of a hit is multiplied with, beside its words.

    Attributes:
        rank: All ranks that hold, added and bounded.
    """

    rank: float = 0.0
    recency: float = 1.0

    @property
    def product(self) -> float:
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
        factors = self._factors(addresses, [ranks.get(place, 0.0) for place in hits])
        scored = [
            (score * factor.product, address, changed or 0)
            for (score, address), factor, changed in zip(hits.values(), factors, changes, strict=True)
        ]
        scored.sort(key=lambda each: (-each[0], each[2]))
        return RankedHits([(score, address) for score, address, _ in scored], match_count(first))

    def factors(self, address: tantivy.DocAddress) -> Factors:
        """The factors of one hit."""
        searcher = self._snapshot.searcher
        ranks = [rank for rank, members in self._boosts if has(members, searcher, address)]
        return self._factors([address], [float(sum(ranks))])[0]

    def _factors(self, addresses: list[tantivy.DocAddress], ranks: list[float]) -> list[Factors]:
        if not addresses:
            return []
        if self._own is not None:
            own = self._snapshot.searcher.fast_field_values(self._own, addresses)
            ranks = [rank + bounded_rank(value or 0.0) for rank, value in zip(ranks, own, strict=True)]
        now = time.time() * 1_000_000
        return [
            Factors(bounded_rank(rank), 1.0 if instant is None else self._by_age((now - instant) / _DAY))
            for rank, instant in zip(ranks, self._instants(addresses, ranks), strict=True)
        ]

    def _by_age(self, days: float) -> float:
        return recency(days, self._ranking) if self._recency is None else self._recency.factor(days)

    def _instants(self, addresses: list[tantivy.DocAddress], ranks: Sequence[float]) -> Sequence[float | None]:
        """The dates of some hits, in microseconds."""
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
        if boost.filter is not None:
            query = self._snapshot.filters.compile(boost.filter)
        else:
            query = _Query.regex_query(self._snapshot.schema, sort_column("url"), _expression(boost.path))
        return _Query.const_score_query(query, 0.0)


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
