"""Words that follow each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from backends.embedded.analysis.normalization import ANALYZER, UNSEGMENTED_RUN, compose, expand_symbols, graphemes


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that follow each other.

    Attributes:
        terms: As they follow each other in the index.
        words: As they follow each other in a text; a run of a script without spaces is one.
    """

    terms: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """The words of a text.

        Of a run, the index has first the pairs and then the single characters. The first run of a phrase may be the
        end of a longer one, and has its characters next to what follows; the last, if it is longer than a character,
        may be the beginning of a longer one, and has its pairs next to what came before; those between are whole.
        """
        words: list[str] = []
        for piece, is_run in split_runs(compose(text)):
            words += [piece] if is_run else ANALYZER.analyze(expand_symbols(piece))
        terms: list[str] = []
        last = len(words) - 1
        for at, word in enumerate(words):
            if UNSEGMENTED_RUN.match(word) is None:
                terms.append(word)
                continue
            pieces = graphemes(word)
            pairs = [left + right for left, right in pairwise(pieces)]
            if at or not last:
                terms += pairs
            if at < last or not pairs:
                terms += pieces
        return cls(tuple(terms), tuple(words))


def split_runs(text: str) -> Iterator[tuple[str, bool]]:
    """Pieces of a text, and whether each is a run of a script without spaces."""
    at = 0
    for match in UNSEGMENTED_RUN.finditer(text):
        if match.start() > at:
            yield text[at : match.start()], False
        yield match.group(), True
        at = match.end()
    if at < len(text):
        yield text[at:], False
