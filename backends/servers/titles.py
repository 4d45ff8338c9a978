"""Finding documents by prefixes of words in their titles, on servers that match more than requested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backends.base import SearchQuery, SearchSettings
from backends.servers.tokenizer import cut_word, spell_signs, split_words
from backends.text import UNSPACED_RUN

_MAX_WORDS = 24


def title_query(text: str, limit: int, within: SearchQuery | None = None) -> SearchQuery | None:
    """A search for titles with the words of ``text``, without query syntax; ``None`` if it has no words.

    Args:
        within: A search whose filters also apply.
    """
    words = [cut_word(word) for word in split_words(spell_signs(text))[:_MAX_WORDS]]
    if not words:
        return None
    every_word = SearchSettings(stop_words=frozenset())
    query = SearchQuery(" ".join(words), limit, fields=("title",), all_words=True, settings=every_word)
    return query if within is None else replace(query, filters=within.filters, filter=within.filter, kinds=within.kinds)


def has_beginnings(title: str, words: Sequence[str]) -> bool:
    """Whether a title contains all words, the last one as a prefix."""
    title_words = [cut_word(word) for word in split_words(spell_signs(title))]
    *finished, last = words
    return all(_has(title_words, word) for word in finished) and any(
        last in word if UNSPACED_RUN.match(last) else word.startswith(last) for word in title_words
    )


def _has(title_words: Sequence[str], word: str) -> bool:
    return word in title_words or (UNSPACED_RUN.match(word) is not None and any(word in run for run in title_words))
