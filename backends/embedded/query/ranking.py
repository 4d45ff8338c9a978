"""The numbers that ranking is made of, one set for every site and language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Ranking:
    """Factors and additions to BM25.

    Attributes:
        fields: Worth of a match in each field.
        stem, prefix, typo, far_typo, synonym, joined, parts: Worth of a match that is not exact.
        other_tone: Worth of a word typed with a tone that has another one in a document with tones.
        field_tie, form_tie: What weaker fields, and weaker forms of a word, add to the best one.
        own_rarity: How far a word counts as rare as in its field (1) rather than in all fields (0).
        whole_title: Added, in units of the query's own weight, when the query is the title.
        character: Worth of a single character of a script without spaces.
        stop: Worth of a stop word; it never has to match.
        title_phrase, content_phrase: Worth of neighbours in the query standing near each other in a document.
        every_word: Added, in the same units, when every word that must match does; ``every_of_few`` in queries
            of at most ``few`` words.
        exact_word: Added, in the same units, for a word of such a query that matches without an error or an end
            that is missing; ``exact_alone`` when it is the only one.
        enough: With fewer documents that have every word, those with some words follow; so many can be asked for
            at once.
        sentence: Queries of so many words with two stop words or more may find documents by stop words alone, last;
            those with quoted words among them may find documents without the phrase, if none has it. Two pairs of
            characters of a script without spaces count as a word.
        newest: Largest bonus for recency, as a share of the score.
        half_life_days: Age at which half of it is left.
        well_known: A word that so many documents have is not looked at as a typing error.
        most_stems, most_completions, most_guessed: Bounds of what is looked up for a word, and for how many words a
            typing error is, or a cut where letters and digits meet.
        most_loose: So many compounds of a query may be found in parts.
    """

    fields: Mapping[str, float] = field(default_factory=lambda: {"title": 2.5, "excerpt": 1.5, "content": 1.0})
    stem: float = 0.8
    prefix: float = 0.7
    typo: float = 0.4
    far_typo: float = 0.3
    synonym: float = 0.9
    joined: float = 0.8
    parts: float = 0.3
    other_tone: float = 0.3
    field_tie: float = 0.6
    form_tie: float = 0.3
    own_rarity: float = 0.2
    whole_title: float = 1.0
    stop: float = 0.8
    character: float = 0.7
    title_phrase: float = 0.4
    content_phrase: float = 0.25
    every_word: float = 1.0
    every_of_few: float = 1.5
    few: int = 2
    exact_word: float = 0.4
    exact_alone: float = 4.0
    enough: int = 100
    sentence: int = 4
    newest: float = 0.05
    half_life_days: float = 730.0
    well_known: int = 10
    most_stems: int = 12
    most_completions: int = 30
    most_guessed: int = 3
    most_loose: int = 2

    def balance(self, rarity: float, own: float) -> float:
        """What a field's score is multiplied by, so that a word counts by its rarity in all fields, not in one."""
        return float((rarity / own) ** (1 - self.own_rarity))


RANKING = Ranking()
