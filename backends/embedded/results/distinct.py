"""Hits of which no two have the same value of a field.

Hits are read from the best one on until the page is full; the engine counts the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson
import tantivy

from backends.distinct import EXACTLY_COUNTED, distinct_value
from backends.embedded.index.schema import FILTER_TERMS, SOURCE, facet_path, sortable_term
from backends.embedded.index.snapshots import Snapshot

FIRST_READ = 100
"""Hits of the first part; each part is twice as long as all before."""

MOST_READ = 10_000
"""Hits that are looked at for a page."""

Must = tantivy.Occur.Must
_Query = tantivy.Query


class ShownHit(NamedTuple):
    """A hit that is shown for the value it has, ``None`` for itself."""

    address: tantivy.DocAddress
    value: str | None


def first_hits(
    snapshot: Snapshot,
    field: str,
    list_hits: Callable[[int, int], Sequence[tantivy.DocAddress]],
    offset: int,
    limit: int,
) -> list[ShownHit]:
    """The first hit of each value, from ``offset`` on, at most ``limit``.

    Args:
        list_hits: Lists all hits, best first, from an offset on, at most so many.
    """
    seen: set[str] = set()
    shown: list[ShownHit] = []
    for address in _hits(list_hits):
        if len(shown) >= offset + limit:
            break
        value = distinct_value(read_document(snapshot, address).get(field))
        if value is None or value not in seen:
            shown.append(ShownHit(address, value))
        if value is not None:
            seen.add(value)
    return shown[offset:]


def _hits(list_hits: Callable[[int, int], Sequence[tantivy.DocAddress]]) -> Iterator[tantivy.DocAddress]:
    start, size = 0, FIRST_READ
    while start < MOST_READ:
        part = list_hits(start, size)
        yield from part
        if len(part) < size:
            return
        start += size
        size = min(2 * start, MOST_READ - start)


def count_shown(snapshot: Snapshot, field: str, query: tantivy.Query, total: int) -> int:
    """Number of values among the matches of a query, and of matches without one; exact up to 1,000 values.

    Args:
        total: Number of the matches.
    """
    has_value = _Query.const_score_query(_Query.term_query(snapshot.schema, FILTER_TERMS, sortable_term(field)), 0.0)
    valued = _Query.boolean_query([(Must, query), (Must, has_value)])
    path, size = facet_path(field), EXACTLY_COUNTED + 1
    counted = snapshot.searcher.aggregate(
        valued,
        {
            "first": {"terms": {"field": path, "size": size, "segment_size": size}},
            "estimate": {"cardinality": {"field": path}},
        },
    )
    first = counted["first"]
    values = len(first["buckets"])
    documents: int = sum(bucket["doc_count"] for bucket in first["buckets"]) + first["sum_other_doc_count"]
    if values > EXACTLY_COUNTED:
        values = min(documents, max(values, round(counted["estimate"]["value"])))
    return total - documents + values


def read_document(snapshot: Snapshot, address: tantivy.DocAddress) -> dict[str, Any]:
    """A document's fields as they are shown."""
    document: dict[str, Any] = orjson.loads(bytes(snapshot.searcher.doc(address).get_first(SOURCE) or b"{}"))
    return document
