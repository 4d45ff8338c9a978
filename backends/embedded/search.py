"""One search of one snapshot: parse, resolve, relax until enough is found, order, mark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import takewhile
from typing import Any

import orjson
import tantivy

from backends.base import MATCH_ALL, Hit, Matched, Preferred, SearchQuery, SearchResult, SortKey, TakeHit, hand_over
from backends.distinct import LATEST, choose, distinct_field, distinct_value, preference, texts_of
from backends.embedded.index.schema import DATE, ID, SOURCE, STORED_SECTIONS, UPDATED_AT
from backends.embedded.index.snapshots import Snapshot, match_count
from backends.embedded.query.conditions import compile_condition
from backends.embedded.query.correction import corrected_text
from backends.embedded.query.explaining import Explained
from backends.embedded.query.parser import ParsedQuery, parse_query
from backends.embedded.query.ranking import RANKING, Ranking
from backends.embedded.query.ranks import Factors, RankedHits, Ranks, place_of
from backends.embedded.query.relaxations import RELAXATIONS, Clauses, Relaxation, highlight_terms, is_quoted_name
from backends.embedded.query.scoring import recency
from backends.embedded.query.terms import ResolvedQuery, resolve_query
from backends.embedded.results.distinct import FIRST_READ, ShownHit, count_shown, first_hits, read_document
from backends.embedded.results.facets import count_facets
from backends.embedded.results.highlight_terms import HighlightTerms
from backends.embedded.results.highlighting import TermMatches
from backends.embedded.results.sorting import Sorter
from backends.embedded.results.turns import turn
from backends.field_rules import check_sort, facet_fields, searched_fields
from backends.filters import And, Comparison, Filter, OneOf
from backends.highlighting import Highlighter, find_passage, find_sections
from backends.sections import unpack

Must, MustNot, Should = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should
_Query = tantivy.Query

RERANKED = 100
"""How many of the best hits are ordered again by what the engine does not know."""

MOST_VERSIONS = 1000
"""Hits among which the preferred ones of a page are looked for."""

_NEWEST_FIRST = (SortKey(DATE, descending=True),)
_MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class _Answer:
    """The query that answers a search.

    Attributes:
        query: Matches all documents found, filters included.
        relaxation: Name of the relaxation that made it; ``""`` for :data:`MATCH_ALL`.
        highlights: Makes what is highlighted.
        offset, ranked: The first hits from that place on, best first, if they were asked for.
        first: What comes before all else that is found, by relevance, however that scores.
        resolved: The words searched for; ``None`` for :data:`MATCH_ALL`.
        has_every_word: Whether a document has every word; ``None`` if every document found has.
        explained: What explains a hit: the first of them that matches it.
    """

    query: tantivy.Query
    relaxation: str = ""
    highlights: Callable[[], HighlightTerms] = HighlightTerms
    offset: int = 0
    ranked: tantivy.SearchResult | None = None
    first: _Answer | None = None
    resolved: ResolvedQuery | None = None
    has_every_word: bool | None = None
    explained: tuple[Explained, ...] = ()

    def but_for(self, query: tantivy.Query) -> _Answer:
        """The same without what a query matches."""
        others = _Query.boolean_query([(Must, self.query), (MustNot, query)])
        return _Answer(others, first=None if self.first is None else self.first.but_for(query))

    @property
    def found(self) -> int | None:
        """Number of matches, if it was asked for."""
        return None if self.ranked is None else match_count(self.ranked)


@dataclass(frozen=True, slots=True)
class _Page:
    """The documents wished for.

    Attributes:
        total: Number of all documents found; of those shown, if only one of each value is.
        everything: Matches all that are found.
        pinned: How many of them are pinned.
    """

    addresses: list[tantivy.DocAddress]
    total: int
    everything: tantivy.Query
    pinned: int = 0


def run_search(
    snapshot: Snapshot, query: SearchQuery, ranking: Ranking = RANKING, take: TakeHit | None = None
) -> SearchResult:
    """Run one search; ``take`` as in :meth:`backends.base.SearchBackend.search`.

    Raises:
        BackendRejected: Filters, sort or facets cannot be run.
    """
    condition = compile_condition(snapshot, query)
    check_sort(query.sort, query.kinds)
    fields = facet_fields(query.facets, query.kinds)
    distinct = distinct_field(query)
    read = replace(query, offset=0, limit=min(query.limit, 1) * FIRST_READ) if distinct else query
    search = _Search(snapshot, read, ranking, condition)
    answer = search.answer()
    if answer is None:
        return SearchResult((), 0, {name: {} for name in fields}, {}, matched=Matched.SOME)
    page = search.page(answer)
    shown = search.distinct_page(answer, page, distinct, query) if distinct else page
    counted = count_facets(snapshot, page.everything, fields, query.kinds, query.facet_values) if fields else ({}, {})
    matches = TermMatches(answer.highlights()) if query.shows_matches else None
    matched, corrected = search.matched(answer, page)
    explain = partial(search.explain, answer) if query.explain else None
    with turn():
        hits = hand_over(_hits(snapshot, shown.addresses, query, matches, explain), take)
    return SearchResult(hits, shown.total, *counted, answer.relaxation, matched, corrected)


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
        self._ordered: list[tuple[_Answer, RankedHits]] = []
        self._with_factors: set[tuple[int, int]] = set()
        self._replaced: dict[tuple[int, int], tantivy.DocAddress] = {}

    def answer(self) -> _Answer | None:
        """Find the documents, by the first relaxation that finds enough; ``None`` if nothing is searched for."""
        if self.query.text == MATCH_ALL:
            return _Answer(_with(_Query.all_query(), self.condition))
        parsed = parse_query(self.query.text)
        if not searched_fields(self.query) or parsed.is_empty:
            return None
        answer = self._relax(parsed)
        if answer.found is None or answer.found >= self._enough or not is_quoted_name(parsed, self.ranking):
            return answer
        others = self._relax(parse_query(self.query.text, with_phrases=False))
        return others if answer.found == 0 else _one_after_the_other(answer, others)

    def matched(self, answer: _Answer, page: _Page) -> tuple[Matched, str | None]:
        """The words that were found, and the query with those replaced that were not, if there are such."""
        if answer.resolved is None:
            return Matched.ALL, None
        if not (page.total > page.pinned if answer.has_every_word is None else answer.has_every_word):
            return Matched.ALL if page.pinned else Matched.SOME, None
        corrected = corrected_text(answer.resolved, self.condition)
        return (Matched.ALL, None) if corrected is None else (Matched.CORRECTED, corrected)

    def explain(self, answer: _Answer, address: tantivy.DocAddress) -> dict[str, Any]:
        """Explain as JSON why a hit of the page stands where it does."""
        place = place_of(address)
        is_pinned = place in {place_of(pinned) for _, pinned in self._pinned}
        is_scored = self.by_relevance and not is_pinned
        factors = Factors()
        told: dict[str, Any] = {"pinned": is_pinned}
        if self.ranks is not None and place in self._with_factors:
            factors = self.ranks.factors(address)
        elif self.ranks is not None and is_scored and not self.ranks.are_neutral:
            told["beyond_ranks"] = True
        if place in self._replaced:
            told["preferred_over"] = str(self.snapshot.searcher.doc(self._replaced[place]).get_first(ID))
        for at, explained in enumerate(answer.explained):
            explanation = explained.explain(address, factors, is_scored=is_scored)
            if explanation is not None:
                if answer.first is not None and is_scored:
                    told["has_phrase"] = at < len(answer.first.explained)
                return told | explanation
        return {**told, "score": None, "relaxation": "", "words": [], "signals": [], "rank": factors.rank}

    @property
    def _enough(self) -> int:
        """With how many matches nothing less is looked for.

        With a sort of the caller's own, any match is enough: the best would not come first.
        """
        return 1 if self.query.sort else self.ranking.min_hits_before_relaxing

    def _relax(self, parsed: ParsedQuery) -> _Answer:
        """The first relaxation that finds enough, or the last one."""
        query = self.query
        resolved = resolve_query(
            parsed, query.text, self.snapshot, query.settings, searched_fields(query), self.ranking
        )
        clauses = Clauses.of(resolved)
        self._weight = sum(term.idf for term in resolved.terms) or 1.0
        tried: list[Relaxation] = []
        answer: _Answer | None = None
        has_every_word: bool | None = None
        for relaxation in RELAXATIONS:
            if answer is not None and (answer.found or 0) >= (1 if relaxation.only_if_none else self._enough):
                continue
            built = relaxation.build(resolved, clauses)
            if built is None:
                continue
            tried.append(relaxation)
            answer = self._answer(_with(built, self.condition), resolved, tuple(tried))
            if query.all_words:
                break
            if has_every_word is None:
                has_every_word = bool(answer.found)
        assert answer is not None, "all_terms always builds a query"
        return replace(answer, has_every_word=has_every_word)

    def _answer(self, query: tantivy.Query, resolved: ResolvedQuery, tried: Sequence[Relaxation]) -> _Answer:
        offset, limit = (self.query.offset, self.query.limit) if self.by_relevance else (0, 1)
        ranked = None if self.query.all_words else self._ranked(query, offset, limit)
        highlights = partial(highlight_terms, resolved, tried)
        explained = (Explained(query, tried[-1].name, resolved, tried[-1].signals),)
        return _Answer(query, tried[-1].name, highlights, offset, ranked, resolved=resolved, explained=explained)

    def _ranked(self, query: tantivy.Query, offset: int, limit: int) -> tantivy.SearchResult:
        """The hits a page is cut from, best first: from the first one on as far as they are ordered again.

        With ranks, those that may be best by words and ranks.
        """
        if self.ranks is not None and not self.ranks.are_neutral:
            return self.ranks.best(query, self._weight)
        total = max(1, self.snapshot.total)
        start = 0 if offset < RERANKED or offset >= total else offset
        reach = max(RERANKED, offset + limit) if offset < RERANKED else limit
        return self.snapshot.searcher.search(query, limit=min(total - start, reach), offset=start)

    def page(self, answer: _Answer) -> _Page:
        """The page wished for."""
        return self._page(answer, self.query.offset, self.query.limit)

    def distinct_page(self, answer: _Answer, first: _Page, field: str, wanted: SearchQuery) -> _Page:
        """The page of hits with different values of a field.

        Args:
            first: The first hits, of any values.
            wanted: The query with the page wished for.
        """
        total = count_shown(self.snapshot, field, first.everything, first.total)
        if not wanted.limit or wanted.offset >= total:
            return replace(first, addresses=[], total=total)

        def list_hits(offset: int, limit: int) -> Sequence[tantivy.DocAddress]:
            return self._page(answer, offset, limit).addresses if offset else first.addresses

        shown = first_hits(self.snapshot, field, list_hits, wanted.offset, wanted.limit, total)
        preferred = preference(wanted)
        addresses = [hit.address for hit in shown]
        if preferred is not None:
            addresses = self._prefer(preferred, field, shown, answer, first)
        return replace(first, addresses=addresses, total=total)

    def _prefer(
        self, preferred: Preferred, field: str, shown: Sequence[ShownHit], answer: _Answer, first: _Page
    ) -> list[tantivy.DocAddress]:
        """The hits to show for the same values; pinned ones stay."""
        pinned = {place_of(address) for address in first.addresses[: first.pinned]}
        values = {hit.value: None for hit in shown if hit.value is not None and place_of(hit.address) not in pinned}
        wanted: Filter = OneOf(field, tuple(values))
        if preferred.value != LATEST and preferred.field != DATE:
            wanted = And((wanted, Comparison(preferred.field, "=", preferred.value)))
        rivals = _Answer(_with(answer.query, _Query.const_score_query(self.snapshot.filters.compile(wanted), 0.0)))
        addresses, _ = self._listed(rivals, 0, MOST_VERSIONS) if values else ([], 0)
        hits = []
        for address in addresses:
            document = read_document(self.snapshot, address)
            value = distinct_value(document.get(field))
            if value in values:
                hits.append((value, texts_of(document.get(preferred.field)), address))
        chosen = choose(preferred, hits)
        best = {hit.value: hit.address for hit in shown if hit.value in values}
        self._replaced = {
            place_of(address): best[value]
            for value, address in chosen.items()
            if place_of(address) != place_of(best[value])
        }
        return [chosen.get(hit.value, hit.address) if hit.value in values else hit.address for hit in shown]

    def _page(self, answer: _Answer, offset: int, limit: int) -> _Page:
        pinned = self._pinned
        if not pinned:
            addresses, total = self._listed(answer, offset, limit)
            return _Page(addresses, total, answer.query)
        by_id = _Query.term_set_query(self.snapshot.schema, ID, [id for id, _ in pinned])
        everything = _Query.boolean_query([(Should, answer.query), (Should, by_id)])
        others = answer.but_for(by_id)
        found = [address for _, address in pinned[offset : offset + limit]]
        rest, total = self._listed(others, max(0, offset - len(pinned)), limit - len(found))
        return _Page(found + rest, total + len(pinned), everything, len(pinned))

    def _listed(self, answer: _Answer, offset: int, limit: int) -> tuple[list[tantivy.DocAddress], int]:
        total = self.snapshot.total
        if limit <= 0 or offset >= total:
            return [], self.snapshot.count(answer.query)
        match_all = self.query.text == MATCH_ALL
        if self.by_relevance and answer.first is not None:
            addresses, count = self._by_relevance(answer.first, offset, limit)
            others = _Answer(answer.query).but_for(answer.first.query)
            rest, total = self._listed(others, max(0, offset - count), limit - len(addresses))
            return addresses + rest, count + total
        if self.by_relevance:
            return self._by_relevance(answer, offset, limit)
        keys = (*self.query.sort, *_NEWEST_FIRST) if match_all else self.query.sort
        count = self.snapshot.count(answer.query)
        if offset >= count:
            return [], count
        last = self._by_change if match_all else self._by_score
        return Sorter(self.snapshot, keys, last).page(answer.query, offset, limit), count

    def _by_relevance(self, answer: _Answer, offset: int, limit: int) -> tuple[list[tantivy.DocAddress], int]:
        """The best hits, of which the first few are ordered again by recency, or more of them by rank."""
        if self.ranks is not None and not self.ranks.are_neutral:
            return self._by_rank(self.ranks, answer, offset, limit)
        asked = answer.ranked is not None and answer.offset == offset
        result = answer.ranked if asked else self._ranked(answer.query, offset, limit)
        assert result is not None
        hits = result.hits
        if offset < RERANKED:
            first = self._reranked(self._ties_by_change(hits[:RERANKED]), offset + limit)
            self._note(first)
            hits = (first + hits[RERANKED:])[offset : offset + limit]
        return [address for _, address in hits[:limit]], match_count(result)

    def _by_rank(self, ranks: Ranks, answer: _Answer, offset: int, limit: int) -> tuple[list[tantivy.DocAddress], int]:
        """The hits that ranks put in order, and behind them the others by score."""
        ordered = next((known for of, known in self._ordered if of is answer), None)
        if ordered is None:
            ordered = ranks.order(answer.query, self._weight, answer.ranked)
            self._ordered.append((answer, ordered))
            self._note(ordered.hits)
        found = [address for _, address in ordered.hits[offset : offset + limit]]
        if len(found) == limit or len(ordered.hits) >= ordered.total:
            return found, ordered.total
        known = {place_of(address) for _, address in ordered.hits}
        best = self.snapshot.searcher.search(answer.query, limit=offset + limit, count=False).hits
        others = [address for _, address in best if place_of(address) not in known]
        return found + others[max(0, offset - len(known)) :][: limit - len(found)], ordered.total

    def _note(self, hits: Sequence[tuple[float, tantivy.DocAddress]]) -> None:
        """Note whose scores were multiplied, to explain them."""
        if self.query.explain:
            self._with_factors.update(place_of(address) for _, address in hits)

    def _ties_by_change(self, hits: list[tuple[float, tantivy.DocAddress]]) -> list[tuple[float, tantivy.DocAddress]]:
        """The hits, of those with one score the longest unchanged first, wherever the index has them."""
        if len({score for score, _ in hits}) == len(hits):
            return hits
        changes = self.snapshot.searcher.fast_field_values(UPDATED_AT, [address for _, address in hits])
        ordered = sorted(zip(hits, changes, strict=True), key=lambda each: (-each[0][0], each[1] or 0))
        return [hit for hit, _ in ordered]

    def _reranked(
        self, hits: list[tuple[float, tantivy.DocAddress]], wanted: int
    ) -> list[tuple[float, tantivy.DocAddress]]:
        """The hits by score and recency, if it is the first so many that are wanted."""
        if not hits or not self.ranking.recency_boost:
            return hits
        if wanted < len(hits):
            # What is further behind than the newest can gain stays behind.
            least = hits[wanted - 1][0] / recency(0, self.ranking)
            hits = list(takewhile(lambda hit: hit[0] >= least, hits))
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
        """The documents a site wants first for this query: those that exist and pass the filter."""
        ids = self.query.pinned
        if not ids:
            return []
        # Each is scored with its own number, so that one search tells which are there.
        named = enumerate(_Query.term_query(self.snapshot.schema, ID, id) for id in ids)
        numbered = [(Should, _Query.const_score_query(query, float(len(ids) - at))) for at, query in named]
        query = _with(_Query.boolean_query(numbered), self.condition)
        hits = self.snapshot.searcher.search(query, limit=len(ids), count=False).hits
        return [(ids[len(ids) - round(score)], address) for score, address in hits]


def _one_after_the_other(first: _Answer, others: _Answer) -> _Answer:
    """Join two answers, with all that the first does before the rest."""
    query = _Query.boolean_query([(Should, first.query), (Should, others.query)])
    told = first if first.has_every_word else others
    return replace(
        others,
        query=query,
        ranked=None,
        first=first,
        resolved=told.resolved,
        has_every_word=told.has_every_word,
        explained=(*first.explained, *others.explained),
    )


def _with(query: tantivy.Query, condition: tantivy.Query | None) -> tantivy.Query:
    return query if condition is None else _Query.boolean_query([(Must, query), (Must, condition)])


def _hits(
    snapshot: Snapshot,
    addresses: Sequence[tantivy.DocAddress],
    query: SearchQuery,
    matches: TermMatches | None,
    explain: Callable[[tantivy.DocAddress], dict[str, Any]] | None,
) -> Iterator[Hit]:
    highlighter = Highlighter(query.highlight, matches) if query.highlight and matches else None
    for address in addresses:
        entry = snapshot.searcher.doc(address)
        source = bytes(entry.get_first(SOURCE) or b"{}")
        explanation = None if explain is None else explain(address)
        if matches is None:
            yield Hit(str(entry.get_first(ID)), source, explanation=explanation)
            continue
        document = orjson.loads(source)
        stored = entry.get_first(STORED_SECTIONS) if query.needs_sections else None
        known = unpack(bytes(stored)) if stored else ()
        sections = find_sections(query, document, known, matches) if query.sections else None
        formatted = None if highlighter is None else highlighter.format(document)
        passage = partial(find_passage, document, known, matches) if query.answers else None
        yield Hit(str(entry.get_first(ID)), source, formatted, sections, explanation, passage)
