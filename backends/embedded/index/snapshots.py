"""A view of an index as of one commit, which one search sees."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any

import orjson
import tantivy

from backends.base import TitleMatch
from backends.embedded.index.filters import FilterCompiler
from backends.embedded.index.schema import LANGUAGE, SOURCE, STORED_SECTIONS
from backends.sections import SECTIONS, unpack

_CACHE_OF_ONE = 5000


class SnapshotCache:
    """Facts worked out about commits, as long as there is room; the least recently used goes first.

    Args:
        size: Most results kept.
    """

    def __init__(self, size: int):
        self._size = size
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Any:
        """The fact that was kept, or ``None``."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep a result."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


class Snapshot:
    """An index as of one commit. Immutable; shared by threads.

    Args:
        index: What is searched; the snapshot does not keep it.
        signature: Changes with every commit of the index.
        snapshot_cache: Where results about this commit are kept; a place of its own if not given.
        title_cache: The same for titles of documents, which are smaller and many.
        commit: Stands for the commit among all that share these caches.

    Attributes:
        dynamic_columns: Further field to the number of its columns.
    """

    def __init__(
        self,
        index: tantivy.Index,
        dynamic_columns: Mapping[str, int],
        signature: object,
        snapshot_cache: SnapshotCache | None = None,
        title_cache: SnapshotCache | None = None,
        commit: Hashable = None,
    ):
        self.searcher = index.searcher()
        self.schema = index.schema
        self.dynamic_columns = dynamic_columns
        self.signature = signature
        self.total = self.searcher.num_docs
        self.filters = FilterCompiler(self.schema, dynamic_columns)
        self._snapshot_cache = SnapshotCache(_CACHE_OF_ONE) if snapshot_cache is None else snapshot_cache
        self._title_cache = SnapshotCache(_CACHE_OF_ONE) if title_cache is None else title_cache
        self._commit = commit

    def count(self, query: tantivy.Query) -> int:
        """Number of documents that match."""
        return match_count(self.searcher.search(query, limit=1))

    def frequency(self, field: str, term: str) -> int:
        """In how many documents the field has the term."""
        return int(self.searcher.doc_freq(field, term))

    def max_doc_frequency(self, fields: Iterable[str], term: str) -> int:
        """The same of the field that has it in the most documents."""
        frequency = self.searcher.doc_freq
        return max([frequency(field, term) for field in fields])

    def terms(self, field: str, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Terms of a field that begin with a prefix, most frequent first, with their numbers of documents."""
        return self.searcher.terms_with_prefix(field, prefix, limit=limit)

    def searched_text(self, field: str, address: tantivy.DocAddress) -> str:
        """Return the text of a document in which the terms of a searched field stand, as it was sent.

        The titles of sections are searched as a field, but are stored beside the document's own fields.
        """
        entry = self.searcher.doc(address)
        if field == SECTIONS:
            return "\n".join(section.title for section in unpack(bytes(entry.get_first(STORED_SECTIONS) or b"[]")))
        text: str = orjson.loads(bytes(entry.get_first(SOURCE) or b"{}"))[field]
        return text

    def cached(self, key: Hashable) -> Any:
        """A result kept by :meth:`cache`, or ``None``."""
        return self._snapshot_cache.get((self._commit, key))

    def cache(self, key: Hashable, value: Any) -> None:
        """Keep what was worked out about this commit, as long as there is room."""
        self._snapshot_cache.keep((self._commit, key), value)

    def cached_title(self, address: tantivy.DocAddress) -> TitleMatch | None:
        """The title kept by :meth:`cache_title`, or ``None``."""
        found: TitleMatch | None = self._title_cache.get((self._commit, address.segment_ord, address.doc))
        return found

    def cache_title(self, address: tantivy.DocAddress, title: TitleMatch) -> None:
        """Keep the title of a document, as long as there is room."""
        self._title_cache.keep((self._commit, address.segment_ord, address.doc), title)

    def idf(self, frequency: int) -> float:
        """BM25's inverse document frequency."""
        total = max(self.total, frequency)
        return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))

    @cached_property
    def languages(self) -> Mapping[str, float]:
        """Language to the share of the documents that are in it, the most frequent first."""
        counts = self.searcher.terms_with_prefix(LANGUAGE, "")
        total = sum(count for _, count in counts)
        return {language: count / total for language, count in counts}

    @cached_property
    def has_excerpts(self) -> bool:
        return bool(self.searcher.terms_with_prefix("excerpt", "", limit=1))

    @cached_property
    def has_sections(self) -> bool:
        """Tell whether a document has sections. Indexes made by an earlier release have no field for them."""
        try:
            return bool(self.searcher.terms_with_prefix(SECTIONS, "", limit=1))
        except ValueError:
            return False


def keep_most(counts: dict[str, int], listed: Iterable[tuple[str, int]]) -> None:
    """Add terms of another field, with their numbers of documents: of a term of both, the larger number stays."""
    for term, count in listed:
        counts[term] = max(count, counts.get(term, 0))


def match_count(result: tantivy.SearchResult) -> int:
    """Number of all documents that matched; the engine's stubs leave the attribute out."""
    return int(getattr(result, "count", None) or 0)
