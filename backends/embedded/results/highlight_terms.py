"""The terms that highlighting marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HighlightTerms:
    """Terms that highlighting marks, each with the number of the query's word or phrase that it stands for.

    Attributes:
        terms: Folded words that match whole.
        prefixes: Beginnings of words.
        sequences: Terms to mark where they follow each other.
    """

    terms: Mapping[str, int] = field(default_factory=dict)
    prefixes: Mapping[str, int] = field(default_factory=dict)
    sequences: Mapping[tuple[str, ...], int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, sequences: Iterable[tuple[tuple[str, ...], int]], prefixes: Iterable[tuple[str, int]]
    ) -> HighlightTerms:
        """Terms, several of which must follow each other; what stands for several words is the first one's."""
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
        return cls(whole, beginnings, several)
