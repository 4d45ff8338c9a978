"""Synonyms of a site, indexed for looking up the words of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from backends.analysis.languages import stems
from backends.analysis.parser import Phrase, query_terms_of
from backends.query import MAX_USED_SYNONYMS, Synonyms, split_synonyms


@dataclass(frozen=True, slots=True)
class SynonymIndex:
    """A site's synonyms, indexed for lookup.

    Attributes:
        phrases: The terms of each synonym in a query to the phrases that may replace it, at most
            :data:`MAX_USED_SYNONYMS`.
        longest: Number of terms of the longest synonym.
        words: Every term of a synonym.
    """

    phrases: Mapping[tuple[str, ...], Sequence[Phrase]]
    longest: int
    words: frozenset[str]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, synonyms: Synonyms) -> SynonymIndex:
        """Index synonyms; earlier entries take precedence."""
        phrases_by_terms: dict[tuple[str, ...], dict[Phrase, None]] = {}
        for searched, others in split_synonyms(synonyms, _terms_of):
            members = {terms: Phrase.of(phrase) for terms, phrase in others.items()}
            for terms in searched:
                replacements = phrases_by_terms.setdefault(terms, {})
                if len(replacements) < MAX_USED_SYNONYMS:
                    replacements.update(dict.fromkeys(members[other] for other in members if other != terms))
        phrases = {terms: tuple(others)[:MAX_USED_SYNONYMS] for terms, others in phrases_by_terms.items()}
        return cls(phrases, max(map(len, phrases), default=0), frozenset(term for terms in phrases for term in terms))


def _terms_of(phrase: str) -> tuple[str, ...]:
    return tuple(part for term in query_terms_of(phrase) for part in term.terms)


@lru_cache(maxsize=64)
def words_by_stem(words: frozenset[str], language: str) -> Mapping[str, Sequence[str]]:
    """Group words by their stems in a language; a word with several possible stems is in several groups."""
    by_stem: dict[str, list[str]] = {}
    for word in sorted(words):
        for stemmed in stems(language, word):
            by_stem.setdefault(stemmed, []).append(word)
    return by_stem
