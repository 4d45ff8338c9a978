"""Consecutive words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from backends.embedded.analysis.normalization import ANALYZER, UNSEGMENTED_RUN, compose, expand_symbols, graphemes


@dataclass(frozen=True, slots=True)
class Phrase:
    """Consecutive words.

    Attributes:
        terms: Consecutive terms as in the index.
        words: Consecutive words as in a text; a run of an unspaced script is one word.
    """

    terms: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse a text into a phrase.

        For a run of an unspaced script, the index contains first its pairs and then its single characters. The first
        run of a phrase may be the end of a longer run, whose characters adjoin the next word; the last run, if longer
        than a character, may be the beginning of a longer run, whose pairs adjoin the previous word. Runs in between
        are complete.
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
            pairs = [first + second for first, second in pairwise(pieces)]
            if at or not last:
                terms += pairs
            if at < last or not pairs:
                terms += pieces
        return cls(tuple(terms), tuple(words))


def split_runs(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text into pieces, and tell which are runs of an unspaced script."""
    at = 0
    for match in UNSEGMENTED_RUN.finditer(text):
        if match.start() > at:
            yield text[at : match.start()], False
        yield match.group(), True
        at = match.end()
    if at < len(text):
        yield text[at:], False
