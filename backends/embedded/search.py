"""One search of one snapshot: parse, resolve, relax until enough is found, sort, highlight."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import takewhile
from typing import Any

import orjson
import tantivy

from backends.base import Hit, Matched, SearchResult, TakeHit, hand_over
from backends.distinct import LATEST, choose, distinct_field, distinct_value, preference, texts_of
from backends.embedded.index.schema import DATE, ID, PARTED_WORDS, SOURCE, STORED_SECTIONS, UPDATED_AT
from backends.embedded.index.snapshots import Snapshot, compile_condition, match_count
from backends.embedded.query.correction import corrected_text
from backends.embedded.query.explaining import Explained
from backends.embedded.query.parser import ParsedQuery, parse_query
from backends.embedded.query.ranking import RANKING, Ranking
from backends.embedded.query.ranks import Factors, RankedHits, Ranks, place_of
from backends.embedded.query.relaxations import RELAXATIONS, Clauses, Relaxation, highlight_terms, is_quoted_name
from backends.embedded.query.scoring import recency
from backends.embedded.query.terms import ResolvedQuery, resolve_query
from backends.embedded.results.distinct import FIRST_READ, GroupHit, count_groups, first_of_each_group, read_document
from backends.embedded.results.facets import count_facets
from backends.embedded.results.highlighting import HighlightTerms, TermMatches, turn
from backends.embedded.results.sorting import Sorter
from backends.field_rules import check_sort, facet_fields, searched_fields
from backends.filters import And, Comparison, Filter, OneOf
from backends.highlighting import Highlighter, find_passage, find_sections
from backends.query import MATCH_ALL, Preferred, SearchQuery, SortKey
from backends.sections import unpack

Must, MustNot, Should = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should
_Query = tantivy.Query

RERANKED = 100
"""Number of top hits that are reordered by signals that tantivy does not support."""

MAX_VERSIONS = 1000
"""Maximum number of hits among which the preferred ones of a page are searched for."""

_NEWEST_FIRST = (SortKey(DATE, descending=True),)
_MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class _FinalQuery:
    """The query that answers a search.

    Attributes:
        query: Matches all hits, with filters applied.
        relaxation: Name of the relaxation that built it; ``""`` for :data:`MATCH_ALL`.
        highlights: Returns the terms to highlight.
        offset, ranked: The hits from this offset on, best first, if they were requested.
        first: Query whose hits come before all others, by relevance, whatever their scores.
        resolved: The words of the query; ``None`` for :data:`MATCH_ALL`.
        has_every_word: Whether any document contains every word; ``None`` if every hit does.
        explained: Explanations; the first one whose query matches a hit explains it.
    """

    query: tantivy.Query
    relaxation: str = ""
    highlights: Callable[[], HighlightTerms] = HighlightTerms
    offset: int = 0
    ranked: tantivy.SearchResult | None = None
    first: _FinalQuery | None = None
    resolved: ResolvedQuery | None = None
    has_every_word: bool | None = None
    explained: tuple[Explained, ...] = ()

    def but_for(self, query: tantivy.Query) -> _FinalQuery:
        """Return a copy that excludes the matches of ``query``."""
        others = _Query.boolean_query([(Must, self.query), (MustNot, query)])
        return _FinalQuery(others, first=None if self.first is None else self.first.but_for(query))

    @property
    def match_count_or_none(self) -> int | None:
        """Number of matches, if requested."""
        return None if self.ranked is None else match_count(self.ranked)


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


def run_search(
    snapshot: Snapshot, query: SearchQuery, ranking: Ranking = RANKING, take: TakeHit | None = None
) -> SearchResult:
    """Run one search; for ``take`` see :meth:`backends.base.SearchBackend.search`.

    Raises:
        BackendRejected: The engine cannot run the filters, sort, or facets.
    """
    condition = compile_condition(snapshot, query)
    check_sort(query.sort, query.kinds)
    fields = facet_fields(query.facets, query.kinds)
    distinct = distinct_field(query)
    read = replace(query, offset=0, limit=min(query.limit, 1) * FIRST_READ) if distinct else query
    search = _Search(snapshot, read, ranking, condition)
    final = search.choose_query()
    if final is None:
        return SearchResult((), 0, {name: {} for name in fields}, {}, matched=Matched.SOME)
    page = search.page(final)
    groups = search.distinct_page(final, page, distinct, query) if distinct else page
    counted = count_facets(snapshot, page.everything, fields, query.kinds, query.facet_values) if fields else ({}, {})
    matches = TermMatches(final.highlights()) if query.shows_matches else None
    matched, corrected = search.matched(final, page)
    explain = partial(search.explain, final) if query.explain else None
    with turn():
        hits = hand_over(_hits(snapshot, groups.addresses, query, matches, explain), take)
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
        self._weight = 1.0
        self._ordered: list[tuple[_FinalQuery, RankedHits]] = []
        self._with_factors: set[tuple[int, int]] = set()
        self._replaced: dict[tuple[int, int], tantivy.DocAddress] = {}

    def choose_query(self) -> _FinalQuery | None:
        """Choose the first relaxation that finds enough hits; ``None`` if the query has nothing to search for."""
        if self.query.text == MATCH_ALL:
            return _FinalQuery(_restricted(_Query.all_query(), self.condition))
        parsed = parse_query(self.query.text)
        if not searched_fields(self.query) or parsed.is_empty:
            return None
        choose_query = self._relax(parsed)
        if (
            choose_query.match_count_or_none is None
            or choose_query.match_count_or_none >= self._enough
            or not is_quoted_name(parsed, self.ranking)
        ):
            return choose_query
        others = self._relax(parse_query(self.query.text, with_phrases=False))
        return others if choose_query.match_count_or_none == 0 else _one_after_the_other(choose_query, others)

    def matched(self, final: _FinalQuery, page: _Page) -> tuple[Matched, str | None]:
        """Return the matched words, and the corrected query if there is one."""
        if final.resolved is None:
            return Matched.ALL, None
        if not (page.total > page.pinned if final.has_every_word is None else final.has_every_word):
            return Matched.ALL if page.pinned else Matched.SOME, None
        corrected = corrected_text(final.resolved, self.condition)
        return (Matched.ALL, None) if corrected is None else (Matched.CORRECTED, corrected)

    def explain(self, final: _FinalQuery, address: tantivy.DocAddress) -> dict[str, Any]:
        """Explain the position of a hit on the page, as JSON."""
        place = place_of(address)
        is_pinned = place in {place_of(pinned) for _, pinned in self._pinned}
        is_scored = self.by_relevance and not is_pinned
        factors = Factors()
        explanation_start: dict[str, Any] = {"pinned": is_pinned}
        if self.ranks is not None and place in self._with_factors:
            factors = self.ranks.factors(address)
        elif self.ranks is not None and is_scored and not self.ranks.are_neutral:
            explanation_start["beyond_ranks"] = True
        if place in self._replaced:
            explanation_start["preferred_over"] = str(self.snapshot.searcher.doc(self._replaced[place]).get_first(ID))
        for at, explained in enumerate(final.explained):
            explanation = explained.explain(address, factors, is_scored=is_scored)
            if explanation is not None:
                if final.first is not None and is_scored:
                    explanation_start["has_phrase"] = at < len(final.first.explained)
                return explanation_start | explanation
        return {**explanation_start, "score": None, "relaxation": "", "words": [], "signals": [], "rank": factors.rank}

    @property
    def _enough(self) -> int:
        """Number of matches at which no further relaxation is tried.

        For a sorted query, one match is enough, because the best matches would not come first.
        """
        return 1 if self.query.sort else self.ranking.min_hits_before_relaxing

    def _relax(self, parsed: ParsedQuery) -> _FinalQuery:
        """Choose the first relaxation that finds enough hits, or else the last one."""
        query = self.query
        resolved = resolve_query(
            parsed, query.text, self.snapshot, query.settings, searched_fields(query), self.ranking
        )
        clauses = Clauses.of(resolved)
        self._weight = sum(term.idf for term in resolved.terms) or 1.0
        tried: list[Relaxation] = []
        final: _FinalQuery | None = None
        has_every_word: bool | None = None
        for relaxation in RELAXATIONS:
            # Not a break: a later relaxation may be for queries without any result, and have another limit.
            if final is not None and (final.match_count_or_none or 0) >= (
                1 if relaxation.only_if_none else self._enough
            ):
                continue
            built = relaxation.build(resolved, clauses)
            if built is None:
                continue
            tried.append(relaxation)
            final = self._run_relaxation(_restricted(built, self.condition), resolved, tuple(tried))
            if query.all_words:
                break
            if has_every_word is None:
                has_every_word = bool(final.match_count_or_none)
        assert final is not None, "all_terms always builds a query"
        return replace(final, has_every_word=has_every_word)

    def _run_relaxation(
        self, query: tantivy.Query, resolved: ResolvedQuery, tried: Sequence[Relaxation]
    ) -> _FinalQuery:
        offset, limit = (self.query.offset, self.query.limit) if self.by_relevance else (0, 1)
        ranked = None if self.query.all_words else self._ranked(query, offset, limit)
        highlights = partial(highlight_terms, resolved, tried)
        explained = (Explained(query, tried[-1].name, resolved, tried[-1].signals),)
        return _FinalQuery(query, tried[-1].name, highlights, offset, ranked, resolved=resolved, explained=explained)

    def _ranked(self, query: tantivy.Query, offset: int, limit: int) -> tantivy.SearchResult:
        """Return the hits from which a page is cut, best first: from the first one on if they are to be reordered.

        With ranks, the hits that may be the best by words and ranks.
        """
        if self.ranks is not None and not self.ranks.are_neutral:
            return self.ranks.best(query, self._weight)
        total = max(1, self.snapshot.total)
        start = 0 if offset < RERANKED or offset >= total else offset
        reach = max(RERANKED, offset + limit) if offset < RERANKED else limit
        return self.snapshot.searcher.search(query, limit=min(total - start, reach), offset=start)

    def page(self, final: _FinalQuery) -> _Page:
        """Return the requested page."""
        return self._page(final, self.query.offset, self.query.limit)

    def distinct_page(self, final: _FinalQuery, first: _Page, field: str, requested: SearchQuery) -> _Page:
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
        self, preferred: Preferred, field: str, groups: Sequence[GroupHit], final: _FinalQuery, first: _Page
    ) -> list[tantivy.DocAddress]:
        """Replace the hits of each value by the preferred ones; pinned hits stay."""
        pinned = {place_of(address) for address in first.addresses[: first.pinned]}
        values = {hit.value: None for hit in groups if hit.value is not None and place_of(hit.address) not in pinned}
        selection: Filter = OneOf(field, tuple(values))
        if preferred.value != LATEST and preferred.field != DATE:
            selection = And((selection, Comparison(preferred.field, "=", preferred.value)))
        rivals = _FinalQuery(
            _restricted(final.query, _Query.const_score_query(self.snapshot.filters.compile(selection), 0.0))
        )
        addresses, _ = self._listed(rivals, 0, MAX_VERSIONS) if values else ([], 0)
        hits = []
        for address in addresses:
            document = read_document(self.snapshot, address)
            value = distinct_value(document.get(field))
            if value in values:
                hits.append((value, texts_of(document.get(preferred.field)), address))
        chosen = choose(preferred, hits)
        best = {hit.value: hit.address for hit in groups if hit.value in values}
        self._replaced = {
            place_of(address): best[value]
            for value, address in chosen.items()
            if place_of(address) != place_of(best[value])
        }
        return [chosen.get(hit.value, hit.address) if hit.value in values else hit.address for hit in groups]

    def _page(self, final: _FinalQuery, offset: int, limit: int) -> _Page:
        pinned = self._pinned
        if not pinned:
            addresses, total = self._listed(final, offset, limit)
            return _Page(addresses, total, final.query)
        by_id = _Query.term_set_query(self.snapshot.schema, ID, [id for id, _ in pinned])
        everything = _Query.boolean_query([(Should, final.query), (Should, by_id)])
        others = final.but_for(by_id)
        pinned_addresses = [address for _, address in pinned[offset : offset + limit]]
        rest, total = self._listed(others, max(0, offset - len(pinned)), limit - len(pinned_addresses))
        return _Page(pinned_addresses + rest, total + len(pinned), everything, len(pinned))

    def _listed(self, final: _FinalQuery, offset: int, limit: int) -> tuple[list[tantivy.DocAddress], int]:
        total = self.snapshot.total
        if limit <= 0 or offset >= total:
            return [], self.snapshot.count(final.query)
        match_all = self.query.text == MATCH_ALL
        if self.by_relevance and final.first is not None:
            addresses, count = self._by_relevance(final.first, offset, limit)
            others = _FinalQuery(final.query).but_for(final.first.query)
            rest, total = self._listed(others, max(0, offset - count), limit - len(addresses))
            return addresses + rest, count + total
        if self.by_relevance:
            return self._by_relevance(final, offset, limit)
        keys = (*self.query.sort, *_NEWEST_FIRST) if match_all else self.query.sort
        count = self.snapshot.count(final.query)
        if offset >= count:
            return [], count
        last = self._by_change if match_all else self._by_score
        return Sorter(self.snapshot, keys, last).page(final.query, offset, limit), count

    def _by_relevance(self, final: _FinalQuery, offset: int, limit: int) -> tuple[list[tantivy.DocAddress], int]:
        """Return the best hits; the first few are reordered by recency, or more of them by rank."""
        if self.ranks is not None and not self.ranks.are_neutral:
            return self._by_rank(self.ranks, final, offset, limit)
        # The relaxation has already run this query to count its matches.
        is_cached = final.ranked is not None and final.offset == offset
        result = final.ranked if is_cached else self._ranked(final.query, offset, limit)
        assert result is not None
        hits = result.hits
        if offset < RERANKED:
            first = self._reranked(self._ties_by_change(hits[:RERANKED]), offset + limit)
            self._note(first)
            hits = (first + hits[RERANKED:])[offset : offset + limit]
        return [address for _, address in hits[:limit]], match_count(result)

    def _by_rank(
        self, ranks: Ranks, final: _FinalQuery, offset: int, limit: int
    ) -> tuple[list[tantivy.DocAddress], int]:
        """Return the hits ordered by rank, followed by the others by score."""
        ordered = next((ordered_places for of, ordered_places in self._ordered if of is final), None)
        if ordered is None:
            ordered = ranks.order(final.query, self._weight, final.ranked)
            self._ordered.append((final, ordered))
            self._note(ordered.hits)
        addresses = [address for _, address in ordered.hits[offset : offset + limit]]
        # Beyond the reordered hits, the page continues with the others in the engine's order.
        if len(addresses) == limit or len(ordered.hits) >= ordered.total:
            return addresses, ordered.total
        ordered_places = {place_of(address) for _, address in ordered.hits}
        best = self.snapshot.searcher.search(final.query, limit=offset + limit, count=False).hits
        others = [address for _, address in best if place_of(address) not in ordered_places]
        return addresses + others[max(0, offset - len(ordered_places)) :][: limit - len(addresses)], ordered.total

    def _note(self, hits: Sequence[tuple[float, tantivy.DocAddress]]) -> None:
        """Remember hits whose scores were multiplied by factors, to explain them."""
        if self.query.explain:
            self._with_factors.update(place_of(address) for _, address in hits)

    def _ties_by_change(self, hits: list[tuple[float, tantivy.DocAddress]]) -> list[tuple[float, tantivy.DocAddress]]:
        """Sort hits with equal scores by last change, oldest first, independently of their place in the index."""
        # Usually there are no ties, and nothing has to be read.
        if len({score for score, _ in hits}) == len(hits):
            return hits
        changes = self.snapshot.searcher.fast_field_values(UPDATED_AT, [address for _, address in hits])
        ordered = sorted(zip(hits, changes, strict=True), key=lambda each: (-each[0][0], each[1] or 0))
        return [hit for hit, _ in ordered]

    def _reranked(
        self, hits: list[tuple[float, tantivy.DocAddress]], count: int
    ) -> list[tuple[float, tantivy.DocAddress]]:
        """Return the hits ordered by score and recency, as far as needed for the first ``count``."""
        if not hits or not self.ranking.recency_boost:
            return hits
        if count < len(hits):
            # Hits further behind than the largest bonus cannot move up.
            min_score = hits[count - 1][0] / recency(0, self.ranking)
            hits = list(takewhile(lambda hit: hit[0] >= min_score, hits))
        dates = self.snapshot.searcher.fast_field_values(DATE, [address for _, address in hits])
        if not any(date is not None for date in dates):
            return hits
        now = time.time() * 1_000_000
        scored = [
            (score if date is None else score * recency((now - date) / _MICROSECONDS_A_DAY, self.ranking), address)
            for (score, address), date in zip(hits, dates, strict=True)
        ]
        scored.sort(key=lambda hit: -hit[0])
        return scored

    def _by_score(self, query: tantivy.Query, offset: int, limit: int) -> list[tantivy.DocAddress]:
        if offset >= self.snapshot.total:
            return []
        limit = min(limit, self.snapshot.total)
        return [hit[1] for hit in self.snapshot.searcher.search(query, limit=limit, count=False, offset=offset).hits]

    def _by_change(self, query: tantivy.Query, offset: int, limit: int) -> list[tantivy.DocAddress]:
        if offset >= self.snapshot.total:
            return []
        limit = min(limit, self.snapshot.total)
        hits = self.snapshot.searcher.search(
            query, limit=limit, count=False, offset=offset, order_by_field=UPDATED_AT, order=tantivy.Order.Desc
        ).hits
        return [hit[1] for hit in hits]

    @cached_property
    def _pinned(self) -> list[tuple[str, tantivy.DocAddress]]:
        """The pinned documents of this query that exist and pass the filter."""
        ids = self.query.pinned
        if not ids:
            return []
        # Each has its own score, so that one search shows which of them exist.
        terms = enumerate(_Query.term_query(self.snapshot.schema, ID, id) for id in ids)
        numbered = [(Should, _Query.const_score_query(query, float(len(ids) - at))) for at, query in terms]
        query = _restricted(_Query.boolean_query(numbered), self.condition)
        hits = self.snapshot.searcher.search(query, limit=len(ids), count=False).hits
        return [(ids[len(ids) - round(score)], address) for score, address in hits]


def _one_after_the_other(first: _FinalQuery, others: _FinalQuery) -> _FinalQuery:
    """Combine two queries, with all hits of the first before the hits of the second."""
    query = _Query.boolean_query([(Should, first.query), (Should, others.query)])
    reported = first if first.has_every_word else others
    return replace(
        others,
        query=query,
        ranked=None,
        first=first,
        resolved=reported.resolved,
        has_every_word=reported.has_every_word,
        explained=(*first.explained, *others.explained),
    )


def _restricted(query: tantivy.Query, condition: tantivy.Query | None) -> tantivy.Query:
    return query if condition is None else _Query.boolean_query([(Must, query), (Must, condition)])


def _hits(
    snapshot: Snapshot,
    addresses: Sequence[tantivy.DocAddress],
    query: SearchQuery,
    matches: TermMatches | None,
    explain: Callable[[tantivy.DocAddress], dict[str, Any]] | None,
) -> Iterator[Hit]:
    shared = Highlighter(query.highlight, matches) if query.highlight and matches else None
    for address in addresses:
        entry = snapshot.searcher.doc(address)
        source = bytes(entry.get_first(SOURCE) or b"{}")
        explanation = None if explain is None else explain(address)
        if matches is None:
            yield Hit(str(entry.get_first(ID)), source, explanation=explanation)
            continue
        document = orjson.loads(source)
        words = entry.get_first(PARTED_WORDS)
        own = matches if words is None else matches.with_forms(bytes(words))
        stored = entry.get_first(STORED_SECTIONS) if query.needs_sections else None
        all_sections = unpack(bytes(stored)) if stored else ()
        sections = find_sections(query, document, all_sections, own) if query.sections else None
        highlighter = shared if shared is None or own is matches else Highlighter(shared.options, own)
        formatted = None if highlighter is None else highlighter.format(document)
        passage = partial(find_passage, document, all_sections, own) if query.answers else None
        yield Hit(str(entry.get_first(ID)), source, formatted, sections, explanation, passage)
