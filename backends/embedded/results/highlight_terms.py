"""The terms that highlighting marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HighlightTerms:
    """Terms that highlighting marks, each with the number of the query's word or phrase that it stands for.

    Attributes:
        terms: Folded words that match as a whole.
        prefixes: Prefixes of words.
        sequences: Terms to mark where they are consecutive.
        unlikely: Terms that are unlikely typing errors; marked only in documents that contain the word in no other
            form.
        typed: Terms as typed.
        meaningful: Numbers of phrases, and of words other than stop words.
    """

    terms: Mapping[str, int] = field(default_factory=dict)
    prefixes: Mapping[str, int] = field(default_factory=dict)
    sequences: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    unlikely: frozenset[str] = frozenset()
    typed: frozenset[str] = frozenset()
    meaningful: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        sequences: Iterable[tuple[tuple[str, ...], int]],
        prefixes: Iterable[tuple[str, int]],
        unlikely: Set[tuple[str, int]] = frozenset(),
        *,
        typed: Set[str] = frozenset(),
        meaningful: Set[int] = frozenset(),
    ) -> HighlightTerms:
        """Build from sequences of terms. A sequence that stands for several words belongs to the first one.

        Args:
            unlikely: Terms that are unlikely to be meant by the words they stand for.
            typed, meaningful: See the attributes.
        """
        whole: dict[str, int] = {}
        several: dict[tuple[str, ...], int] = {}
        for terms, number in sequences:
            if len(terms) == 1:
                whole.setdefault(terms[0], number)
            else:
                several.setdefault(terms, number)
        beginnings: dict[str, int] = {}
        for prefix, number in prefixes:
            beginnings.setdefault(prefix, number)
        unlikely_terms = frozenset(term for term, number in unlikely if whole[term] == number)
        return cls(whole, beginnings, several, unlikely_terms, frozenset(typed), frozenset(meaningful))
