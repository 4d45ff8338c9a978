"""Finding documents by the beginnings of words in their titles, where a server forgives more than was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backends.base import SearchQuery, SearchSettings
from backends.servers.tokenizer import cut_word, spell_signs, split_words
from backends.text import UNSPACED_RUN

_MOST_WORDS = 24


def title_query(text: str, limit: int, within: SearchQuery | None = None) -> SearchQuery | None:
    """The search for titles with the words of ``text``, without a sign that means anything; ``None`` without words.

    Args:
        within: A search whose filters hold for it, too.
    """
    words = [cut_word(word) for word in split_words(spell_signs(text))[:_MOST_WORDS]]
    if not words:
        return None
    every_word = SearchSettings(stop_words=frozenset())
    query = SearchQuery(" ".join(words), limit, fields=("title",), all_words=True, settings=every_word)
    return query if within is None else replace(query, filters=within.filters, filter=within.filter, kinds=within.kinds)


def has_beginnings(title: str, words: Sequence[str]) -> bool:
    """Tell whether a title has all words, the last one as the beginning of a word."""
    there = [cut_word(word) for word in split_words(spell_signs(title))]
    *finished, last = words
    return all(_has(there, word) for word in finished) and any(
        last in word if UNSPACED_RUN.match(last) else word.startswith(last) for word in there
    )


def _has(there: Sequence[str], word: str) -> bool:
    return word in there or (UNSPACED_RUN.match(word) is not None and any(word in run for run in there))
