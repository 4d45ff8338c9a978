"""What one search sees of an index."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import tantivy

from backends.embedded.filtering import FilterCompiler
from backends.embedded.schema import LANGUAGE

_CACHED_WORDS = 5000


class Snapshot:
    """An index as of one commit. Immutable but for its caches; shared by threads.

    Attributes:
        slots: Further field to the number of its columns.
    """

    def __init__(self, index: tantivy.Index, slots: Mapping[str, int], signature: object):
        self.searcher = index.searcher()
        self.schema = index.schema
        self.slots = slots
        self.signature = signature
        self.total = self.searcher.num_docs
        self.filters = FilterCompiler(self.schema, slots)
        self._frequencies: dict[tuple[str, str], int] = {}
        self._expansions: dict[Any, Any] = {}

    def count(self, query: tantivy.Query) -> int:
        """Number of documents that match."""
        return matches(self.searcher.search(query, limit=1))

    def frequency(self, field: str, term: str) -> int:
        """In how many documents the field has the term."""
        key = (field, term)
        found = self._frequencies.get(key)
        if found is None:
            if len(self._frequencies) > _CACHED_WORDS:
                self._frequencies.clear()
            found = self._frequencies[key] = self.searcher.doc_freq(field, term)
        return found

    def terms(self, field: str, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Terms of a field that begin with a prefix, most frequent first, with their numbers of documents."""
        return self.searcher.terms_with_prefix(field, prefix, limit=limit)

    def remembered(self, key: Any) -> Any:
        """A result kept by :meth:`remember`, or ``None``."""
        return self._expansions.get(key)

    def remember(self, key: Any, value: Any) -> None:
        """Keep what was worked out about this commit, as long as there is room."""
        if len(self._expansions) > _CACHED_WORDS:
            self._expansions.clear()
        self._expansions[key] = value

    def rarity(self, frequency: int) -> float:
        """BM25's inverse document frequency."""
        total = max(self.total, frequency)
        return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Languages of the documents, the most frequent first, those of few documents left out."""
        counts = self.searcher.terms_with_prefix(LANGUAGE, "")
        total = sum(count for _, count in counts) or 1
        return tuple(language for language, count in counts[:5] if count >= 0.04 * total)

    @cached_property
    def has_excerpts(self) -> bool:
        return bool(self.searcher.terms_with_prefix("excerpt", "", limit=1))


def matches(result: tantivy.SearchResult) -> int:
    """Number of all documents that matched; the engine's stubs leave the attribute out."""
    return int(getattr(result, "count", None) or 0)
