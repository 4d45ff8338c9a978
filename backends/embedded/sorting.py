"""Exact pages of sorted results, by several keys, from an engine that sorts by one.

The engine lists documents by one column. Documents with the same value there are a group; a group is listed by the
next key, and at last by relevance. Only the groups that reach into the page are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tantivy

from backends.base import STANDARD_FIELDS, FieldKinds, SortKey
from backends.embedded.schema import MARKS, SCALAR_KINDS, column_of, sortable_mark
from backends.embedded.snapshots import Snapshot
from backends.errors import BackendRejected

Must, MustNot = tantivy.Occur.Must, tantivy.Occur.MustNot
_Query = tantivy.Query

_MOST_GROUPS = 10_000

Page = Callable[[tantivy.Query, int, int], list[tantivy.DocAddress]]
"""Lists documents of a query, from an offset on, at most so many."""


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    present: str | None
    descending: bool


def check_sort(keys: Sequence[SortKey], kinds: FieldKinds) -> None:
    """Raise :class:`BackendRejected` for a field that is unknown or has no single values."""
    for key in keys:
        name = key.field
        if name == "content":
            raise BackendRejected("sort", "Results cannot be sorted by 'content'.")
        if name not in STANDARD_FIELDS and name not in kinds:
            raise BackendRejected("sort", f"No document has a field {name!r}.")
        if name not in STANDARD_FIELDS and not kinds[name] & SCALAR_KINDS:
            raise BackendRejected("sort", f"Results cannot be sorted by {name!r}: it holds lists.")


class Sorter:
    """Lists documents of one snapshot by keys, and by ``last`` where they are equal."""

    def __init__(self, snapshot: Snapshot, keys: Sequence[SortKey], last: Page):
        self.snapshot = snapshot
        self.last = last
        self.columns: list[_Column] = []
        for key in keys:
            column = column_of(key.field, snapshot.slots)
            if column is not None and all(column != known.name for known in self.columns):
                always = key.field in ("id", "title", "url")
                self.columns.append(_Column(column, None if always else sortable_mark(key.field), key.descending))

    def page(self, query: tantivy.Query, offset: int, limit: int) -> list[tantivy.DocAddress]:
        """Documents of the query from ``offset`` on, at most ``limit``."""
        return self._page(query, 0, offset, limit)

    def _page(self, query: tantivy.Query, depth: int, offset: int, limit: int) -> list[tantivy.DocAddress]:
        if limit <= 0:
            return []
        if depth == len(self.columns):
            return self.last(query, offset, limit)
        column = self.columns[depth]
        if column.present is None:
            return self._present(query, depth, offset, limit)
        mark = _Query.term_query(self.snapshot.schema, MARKS, column.present)
        with_value = _both(query, mark)
        count = self.snapshot.count(with_value)
        found = self._present(with_value, depth, offset, limit) if offset < count else []
        if len(found) < limit:
            without = _Query.boolean_query([(Must, query), (MustNot, mark)])
            found += self._page(without, depth + 1, max(0, offset - count), limit - len(found))
        return found

    def _present(self, query: tantivy.Query, depth: int, offset: int, limit: int) -> list[tantivy.DocAddress]:
        """A page of documents that all have a value in the column."""
        column = self.columns[depth]
        total = self.snapshot.total
        if offset >= total:
            return []
        # One more on either side tells whether a group reaches over the edge of the page.
        start = max(0, offset - 1)
        wanted = min(limit + (offset - start) + 1, total)
        order = tantivy.Order.Desc if column.descending else tantivy.Order.Asc
        listed = self.snapshot.searcher.search(
            query, limit=wanted, count=False, order_by_field=column.name, offset=start, order=order
        ).hits
        found: list[tantivy.DocAddress] = []
        at = offset - start
        while at < len(listed) and len(found) < limit:
            value = listed[at][0]
            size = 1
            while at + size < len(listed) and listed[at + size][0] == value:
                size += 1
            reaches_back = at > 0 and listed[at - 1][0] == value
            if size == 1 and not reaches_back:
                found.append(listed[at][1])
            else:
                group = _both(query, _Query.term_query(self.snapshot.schema, column.name, value))
                passed = offset + len(found) - self._count_before(query, column, value) if reaches_back else 0
                found += self._page(group, depth + 1, passed, min(size, limit - len(found)))
            at += size
        return found

    def _count_before(self, query: tantivy.Query, column: _Column, value: Any) -> int:
        """How many documents come before those with this value."""
        if isinstance(value, int):
            bounds = (value, None, False, True) if column.descending else (None, value, True, False)
            outside = _Query.range_query(self.snapshot.schema, column.name, tantivy.FieldType.Integer, *bounds)
            return self.snapshot.count(_both(query, outside))
        wish = {"v": {"terms": {"field": column.name, "size": _MOST_GROUPS, "segment_size": _MOST_GROUPS}}}
        groups = self.snapshot.searcher.aggregate(query, wish)["v"]
        if groups["sum_other_doc_count"]:
            return self._first_place(query, column, value)
        return sum(
            bucket["doc_count"]
            for bucket in groups["buckets"]
            if (bucket["key"] > value if column.descending else bucket["key"] < value)
        )

    def _first_place(self, query: tantivy.Query, column: _Column, value: Any) -> int:
        """The place of the first document with a text value, by halving."""
        order = tantivy.Order.Desc if column.descending else tantivy.Order.Asc
        low, high = 0, self.snapshot.count(query)
        while low < high:
            middle = (low + high) // 2
            there = self.snapshot.searcher.search(
                query, limit=1, count=False, order_by_field=column.name, offset=middle, order=order
            ).hits[0][0]
            before = there > value if column.descending else there < value
            low, high = (middle + 1, high) if before else (low, middle)
        return low


def _both(query: tantivy.Query, condition: tantivy.Query) -> tantivy.Query:
    return _Query.boolean_query([(Must, query), (Must, _Query.const_score_query(condition, 0.0))])
