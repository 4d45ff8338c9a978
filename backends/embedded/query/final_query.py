"""Choosing the query to run for a search: relaxed until it matches enough documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import tantivy

from backends.analysis.keyboards import in_other_layouts
from backends.analysis.parser import ParsedQuery, parse_query
from backends.embedded.index.snapshots import Snapshot, match_count
from backends.embedded.query import reranking
from backends.embedded.query.addresses import address_query
from backends.embedded.query.correction import as_written
from backends.embedded.query.explaining import Explained
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.ranks import Ranks
from backends.embedded.query.relaxations import RELAXATIONS, Clauses, Relaxation, highlight_terms, is_quoted_name
from backends.embedded.query.terms import ResolvedQuery, resolve_query
from backends.embedded.results.highlighting import HighlightTerms
from backends.field_rules import searched_fields
from backends.query import MATCH_ALL, SearchQuery

Must, MustNot, Should = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should
_Query = tantivy.Query


@dataclass(frozen=True, slots=True)
class FinalQuery:
    """The query that a search runs.

    Attributes:
        query: Matches all hits, with filters applied.
        relaxation: Name of the relaxation that built it; ``""`` for :data:`MATCH_ALL`.
        highlights: Returns the terms to highlight.
        offset, ranked: The hits from this offset on, best first, if they were requested.
        first: Query whose hits come before all others, by relevance, whatever their scores.
        resolved: The words of the query; ``None`` for :data:`MATCH_ALL`.
        retyped: The text that was searched for instead, because the query as typed finds nothing.
        has_every_word: Whether any document contains every word; ``None`` if every hit does.
        explained: Explanations; the first one whose query matches a hit explains it.
    """

    query: tantivy.Query
    relaxation: str = ""
    highlights: Callable[[], HighlightTerms] = HighlightTerms
    offset: int = 0
    ranked: tantivy.SearchResult | None = None
    first: FinalQuery | None = None
    resolved: ResolvedQuery | None = None
    retyped: str | None = None
    has_every_word: bool | None = None
    explained: tuple[Explained, ...] = ()

    def without_matches_of(self, query: tantivy.Query) -> FinalQuery:
        """Return a copy that matches the same documents except those that ``query`` matches."""
        others = _Query.boolean_query([(Must, self.query), (MustNot, query)])
        return FinalQuery(others, first=None if self.first is None else self.first.without_matches_of(query))

    @property
    def match_count_or_none(self) -> int | None:
        """Number of matches, if requested."""
        return None if self.ranked is None else match_count(self.ranked)


class QueryChoice:
    """Chooses the final query of one search.

    Args:
        condition: The compiled filters, if any.
        ranks: The ranks of the hits; ``None`` if they are not ordered by relevance.

    Attributes:
        weight: Sum of the weights of the words that were searched for last.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        query: SearchQuery,
        ranking: Ranking,
        condition: tantivy.Query | None,
        ranks: Ranks | None,
    ):
        self._snapshot = snapshot
        self._query = query
        self._ranking = ranking
        self._condition = condition
        self._ranks = ranks
        self.weight = 1.0

    def choose(self) -> FinalQuery | None:
        """Choose the first relaxation that finds enough hits; ``None`` if the query has nothing to search for."""
        if self._query.text == MATCH_ALL:
            return FinalQuery(restricted(_Query.all_query(), self._condition))
        parsed = parse_query(self._query.text)
        if not searched_fields(self._query) or parsed.is_empty:
            return None
        text = self._query.text
        address = address_query(self._snapshot, text) if "/" in text or "-" in text else None
        if address is None:
            return self._by_words(parsed)
        page = FinalQuery(restricted(address, self._condition), has_every_word=True)
        return _in_sequence(page, self._by_words(parsed))

    def _by_words(self, parsed: ParsedQuery) -> FinalQuery:
        """Choose the first relaxation that finds enough hits. A quoted name is then ignored."""
        final = self._relax(parsed, self._query.text)
        if final.match_count_or_none == 0:
            final = self._in_other_layout() or self._with_inflected_phrase(final) or final
        if (
            final.match_count_or_none is None
            or final.match_count_or_none >= self._enough
            or not is_quoted_name(parsed, self._ranking)
        ):
            return final
        others = self._relax(parse_query(self._query.text, with_phrases=False), self._query.text)
        return others if final.match_count_or_none == 0 else _in_sequence(final, others)

    def _in_other_layout(self) -> FinalQuery | None:
        """Return the query as its keys type it in another keyboard layout, if a document has all of its words."""
        fields = searched_fields(self._query)
        for text in in_other_layouts(self._query.text):
            parsed = parse_query(text)
            words = [term.term for term in parsed.query_terms]
            if words and all(any(self._snapshot.terms(field, word, 1) for field in fields) for word in words):
                final = self._relax(parsed, text)
                if final.has_every_word:
                    return replace(final, retyped=text)
        return None

    def ranked(self, query: tantivy.Query, offset: int, limit: int) -> tantivy.SearchResult:
        """Return the hits needed for a page, best first: from the first hit on if they may be reordered.

        On a site with ranks, these are the hits that may be the best by words and ranks, for any page.
        """
        if self._ranks is not None and not self._ranks.are_neutral:
            return self._ranks.best(query, self.weight)
        total = max(1, self._snapshot.total)
        start = 0 if offset < reranking.RERANKED or offset >= total else offset
        reach = max(reranking.RERANKED, offset + limit) if offset < reranking.RERANKED else limit
        return self._snapshot.searcher.search(query, limit=min(total - start, reach), offset=start)

    @property
    def _enough(self) -> int:
        """Number of matches at which no further relaxation is tried; 1 for a sorted query.

        In a sorted query, the documents that a relaxation adds could come before the better matches.
        """
        return 1 if self._query.sort else self._ranking.min_hits_before_relaxing

    def _with_inflected_phrase(self, final: FinalQuery) -> FinalQuery | None:
        """Return the query with another form of a phrase's last word (``"opening hour"``), if a document has it."""
        assert final.resolved is not None
        for phrase in final.resolved.parsed.phrases:
            last_word = re.compile(rf'(?<!\w){re.escape(phrase.words[-1])}(?=["“”])', re.IGNORECASE)
            for form in final.resolved.inflected(phrase.words[-1]):
                text = last_word.sub(as_written(final.resolved, form), self._query.text)
                inflected = self._relax(parse_query(text), text)
                if inflected.has_every_word:
                    return replace(inflected, retyped=text)
        return None

    def _relax(self, parsed: ParsedQuery, text: str) -> FinalQuery:
        """Choose the first relaxation that finds enough hits, or else the last one."""
        query = self._query
        resolved = resolve_query(
            parsed, text, self._snapshot, query.settings, searched_fields(query), self._ranking, query.word_counts
        )
        clauses = Clauses.of(resolved)
        self.weight = sum(term.idf for term in resolved.terms) or 1.0
        tried: list[Relaxation] = []
        final: FinalQuery | None = None
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
            final = self._run_relaxation(restricted(built, self._condition), resolved, tuple(tried))
            if query.all_words:
                break
            if has_every_word is None:
                has_every_word = bool(final.match_count_or_none)
        assert final is not None, "all_terms always builds a query"
        return replace(final, has_every_word=has_every_word)

    def _run_relaxation(self, query: tantivy.Query, resolved: ResolvedQuery, tried: Sequence[Relaxation]) -> FinalQuery:
        offset, limit = (self._query.offset, self._query.limit) if self._ranks is not None else (0, 1)
        ranked = None if self._query.all_words else self.ranked(query, offset, limit)
        highlights = partial(highlight_terms, resolved, tried)
        explained = (Explained(query, tried[-1].name, resolved, tried[-1].signals),)
        return FinalQuery(query, tried[-1].name, highlights, offset, ranked, resolved=resolved, explained=explained)


def _in_sequence(first: FinalQuery, others: FinalQuery) -> FinalQuery:
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


def restricted(query: tantivy.Query, condition: tantivy.Query | None) -> tantivy.Query:
    """Restrict a query to the documents that match a condition."""
    return query if condition is None else _Query.boolean_query([(Must, query), (Must, condition)])
