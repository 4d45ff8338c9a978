"""What highlighting marks."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Marks:
    """What highlighting marks, each with the number of the query's word or phrase that it stands for.

    Attributes:
        terms: Folded words that match whole.
        prefixes: Beginnings of words.
        sequences: Terms to mark where they follow each other.
    """

    terms: dict[str, int] = field(default_factory=dict)
    prefixes: dict[str, int] = field(default_factory=dict)
    sequences: dict[tuple[str, ...], int] = field(default_factory=dict)

    def add(self, terms: tuple[str, ...], number: int) -> None:
        """Mark one term whole, or several that follow each other; for the first word that means them."""
        if len(terms) == 1:
            self.terms.setdefault(terms[0], number)
        else:
            self.sequences.setdefault(terms, number)
