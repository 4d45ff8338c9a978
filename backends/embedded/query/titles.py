"""Finding documents by prefixes of words in their titles, for suggestions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson
import tantivy

from backends.base import TitleMatch, distinct_titles
from backends.embedded.analysis.normalization import terms_of
from backends.embedded.index.schema import SOURCE
from backends.embedded.index.snapshots import Snapshot

_TITLE: Final = "title"
_MAX_WORDS: Final = 24
"""Maximum number of words of a query."""

_MAX_COMPLETIONS: Final = 20
"""Maximum number of completions of the last word."""

_EXACT_WORD_BOOST: Final = 1.2
"""Boost of a title that contains the last word as typed, relative to a longer word."""

_MAX_CACHED_PREFIX: Final = 2
"""Maximum length, in letters, of prefixes with cached completions: they have many, and every visitor types them."""

_MAX_CACHED_TITLE: Final = 700
"""Maximum length, in characters, of a cached title and URL: a visitor who keeps typing gets the same ones again."""

_DUPLICATES_FACTOR: Final = 3
"""Factor on the number of documents read, because several may have the same title."""

Must, Should = tantivy.Occur.Must, tantivy.Occur.Should
_Query = tantivy.Query


def find_titles(
    snapshot: Snapshot, text: str, limit: int, condition: tantivy.Query | None = None
) -> tuple[TitleMatch, ...]:
    """Implements :meth:`backends.base.SearchBackend.find_titles`; shorter titles come first.

    Args:
        condition: Condition on the documents; adds nothing to scores.
    """
    words = terms_of(text)[:_MAX_WORDS]
    if not words or not snapshot.total:
        return ()
    *finished, last = words
    if not all(snapshot.frequency(_TITLE, word) for word in finished):
        return ()
    listed = _completions(snapshot, last)
    if not listed:
        return ()
    # Weighted as if all were equally frequent: a prefix does not mean its rarest completion.
    completions = _Query.disjunction_max_query(
        [
            _Query.boost_query(
                _term(snapshot, word), (_EXACT_WORD_BOOST if word == last else 1) / snapshot.idf(frequency)
            )
            for word, frequency in listed
        ]
    )
    clauses = [(Must, _term(snapshot, word)) for word in finished]
    if finished and len(listed) == _MAX_COMPLETIONS:
        # Titles may not contain the most frequent completions together with the other words.
        clauses += [(Must, _Query.regex_query(snapshot.schema, _TITLE, f"{last}.*")), (Should, completions)]
    else:
        clauses.append((Must, completions))
    if condition is not None:
        clauses.append((Must, condition))
    count = min(snapshot.total, limit * _DUPLICATES_FACTOR)
    hits = snapshot.searcher.search(_Query.boolean_query(clauses), limit=count, count=False).hits
    return distinct_titles(_read(snapshot, [address for _, address in hits]), limit)


def _completions(snapshot: Snapshot, start: str) -> list[tuple[str, int]]:
    """The most frequent words of titles with this prefix, and their document frequencies."""
    if len(start) > _MAX_CACHED_PREFIX:
        return snapshot.terms(_TITLE, start, _MAX_COMPLETIONS)
    key = (_TITLE, start)
    completions = snapshot.cached(key)
    if completions is None:
        completions = snapshot.terms(_TITLE, start, _MAX_COMPLETIONS)
        snapshot.cache(key, completions)
    return list(completions)


def _term(snapshot: Snapshot, word: str) -> tantivy.Query:
    return _Query.term_query(snapshot.schema, _TITLE, word)


def _read(snapshot: Snapshot, addresses: list[tantivy.DocAddress]) -> Iterator[TitleMatch]:
    for address in addresses:
        match = snapshot.cached_title(address)
        if match is None:
            document = orjson.loads(bytes(snapshot.searcher.doc(address).get_first(SOURCE) or b"{}"))
            match = TitleMatch(document["title"], document["url"])
            if len(match.title) + len(match.url) <= _MAX_CACHED_TITLE:
                snapshot.cache_title(address, match)
        yield match
