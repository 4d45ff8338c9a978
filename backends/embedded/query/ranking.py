"""The numbers that determine the ranking, the same for every site and language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from backends.analysis.sentence_queries import SENTENCE_STOP_WORDS, SENTENCE_TERMS


@dataclass(frozen=True, slots=True)
class Ranking:
    """Factors of, and additions to, BM25 scores.

    Attributes:
        fields: Boost of a match in each field.
        word_parts: Boost of a match in the parts of a word written as one.
        closed_compound: Boost of a compound written as one word that ends with the word.
        stem, prefix, typo, far_typo, synonym, concatenated, parts: Boost of a variant other than the word as typed.
        unknown_typo: Boost of a typing error, instead of ``typo``, if no document contains the word as typed.
        part_error_from: Minimum number of letters of a compound's part that may have one typing error.
        swapped_from: Minimum number of letters of such a word that may have two neighbors swapped.
        other_tone: Boost of a word typed with a tone that has a different tone in a document with tones.
        field_tie_breaker, variant_tie_breaker: Share of the scores of weaker fields, and of weaker variants of a word,
            that is added to the best score.
        field_idf_weight: Weight of a word's rarity in its field (1) against its rarity in all fields (0).
        exact_title_boost: Addition, in units of the query's own weight, if the query equals the title.
        exact_section_boost: Addition if the query equals the title of a section.
        corrected_title_boost: Addition if a title or section title equals the query with mistyped words corrected.
        title_beginning_boost: Addition if the title begins with the query, for queries of two words or more; divided by
            the number of such titles.
        character: Boost of a single character of an unspaced script.
        stop, stop_in_sentence: Boost of a stop word, which never has to match.
        title_proximity_boost, section_proximity_boost, content_proximity_boost: Boost of neighboring query words that
            are near each other in the field; the last one also for parts of words written as one.
        all_terms_boost: Addition, in units of the query's weight, if every required word matches;
            ``all_terms_boost_short`` in queries of at most ``short_query_terms`` words.
        exact_term_boost: Addition, in the same units, for each word of such a query that matches completely and without
            a typing error; ``exact_single_term_boost`` for the only word of a query.
        min_hits_before_relaxing: If fewer documents contain every word, documents with some words follow; as many as
            the largest page has hits.
        sentence_terms, sentence_stop_words: Minimum numbers of words, and of stop words among them, that make a query a
            sentence. If it contains quoted words, documents without the phrase may follow. Two pairs of characters of
            an unspaced script count as a word.
        recency_boost: Maximum bonus for recency, as a share of the score.
        half_life_days: Age at which half of the recency bonus remains.
        typo_max_doc_freq: Words in more documents than this are not treated as typing errors.
        max_stems, max_completions: Maximum number of stem and prefix variants per word.
        max_expensive_terms: Maximum number of words of a query that are corrected, or split where letters and digits
            meet.
        max_split_compounds: Maximum number of compounds of a query that may match in parts.
    """

    fields: Mapping[str, float] = field(
        default_factory=lambda: {"title": 2.5, "excerpt": 1.5, "content": 1.0, "sections": 1.5}
    )
    word_parts: float = 0.3
    closed_compound: float = 0.3
    stem: float = 0.8
    prefix: float = 0.7
    typo: float = 0.4
    far_typo: float = 0.3
    unknown_typo: float = 0.6
    swapped_from: int = 4
    part_error_from: int = 2
    synonym: float = 0.9
    concatenated: float = 0.8
    parts: float = 0.3
    other_tone: float = 0.3
    field_tie_breaker: float = 0.6
    variant_tie_breaker: float = 0.3
    field_idf_weight: float = 0.2
    exact_title_boost: float = 1.0
    exact_section_boost: float = 2.0
    corrected_title_boost: float = 2.0
    title_beginning_boost: float = 2.0
    stop: float = 0.8
    stop_in_sentence: float = 0.4
    character: float = 0.7
    title_proximity_boost: float = 0.4
    section_proximity_boost: float = 0.4
    content_proximity_boost: float = 0.25
    all_terms_boost: float = 1.0
    all_terms_boost_short: float = 1.5
    short_query_terms: int = 2
    exact_term_boost: float = 0.4
    exact_single_term_boost: float = 4.0
    min_hits_before_relaxing: int = 100
    sentence_terms: int = SENTENCE_TERMS
    sentence_stop_words: int = SENTENCE_STOP_WORDS
    recency_boost: float = 0.05
    half_life_days: float = 730.0
    typo_max_doc_freq: int = 10
    max_stems: int = 12
    max_completions: int = 30
    max_expensive_terms: int = 3
    max_split_compounds: int = 2

    def balance(self, idf: float, field_idf: float) -> float:
        """Return the factor for a field's score that weighs a word by its rarity in all fields rather than in one.

        Args:
            idf: Inverse document frequency of the word in all fields.
            field_idf: Inverse document frequency of the word in this field.
        """
        return float((idf / field_idf) ** (1 - self.field_idf_weight))


RANKING = Ranking()
