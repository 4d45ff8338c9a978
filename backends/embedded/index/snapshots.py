"""Immutable views of an index as of one commit, with caches."""

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
from backends.embedded.index.schema import COMPOUNDS, LANGUAGE, SOURCE, STORED_SECTIONS, WORD_PARTS
from backends.field_rules import check_filter
from backends.filters import Filter, all_of, parse_filter
from backends.query import SearchQuery
from backends.sections import SECTIONS, unpack

_DEFAULT_CACHE_ENTRIES = 5000


class SnapshotCache:
    """LRU cache of facts about commits.

    Args:
        size: Maximum number of entries.
    """

    def __init__(self, size: int):
        self._size = size
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Any:
        """Return the cached value, or ``None``."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def keep(self, key: Hashable, value: Any) -> None:
        """Add a value to the cache."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


class Snapshot:
    """An index as of one commit. Immutable; shared by threads.

    Args:
        index: The index, which the snapshot does not keep open.
        signature: Changes with every commit of the index.
        snapshot_cache: Cache for facts about this commit; by default the snapshot has its own.
        title_cache: Cache for document titles, which are smaller and more numerous.
        commit: Identifies the commit among all commits that share these caches.

    Attributes:
        dynamic_columns: Custom field to the number of its columns.
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
        self._snapshot_cache = SnapshotCache(_DEFAULT_CACHE_ENTRIES) if snapshot_cache is None else snapshot_cache
        self._title_cache = SnapshotCache(_DEFAULT_CACHE_ENTRIES) if title_cache is None else title_cache
        self._commit = commit

    def count(self, query: tantivy.Query) -> int:
        """Return the number of matching documents."""
        return match_count(self.searcher.search(query, limit=1))

    def frequency(self, field: str, term: str) -> int:
        """Return the number of documents whose field contains the term."""
        return int(self.searcher.doc_freq(field, term))

    def max_doc_frequency(self, fields: Iterable[str], term: str) -> int:
        """Return the term's highest document frequency in any of the fields."""
        frequency = self.searcher.doc_freq
        return max([frequency(field, term) for field in fields])

    def terms(self, field: str, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Return a field's terms that begin with a prefix, most frequent first, with their document frequencies."""
        return self.searcher.terms_with_prefix(field, prefix, limit=limit)

    def searched_text(self, field: str, address: tantivy.DocAddress) -> str:
        """Return the original text of a document's searched field.

        The titles of sections are searched as a field, but stored separately from the document's own fields.
        """
        entry = self.searcher.doc(address)
        if field == SECTIONS:
            return "\n".join(section.title for section in unpack(bytes(entry.get_first(STORED_SECTIONS) or b"[]")))
        text: str = orjson.loads(bytes(entry.get_first(SOURCE) or b"{}"))[field]
        return text

    def cached(self, key: Hashable) -> Any:
        """Return a value cached by :meth:`cache`, or ``None``."""
        return self._snapshot_cache.get((self._commit, key))

    def cache(self, key: Hashable, value: Any) -> None:
        """Cache a fact about this commit."""
        self._snapshot_cache.keep((self._commit, key), value)

    def cached_title(self, address: tantivy.DocAddress) -> TitleMatch | None:
        """Return the title cached by :meth:`cache_title`, or ``None``."""
        title: TitleMatch | None = self._title_cache.get((self._commit, address.segment_ord, address.doc))
        return title

    def cache_title(self, address: tantivy.DocAddress, title: TitleMatch) -> None:
        """Cache the title of a document."""
        self._title_cache.keep((self._commit, address.segment_ord, address.doc), title)

    def idf(self, frequency: int, total: int | None = None) -> float:
        """Return BM25's inverse document frequency for a document frequency.

        Args:
            total: Number of documents; ``None`` for those of the index.
        """
        # Until a merge, frequencies include deleted documents, but the total does not.
        total = max(self.total if total is None else total, frequency)
        return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))

    @cached_property
    def languages(self) -> Mapping[str, float]:
        """Each language's share of the documents, the most frequent first."""
        counts = self.searcher.terms_with_prefix(LANGUAGE, "")
        total = sum(count for _, count in counts)
        return {language: count / total for language, count in counts}

    @cached_property
    def has_excerpts(self) -> bool:
        return self._has_terms("excerpt")

    @cached_property
    def has_word_parts(self) -> bool:
        """Whether any document has words made of parts."""
        return self._has_terms(WORD_PARTS)

    @cached_property
    def has_compounds(self) -> bool:
        """Whether any document has words that may be compounds."""
        return self._has_terms(COMPOUNDS)

    @cached_property
    def has_sections(self) -> bool:
        """Whether any document has sections."""
        return self._has_terms(SECTIONS)

    def _has_terms(self, field: str) -> bool:
        """Whether any document has terms in a field. Indexes of an earlier release lack the newer fields."""
        try:
            return bool(self.searcher.terms_with_prefix(field, "", limit=1))
        except ValueError:
            return False


def add_highest_counts(counts: dict[str, int], listed: Iterable[tuple[str, int]]) -> None:
    """Add terms with their document frequencies in a field to ``counts``, which keeps the highest frequency of each."""
    for term, count in listed:
        counts[term] = max(count, counts.get(term, 0))


def match_count(result: tantivy.SearchResult) -> int:
    """Return the number of all matches, of which a result contains only some."""
    return int(getattr(result, "count", None) or 0)


def compile_condition(snapshot: Snapshot, query: SearchQuery) -> tantivy.Query | None:
    """Compile a search's filters to a query that adds nothing to scores; ``None`` without filters.

    The filters of rules are cached with the snapshot, because they may contain hundreds of conditions.

    Raises:
        BackendRejected: The engine cannot run the filters.
    """
    parts: list[Filter] = [] if query.condition is None else [query.condition]
    if query.native_filter.strip():
        parts.append(parse_filter(query.native_filter))
    expression = all_of(parts)
    if expression is None:
        return None
    key = ("condition", expression) if query.effects.rules else None
    compiled: tantivy.Query | None = None if key is None else snapshot.cached(key)
    if compiled is None:
        for part in parts:
            check_filter(part, query.kinds)
        compiled = tantivy.Query.const_score_query(snapshot.filters.compile(expression), 0.0)
        if key is not None:
            snapshot.cache(key, compiled)
    return compiled
