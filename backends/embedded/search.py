"""One search of one snapshot: parse, resolve, relax until enough is found, sort, highlight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import tantivy

from backends.base import Level, Matched, Score, SearchResult, with_scores
from backends.distinct import LATEST, choose_preferred, distinct_field, distinct_value, preference, texts_of
from backends.embedded.index.schema import DATE, ID
from backends.embedded.index.snapshots import Snapshot, compile_condition, match_count
from backends.embedded.query import reranking
from backends.embedded.query.correction import corrected_text
from backends.embedded.query.final_query import FinalQuery, QueryChoice, restricted
from backends.embedded.query.ranking import RANKING, Ranking
from backends.embedded.query.ranks import Factors, RankedHits, Ranks, address_key
from backends.embedded.query.relaxations import LAST_RESORTS
from backends.embedded.query.scoring import every_word_boost
from backends.embedded.results.distinct import FIRST_READ, GroupHit, count_groups, first_of_each_group, read_document
from backends.embedded.results.facets import count_facets
from backends.embedded.results.highlighting import TermMatches, turn
from backends.embedded.results.hits import make_hits
from backends.embedded.results.sorting import Sorter, by_change, by_score
from backends.field_rules import check_sort, facet_fields
from backends.filters import And, Comparison, Filter, OneOf
from backends.query import MATCH_ALL, Preferred, SearchQuery, SortKey

Must, MustNot, Should = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should
_Query = tantivy.Query

MAX_VERSIONS = 1000
"""Maximum number of hits among which the preferred ones of a page are searched for."""

_NEWEST_FIRST = (SortKey(DATE, descending=True),)


@dataclass(frozen=True, slots=True)
class _Page:
    """The requested documents.

    Attributes:
        total: Number of all hits, or of groups in a distinct search.
        everything: Query that matches all hits.
        pinned: Number of pinned hits.
    """

    addresses: list[tantivy.DocAddress]
    total: int
    everything: tantivy.Query
    pinned: int = 0


def run_search(snapshot: Snapshot, query: SearchQuery, ranking: Ranking = RANKING) -> SearchResult:
    """Run one search of the embedded engine and return its result.

    Raises:
        BackendRejected: The engine cannot run the filters, sort, facets, or ``distinct``.
        ResponseTooLarge: The hits exceed the query's ``max_bytes``.
    """
    condition = compile_condition(snapshot, query)
    check_sort(query.sort, query.kinds)
    fields = facet_fields(query.facets, query.kinds)
    distinct = distinct_field(query)
    # The hits of a value may be far apart, so the first ones are read regardless of the requested page.
    read = replace(query, offset=0, limit=min(query.limit, 1) * FIRST_READ) if distinct else query
    search = _Search(snapshot, read, ranking, condition)
    final = search.choice.choose()
    if final is None:
        return SearchResult((), 0, {name: {} for name in fields}, {}, matched=Matched.SOME)
    page = search.page(final)
    groups = search.distinct_page(final, page, distinct, query) if distinct else page
    counted = count_facets(snapshot, page.everything, fields, query.kinds, query.facet_values) if fields else ({}, {})
    matches = TermMatches(final.highlights()) if query.shows_matches else None
    matched, corrected = search.matched(final, page)
    explain = partial(search.explain, final) if query.explain else None
    with turn():
        hits = make_hits(snapshot, groups.addresses, query, matches, explain)
    if query.scored:
        hits = with_scores(hits, search.scores(final, groups))
    return SearchResult(hits, groups.total, *counted, final.relaxation, matched, corrected)


class _Search:
    """One search of one snapshot."""

    def __init__(self, snapshot: Snapshot, query: SearchQuery, ranking: Ranking, condition: tantivy.Query | None):
        self.snapshot = snapshot
        self.query = query
        self.ranking = ranking
        self.condition = condition
        self.by_relevance = query.text != MATCH_ALL and not query.sort and query.limit > 0
        self.ranks = Ranks(snapshot, query, ranking) if self.by_relevance else None
        self.choice = QueryChoice(snapshot, query, ranking, condition, self.ranks)
        self._ordered: list[tuple[FinalQuery, RankedHits]] = []
        self._with_factors: set[tuple[int, int]] = set()
        self._scores: dict[tuple[int, int], float] = {}
        self._first: set[tuple[int, int]] = set()
        self._replaced: dict[tuple[int, int], tantivy.DocAddress] = {}

    def matched(self, final: FinalQuery, page: _Page) -> tuple[Matched, str | None]:
        """Return the match level of the search, and the corrected query if there is one."""
        if final.resolved is None:
            return Matched.ALL, None
        if not (page.total > page.pinned if final.has_every_word is None else final.has_every_word):
            return Matched.ALL if page.pinned else Matched.SOME, None
        corrected = final.retyped or corrected_text(final.resolved, self.condition)
        return (Matched.ALL, None) if corrected is None else (Matched.CORRECTED, corrected)

    def explain(self, final: FinalQuery, address: tantivy.DocAddress) -> dict[str, Any]:
        """Explain the position of a hit on the page, as JSON."""
        key = address_key(address)
        is_pinned = key in {address_key(pinned) for _, pinned in self._pinned}
        is_scored = self.by_relevance and not is_pinned
        factors = Factors()
        explanation_start: dict[str, Any] = {"pinned": is_pinned}
        if self.ranks is not None and key in self._with_factors:
            factors = self.ranks.factors(address)
        elif self.ranks is not None and is_scored and not self.ranks.are_neutral:
            explanation_start["beyond_ranks"] = True
        if key in self._replaced:
            explanation_start["preferred_over"] = str(self.snapshot.searcher.doc(self._replaced[key]).get_first(ID))
        for index, explained in enumerate(final.explained):
            explanation = explained.explain(address, factors, is_scored=is_scored)
            if explanation is not None:
                if final.first is not None and is_scored:
                    explanation_start["has_phrase"] = index < len(final.first.explained)
                return explanation_start | explanation
        return {**explanation_start, "score": None, "relaxation": "", "words": [], "signals": [], "rank": factors.rank}

    def scores(self, final: FinalQuery, page: _Page) -> list[Score]:
        """Return the scores of the hits of a page."""
        if not self.by_relevance or final.resolved is None:
            return [Score(Level.WORDS, 0.0)] * len(page.addresses)
        # Where every hit has every word, the scores do not contain the addition for that.
        bonus = every_word_boost(final.resolved) if final.relaxation == "all_terms" else 0.0
        usual = Level.PARTS if final.relaxation in LAST_RESORTS else Level.WORDS
        levels = dict.fromkeys(self._first, Level.FIRST) | {address_key(pin): Level.PINNED for _, pin in self._pinned}
        return [
            Score(levels.get(key, usual), self._scores.get(key, 0.0) / self.choice.weight + bonus)
            for key in map(address_key, page.addresses)
        ]

    def page(self, final: FinalQuery) -> _Page:
        """Return the page that the query requests."""
        return self._page(final, self.query.offset, self.query.limit)

    def distinct_page(self, final: FinalQuery, first: _Page, field: str, requested: SearchQuery) -> _Page:
        """Return the page of hits with different values of a field.

        Args:
            first: The first hits, of any values.
            requested: The query with the requested page.
        """
        total = count_groups(self.snapshot, field, first.everything, first.total)
        if not requested.limit or requested.offset >= total:
            return replace(first, addresses=[], total=total)

        def list_hits(offset: int, limit: int) -> Sequence[tantivy.DocAddress]:
            return self._page(final, offset, limit).addresses if offset else first.addresses

        groups = first_of_each_group(self.snapshot, field, list_hits, requested.offset, requested.limit, total)
        preferred = preference(requested)
        addresses = [hit.address for hit in groups]
        if preferred is not None:
            addresses = self._prefer(preferred, field, groups, final, first)
        return replace(first, addresses=addresses, total=total)

    def _prefer(
        self, preferred: Preferred, field: str, groups: Sequence[GroupHit], final: FinalQuery, first: _Page
    ) -> list[tantivy.DocAddress]:
        """Replace each group's hit with its preferred one, except pinned hits. Remembers the replacements for
        explanations.
        """
        pinned = {address_key(address) for address in first.addresses[: first.pinned]}
        values = {hit.value: None for hit in groups if hit.value is not None and address_key(hit.address) not in pinned}
        selection: Filter = OneOf(field, tuple(values))
        if preferred.value != LATEST and preferred.field != DATE:
            selection = And((selection, Comparison(preferred.field, "=", preferred.value)))
        # The selection has no score of its own, so that it does not change the order.
        rivals = FinalQuery(
            restricted(final.query, _Query.const_score_query(self.snapshot.filters.compile(selection), 0.0))
        )
        addresses, _ = self._listed(rivals, 0, MAX_VERSIONS) if values else ([], 0)
        hits = []
        for address in addresses:
            document = read_document(self.snapshot, address)
            value = distinct_value(document.get(field))
            if value in values:
                hits.append((value, texts_of(document.get(preferred.field)), address))
        chosen = choose_preferred(preferred, hits)
        best = {hit.value: hit.address for hit in groups if hit.value in values}
        self._replaced = {
            address_key(address): best[value]
            for value, address in chosen.items()
            if address_key(address) != address_key(best[value])
        }
        return [chosen.get(hit.value, hit.address) if hit.value in values else hit.address for hit in groups]

    def _page(self, final: FinalQuery, offset: int, limit: int) -> _Page:
        pinned = self._pinned
        if not pinned:
            addresses, total = self._listed(final, offset, limit)
            return _Page(addresses, total, final.query)
        by_id = _Query.term_set_query(self.snapshot.schema, ID, [id for id, _ in pinned])
        everything = _Query.boolean_query([(Should, final.query), (Should, by_id)])
        others = final.without_matches_of(by_id)
        pinned_addresses = [address for _, address in pinned[offset : offset + limit]]
        rest, total = self._listed(others, max(0, offset - len(pinned)), limit - len(pinned_addresses))
        return _Page(pinned_addresses + rest, total + len(pinned), everything, len(pinned))

    def _listed(self, final: FinalQuery, offset: int, limit: int) -> tuple[list[tantivy.DocAddress], int]:
        total = self.snapshot.total
        if limit <= 0 or offset >= total:
            return [], self.snapshot.count(final.query)
        match_all = self.query.text == MATCH_ALL
        if self.by_relevance and final.first is not None:
            addresses, count = self._by_relevance(final.first, offset, limit)
            self._first.update(map(address_key, addresses))
            others = FinalQuery(final.query).without_matches_of(final.first.query)
            rest, total = self._listed(others, max(0, offset - count), limit - len(addresses))
            return addresses + rest, count + total
        if self.by_relevance:
            return self._by_relevance(final, offset, limit)
        keys = (*self.query.sort, *_NEWEST_FIRST) if match_all else self.query.sort
        count = self.snapshot.count(final.query)
        if offset >= count:
            return [], count
        last = partial(by_change if match_all else by_score, self.snapshot)
        return Sorter(self.snapshot, keys, last).page(final.query, offset, limit), count

    def _by_relevance(self, final: FinalQuery, offset: int, limit: int) -> tuple[list[tantivy.DocAddress], int]:
        """Return one page of hits by relevance, and their total; the first hits are reordered by recency or rank."""
        if self.ranks is not None and not self.ranks.are_neutral:
            return self._by_rank(self.ranks, final, offset, limit)
        # The relaxation has already run this query to count its matches.
        is_cached = final.ranked is not None and final.offset == offset
        result = final.ranked if is_cached else self.choice.ranked(final.query, offset, limit)
        assert result is not None
        hits = result.hits
        if offset < reranking.RERANKED:
            first = reranking.rerank(
                self.snapshot.searcher,
                reranking.order_ties_by_change(self.snapshot.searcher, hits[: reranking.RERANKED]),
                offset + limit,
                self.ranking,
            )
            self._record_factors(first)
            hits = (first + hits[reranking.RERANKED :])[offset : offset + limit]
        if self.query.scored:
            self._keep_scores(hits)
        return [address for _, address in hits[:limit]], match_count(result)

    def _by_rank(
        self, ranks: Ranks, final: FinalQuery, offset: int, limit: int
    ) -> tuple[list[tantivy.DocAddress], int]:
        """Return one page of hits by rank, then by score, and their total."""
        ordered = next((ranked for of, ranked in self._ordered if of is final), None)
        if ordered is None:
            ordered = ranks.order(final.query, self.choice.weight, final.ranked)
            self._ordered.append((final, ordered))
            self._record_factors(ordered.hits)
        if self.query.scored:
            self._keep_scores(ordered.hits)
        addresses = [address for _, address in ordered.hits[offset : offset + limit]]
        # Beyond the reordered hits, the page continues with the others in the engine's order.
        if len(addresses) == limit or len(ordered.hits) >= ordered.total:
            return addresses, ordered.total
        ordered_keys = {address_key(address) for _, address in ordered.hits}
        best = self.snapshot.searcher.search(final.query, limit=offset + limit, count=False).hits
        later = [hit for hit in best if address_key(hit[1]) not in ordered_keys]
        self._keep_scores(later)
        others = [address for _, address in later]
        return addresses + others[max(0, offset - len(ordered_keys)) :][: limit - len(addresses)], ordered.total

    def _record_factors(self, hits: Sequence[tuple[float, tantivy.DocAddress]]) -> None:
        """Remember for explanations that the scores of these hits were multiplied by factors."""
        if self.query.explain:
            self._with_factors.update(address_key(address) for _, address in hits)

    def _keep_scores(self, hits: Sequence[tuple[float, tantivy.DocAddress]]) -> None:
        self._scores.update((address_key(address), score) for score, address in hits)

    @cached_property
    def _pinned(self) -> list[tuple[str, tantivy.DocAddress]]:
        """Ids and addresses of the pinned documents that exist and pass the filter, in the order of the settings."""
        ids = self.query.pinned
        if not ids:
            return []
        # Each has its own score, so that one search shows which of them exist.
        terms = enumerate(_Query.term_query(self.snapshot.schema, ID, id) for id in ids)
        numbered = [(Should, _Query.const_score_query(query, float(len(ids) - index))) for index, query in terms]
        query = restricted(_Query.boolean_query(numbered), self.condition)
        hits = self.snapshot.searcher.search(query, limit=len(ids), count=False).hits
        return [(ids[len(ids) - round(score)], address) for score, address in hits]
