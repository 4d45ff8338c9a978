"""Building tantivy queries for the variants of words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import tantivy

from backends.analysis.languages import TONAL, UNKNOWN, toned
from backends.embedded.index.schema import FILTER_TERMS, LANGUAGE, TONED, WORD_PARTS, toned_column
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.variants import TermVariant

Must, MustNot, Should = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should
_Query = tantivy.Query


@dataclass(frozen=True, slots=True)
class ToneMatches:
    """Documents that contain a word with its tone.

    Attributes:
        query: Matches these documents.
        max_count: Upper limit of their number: the highest document frequency in a field, plus all documents indexed
            without tones.
    """

    query: tantivy.Query
    max_count: int


class TermQueries:
    """Builds queries for variants of words in the searched fields.

    Args:
        weights: The searched fields and their boosts.
        with_parts: Whether to also search the parts of words written as one, such as ``appTableRecord``.
    """

    def __init__(self, snapshot: Snapshot, weights: Mapping[str, float], ranking: Ranking, *, with_parts: bool):
        self.with_parts = with_parts
        self._snapshot = snapshot
        self._weights = weights
        self._fields_key = tuple(weights.items())
        self._ranking = ranking

    @property
    def fields(self) -> Collection[str]:
        """The searched fields."""
        return self._weights.keys()

    def fields_of(self, variant: TermVariant) -> Mapping[str, float]:
        """Return the fields in which a variant is searched for, and their boosts."""
        return {WORD_PARTS: self._weights["content"]} if variant.in_parts else self._weights

    def doc_frequency(self, term: str) -> int:
        return self._snapshot.max_doc_frequency(self._weights, term)

    def for_variant(self, variant: TermVariant, idf: float = 0) -> tantivy.Query | None:
        """Return a query for the variant in every field that contains it; ``None`` if no field does.

        Args:
            idf: Inverse document frequency of the word; if given, a one-term variant is weighted by it in all fields.
        """
        choices: list[tantivy.Query] = []
        frequency = self._snapshot.frequency
        for name, weight in self.fields_of(variant).items():
            boost = weight * variant.boost
            if len(variant.terms) == 1:
                count = frequency(name, variant.terms[0])
                if count:
                    choices.append(self._term(name, variant.terms[0], count, boost, idf))
            elif min([frequency(name, term) for term in variant.terms]):
                query = _Query.phrase_query(self._snapshot.schema, name, list(variant.terms))
                choices.append(_Query.boost_query(query, boost))
        return best_of(choices, self._ranking.field_tie_breaker)

    def in_field(self, name: str, variant: TermVariant) -> tantivy.Query | None:
        """Return a query for the variant in one field; ``None`` if the field never contains it."""
        if not min([self._snapshot.frequency(name, term) for term in variant.terms]):
            return None
        if len(variant.terms) == 1:
            return _Query.term_query(self._snapshot.schema, name, variant.terms[0])
        return _Query.phrase_query(self._snapshot.schema, name, list(variant.terms))

    def for_variants(self, variants: Iterable[TermVariant], idf: float = 0) -> tantivy.Query | None:
        """Return a query that scores a document by its best match among the variants of a word; cached."""
        key = ("any", tuple(variants), idf, self._fields_key)
        query: tantivy.Query | None = self._snapshot.cached(key)
        if query is None:
            query = self._any(key[1], idf)
            if query is not None:
                self._snapshot.cache(key, query)
        return query

    def _any(self, variants: Sequence[TermVariant], idf: float) -> tantivy.Query | None:
        compounds: list[str] = []
        choices: list[tantivy.Query | None] = []
        for variant in variants:
            if variant.is_closed_compound:
                compounds += variant.terms
            else:
                choices.append(self.for_variant(variant, idf))
        if compounds:
            choices.append(self._any_compound(compounds, idf))
        return self.best_of(choices)

    def _any_compound(self, compounds: list[str], idf: float) -> tantivy.Query | None:
        """Return a query for documents with any of the compounds, all weighted like a single occurrence of the word.

        A query for each compound in each field would take as long as the rest of the search.
        """
        boost = self._ranking.closed_compound * idf
        term_set = partial(_Query.term_set_query, self._snapshot.schema)
        choices = [
            _Query.const_score_query(term_set(name, compounds), boost * weight)
            for name, weight in self._weights.items()
        ]
        return best_of(choices, self._ranking.field_tie_breaker)

    def best_of(self, choices: Iterable[tantivy.Query | None]) -> tantivy.Query | None:
        """Return a query for documents that match any of the queries for one word, ranked by their best match."""
        return best_of(choices, self._ranking.variant_tie_breaker)

    def with_tone(self, toned: ToneMatches, query: tantivy.Query | None, *, foreign: bool) -> tantivy.Query | None:
        """Return a query for documents with the word in its tone, plus matches in documents without tones.

        Args:
            foreign: Whether documents in any language may match without tones, since the query may lack tones.
        """
        if query is None:
            return toned.query
        return self.best_of([toned.query, self.without_tones(query, foreign=foreign)])

    def _term(self, column: str, term: str, count: int, boost: float, idf: float) -> tantivy.Query:
        if idf:
            boost *= self._ranking.balance(idf, self._snapshot.idf(count))
        return _Query.boost_query(_Query.term_query(self._snapshot.schema, column, term), boost)

    def toned(self, word: str) -> ToneMatches | None:
        """Return the documents that contain a lower-case word with its tone; ``None`` if no document does."""
        snapshot, term = self._snapshot, toned(word)
        counts = {name: snapshot.frequency(toned_column(name), term) for name in self._weights}
        frequency = max(counts.values())
        idf = snapshot.idf(frequency)
        choices = [
            self._term(toned_column(name), term, count, self._weights[name], idf)
            for name, count in counts.items()
            if count
        ]
        query = best_of(choices, self._ranking.field_tie_breaker)
        if query is None:
            return None
        untoned = snapshot.total - min(snapshot.total, snapshot.frequency(FILTER_TERMS, TONED))
        return ToneMatches(query, frequency + untoned)

    def without_tones(self, query: tantivy.Query, *, foreign: bool) -> tantivy.Query:
        """Restrict a query to documents that were indexed without tones.

        Args:
            foreign: Whether documents in any language may match; otherwise only in tonal and undetected languages.
        """
        term = partial(_Query.term_query, self._snapshot.schema)
        clauses = [(Must, query), (MustNot, term(FILTER_TERMS, TONED))]
        if not foreign:
            languages = _Query.boolean_query([(Should, term(LANGUAGE, language)) for language in (*TONAL, UNKNOWN)])
            clauses.append((Must, _Query.const_score_query(languages, 0.0)))
        return _Query.boolean_query(clauses)

    def for_all_terms(self, terms: Iterable[str], boost: float) -> tantivy.Query | None:
        """Return a query for documents that contain all of the terms; ``None`` if no document contains one of them."""
        parts = [self.for_variant(TermVariant((term,), boost)) for term in terms]
        if None in parts:
            return None
        return _Query.boolean_query([(Must, part) for part in parts if part is not None])


def best_of(choices: Iterable[tantivy.Query | None], tie_breaker: float) -> tantivy.Query | None:
    """Return a query for documents that match any of several queries, scored by the best match.

    ``None`` if all choices are ``None``.

    Args:
        tie_breaker: Share of the scores of weaker matches that is added to the best score.
    """
    queries = [query for query in choices if query is not None]
    if not queries:
        return None
    return queries[0] if len(queries) == 1 else _Query.disjunction_max_query(queries, tie_breaker)
