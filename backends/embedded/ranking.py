"""The numbers that ranking is made of, one set for every site and language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Ranking:
    """Factors and additions to BM25.

    Attributes:
        fields: Worth of a match in each field.
        stem, prefix, typo, far_typo, synonym: Worth of a match that is not exact.
        tie: What the weaker fields and forms add to the best one.
        character: Worth of a single character of a script without spaces.
        stop: Worth of a stop word; it never has to match.
        title_phrase, content_phrase: Worth of neighbours in the query standing near each other in a document.
        every_word: Added when every word that must match does, in units of the query's own weight.
        exact_word: Added, in the same units, when every one does so without an error.
        enough: With fewer documents that have every word, those with some words follow.
        newest: Largest bonus for recency, as a share of the score.
        half_life_days: Age at which half of it is left.
    """

    fields: Mapping[str, float] = field(default_factory=lambda: {"title": 2.5, "excerpt": 1.5, "content": 1.0})
    stem: float = 0.8
    prefix: float = 0.7
    typo: float = 0.4
    far_typo: float = 0.3
    synonym: float = 0.9
    field_tie: float = 0.7
    form_tie: float = 0.3
    own_rarity: float = 0.2
    whole_title: float = 1.0
    stop: float = 0.8
    character: float = 0.7
    title_phrase: float = 0.5
    content_phrase: float = 0.4
    every_word: float = 0.75
    every_of_few: float = 1.5
    few: int = 2
    exact_word: float = 0.4
    exact_alone: float = 4.0
    enough: int = 100
    sentence: int = 4
    newest: float = 0.05
    half_life_days: float = 730.0
    well_known: int = 5
    most_stems: int = 12
    most_completions: int = 30
    most_typo_words: int = 3


RANKING = Ranking()
