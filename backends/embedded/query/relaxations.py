"""Relaxations: how much of a query a document must match, from everything to less if too few documents match.

:data:`RELAXATIONS` are tried in order until one finds enough. Each is a pure function from the resolved query to a
tantivy query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import tantivy

from backends.analysis.normalization import UNSEGMENTED_RUN, graphemes
from backends.analysis.parser import ParsedQuery, QueryTerm
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.scoring import SIGNALS, Signal, score_signals
from backends.embedded.query.scoring import all_terms as all_terms_signal
from backends.embedded.query.terms import ResolvedQuery, ResolvedTerm
from backends.embedded.query.variants import TermVariant
from backends.embedded.results.highlighting import HighlightTerms
from backends.highlighting import is_unlikely_typo

Must, MustNot, Should = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should
_Query = tantivy.Query
_RARITY = 3
"""Power of a word's inverse document frequency in its weight in a passage that is quoted as an answer.

On a site about Python, a passage with *Python*, *program*, and *quite* must not answer how to quit a program.
"""

Clause = tuple[tantivy.Occur, tantivy.Query]
HighlightSource = tuple[tuple[str, ...], int]
"""Terms to highlight where they are consecutive, and the number of the query term that they represent."""


@dataclass(frozen=True, slots=True)
class Clauses:
    """Clauses shared by all relaxations of a query.

    Attributes:
        required: Clauses for quoted phrases and exclusions.
        scoring: Clauses that contribute to the score.
    """

    required: tuple[Clause, ...]
    scoring: tuple[Clause, ...]

    @classmethod
    def of(cls, resolved: ResolvedQuery) -> Clauses:
        """Return the shared clauses of a query."""
        signals = tuple((Should, query) for query in score_signals(resolved))
        return cls(tuple(required_clauses(resolved)), signals)


def required_clauses(resolved: ResolvedQuery) -> Iterator[Clause]:
    """Yield the clauses that every relaxation must keep: quoted phrases and exclusions."""
    parsed = resolved.parsed
    for phrase in parsed.phrases:
        yield Must, resolved.queries.for_variants(resolved.phrase_variants(phrase)) or _Query.empty_query()
        # The words of a phrase also match across the end of a sentence.
        joined = [
            resolved.queries.for_variant(TermVariant((word,), resolved.ranking.concatenated)) for word in phrase.joined
        ]
        yield from ((Should, query) for query in joined if query is not None)
    for excluded in parsed.excluded:
        query = resolved.queries.for_variant(TermVariant(excluded.terms, 1.0))
        if query is not None:
            yield MustNot, query
    # In tantivy, exclusions alone match no document.
    if parsed.excluded and not parsed.query_terms and not parsed.phrases:
        yield Must, _Query.all_query()


def all_terms(resolved: ResolvedQuery, clauses: Clauses) -> tantivy.Query:
    """Return a query for documents that contain every required term."""
    terms = [(Must, term.query or _Query.empty_query()) for term in resolved.required]
    must = [*terms, *clauses.required]
    return _Query.boolean_query([*must, *clauses.scoring]) if must else _Query.empty_query()


def any_term(resolved: ResolvedQuery, clauses: Clauses) -> tantivy.Query | None:
    """Return a query for documents with at least one term, or with all parts of a compound.

    ``None`` if it would match the same documents as :func:`all_terms`.
    """
    existing = [term.query for term in resolved.required if term.query is not None]
    in_parts = [
        resolved.queries.for_all_terms(dict.fromkeys(compound.terms), resolved.ranking.parts)
        for compound in resolved.split_compounds
    ]
    parts = [query for query in in_parts if query is not None]
    if (len(resolved.required) < 2 or not existing) and not parts:
        return None
    matching = _Query.boolean_query([(Should, query) for query in (*existing, *parts)])
    every = [(Should, query) for query in all_terms_signal(resolved)]
    return _Query.boolean_query([(Must, matching), *clauses.required, *clauses.scoring, *every])


def last_parts_too(resolved: ResolvedQuery, clauses: Clauses) -> tantivy.Query | None:
    """Return a query for documents with at least one word, or with the last part of a closed compound of the query.

    *Fehlerquelle* also finds *Quelle*. ``None`` if the query has no such compound.
    """
    parts = [
        query
        for part in dict.fromkeys(resolved.last_parts)
        if (query := resolved.queries.for_variant(TermVariant((part,), resolved.ranking.parts))) is not None
    ]
    if not parts:
        return None
    words = any_term(resolved, clauses) or all_terms(resolved, clauses)
    ends = _Query.boolean_query([(Must, _Query.disjunction_max_query(parts)), *clauses.required])
    return _Query.boolean_query([(Should, words), (Should, ends)])


def compounds_too(resolved: ResolvedQuery, clauses: Clauses) -> tantivy.Query | None:
    """Return a query that also matches closed compounds that begin with a word of the query, after all other hits.

    *Spannungen* also finds *Spannungstensor*. ``None`` if the index has no such compound.
    """
    compounds = [
        resolved.queries.for_variant(TermVariant((word,), 1.0)) for word in dict.fromkeys(resolved.compounds_with)
    ]
    matching = [(Should, query) for query in compounds if query is not None]
    if not matching:
        return None
    words = last_parts_too(resolved, clauses) or any_term(resolved, clauses) or all_terms(resolved, clauses)
    last = _Query.boolean_query([(Must, _Query.boolean_query(matching)), *clauses.required])
    return _Query.boolean_query([(Should, words), (Should, _Query.const_score_query(last, 0.0))])


def any_compound_part(resolved: ResolvedQuery, clauses: Clauses) -> tantivy.Query | None:
    """Return a query for documents that contain any part of a compound such as ``node.js``; ``None`` without any."""
    parts = [
        resolved.queries.for_variant(TermVariant((part,), 1.0))
        for compound in resolved.parsed.loose_compounds
        for part in compound.terms
    ]
    matching = [(Should, part) for part in parts if part is not None]
    return _Query.boolean_query([(Must, _Query.boolean_query(matching)), *clauses.required]) if matching else None


def phrases_only(resolved: ResolvedQuery, clauses: Clauses) -> tantivy.Query | None:
    """Return a query for documents with the quoted phrases, but maybe without the other words; ``None`` if the query
    does not have both.
    """
    parsed = resolved.parsed
    return _Query.boolean_query(list(clauses.required)) if parsed.phrases and parsed.query_terms else None


def is_quoted_name(parsed: ParsedQuery, ranking: Ranking) -> bool:
    """Whether quoted words may be just a name in a sentence: the query has other words, and enough words in total."""
    around = sum(_words_in(term.terms[:1]) for term in parsed.query_terms)
    quoted = sum(_words_in(phrase.words) for phrase in parsed.phrases)
    return bool(quoted) and around > 1 and around + quoted >= ranking.sentence_terms


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A way to require less of a document.

    Attributes:
        name: Reported in the result of a search that it answers.
        build: Builds its query; ``None`` if it adds nothing.
        only_if_none: Whether it applies only to queries without any result, rather than to queries with too few.
        highlighted_compounds: Returns the compounds whose parts are also highlighted.
        signals: Signals that its query adds to the score.
    """

    name: str
    build: Callable[[ResolvedQuery, Clauses], tantivy.Query | None]
    only_if_none: bool = False
    highlighted_compounds: Callable[[ResolvedQuery], Sequence[QueryTerm]] = lambda resolved: ()
    signals: Sequence[Signal] = SIGNALS

    def highlights(self, resolved: ResolvedQuery) -> Iterator[HighlightSource]:
        """Yield terms to highlight besides the terms and phrases of the query."""
        for compound in self.highlighted_compounds(resolved):
            for part in compound.terms:
                if part not in resolved.stop_words:
                    yield (part,), resolved.parsed.query_terms.index(compound)


RELAXATIONS = (
    Relaxation("all_terms", all_terms),
    Relaxation(
        "any_term",
        any_term,
        highlighted_compounds=lambda resolved: resolved.split_compounds,
        signals=(*SIGNALS, all_terms_signal),
    ),
    Relaxation("last_parts_too", last_parts_too, signals=(*SIGNALS, all_terms_signal)),
    Relaxation("compounds_too", compounds_too, signals=(*SIGNALS, all_terms_signal)),
    Relaxation(
        "any_compound_part",
        any_compound_part,
        only_if_none=True,
        highlighted_compounds=lambda resolved: resolved.parsed.loose_compounds,
        signals=(),
    ),
    Relaxation("phrases_only", phrases_only, only_if_none=True, signals=()),
)
"""Strictest first. If all of them find too few documents for a sentence with quotes, the quotes are then ignored."""

LAST_RESORTS = frozenset(relaxation.name for relaxation in RELAXATIONS if relaxation.only_if_none)
"""Names of the relaxations for queries without any other result."""


def highlight_terms(resolved: ResolvedQuery, relaxations: Sequence[Relaxation]) -> HighlightTerms:
    """Return the terms to highlight in the hits of the last of several relaxations that were tried in order."""

    def sequences() -> Iterator[HighlightSource]:
        for number, term in enumerate(resolved.terms):
            yield from ((variant.words or variant.terms, number) for variant in term.variants)
        for number, phrase in enumerate(resolved.parsed.phrases, len(resolved.terms)):
            yield from ((variant.words or variant.terms, number) for variant in resolved.phrase_variants(phrase))
        for relaxation in relaxations:
            yield from relaxation.highlights(resolved)

    prefixes = ((term.prefix, number) for number, term in enumerate(resolved.terms) if term.prefix)
    unlikely = {
        (variant.terms[0], number)
        for number, term in enumerate(resolved.terms)
        for variant in term.variants
        if variant.is_correction
        and len(variant.terms) == 1
        and is_unlikely_typo(term.query_term.term, variant.terms[0])
    }
    phrases = resolved.parsed.phrases
    typed = {part for term in resolved.terms for part in term.query_term.terms} | {
        word for phrase in phrases for word in phrase.words
    }
    weights = _passage_weights(resolved.terms)
    numbers_of_phrases = range(len(resolved.terms), len(resolved.terms) + len(phrases))
    weights |= dict.fromkeys(numbers_of_phrases, max(weights.values(), default=1.0))
    return HighlightTerms.of(sequences(), prefixes, unlikely, typed=typed, weights=weights)


def _passage_weights(terms: Sequence[ResolvedTerm]) -> dict[int, float]:
    """Return the weight of each word of a passage, by number: the rarer the word, the higher.

    In ``how often do i grease the bearing``, an answer contains a value (*weekly*) instead of ``often``. If no page has
    the second word, its weight is at most the average of the others, although it is the rarest.
    """
    weights = {number: term.idf**_RARITY for number, term in enumerate(terms) if term.required}
    others = [weight for number, weight in weights.items() if number != 1]
    if [term.required for term in terms[:3]] == [False, True, False] and others and not _is_known(terms[1]):
        weights[1] = min(weights[1], sum(others) / len(others))
    return weights


def _is_known(term: ResolvedTerm) -> bool:
    return any(len(variant.terms) == 1 and not variant.is_correction for variant in term.variants)


def _words_in(words: Sequence[str]) -> float:
    """``["log", "in"]`` -> 2; ``["東京都"]`` -> 1.0: each pair of characters of an unspaced script is half a word."""
    return sum(0.5 * max(1, len(graphemes(word)) - 1) if UNSEGMENTED_RUN.match(word) else 1 for word in words)
