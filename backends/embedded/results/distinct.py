"""Grouping hits by the value of a field.

The engine counts the values; hits are read in order until the page is full or every value has been seen.
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
"""Number of hits in the first chunk; each further chunk is twice as long as all before it."""

MAX_READ = 10_000
"""Maximum number of hits read for a page."""

Must = tantivy.Occur.Must
_Query = tantivy.Query


class GroupHit(NamedTuple):
    """The hit shown for a value; ``None`` for a hit without a value."""

    address: tantivy.DocAddress
    value: str | None


def first_of_each_group(
    snapshot: Snapshot,
    field: str,
    list_hits: Callable[[int, int], Sequence[tantivy.DocAddress]],
    offset: int,
    limit: int,
    total: int,
) -> list[GroupHit]:
    """Return one page of a distinct search: the first hit of each value, and every hit without a value.

    Args:
        list_hits: Lists all hits, best first, given an offset and a limit.
        offset, limit: The page, in groups.
        total: Result of :func:`count_groups`: if it is exact, reading stops once that many groups are seen.
    """
    end = offset + limit if total > EXACTLY_COUNTED else min(offset + limit, total)
    values: set[str] = set()
    groups: list[GroupHit] = []
    for address in _hits(list_hits):
        if len(groups) >= end:
            break
        value = distinct_value(read_document(snapshot, address).get(field))
        if value is None or value not in values:
            groups.append(GroupHit(address, value))
        if value is not None:
            values.add(value)
    return groups[offset:]


def _hits(list_hits: Callable[[int, int], Sequence[tantivy.DocAddress]]) -> Iterator[tantivy.DocAddress]:
    start, size = 0, FIRST_READ
    while start < MAX_READ:
        part = list_hits(start, size)
        yield from part
        if len(part) < size:
            return
        start += size
        size = min(2 * start, MAX_READ - start)


def count_groups(snapshot: Snapshot, field: str, query: tantivy.Query, total: int) -> int:
    """Return the number of groups: values among the matches, plus matches without a value; exact up to 1,000 values.

    Args:
        total: Number of matches.
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
    """Return the fields of a stored document as hits have them."""
    document: dict[str, Any] = orjson.loads(bytes(snapshot.searcher.doc(address).get_first(SOURCE) or b"{}"))
    return document
