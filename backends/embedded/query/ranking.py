"""The numbers that ranking is made of, one set for every site and language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Ranking:
    """Factors and additions to BM25.

    Attributes:
        fields: Boost of a match in each field.
        stem, prefix, typo, far_typo, synonym, concatenated, parts: Boost of a variant that is not the word as typed.
        unknown_typo: That of one with a typing error, instead of ``typo``, where no document has the word as typed.
        part_error_from: Letters from which a part of a compound is forgiven one typing error.
        swapped_from: Letters from which such a word may have two neighbours in each other's place, however short.
        other_tone: Boost of a word typed with a tone that has another one in a document with tones.
        field_tie_breaker, variant_tie_breaker: What weaker fields, and weaker variants of a word, add to the best one.
        field_idf_weight: How far a word counts as rare as in its field (1) rather than in all fields (0).
        exact_title_boost: Added, in units of the query's own weight, when the query is the title.
        exact_section_boost: The same when it is the title of a section.
        corrected_title_boost: The same when one of these is the query with mistyped words corrected.
        title_beginning_boost: The same when the title begins with the query, of two words or more.
        character: Boost of a single character of a script without spaces.
        stop: Boost of a stop word; it never has to match.
        title_proximity_boost, section_proximity_boost, content_proximity_boost: Boost of neighbours in the query that
            stand near each other.
        all_terms_boost: Added, in the same units, when every required word matches; ``all_terms_boost_short`` in
            queries of at most ``short_query_terms`` words.
        exact_term_boost: Added, in the same units, for a word of such a query that matches without a typing error and
            finished; ``exact_single_term_boost`` when it is the only one.
        min_hits_before_relaxing: With fewer documents that have every word, those with some words follow; so many can
            be asked for at once.
        sentence_terms, sentence_stop_words: Queries of so many words, so many of them stop words, are sentences: they
            may find documents by stop words alone, last; in those with quoted words among them, documents without the
            phrase may follow. Two pairs of characters of a script without spaces count as a word.
        recency_boost: Largest bonus for recency, as a share of the score.
        half_life_days: Age at which half of it is left.
        typo_max_doc_freq: A word that so many documents have is not looked at as a typing error.
        max_stems, max_completions: Most variants of a kind that are looked up for a word.
        max_expensive_terms: Most words of a query that are looked at as typing errors, or cut where letters and
            digits meet.
        max_split_compounds: Most compounds of a query that may be found in parts.
    """

    fields: Mapping[str, float] = field(
        default_factory=lambda: {"title": 2.5, "excerpt": 1.5, "content": 1.0, "sections": 1.5}
    )
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
    sentence_terms: int = 4
    sentence_stop_words: int = 2
    recency_boost: float = 0.05
    half_life_days: float = 730.0
    typo_max_doc_freq: int = 10
    max_stems: int = 12
    max_completions: int = 30
    max_expensive_terms: int = 3
    max_split_compounds: int = 2

    def balance(self, idf: float, own: float) -> float:
        """Factor for a field's score, so that a word counts by its rarity in all fields, not in one."""
        return float((idf / own) ** (1 - self.field_idf_weight))


RANKING = Ranking()
