"""Ranks and recency of a site, applied as factors to the scores of the best hits, and of hits that may join them."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
import tantivy

from backends.distinct import LATEST, distinct_field, highest_versions, preference
from backends.embedded.index.documents import MAX_FOLDERS, sort_text
from backends.embedded.index.schema import (
    DATE,
    FILTER_TERMS,
    SOURCE,
    UPDATED_AT,
    exists_term,
    facet_path,
    folder_term,
    number_column,
    sort_column,
)
from backends.embedded.index.snapshots import Snapshot, match_count
from backends.embedded.query.ranking import Ranking
from backends.field_rules import rank_field, usable_boosts, usable_recency
from backends.filters import OneOf
from backends.globs import literals_of
from backends.query import RECENCY_BONUS, Boost, FieldKind, SearchQuery, bounded_rank, rank_factor
from backends.values import parse_instant

Must, Should = tantivy.Occur.Must, tantivy.Occur.Should
_Query = tantivy.Query

WINDOW = 300
"""Number of hits that are reordered by rank."""

_RANK_WEIGHT = 0.5
"""Addition to a score per rank while hits are selected, as a share of the query's weight.

Scores are about three times that weight, and a rank is worth a quarter of a score.
"""

_DOCUMENT_RANK_WEIGHT = 2 * _RANK_WEIGHT
"""Addition for a document's own positive rank, regardless of its value, while hits are selected."""

_SECOND_RUN_FACTOR = 1.25
"""Factor on the addition per rank in the second run, if there are more hits than :data:`WINDOW`.

With such a small difference, both runs select the same hits. With fewer hits, the first run returns all of them, and
the second run needs no boosts.
"""

_SECOND_WINDOW = 2 * WINDOW
"""Number of hits that the second run returns: enough to include every hit of the first run."""

MAX_DATES_READ = 100
"""Maximum number of documents read for a date that the index does not store as a number."""

_NOT_IN_FOLDERS = re.compile(r"[*?#]")
_SIGNS = re.compile(r"[\\.+*?()|\[\]{}^$]")
_MAX_VERSIONS = 1000
_DAY = 86_400_000_000
_Hit = tuple[float, tantivy.DocAddress]


def address_key(address: tantivy.DocAddress) -> tuple[int, int]:
    """Return a document address as a dictionary key."""
    return address.segment_ord, address.doc


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors of a hit's score apart from its words.

    Attributes:
        rank: Total of all applicable ranks, clamped.
    """

    rank: float = 0.0
    recency: float = 1.0

    @property
    def product(self) -> float:
        """Total factor of the score."""
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
    """The ranks and recency of one search of the embedded engine.

    Tantivy can add to a score, but not multiply it. So the query runs twice with the boosts added to it, and each rank
    is worth a different amount in the second run, which only finds documents with a boost if there are many hits. The
    difference between a document's two scores reveals its total rank, however many boosts there are.

    Attributes:
        are_neutral: Whether the site sets neither ranks nor recency.
    """

    def __init__(self, snapshot: Snapshot, query: SearchQuery, ranking: Ranking):
        self._snapshot = snapshot
        self._recency = usable_recency(query)
        self._recency_is_number = self._recency is not None and (
            FieldKind.NUMBER in query.kinds.get(self._recency.field, ())
        )
        self._bonus, self._half_life = ranking.recency_boost, ranking.half_life_days
        if self._recency is not None:
            self._bonus, self._half_life = RECENCY_BONUS, float(self._recency.half_life_days)
        self._boosts = self._compiled((*usable_boosts(query), *_preferred(snapshot, query)))
        column_number = snapshot.dynamic_columns.get(rank_field(query))
        self._rank_column = None if column_number is None else number_column(column_number)
        self.are_neutral = self._boosts is None and self._rank_column is None and self._recency is None

    def best(self, query: tantivy.Query, weight: float) -> tantivy.SearchResult:
        """Select up to :data:`WINDOW` candidates for the best hits by words and ranks, and count all hits.

        Args:
            weight: Sum of the inverse document frequencies of the query's words, to which its scores are proportional.
        """
        clauses = [(Must, query), *self._document_rank_clauses(weight)]
        if self._boosts is not None:
            clauses.append((Should, _Query.boost_query(self._boosts, weight * _RANK_WEIGHT)))
        return self._snapshot.searcher.search(_Query.boolean_query(clauses), limit=WINDOW)

    def _document_rank_clauses(self, weight: float) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        """Return the clause that lifts documents with a positive rank of their own, if the site has such ranks."""
        if self._rank_column is None:
            return []
        return [
            (Should, _Query.const_score_query(self._positive_ranks(self._rank_column), weight * _DOCUMENT_RANK_WEIGHT))
        ]

    def _boost_ranks(self, query: tantivy.Query, weight: float, best: tantivy.SearchResult) -> list[float]:
        """Return the total rank of the boosts of each hit of :meth:`best`, from the difference of its two scores."""
        if self._boosts is None:
            return [0.0] * len(best.hits)
        step = weight * _RANK_WEIGHT
        factor = 0.0 if match_count(best) <= WINDOW else _SECOND_RUN_FACTOR
        clauses = [(Must, query), *self._document_rank_clauses(weight)]
        if factor:
            clauses.append((Must, _Query.boost_query(self._boosts, step * factor)))
        again = self._snapshot.searcher.search(_Query.boolean_query(clauses), limit=_SECOND_WINDOW, count=False).hits
        other = {(address.segment_ord, address.doc): score for score, address in again}
        differences = [other.get((address.segment_ord, address.doc), score) - score for score, address in best.hits]
        # Ranks are whole numbers, so rounding removes the error of 32-bit scores.
        return [(difference / (step * (factor - 1)) + 0.5) // 1 for difference in differences]

    def order(self, query: tantivy.Query, weight: float, best: tantivy.SearchResult | None = None) -> RankedHits:
        """Return the best hits of a query, with their scores multiplied by :meth:`factors`.

        Args:
            weight: As for :meth:`best`.
            best: Result of :meth:`best`, if the caller already has it.
        """
        best = self.best(query, weight) if best is None else best
        hits = best.hits
        ranks = self._boost_ranks(query, weight, best)
        words = [score - weight * _RANK_WEIGHT * rank for (score, _), rank in zip(hits, ranks, strict=True)]
        addresses = [address for _, address in hits]
        if not addresses:
            return RankedHits([], match_count(best))
        values = self._snapshot.searcher.fast_field_values
        if self._rank_column is not None:
            document_ranks = values(self._rank_column, addresses)
            # The addition only lifted hits into the window; it is not part of the score of words.
            lifted = {
                value: weight * _DOCUMENT_RANK_WEIGHT if (value or 0.0) > 0 else 0.0 for value in set(document_ranks)
            }
            words = [score - lifted[value] for score, value in zip(words, document_ranks, strict=True)]
            ranks = _add_document_ranks(ranks, document_ranks)
        factor = {rank: rank_factor(rank) for rank in set(ranks)}
        recencies, changes = self._recencies(addresses), values(UPDATED_AT, addresses)
        scores = [score * factor[rank] * recent for score, rank, recent in zip(words, ranks, recencies, strict=True)]
        ordered = sorted(
            zip([-score for score in scores], [change or 0 for change in changes], range(len(scores)), strict=True)
        )
        return RankedHits([(-score, addresses[index]) for score, _, index in ordered], match_count(best))

    def factors(self, address: tantivy.DocAddress) -> Factors:
        """Return the factors of one hit."""
        searcher = self._snapshot.searcher
        ranks = [0.0 if self._boosts is None else score_of(self._boosts, searcher, address) or 0.0]
        if self._rank_column is not None:
            ranks = _add_document_ranks(ranks, searcher.fast_field_values(self._rank_column, [address]))
        (recent,) = self._recencies([address])
        return Factors(bounded_rank(ranks[0]), recent)

    def _compiled(self, boosts: tuple[Boost, ...]) -> tantivy.Query | None:
        """Return a query that scores each document with the sum of the boosts it matches. Cached with the snapshot."""
        if not boosts:
            return None
        key = ("boosts", boosts)
        query: tantivy.Query | None = self._snapshot.cached(key)
        if query is None:
            members = [_Query.const_score_query(self._members(boost), float(boost.rank)) for boost in boosts]
            query = _Query.boolean_query([(Should, member) for member in members])
            self._snapshot.cache(key, query)
        return query

    def _positive_ranks(self, column: str) -> tantivy.Query:
        schema = self._snapshot.schema
        return _Query.range_query(schema, column, tantivy.FieldType.Float, 0.0, None, False, True)

    def _recencies(self, addresses: list[tantivy.DocAddress]) -> list[float]:
        now, bonus, half_life = time.time() * 1_000_000, self._bonus, self._half_life
        instants = self._instants(addresses)
        ages = [None if instant is None else (now - instant) / _DAY for instant in instants]
        return [1.0 if age is None else 1 + bonus * 0.5 ** (age / half_life if age > 0 else 0.0) for age in ages]

    def _instants(self, addresses: list[tantivy.DocAddress]) -> Sequence[float | None]:
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
        # Dates as text are not indexed as numbers, so their documents must be read.
        read = [self._date_in(address, name) for address in addresses[:MAX_DATES_READ]]
        return [*read, *[None] * (len(addresses) - len(read))]

    def _date_in(self, address: tantivy.DocAddress, name: str) -> float | None:
        document = orjson.loads(bytes(self._snapshot.searcher.doc(address).get_first(SOURCE) or b"{}"))
        value = document.get(name)
        return parse_instant(value) if isinstance(value, str) else None

    def _members(self, boost: Boost) -> tantivy.Query:
        if boost.filter is not None:
            return self._snapshot.filters.compile(boost.filter)
        key = ("path", boost.path)
        query: tantivy.Query | None = self._snapshot.cached(key)
        if query is None:  # Compiling a pattern is slow, and the same pattern recurs in other combinations of boosts.
            query = self._on_path(boost.path)
            self._snapshot.cache(key, query)
        return query

    def _on_path(self, pattern: str) -> tantivy.Query:
        schema, frequency = self._snapshot.schema, self._snapshot.frequency
        folder = _folder_of(pattern)
        # A pattern is compared with all URLs; a folder is one term, which indexes of earlier versions lack.
        if folder and frequency(FILTER_TERMS, folder_term("")) == frequency(FILTER_TERMS, exists_term("url")):
            return _Query.term_query(schema, FILTER_TERMS, folder_term(folder))
        try:
            return _Query.regex_query(schema, sort_column("url"), _expression(pattern))
        except ValueError:
            # The automaton is too large. Such a pattern cannot be saved, but may have been saved before, and a prefix
            # in Google's siteSearch may be as long. It moves nothing; the search must not fail.
            return _Query.empty_query()


def _add_document_ranks(ranks: Sequence[float], document_ranks: Sequence[float | None]) -> list[float]:
    bounded = {value: bounded_rank(value or 0.0) for value in set(document_ranks)}
    return [rank + bounded[value] for rank, value in zip(ranks, document_ranks, strict=True)]


def score_of(query: tantivy.Query, searcher: tantivy.Searcher, address: tantivy.DocAddress) -> float | None:
    """Return the score that a query gives a document; ``None`` if it does not match."""
    try:
        # tantivy-py has no other call that scores a single document.
        explanation = query.explain(searcher, address)
    except ValueError:
        return None
    value: float = orjson.loads(explanation.to_json())["value"]
    return value


def _folder_of(pattern: str) -> str | None:
    """``"/docs/*"`` -> ``"/docs/"``; ``None`` if the pattern is not a folder."""
    folder = sort_text(pattern.rstrip("*"))[1:]
    is_folder = pattern.endswith("*") and folder.startswith("/") and folder.endswith("/")
    return folder if is_folder and not _NOT_IN_FOLDERS.search(folder) and folder.count("/") <= MAX_FOLDERS else None


def _expression(path: str) -> str:
    """``"/docs/*"`` -> ``"1(https?://[^/?#]*)?/docs/.*"``: a regular expression for the sort keys of matching URLs."""
    parts = [_SIGNS.sub(r"\\\g<0>", sort_text(part)[1:]) for part in literals_of(path)]
    # A URL's sort key begins with 1. Patterns match the path and query, with or without scheme and host before them.
    return "1(https?://[^/?#]*)?" + ".*".join(parts) + ("" if path.endswith("*") else "(#.*)?")


def _preferred(snapshot: Snapshot, query: SearchQuery) -> list[Boost]:
    """Return the boost for the preferred hits; empty if hits are not grouped.

    The latest version is the highest one in the index, not in each group.
    """
    preferred = preference(query)
    if preferred is None or not distinct_field(query):
        return []
    values = _highest(snapshot, preferred.field) if preferred.value == LATEST else (preferred.value,)
    return [Boost(1, OneOf(preferred.field, values))] if values else []


def _highest(snapshot: Snapshot, field: str) -> tuple[str, ...]:
    """Versions ``1.9``, ``2.0``, and ``v2`` in a field -> ``("2.0", "v2")``. Cached with the snapshot."""
    key = ("highest", field)
    versions: tuple[str, ...] | None = snapshot.cached(key)
    if versions is None:
        aggregation = {"terms": {"field": facet_path(field), "size": _MAX_VERSIONS, "segment_size": _MAX_VERSIONS}}
        buckets = snapshot.searcher.aggregate(_Query.all_query(), {"v": aggregation})["v"]["buckets"]
        versions = highest_versions(str(bucket["key"]) for bucket in buckets)
        snapshot.cache(key, versions)
    return versions
