"""Documents by the beginnings of words in their titles, as somebody types."""

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
_MOST_WORDS: Final = 24
_MOST_COMPLETIONS: Final = 20
_AS_TYPED: Final = 1.2
"""What a title with the last word as it is gains over one with a longer word."""

_LONGEST_KEPT: Final = 2
"""Letters of a beginning whose completions are remembered: they are many, and everybody types them."""

_LONGEST_TITLE_KEPT: Final = 700
"""Characters of a title and an address that are remembered: whoever goes on typing sees the same ones again."""

_PASSED_OVER: Final = 3
"""How many times as many documents as are wanted are found, since some may have the same title."""

Must, Should = tantivy.Occur.Must, tantivy.Occur.Should
_Query = tantivy.Query


def find_titles(
    snapshot: Snapshot, text: str, limit: int, condition: tantivy.Query | None = None
) -> tuple[TitleMatch, ...]:
    """As :meth:`backends.base.SearchBackend.find_titles`; shorter titles come first.

    Args:
        condition: What the documents must match; adds nothing to scores.
    """
    words = terms_of(text)[:_MOST_WORDS]
    if not words or not snapshot.total:
        return ()
    *finished, last = words
    if not all(snapshot.frequency(_TITLE, word) for word in finished):
        return ()
    listed = _completions(snapshot, last)
    if not listed:
        return ()
    # Weighed as if all were as frequent: whoever types a beginning does not mean the rarest word that has it.
    completions = _Query.disjunction_max_query(
        [
            _Query.boost_query(_term(snapshot, word), (_AS_TYPED if word == last else 1) / snapshot.idf(frequency))
            for word, frequency in listed
        ]
    )
    clauses = [(Must, _term(snapshot, word)) for word in finished]
    if finished and len(listed) == _MOST_COMPLETIONS:
        # The most frequent words may not stand beside the others.
        clauses += [(Must, _Query.regex_query(snapshot.schema, _TITLE, f"{last}.*")), (Should, completions)]
    else:
        clauses.append((Must, completions))
    if condition is not None:
        clauses.append((Must, condition))
    wanted = min(snapshot.total, limit * _PASSED_OVER)
    hits = snapshot.searcher.search(_Query.boolean_query(clauses), limit=wanted, count=False).hits
    return distinct_titles(_read(snapshot, [address for _, address in hits]), limit)


def _completions(snapshot: Snapshot, start: str) -> list[tuple[str, int]]:
    """The most frequent words of titles with this beginning, and in how many titles each is."""
    if len(start) > _LONGEST_KEPT:
        return snapshot.terms(_TITLE, start, _MOST_COMPLETIONS)
    key = (_TITLE, start)
    known = snapshot.cached(key)
    if known is None:
        known = snapshot.terms(_TITLE, start, _MOST_COMPLETIONS)
        snapshot.cache(key, known)
    return list(known)


def _term(snapshot: Snapshot, word: str) -> tantivy.Query:
    return _Query.term_query(snapshot.schema, _TITLE, word)


def _read(snapshot: Snapshot, addresses: list[tantivy.DocAddress]) -> Iterator[TitleMatch]:
    for address in addresses:
        match = snapshot.cached_title(address)
        if match is None:
            document = orjson.loads(bytes(snapshot.searcher.doc(address).get_first(SOURCE) or b"{}"))
            match = TitleMatch(document["title"], document["url"])
            if len(match.title) + len(match.url) <= _LONGEST_TITLE_KEPT:
                snapshot.cache_title(address, match)
        yield match
