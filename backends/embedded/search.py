"""One search of one snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import takewhile

import orjson
import tantivy

from backends.base import MATCH_ALL, Hit, SearchQuery, SearchResult, SortKey, TakeHit, hand_over
from backends.embedded.index.filters import check_fields
from backends.embedded.index.schema import ANSWER, CHANGED, DATE, ID, TEXT_FIELDS
from backends.embedded.index.snapshots import Snapshot, matches
from backends.embedded.query.parser import parse_query
from backends.embedded.query.planner import Plan
from backends.embedded.query.ranking import RANKING, Ranking
from backends.embedded.results.facets import count_facets, facet_fields
from backends.embedded.results.highlight_terms import Marks
from backends.embedded.results.highlighting import Highlighter
from backends.embedded.results.sorting import Sorter, check_sort
from backends.filters import And, Filter, parse_filter
from backends.text.normalization import normal_form

Must, MustNot = tantivy.Occur.Must, tantivy.Occur.MustNot
_Query = tantivy.Query

RERANKED = 100
"""How many of the best hits are ordered again by what the engine does not know."""

_NEWEST_FIRST = (SortKey(DATE, descending=True),)
_MICROSECONDS_A_DAY = 86_400_000_000


def run_search(
    snapshot: Snapshot, query: SearchQuery, ranking: Ranking = RANKING, take: TakeHit | None = None
) -> SearchResult:
    """Run one search; ``take`` as in :meth:`backends.base.SearchBackend.search`.

    Raises:
        BackendRejected: Filters, sort or facets cannot be run.
    """
    condition = _condition(snapshot, query)
    check_sort(query.sort, query.kinds)
    fields = facet_fields(query.facets, query.kinds)
    marks, base = Marks(), None
    search = _Search(snapshot, query, ranking, condition)
    if query.text == MATCH_ALL:
        base = _with(_Query.all_query(), condition)
    else:
        parsed = parse_query(query.text)
        searched = not query.fields or any(name in TEXT_FIELDS for name in query.fields)
        if searched and not parsed.is_empty:
            plan = Plan(snapshot, parsed, query.settings, query.fields, ranking, query.text)
            base = search.choose(plan)
            if search.found == 0 and parsed.phrases and parsed.units:
                base = search.choose_phrases(plan)
            if search.found == 0 and plan.quotes_in_a_sentence:
                parsed = parse_query(query.text, with_phrases=False)
                plan = Plan(snapshot, parsed, query.settings, query.fields, ranking, query.text)
                base = search.choose(plan)
            marks = plan.marks
    if base is None:
        return SearchResult((), 0, {name: {} for name in fields}, {})
    addresses, total, everything = search.page(base)
    facets, stats = count_facets(snapshot, everything, fields, query.kinds, query.facet_values) if fields else ({}, {})
    hits = _hits(snapshot, addresses, Highlighter(query.highlight, marks) if query.highlight else None)
    return SearchResult(hand_over(hits, take), total, facets, stats)


class _Search:
    """One search of one snapshot, step by step.

    Attributes:
        found: Matches of the query that was tried last; ``None`` before one was.
    """

    def __init__(self, snapshot: Snapshot, query: SearchQuery, ranking: Ranking, condition: tantivy.Query | None):
        self.snapshot = snapshot
        self.query = query
        self.ranking = ranking
        self.condition = condition
        self.by_relevance = query.text != MATCH_ALL and not query.sort and query.limit > 0
        self.found: int | None = None
        self._chosen: tuple[tantivy.Query, int, tantivy.SearchResult] | None = None

    def choose(self, plan: Plan) -> tantivy.Query:
        """All words if enough documents have them, else some words or all parts of a compound, else any parts.

        With a sort of the caller's own, some words only where no document has all: the best would not come first.
        """
        best = _with(plan.every_word, self.condition)
        if self.query.all_words:
            return best
        enough = 1 if self.query.sort else self.ranking.enough
        found = self._try(best)
        if found < enough and plan.some_words is not None:
            plan.mark_parts()
            best = _with(plan.some_words, self.condition)
            found = self._try(best)
        if found < enough and plan.any_word is not None:
            best = _with(plan.any_word, self.condition)
            found = self._try(best)
        if not found and plan.loose_parts is not None:
            plan.mark_parts(loose=True)
            best = _with(plan.loose_parts, self.condition)
            self._try(best)
        return best

    def choose_phrases(self, plan: Plan) -> tantivy.Query:
        """The quoted phrases without the words around them."""
        query = _with(plan.phrases_alone, self.condition)
        self._try(query)
        return query

    def _try(self, query: tantivy.Query) -> int:
        """Number of matches; the result is kept, as it mostly is the one that is wanted."""
        offset = self.query.offset if self.by_relevance else 0
        result = self._ranked(query, offset, self.query.limit if self.by_relevance else 1)
        self._chosen = (query, offset, result)
        self.found = matches(result)
        return self.found

    def _ranked(self, query: tantivy.Query, offset: int, limit: int) -> tantivy.SearchResult:
        """The hits a page is cut from, best first: from the first one on as far as they are ordered again."""
        if self._chosen is not None and self._chosen[0] is query and self._chosen[1] == offset:
            return self._chosen[2]
        total = max(1, self.snapshot.total)
        start = 0 if offset < RERANKED or offset >= total else offset
        reach = max(RERANKED, offset + limit) if offset < RERANKED else limit
        return self.snapshot.searcher.search(query, limit=min(total - start, reach), offset=start)

    def page(self, base: tantivy.Query) -> tuple[list[tantivy.DocAddress], int, tantivy.Query]:
        """The documents of the page wished for, the number of all, and the query that matches all."""
        offset, limit = self.query.offset, self.query.limit
        pinned = self._pinned()
        everything = base
        if pinned:
            ids = [id for id, _ in pinned]
            by_id = _Query.term_set_query(self.snapshot.schema, ID, ids)
            everything = _Query.boolean_query([(tantivy.Occur.Should, base), (tantivy.Occur.Should, by_id)])
            base = _Query.boolean_query([(Must, base), (MustNot, by_id)])
        found = [address for _, address in pinned[offset : offset + limit]]
        skipped = max(0, offset - len(pinned))
        rest, total = self._listed(base, skipped, limit - len(found))
        return found + rest, total + len(pinned), everything

    def _listed(self, base: tantivy.Query, offset: int, limit: int) -> tuple[list[tantivy.DocAddress], int]:
        total = self.snapshot.total
        if limit <= 0 or offset >= total:
            return [], self.snapshot.count(base)
        match_all = self.query.text == MATCH_ALL
        if self.by_relevance:
            return self._by_relevance(base, offset, limit)
        keys = (*self.query.sort, *_NEWEST_FIRST) if match_all else self.query.sort
        count = self.snapshot.count(base)
        if offset >= count:
            return [], count
        last = self._by_change if match_all else self._by_score
        return Sorter(self.snapshot, keys, last).page(base, offset, limit), count

    def _by_relevance(self, base: tantivy.Query, offset: int, limit: int) -> tuple[list[tantivy.DocAddress], int]:
        """The best hits, of which the first few are ordered again by recency."""
        result = self._ranked(base, offset, limit)
        hits = result.hits
        if offset < RERANKED:
            hits = (self._reranked(hits[:RERANKED], offset + limit) + hits[RERANKED:])[offset : offset + limit]
        return [address for _, address in hits[:limit]], matches(result)

    def _reranked(
        self, hits: list[tuple[float, tantivy.DocAddress]], wanted: int
    ) -> list[tuple[float, tantivy.DocAddress]]:
        """The hits by score and recency, if it is the first so many that are wanted."""
        if not hits or not self.ranking.newest:
            return hits
        if wanted < len(hits):
            # What is further behind than the newest can gain stays behind.
            least = hits[wanted - 1][0] / (1 + self.ranking.newest)
            hits = list(takewhile(lambda hit: hit[0] >= least, hits))
        dates = self.snapshot.searcher.fast_field_values(DATE, [address for _, address in hits])
        if not any(date is not None for date in dates):
            return hits
        now = time.time() * 1_000_000
        scored = []
        for (score, address), date in zip(hits, dates, strict=True):
            if date is not None:
                age = max(0.0, (now - date) / _MICROSECONDS_A_DAY)
                score *= 1 + self.ranking.newest * 0.5 ** min(40.0, age / self.ranking.half_life_days)
            scored.append((score, address))
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
            query, limit=limit, count=False, offset=offset, order_by_field=CHANGED, order=tantivy.Order.Desc
        ).hits
        return [hit[1] for hit in hits]

    def _pinned(self) -> list[tuple[str, tantivy.DocAddress]]:
        """The documents a site wants first for this query: those that exist and pass the filter."""
        ids = self.query.settings.pinned.get(normal_form(self.query.text), ())
        if not ids or self.query.sort:
            return []
        found = []
        for id in dict.fromkeys(ids):
            query = _with(_Query.term_query(self.snapshot.schema, ID, id), self.condition)
            hits = self.snapshot.searcher.search(query, limit=1, count=False).hits
            if hits:
                found.append((id, hits[0][1]))
        return found


def _condition(snapshot: Snapshot, query: SearchQuery) -> tantivy.Query | None:
    parts: list[Filter] = [] if query.filter is None else [query.filter]
    if query.filters.strip():
        parts.append(parse_filter(query.filters))
    if not parts:
        return None
    expression = parts[0] if len(parts) == 1 else And(tuple(parts))
    for part in parts:
        check_fields(part, query.kinds)
    return _Query.const_score_query(snapshot.filters.compile(expression), 0.0)


def _with(query: tantivy.Query, condition: tantivy.Query | None) -> tantivy.Query:
    return query if condition is None else _Query.boolean_query([(Must, query), (Must, condition)])


def _hits(
    snapshot: Snapshot, addresses: Sequence[tantivy.DocAddress], highlighter: Highlighter | None
) -> Iterator[Hit]:
    for address in addresses:
        entry = snapshot.searcher.doc(address)
        answer = bytes(entry.get_first(ANSWER) or b"{}")
        formatted = None if highlighter is None else highlighter.format(orjson.loads(answer))
        yield Hit(str(entry.get_first(ID)), answer, formatted)
