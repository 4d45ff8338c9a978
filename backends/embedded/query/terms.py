"""Resolving the words of a query into all the forms that match in one index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise

import tantivy
from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from backends.analysis.chinese import in_both_scripts
from backends.analysis.compounds import compound_languages, last_parts, may_begin_with
from backends.analysis.languages import (
    TONAL,
    has_tones,
    likely_languages,
    may_have_tones,
    stem,
    stems,
    stop_words,
)
from backends.analysis.normalization import fold
from backends.analysis.parser import ParsedQuery, Phrase, QueryTerm, TermKind, parse_query
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.query.ranking import RANKING, Ranking
from backends.embedded.query.spellings import spellings_of_phrase
from backends.embedded.query.synonyms import SynonymIndex, words_by_stem
from backends.embedded.query.term_queries import TermQueries, ToneMatches
from backends.embedded.query.typos import errors_allowed
from backends.embedded.query.variants import (
    Expansion,
    TermVariant,
    compound_variants,
    concatenated_variants,
    expand,
    variants_in_parts,
)
from backends.field_rules import searched_fields
from backends.query import MATCH_ALL, SearchQuery, SearchSettings, WordCounts
from backends.sections import SECTIONS
from backends.standard_fields import TEXT_FIELDS
from backends.text import MAX_JOINED_CHARS, MAX_PARTS, MIN_PHONE_DIGITS, other_phone_numbers

_MAX_READINGS = 16
"""Maximum number of readings of consecutive words for which synonyms are looked up."""


@dataclass(frozen=True, slots=True)
class ResolvedTerm:
    """A term of the query with everything that it may match.

    Attributes:
        variants: Forms in which documents contain it; empty if no document contains anything similar.
        required: Whether a document must match it; false for stop words.
        idf: Inverse document frequency of all its variants together.
        query: Matches any variant; ``None`` without variants.
        as_typed: Matches any variant except words with another tone.
        toned: Documents with the word in its tone, in an index with Vietnamese documents.
        prefix: Common prefix of the longer variants, if the term may be unfinished.
    """

    query_term: QueryTerm
    variants: tuple[TermVariant, ...]
    required: bool
    idf: float
    query: tantivy.Query | None
    as_typed: tantivy.Query | None
    toned: ToneMatches | None
    prefix: str | None


@dataclass(frozen=True, slots=True)
class ResolvedQuery:
    """A query resolved for one index: the input of relaxations and scoring.

    Attributes:
        text: The query as typed.
        terms: In query order; of a very long query, the most selective terms.
        queries: Builds tantivy queries for the searched fields.
        languages: Languages that the query may be in.
        has_tones: Whether the query was typed with Vietnamese tones.
    """

    text: str
    parsed: ParsedQuery
    terms: tuple[ResolvedTerm, ...]
    stop_words: frozenset[str]
    languages: tuple[str, ...]
    queries: TermQueries
    snapshot: Snapshot
    ranking: Ranking
    has_tones: bool

    @property
    def required(self) -> list[ResolvedTerm]:
        """The terms that a document must match."""
        return [term for term in self.terms if term.required]

    @property
    def is_short(self) -> bool:
        """Whether the query has so few terms that each should match as typed."""
        return len(self.required) <= self.ranking.short_query_terms

    @property
    def is_whole_sentence(self) -> bool:
        """Whether the query is a sentence, such as a question, whose last word is a word of the index."""
        if len(self.terms) < self.ranking.sentence_terms:
            return False
        if len(self.terms) - len(self.required) < self.ranking.sentence_stop_words:
            return False
        last = self.terms[-1]
        return last.prefix is None or any(not variant.errors for variant in last.variants)

    @property
    def split_compounds(self) -> list[QueryTerm]:
        """The compounds that may match in parts: compounds with meaningful parts, unlike ``U.S.``."""
        long = [compound for compound in self.parsed.loose_compounds if min(map(len, compound.terms)) > 1]
        return long[: self.ranking.max_split_compounds]

    def inflected(self, word: str) -> Iterator[str]:
        """Yield the other words of the index that share a stem with a folded word, most frequent first."""
        languages = self.languages or likely_languages([word], self.snapshot.languages)
        return _inflected(self.snapshot, word, tuple(self.queries.fields), languages, self.ranking)

    def phrase_variants(self, phrase: Phrase) -> list[TermVariant]:
        """The spellings in which documents may contain a quoted phrase, as typed first."""
        spellings = spellings_of_phrase(self.snapshot, phrase.terms, tuple(self.queries.fields))
        variants = [
            TermVariant(terms, 1.0, words=() if index else phrase.words) for index, terms in enumerate(spellings)
        ]
        if "zh" in self.snapshot.languages:
            others = {Phrase.of(text): None for text in in_both_scripts(" ".join(phrase.words))}
            variants += [TermVariant(other.terms, 1.0, words=other.words) for other in others if other != phrase]
        return variants

    @property
    def last_parts(self) -> Iterator[str]:
        """The words that the closed compounds of the query end with, the longest one of each."""
        for language, term in self._in_compounds():
            yield from islice(last_parts(language, term, self.queries.doc_frequency), 1)

    @property
    def compounds_with(self) -> Iterator[str]:
        """Closed compounds of the index that begin with a word of the query: *Spannungstensor* for *Spannungen*."""
        for language, term in self._in_compounds():
            start = stem(language, term)
            words = self.snapshot.terms("content", start, _MAX_READINGS)
            yield from (word for word, _ in words if may_begin_with(start, word))

    def _in_compounds(self) -> list[tuple[str, str]]:
        """Return the words of the query in each of its languages with closed compounds, if the index has any."""
        languages = compound_languages(self.languages) if self.snapshot.has_compounds else ()
        return [
            (language, term.query_term.term)
            for language in languages
            for term in self.required
            if term.query_term.kind is TermKind.WORD
        ]


def resolve_query(
    parsed: ParsedQuery,
    text: str,
    snapshot: Snapshot,
    settings: SearchSettings,
    fields: tuple[str, ...],
    ranking: Ranking = RANKING,
    word_counts: WordCounts | None = None,
) -> ResolvedQuery:
    """Resolve a parsed query for an index.

    Args:
        text: The query as typed.
        fields: The text fields to search, at least one.
        word_counts: As in :class:`~backends.query.SearchQuery`.
    """
    searched = tuple(name for name in fields if name != "excerpt" or snapshot.has_excerpts) or fields[:1]
    if fields == TEXT_FIELDS and snapshot.has_sections:
        searched += (SECTIONS,)
    weights = {name: ranking.fields[name] * max(0.0, float(settings.weights.get(name, 1.0))) for name in searched}
    languages = _languages_of(parsed, snapshot, settings)
    stops = _stop_words_of(languages, settings)

    def selectivity(term: QueryTerm) -> float:
        if _is_stop_word(term, stops):
            return 0.0
        return snapshot.idf(min(snapshot.max_doc_frequency(searched, part) for part in term.terms))

    parsed = parsed.shortened(selectivity)
    surfaces = [term.surface for term in parsed.query_terms]
    tonal = not TONAL.isdisjoint(languages) and may_have_tones(surfaces)
    resolver = _Resolver(
        snapshot,
        searched,
        languages,
        stops,
        TermQueries(snapshot, weights, ranking, with_parts=fields == TEXT_FIELDS and snapshot.has_word_parts),
        ranking,
        word_counts,
        tonal=tonal,
        has_tones=tonal and has_tones(" ".join(surfaces)),
    )
    return ResolvedQuery(
        text=text,
        parsed=parsed,
        terms=tuple(resolver.resolve(parsed, text, SynonymIndex.of(settings.synonyms))),
        stop_words=stops,
        languages=languages,
        queries=resolver.queries,
        snapshot=snapshot,
        ranking=ranking,
        has_tones=resolver.has_tones,
    )


@dataclass(frozen=True, slots=True)
class _Resolver:
    """Resolves the terms of one query in one snapshot.

    Attributes:
        tonal: Whether a missing accent counts as a tone, because the query may be Vietnamese and has accents.
    """

    snapshot: Snapshot
    fields: tuple[str, ...]
    languages: tuple[str, ...]
    stop_words: frozenset[str]
    queries: TermQueries
    ranking: Ranking
    word_counts: WordCounts | None
    tonal: bool
    has_tones: bool

    def resolve(self, parsed: ParsedQuery, text: str, synonyms: SynonymIndex) -> Iterator[ResolvedTerm]:
        terms = parsed.query_terms
        stops = [_is_stop_word(term, self.stop_words) for term in terms]
        # In a query of stop words alone, such as "to be or not to be", each of them matters.
        if all(stops):
            stops = [False] * len(terms)
        others = self._synonyms(terms, synonyms)
        for index, variants in self._concatenated(parsed):
            others[index] += variants
        for index, joined in enumerate(self._joined(parsed, text)):
            others[index] += [TermVariant((word,), self.ranking.concatenated) for word in joined]
        expensive = 0
        for index, term in enumerate(terms):
            is_last = index == len(terms) - 1 and parsed.last_term_is_prefix
            allowed = not stops[index] and expensive < self.ranking.max_expensive_terms
            expansion = expand(self.snapshot, term, self.fields, self.languages, is_last, allowed, self.ranking)
            expensive += expansion.expensive
            within = [] if stops[index] else self._within_words(term, expansion, is_last)
            if within:
                # The word exists, so that it isn't mistyped.
                right = tuple(variant for variant in expansion.variants if not variant.is_correction)
                expansion = replace(expansion, variants=right)
                others[index] += within
            yield self._resolved(term, expansion, not stops[index], others[index])

    def _within_words(self, term: QueryTerm, expansion: Expansion, is_last: bool) -> list[TermVariant]:
        """Return the variants in which a word is a part of another one."""
        variants: list[TermVariant] = []
        if term.kind is not TermKind.WORD:
            return variants
        if self.queries.with_parts:
            is_known = any(not variant.is_correction for variant in expansion.variants)
            variants += variants_in_parts(self.snapshot, term, is_known, is_last, self.ranking)
        if self.snapshot.has_compounds:
            variants += compound_variants(self.snapshot, term, self.fields, self.languages, self.ranking)
        return variants

    def _resolved(
        self, term: QueryTerm, expansion: Expansion, required: bool, others: list[TermVariant]
    ) -> ResolvedTerm:
        variants = self._best_variants(term, expansion, others)
        toned = self.queries.toned(term.surface) if self.tonal and term.kind is TermKind.WORD else None
        frequency = expansion.frequency if toned is None else min(expansion.frequency, toned.max_count)
        idf = self.snapshot.idf(frequency)
        # The parts of a compound are scored with their frequencies in this index.
        if self.word_counts is not None and term.kind is TermKind.WORD:
            count = self.word_counts.counts.get(term.term, 0)
            idf = self.snapshot.idf(count, self.word_counts.documents) if count else idf
        query = as_typed = self.queries.for_variants(variants, idf)
        if toned is not None:
            own_query = self.queries.for_variants(expansion.variants, idf)
            with_tone = self.queries.with_tone(toned, own_query, foreign=not self.has_tones)
            as_typed = self.queries.best_of([with_tone, self.queries.for_variants(others, idf)])
            if own_query is not None:
                query = self.queries.best_of([tantivy.Query.boost_query(own_query, self.ranking.other_tone), as_typed])
        prefix = expansion.completed if term.kind is TermKind.WORD else None
        return ResolvedTerm(term, tuple(variants), required, idf, query, as_typed, toned, prefix)

    def _best_variants(self, term: QueryTerm, expansion: Expansion, others: list[TermVariant]) -> list[TermVariant]:
        """Return all variants without duplicates, excluding two kinds: a stop word spelled by a compound (``W.H.O.``:
        ``who``), and a known word split in two if the first part is a stop word (``upon``: ``up on``).
        """
        expanded = [
            variant
            for variant in expansion.variants
            if term.kind is not TermKind.COMPOUND or len(variant.terms) > 1 or variant.terms[0] not in self.stop_words
        ]
        best: dict[tuple[tuple[str, ...], bool], TermVariant] = {}
        for variant in (*expanded, *others):
            key = variant.terms, variant.in_parts
            current = best.get(key)
            if current is None or variant.boost > current.boost:
                best[key] = variant
        split = expansion.split
        if split is not None and split[0] in self.stop_words and len(best) > 1:
            del best[split, False]
        return list(best.values())

    def _synonyms(self, terms: Sequence[QueryTerm], synonyms: SynonymIndex) -> list[list[TermVariant]]:
        """For each term, the variants from synonyms; all words of a phrase share the synonyms of the phrase."""
        variants_by_term: list[list[TermVariant]] = [[] for _ in terms]
        if not synonyms.phrases:
            return variants_by_term
        readings = [self._readings(term, synonyms) for term in terms]
        for start in range(len(terms)):
            beginnings: Sequence[tuple[str, ...]] = [()]
            for end in range(start, len(terms)):
                longer = (beginning + reading for beginning in beginnings for reading in readings[end])
                beginnings = [reading for reading in longer if len(reading) <= synonyms.longest][:_MAX_READINGS]
                phrases = dict.fromkeys(
                    phrase for beginning in beginnings for phrase in synonyms.phrases.get(beginning, ())
                )
                variants = [
                    TermVariant(terms, self.ranking.synonym, words=words)
                    for other in phrases
                    for terms, words in self._inflected(other)
                ]
                for index in range(start, end + 1):
                    variants_by_term[index] += variants
                if not beginnings:
                    break
        return variants_by_term

    def _inflected(self, phrase: Phrase) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Yield the terms and the words of a phrase, with its last word as written, then in its inflected forms."""
        yield phrase.terms, phrase.words
        last = phrase.terms[-1]
        if phrase.words != phrase.terms or not last.isalpha():
            return
        for form in _inflected(self.snapshot, last, self.fields, self.languages, self.ranking):
            terms = (*phrase.terms[:-1], form)
            yield terms, terms

    def _readings(self, term: QueryTerm, synonyms: SynonymIndex) -> list[tuple[str, ...]]:
        """``couches`` -> ``couches``, ``couch``: a term, and the words of synonyms that have its stem.

        For a word that no document contains, also the words of synonyms that it may be a misspelling of.
        """
        readings = [term.terms]
        word = term.term
        if term.kind is not TermKind.WORD or word in synonyms.words:
            return readings
        for language in self.languages:
            by_stem = words_by_stem(synonyms.words, language)
            own_stems = stems(language, word) | {stem(language, term.surface)}
            readings += [(synonym,) for own_stem in sorted(own_stems) for synonym in by_stem.get(own_stem, ())]
        errors = errors_allowed(word)
        if len(readings) == 1 and errors and not self.queries.doc_frequency(word):
            similar = extract(word, synonyms.words, scorer=OSA.distance, score_cutoff=errors, limit=None)
            readings += sorted((match[0],) for match in similar)
        return list(dict.fromkeys(readings))

    def _concatenated(self, parsed: ParsedQuery) -> Iterator[tuple[int, list[TermVariant]]]:
        """For each pair of neighboring words, the variants of the pair written as one word."""
        terms = parsed.query_terms
        for first, second in pairwise(range(len(terms))):
            if second not in parsed.adjacency_breaks and self._may_join(terms[first], terms[second]):
                is_open = second == len(terms) - 1 and parsed.last_term_is_prefix
                variants = concatenated_variants(
                    self.snapshot, self.fields, terms[first], terms[second], is_open, self.ranking
                )
                yield first, variants
                yield second, variants

    def _joined(self, parsed: ParsedQuery, text: str) -> Iterator[Sequence[str]]:
        """For each query term, yield the indexed words that join its parts, or all words: ``wi-fi`` -> ``["wifi"]``."""
        terms = parsed.query_terms
        whole = ["".join(term.term for term in terms)] if self._may_be_one_word(parsed) else []
        number = whole[0] if whole else terms[0].term if len(terms) == 1 else ""
        if number[:1].isdecimal():
            whole += other_phone_numbers(number, international=text.lstrip().startswith("+"))
        for term in terms:
            yield [word for word in (term.joined, *whole) if word and self.queries.doc_frequency(word)]

    def _may_be_one_word(self, parsed: ParsedQuery) -> bool:
        """Whether all words of a query may be the parts of one word, such as the groups of a bank account number."""
        terms = parsed.query_terms
        if not 1 < len(terms) <= MAX_PARTS or parsed.adjacency_breaks:
            return False
        whole = "".join(term.term for term in terms)
        return (
            all(term.kind is TermKind.WORD for term in terms)
            and len(whole) <= MAX_JOINED_CHARS
            and (len(terms) > 2 or (len(whole) >= MIN_PHONE_DIGITS and whole.isdecimal()))
        )

    def _may_join(self, left_term: QueryTerm, right_term: QueryTerm) -> bool:
        """``log``, ``in`` -> true; ``the``, ``room`` -> false, as ``the`` is a stop word; ``3``, ``4`` -> false."""
        first, second = left_term.term, right_term.term
        is_quantity = left_term.terms[-1].isdigit() and second.isalpha()  # ``1.5 l`` is written ``1.5l``, too.
        return (
            (left_term.kind is TermKind.WORD or (left_term.kind is TermKind.COMPOUND and is_quantity))
            and right_term.kind in (TermKind.WORD, TermKind.COMPOUND)
            and first not in self.stop_words
            and first + second not in self.stop_words
            and not (second in self.stop_words and len(second) == 1)
            and not (first.isdigit() and second.isdigit())
        )


def _inflected(
    snapshot: Snapshot, word: str, fields: tuple[str, ...], languages: tuple[str, ...], ranking: Ranking
) -> Iterator[str]:
    term = QueryTerm(TermKind.WORD, (word,), word)
    for variant in expand(snapshot, term, fields, languages, False, False, ranking).variants:
        if variant.boost == ranking.stem and not variant.errors:
            yield variant.terms[0]


def count_words(snapshot: Snapshot, query: SearchQuery) -> WordCounts:
    """Return how many documents contain each word of a query."""
    fields = searched_fields(query)
    words = [term.term for term in parse_query(query.text).query_terms] if fields and query.text != MATCH_ALL else []
    return WordCounts(snapshot.total, {word: snapshot.max_doc_frequency(fields, word) for word in words})


def _is_stop_word(term: QueryTerm, stop_words: frozenset[str]) -> bool:
    return term.kind is TermKind.WORD and term.term in stop_words


def _languages_of(parsed: ParsedQuery, snapshot: Snapshot, settings: SearchSettings) -> tuple[str, ...]:
    if settings.language:
        return (settings.language,)
    return likely_languages([term.surface for term in parsed.query_terms], snapshot.languages)


def _stop_words_of(languages: Sequence[str], settings: SearchSettings) -> frozenset[str]:
    if settings.stop_words is not None:
        return _folded(settings.stop_words)
    return frozenset().union(*(stop_words(language) for language in languages))


@lru_cache(maxsize=64)
def _folded(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(fold, words))
