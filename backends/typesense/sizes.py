"""Pages of hits that are refused before Typesense reads their documents.

It takes Typesense a tenth of a second to read a document of a megabyte. What a page has at least, it knows from the
sizes in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backends.base import SearchQuery
from backends.errors import ReplyTooLarge
from backends.typesense.query import CompiledQuery
from backends.typesense.schema import DOCUMENT_BYTES

_FRESH_SECONDS = 60.0
Ask = Callable[[Sequence[Mapping[str, str]]], Sequence[Mapping[str, Any]]]


class PageSizes:
    """The sizes of documents in collections; the largest of each is asked for once a minute."""

    def __init__(self) -> None:
        self._largest: dict[str, tuple[float, float]] = {}

    def check(
        self, name: str, query: SearchQuery, compiled: CompiledQuery, types: Mapping[str, str], pins: int, ask: Ask
    ) -> None:
        """Refuse a page whose documents have more bytes than a query takes, if that is certain.

        Args:
            pins: The number of pinned hits, whose sizes are not known.

        Raises:
            ReplyTooLarge: They have.
        """
        most = query.most_bytes
        if most is None or not query.limit or DOCUMENT_BYTES not in types or compiled.distinct:
            return
        if self._largest_in(name, ask) * query.limit <= most:
            return
        found, sizes = _sizes(ask, compiled.search(page=1, per_page=0))
        shown = min(query.limit, found - query.offset) - pins
        is_all = query.offset == 0 and found <= query.limit
        if sizes and (sizes["sum"] if is_all and not pins else sizes["min"] * shown) > most:
            raise ReplyTooLarge

    def forget(self, name: str) -> None:
        """Ask again about a collection."""
        self._largest.pop(name, None)

    def _largest_in(self, name: str, ask: Ask) -> float:
        known, now = self._largest.get(name), time.monotonic()
        if known is None or now - known[0] > _FRESH_SECONDS:
            _, sizes = _sizes(ask, {"collection": name, "q": "*", "per_page": "0"})
            known = self._largest[name] = (now, sizes.get("max", 0.0))
        return known[1]


def _sizes(ask: Ask, search: Mapping[str, str]) -> tuple[int, Mapping[str, float]]:
    """The number of documents that a search finds, and their smallest, largest and summed size; empty for none."""
    (result,) = ask([{**search, "facet_by": DOCUMENT_BYTES, "max_facet_values": "1"}])
    stats = result["facet_counts"][0]["stats"]
    return result["found"], {name: float(stats[name]) for name in ("min", "max", "sum") if name in stats}
