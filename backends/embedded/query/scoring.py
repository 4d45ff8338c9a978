"""Scoring signals: the parts of a document's score other than its word variants, one function each.

Scores are in units of BM25. A signal is worth its number in :class:`Ranking` times the inverse document frequencies of
the terms it concerns, so that it has the same effect in every index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice, pairwise, product

import tantivy

from backends.analysis.normalization import fold
from backends.analysis.parser import TermKind
from backends.embedded.index.schema import FILTER_TERMS, WORD_PARTS, equality_term, section_term, title_beginning
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.terms import ResolvedQuery
from backends.embedded.query.variants import TermVariant
from backends.sections import SECTIONS
from backends.text import WORD

MAX_NEIGHBOR_PAIRS = 8
"""Maximum number of pairs of neighboring words that are scored."""
MAX_TITLES_BEGINNING = 30
"""Maximum number of titles beginning with the query; if there are more, the visitor means none in particular."""
TITLE_SLOP, CONTENT_SLOP = 1, 3
"""Maximum number of words between neighbors of the query in a title and in a content."""

_Query = tantivy.Query


def stop_words(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Signal: stop words match. Documents need not contain them."""
    ranking = resolved.ranking
    boost = ranking.stop_in_sentence if resolved.is_whole_sentence else ranking.stop
    for term in resolved.terms:
        if not term.required and term.query is not None:
            yield _Query.boost_query(term.query, boost)


def exact_terms(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Signal: in a short query, a word that also has other variants matches completely and without typing errors."""
    ranking = resolved.ranking
    bonus = ranking.exact_single_term_boost if len(resolved.terms) == 1 else ranking.exact_term_boost
    if not bonus or not resolved.is_short:
        return
    for term in resolved.required:
        literal = [variant for variant in term.variants if not variant.errors]
        if not literal or (term.toned is None and len(literal) == len(term.variants)):
            continue
        query = resolved.queries.for_variants(literal)
        if term.toned is not None:
            query = resolved.queries.with_tone(term.toned, query, foreign=not resolved.has_tones)
        if query is not None:
            yield _Query.const_score_query(query, bonus * term.idf)


def unigrams(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Signal: single characters of unspaced scripts match, in addition to the pairs that are searched."""
    for character in resolved.parsed.characters:
        idf = resolved.snapshot.idf(resolved.queries.doc_frequency(character))
        query = resolved.queries.for_variant(TermVariant((character,), resolved.ranking.character), idf)
        if query is not None:
            yield query


def proximity(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Signal: words adjacent in the query are near each other in the title, a section's title, or the content.

    In a sentence, the signal also covers words two apart in the query, in the content only.
    """
    ranking, snapshot = resolved.ranking, resolved.snapshot
    in_content = ("content", CONTENT_SLOP, ranking.content_proximity_boost)
    fields = (
        ("title", TITLE_SLOP, ranking.title_proximity_boost),
        (SECTIONS, TITLE_SLOP, ranking.section_proximity_boost),
        in_content,
        (WORD_PARTS, 0, ranking.content_proximity_boost),
    )
    words = [term.query_term.term for term in resolved.required if term.query_term.kind is TermKind.WORD]
    pairs = list(product(islice(pairwise(words), MAX_NEIGHBOR_PAIRS), fields))
    if resolved.is_whole_sentence:
        across = zip(words, words[2:], strict=False)
        pairs += product(islice(across, MAX_NEIGHBOR_PAIRS), (in_content,))
    for pair, (name, slop, boost) in pairs:
        searched = resolved.queries.with_parts if name == WORD_PARTS else name in resolved.queries.fields
        if searched and boost and all(snapshot.frequency(name, word) for word in pair):
            yield _Query.boost_query(_Query.phrase_query(snapshot.schema, name, list(pair), slop=slop), boost)


def exact_title(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Signal: the title equals the query."""
    boost = resolved.ranking.exact_title_boost
    if boost and "title" in resolved.queries.fields:
        # A constant score: the number of equal titles does not depend on how well this title matches.
        title = _Query.term_query(resolved.snapshot.schema, FILTER_TERMS, equality_term("title", resolved.text))
        yield _Query.const_score_query(title, boost * sum(term.idf for term in resolved.terms))


def corrected_titles(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Signal: the title, or a section's title, equals the query after spelling correction."""
    boost, fields = resolved.ranking.corrected_title_boost, resolved.queries.fields
    texts = _corrected_texts(resolved) if boost else []
    marks = [equality_term("title", text) for text in texts if "title" in fields]
    marks += [section_term(text) for text in texts if SECTIONS in fields]
    if marks:
        schema = resolved.snapshot.schema
        titles = [(tantivy.Occur.Should, _Query.term_query(schema, FILTER_TERMS, mark)) for mark in marks]
        yield _Query.const_score_query(_Query.boolean_query(titles), boost * sum(term.idf for term in resolved.terms))


def _corrected_texts(resolved: ResolvedQuery) -> list[str]:
    """Return corrected queries: with the best replacement of each mistyped word, then the next best, and so on."""
    replacements: dict[str, list[str]] = {}
    for term in resolved.required:
        if term.query_term.kind is TermKind.WORD and term.variants and term.variants[0].is_correction:
            replacements[term.query_term.term] = [
                variant.terms[0] for variant in term.variants if len(variant.terms) == 1
            ]

    def text(rank: int) -> str:
        def word(match: re.Match[str]) -> str:
            words = replacements.get(fold(match[0]))
            return match[0] if words is None else words[min(rank, len(words) - 1)]

        return WORD.sub(word, resolved.text)

    return [text(rank) for rank in range(max(map(len, replacements.values()), default=0))]


def beginning_title(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Signal: the title begins with the query as typed so far."""
    boost = resolved.ranking.title_beginning_boost
    if not boost or "title" not in resolved.queries.fields or len(resolved.terms) < 2:
        return
    schema, snapshot = resolved.snapshot.schema, resolved.snapshot
    titles = snapshot.terms(FILTER_TERMS, title_beginning(resolved.text.strip()), MAX_TITLES_BEGINNING + 1)
    if 0 < len(titles) <= MAX_TITLES_BEGINNING:
        begins = [(tantivy.Occur.Should, _Query.term_query(schema, FILTER_TERMS, term)) for term, _ in titles]
        # The more titles begin like this, the less likely it is that one of them is meant.
        boost *= sum(term.idf for term in resolved.terms) / len(titles)
        yield _Query.const_score_query(_Query.boolean_query(begins), boost)


def exact_section(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Signal: a section's title equals the query."""
    boost = resolved.ranking.exact_section_boost
    if boost and SECTIONS in resolved.queries.fields:
        section = _Query.term_query(resolved.snapshot.schema, FILTER_TERMS, section_term(resolved.text))
        yield _Query.const_score_query(section, boost * sum(term.idf for term in resolved.terms))


def all_terms(resolved: ResolvedQuery) -> Iterator[tantivy.Query]:
    """Signal: all required terms match, in relaxations that require only one of them."""
    required = resolved.required
    if any(term.query is None for term in required):
        return
    every = _Query.boolean_query([(tantivy.Occur.Must, term.as_typed) for term in required if term.as_typed])
    yield _Query.const_score_query(every, every_word_boost(resolved) * sum(term.idf for term in required))


def every_word_boost(resolved: ResolvedQuery) -> float:
    """Return the addition for every required word, in units of the query's weight."""
    ranking = resolved.ranking
    return ranking.all_terms_boost_short if resolved.is_short else ranking.all_terms_boost


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
"""Signals of every relaxation that ranks by words; none of them has to match."""


def score_signals(resolved: ResolvedQuery) -> list[tantivy.Query]:
    """Build the scoring queries of all :data:`SIGNALS`."""
    return [query for signal in SIGNALS for query in signal(resolved)]


def recency(age_days: float, ranking: Ranking) -> float:
    """Return the factor for the score of a document of this age: the full bonus today, half of it after a half-life."""
    return float(1 + ranking.recency_boost * 0.5 ** (max(0.0, age_days) / ranking.half_life_days))
