"""The signals that a document's score is made of, beside the variants of its words: one function each.

Scores are in units of BM25. A signal that is added once is worth its number in :class:`Ranking` times the inverse
document frequencies of the terms it is about, so that it counts the same in every index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice, pairwise

import tantivy

from backends.embedded.analysis.normalization import fold
from backends.embedded.index.schema import FILTER_TERMS, equality_term, section_term, title_beginning
from backends.embedded.query.parser import TermKind
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.terms import ResolvedQuery
from backends.embedded.query.variants import TermVariant
from backends.sections import SECTIONS
from backends.text import WORD

MOST_NEIGHBOURS = 8
MOST_TITLES_BEGINNING = 30
"""Of a query with which more titles begin, none is meant."""
TITLE_SLOP, CONTENT_SLOP = 1, 3
"""Words that may stand between neighbours of the query."""

_Query = tantivy.Query


def stop_words(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Stop words, which no document must have."""
    for term in resolved.terms:
        if not term.required and term.query is not None:
            yield _Query.boost_query(term.query, resolved.ranking.stop)


def exact_terms(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """In a short query, each word without a typing error and finished, where other variants match, too."""
    ranking = resolved.ranking
    bonus = ranking.exact_single_term_boost if len(resolved.terms) == 1 else ranking.exact_term_boost
    if not bonus or not resolved.is_short:
        return
    for term in resolved.required:
        literal = [variant for variant in term.variants if not variant.errors]
        if not literal or (term.toned is None and len(literal) == len(term.variants)):
            continue
        query = resolved.queries.any(literal)
        if term.toned is not None:
            query = resolved.queries.with_tone(term.toned, query, foreign=not resolved.has_tones)
        if query is not None:
            yield _Query.const_score_query(query, bonus * term.idf)


def unigrams(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """The single characters of text without spaces, which is searched by pairs."""
    for character in resolved.parsed.characters:
        idf = resolved.snapshot.idf(resolved.queries.doc_frequency(character))
        query = resolved.queries.one(TermVariant((character,), resolved.ranking.character), idf)
        if query is not None:
            yield query


def proximity(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Neighbours in the query that stand near each other in the title, the title of a section, or the content."""
    ranking, snapshot = resolved.ranking, resolved.snapshot
    fields = (
        ("title", TITLE_SLOP, ranking.title_proximity_boost),
        (SECTIONS, TITLE_SLOP, ranking.section_proximity_boost),
        ("content", CONTENT_SLOP, ranking.content_proximity_boost),
    )
    words = [term.query_term.term for term in resolved.required if term.query_term.kind is TermKind.WORD]
    for pair in islice(pairwise(words), MOST_NEIGHBOURS):
        for name, slop, boost in fields:
            searched = name in resolved.queries.fields
            if searched and boost and all(snapshot.frequency(name, word) for word in pair):
                yield _Query.boost_query(_Query.phrase_query(snapshot.schema, name, list(pair), slop=slop), boost)


def exact_title(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """The title is the query."""
    boost = resolved.ranking.exact_title_boost
    if boost and "title" in resolved.queries.fields:
        title = _Query.term_query(resolved.snapshot.schema, FILTER_TERMS, equality_term("title", resolved.text))
        yield _Query.const_score_query(title, boost * sum(term.idf for term in resolved.terms))


def corrected_titles(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """The title, or that of a section, is the query with other words for those that no document has."""
    boost, fields = resolved.ranking.corrected_title_boost, resolved.queries.fields
    texts = _corrected_texts(resolved) if boost else []
    marks = [equality_term("title", text) for text in texts if "title" in fields]
    marks += [section_term(text) for text in texts if SECTIONS in fields]
    if marks:
        schema = resolved.snapshot.schema
        titles = [(tantivy.Occur.Should, _Query.term_query(schema, FILTER_TERMS, mark)) for mark in marks]
        yield _Query.const_score_query(_Query.boolean_query(titles), boost * sum(term.idf for term in resolved.terms))


def _corrected_texts(resolved: ResolvedQuery) -> list[str]:
    """The query as it may be meant: the first with the best words for mistyped ones, the next with the next best."""
    meant: dict[str, list[str]] = {}
    for term in resolved.required:
        if term.query_term.kind is TermKind.WORD and term.variants and term.variants[0].is_correction:
            meant[term.query_term.term] = [variant.terms[0] for variant in term.variants if len(variant.terms) == 1]

    def text(rank: int) -> str:
        def word(match: re.Match[str]) -> str:
            words = meant.get(fold(match[0]))
            return match[0] if words is None else words[min(rank, len(words) - 1)]

        return WORD.sub(word, resolved.text)

    return [text(rank) for rank in range(max(map(len, meant.values()), default=0))]


def beginning_title(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """The title begins with the query, as far as it is typed."""
    boost = resolved.ranking.title_beginning_boost
    if not boost or "title" not in resolved.queries.fields or len(resolved.terms) < 2:
        return
    schema, snapshot = resolved.snapshot.schema, resolved.snapshot
    titles = snapshot.terms(FILTER_TERMS, title_beginning(resolved.text.strip()), MOST_TITLES_BEGINNING + 1)
    if 0 < len(titles) <= MOST_TITLES_BEGINNING:
        begins = [(tantivy.Occur.Should, _Query.term_query(schema, FILTER_TERMS, term)) for term, _ in titles]
        yield _Query.const_score_query(_Query.boolean_query(begins), boost * sum(term.idf for term in resolved.terms))


def exact_section(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """The title of a section is the query."""
    boost = resolved.ranking.exact_section_boost
    if boost and SECTIONS in resolved.queries.fields:
        section = _Query.term_query(resolved.snapshot.schema, FILTER_TERMS, section_term(resolved.text))
        yield _Query.const_score_query(section, boost * sum(term.idf for term in resolved.terms))


def all_terms(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Every required term is there, where a document needs only one of them."""
    required = resolved.required
    if any(term.query is None for term in required):
        return
    ranking = resolved.ranking
    every = _Query.boolean_query([(tantivy.Occur.Must, term.as_typed) for term in required if term.as_typed])
    boost = ranking.all_terms_boost_short if resolved.is_short else ranking.all_terms_boost
    yield _Query.const_score_query(every, boost * sum(term.idf for term in required))


Signal = Callable[[ResolvedQuery], Iterator[tantivy.Query]]

SIGNALS: tuple[Signal, ...] = (
    stop_words,
    exact_terms,
    unigrams,
    proximity,
    exact_title,
    corrected_titles,
    beginning_title,
    exact_section,
)
"""What adds to the score of every relaxation that ranks by words; none of it must match."""


def score_signals(resolved: ResolvedQuery) -> list[tantivy.Query]:
    """The queries of all :data:`SIGNALS`."""
    return [query for signal in SIGNALS for query in signal(resolved)]


def recency(age_days: float, ranking: Ranking) -> float:
    """Factor for the score of a document by its date: most for today's, half of it after a half-life."""
    return float(1 + ranking.recency_boost * 0.5 ** (max(0.0, age_days) / ranking.half_life_days))
