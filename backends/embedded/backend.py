"""The embedded engine: tantivy in this process, on disk or in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import orjson
import tantivy

from backends.analysis.normalization import terms_of
from backends.base import Document, Hit, SearchBackend, SearchResult, TitleMatch, distinct_titles, engine_identity
from backends.embedded.index.disk import DiskStore
from backends.embedded.index.documents import stored_ids
from backends.embedded.index.memory import MemoryStore
from backends.embedded.index.schema import SOURCE
from backends.embedded.index.snapshots import Snapshot, compile_condition
from backends.embedded.index.store import Store, engine_errors
from backends.embedded.maintenance import MergeScheduler
from backends.embedded.query.terms import count_words
from backends.embedded.related import find_related
from backends.embedded.search import run_search
from backends.filters import OneOf
from backends.query import FieldKinds, SearchQuery, WordCounts
from backends.support import check_support, declare, everywhere, not_needed

OPEN_INDEXES = 200
"""Default number of indexes that a process keeps open."""

WRITE_TIMEOUT_SECONDS = 30.0
"""Default number of seconds that a write waits for another write of the same index."""


class TantivyBackend(SearchBackend):
    """The embedded search engine, which searches the indexes of one store.

    Built by :meth:`from_url` from ``memory://`` or ``tantivy:///path?indexes=200&timeout=30&name=second``. ``indexes``
    is the number of indexes that a process keeps open, ``timeout`` the seconds that a write waits for another write of
    the same index, and ``name`` distinguishes this engine from another one on disk.
    """

    support = declare(
        text=everywhere("parsed, resolved, and relaxed (query/)"),
        limit=everywhere("size of the page"),
        offset=everywhere("start of the page"),
        native_filter=everywhere("portable grammar, compiled into the condition that every hit must meet"),
        portable_filter=everywhere("compiled into the condition that every hit must meet, pinned hits included"),
        sort=everywhere("results/sorting.py; pins, boosts, and recency have no effect then"),
        facets=everywhere("counted among all hits, before grouping"),
        facet_values=everywhere("limit of the values counted"),
        highlight=everywhere("marked in the hits of the page"),
        kinds=everywhere("checks the fields of filters, sort, and facets"),
        settings=everywhere("language, words, and weights in query/; ranks in query/ranks.py, unless the query sorts"),
        fields=everywhere("fields of the term queries"),
        all_words=everywhere("stops after the first relaxation"),
        sections=everywhere("chosen for the hits of the page"),
        distinct=everywhere("hits are read and grouped in their final order, pinned and sorted ones, too"),
        effects=everywhere("pins, hidden documents, and boosts are added to those of the settings"),
        explain=everywhere("computed for the hits of the page"),
        answers=everywhere("passages are found in the hits of the page"),
        returned_fields=everywhere("selected when the hits of the page are built"),
        scored=everywhere("scores as shares of the weight of the query's words"),
        word_counts=everywhere("they replace the index's own document frequencies"),
        max_bytes=everywhere("no further hits are built beyond it"),
        is_preview=not_needed("synonyms come from the query, never from the index"),
    )

    def __init__(self, store: Store, *, name: str, identity: str, persistent: bool):
        self.store = store
        self.name = name
        self.identity = identity
        self.persistent = persistent

    @classmethod
    def from_url(cls, url: str) -> TantivyBackend:
        """Build the backend for a URL. Opens nothing.

        Raises:
            ValueError: The URL does not have the form that :class:`TantivyBackend` describes.
        """
        parts = urlsplit(url)
        options = {name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()}
        timeout = _positive(options.pop("timeout", str(WRITE_TIMEOUT_SECONDS)), "timeout")
        if parts.scheme == "memory":
            if options or parts.netloc or parts.path.strip("/"):
                raise ValueError("The URL of the search engine in memory must be memory:// without further parts.")
            return cls(MemoryStore(timeout), name="memory", identity=engine_identity("memory"), persistent=False)
        path = unquote(parts.path)
        if parts.netloc or not path.startswith("/") or path == "/":
            raise ValueError("The URL of the embedded search engine must have the form tantivy:///absolute/path.")
        indexes = int(_positive(options.pop("indexes", str(OPEN_INDEXES)), "indexes"))
        identity = engine_identity("tantivy", options.pop("name", ""))
        if options:
            raise ValueError(f"The embedded search engine has no option {min(options)!r}.")
        store = DiskStore(Path(path), max(1, indexes), timeout, MergeScheduler)
        return cls(store, name="tantivy", identity=identity, persistent=True)

    def create_index(self, index: str) -> None:
        with engine_errors("creating an index"):
            self.store.create(index)

    def delete_index(self, index: str) -> None:
        with engine_errors("deleting an index"):
            self.store.drop(index)

    def list_indexes(self) -> list[str]:
        with engine_errors("listing the indexes"):
            return self.store.names()

    def outdated_indexes(self) -> list[str]:
        with engine_errors("listing the indexes"):
            return self.store.outdated_names()

    def upsert(self, index: str, documents: Sequence[Document], kinds: FieldKinds) -> None:
        with engine_errors("writing documents"):
            if not documents:
                self.store.snapshot(index)
                return
            with self.store.writing(index, kinds, documents) as writing:
                writing.put()

    def delete(self, index: str, ids: Sequence[str]) -> None:
        with engine_errors("deleting documents"):
            if not ids:
                self.store.snapshot(index)
                return
            with self.store.writing(index, {}) as writing:
                writing.remove(ids)

    def search(self, index: str, query: SearchQuery) -> SearchResult:
        check_support(query, self.support)
        with engine_errors("searching"):
            return run_search(self.store.snapshot(index), query)

    def count_words(self, index: str, query: SearchQuery) -> WordCounts:
        with engine_errors("counting words"):
            return count_words(self.store.snapshot(index), query)

    def find_titles(
        self, index: str, text: str, limit: int, *, within: SearchQuery | None = None
    ) -> tuple[TitleMatch, ...]:
        with engine_errors("finding titles"):
            snapshot = self.store.snapshot(index)
            condition = None if within is None else compile_condition(snapshot, within)
            return find_titles(snapshot, text, limit, condition)

    def find_related(self, index: str, page: OneOf, query: SearchQuery) -> tuple[Hit, ...] | None:
        with engine_errors("finding related pages"):
            return find_related(self.store.snapshot(index), page, query)

    def count(self, index: str) -> int:
        with engine_errors("counting documents"):
            return self.store.snapshot(index).total

    def document_ids(self, index: str) -> Iterator[str]:
        with engine_errors("listing documents"):
            yield from stored_ids(self.store.snapshot(index).searcher)

    def run_maintenance(self) -> None:
        with engine_errors("looking for indexes to merge"):
            self.store.run_maintenance()

    def check(self) -> None:
        with engine_errors("checking itself"):
            self.store.check()

    def index_bytes(self) -> int | None:
        with engine_errors("measuring the indexes"):
            return self.store.index_bytes()

    def free_share(self) -> float | None:
        with engine_errors("measuring the disk"):
            return self.store.free_share()

    def version(self) -> str:
        return package_version("tantivy")

    def close(self) -> None:
        with engine_errors("closing"):
            self.store.close()


def _positive(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e9:
        raise ValueError(f"The option {option!r} of the search engine must be a number above 0.")
    return value


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
"""Maximum length, in characters, of a cached title and URL. Caching helps because titles recur as a visitor types."""

_DUPLICATES_FACTOR: Final = 3
"""Factor by which more documents than titles are read, because several documents may have the same title."""

Must, Should = tantivy.Occur.Must, tantivy.Occur.Should
_Query = tantivy.Query


def find_titles(
    snapshot: Snapshot, text: str, limit: int, condition: tantivy.Query | None = None
) -> tuple[TitleMatch, ...]:
    """Implement :meth:`backends.base.SearchBackend.find_titles`; shorter titles come first.

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
    # Completions are weighted as if equally frequent: a visitor who types a prefix rarely means its rarest completion.
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
        # There may be no title that contains one of the most frequent completions together with the other words.
        clauses += [(Must, _Query.regex_query(snapshot.schema, _TITLE, f"{last}.*")), (Should, completions)]
    else:
        clauses.append((Must, completions))
    if condition is not None:
        clauses.append((Must, condition))
    count = min(snapshot.total, limit * _DUPLICATES_FACTOR)
    hits = snapshot.searcher.search(_Query.boolean_query(clauses), limit=count, count=False).hits
    return distinct_titles(_read(snapshot, [address for _, address in hits]), limit)


def _completions(snapshot: Snapshot, start: str) -> list[tuple[str, int]]:
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
