"""Rejecting large pages of hits before Typesense reads their documents.

Typesense takes a tenth of a second to read a document of one megabyte. It can compute the minimum size of a page from
sizes in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backends.errors import ResponseTooLarge
from backends.query import SearchQuery
from backends.typesense.query import CompiledQuery
from backends.typesense.schema import DOCUMENT_BYTES

_CACHE_SECONDS = 60.0
Ask = Callable[[Sequence[Mapping[str, str]]], Sequence[Mapping[str, Any]]]


class PageSizes:
    """The sizes of documents in collections; the maximum of each collection is requested at most once a minute."""

    def __init__(self) -> None:
        self._largest: dict[str, tuple[float, float]] = {}

    def check(
        self, name: str, query: SearchQuery, compiled: CompiledQuery, types: Mapping[str, str], pins: int, ask: Ask
    ) -> None:
        """Reject a page whose documents certainly exceed a query's limit.

        Args:
            pins: Number of pinned hits, whose sizes are unknown.

        Raises:
            ResponseTooLarge: The documents exceed the limit.
        """
        max_bytes = query.max_bytes
        if (
            max_bytes is None
            or query.returned_fields is not None
            or not query.limit
            or DOCUMENT_BYTES not in types
            or compiled.distinct
        ):
            return
        if self._largest_in(name, ask) * query.limit <= max_bytes:
            return
        total, sizes = _sizes(ask, compiled.search(page=1, per_page=0))
        count = min(query.limit, total - query.offset) - pins
        is_all = query.offset == 0 and total <= query.limit
        if sizes and (sizes["sum"] if is_all and not pins else sizes["min"] * count) > max_bytes:
            raise ResponseTooLarge

    def forget(self, name: str) -> None:
        """Discard the cached maximum of a collection."""
        self._largest.pop(name, None)

    def _largest_in(self, name: str, ask: Ask) -> float:
        cached, now = self._largest.get(name), time.monotonic()
        if cached is None or now - cached[0] > _CACHE_SECONDS:
            _, sizes = _sizes(ask, {"collection": name, "q": "*", "per_page": "0"})
            cached = self._largest[name] = (now, sizes.get("max", 0.0))
        return cached[1]


def _sizes(ask: Ask, search: Mapping[str, str]) -> tuple[int, Mapping[str, float]]:
    """``(3, {"min": 10.0, "max": 20.0, "sum": 45.0})``: number of documents that a search finds, and sizes in bytes."""
    (result,) = ask([{**search, "facet_by": DOCUMENT_BYTES, "max_facet_values": "1"}])
    stats = result["facet_counts"][0]["stats"]
    return result["found"], {name: float(stats[name]) for name in ("min", "max", "sum") if name in stats}
