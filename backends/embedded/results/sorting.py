"""Exact pages of results sorted by several keys, with an engine that sorts by one.

Documents with the same value of the first key form a group. The group sizes show which groups overlap the page. Small
groups are sorted here, together; a large group becomes a query of its own, sorted by the next key. Documents with equal
keys are sorted by relevance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import tantivy

from backends.embedded.index.schema import DATE, FILTER_TERMS, UPDATED_AT, column_of, sortable_term
from backends.embedded.index.snapshots import Snapshot
from backends.query import SortKey
from backends.standard_fields import REQUIRED_FIELDS

Must, MustNot, Should = tantivy.Occur.Must, tantivy.Occur.MustNot, tantivy.Occur.Should
_Query = tantivy.Query

SMALL_GROUP = 50
"""Maximum size of a group that is cheaper to sort here than to query by the next key."""

FAR_OFFSET = 1000
"""Minimum offset from which it pays to count first and to read the page from the nearer end."""

Page = Callable[[tantivy.Query, int, int], list[tantivy.DocAddress]]
"""Lists the documents of a query, given an offset and a limit."""

_Groups = list[tuple[Any, int]]
"""Values of a column, in order, with their numbers of documents."""


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    present: str | None
    descending: bool

    @property
    def order(self) -> tantivy.Order:
        return tantivy.Order.Desc if self.descending else tantivy.Order.Asc


@dataclass(frozen=True, slots=True)
class _GroupRange:
    """The groups needed for one page.

    Attributes:
        passed: Number of documents before the first group.
        present: Number of documents with a value; a lower bound if more groups follow.
    """

    groups: _Groups
    passed: int
    present: int


class Sorter:
    """Lists documents of one snapshot sorted by keys, and by ``last`` for equal keys."""

    def __init__(self, snapshot: Snapshot, keys: Sequence[SortKey], last: Page):
        self.snapshot = snapshot
        self.last = last
        self.columns: list[_Column] = []
        for key in keys:
            column = column_of(key.field, snapshot.dynamic_columns)
            if column is not None and all(column != other.name for other in self.columns):
                always = key.field in REQUIRED_FIELDS
                self.columns.append(_Column(column, None if always else sortable_term(key.field), key.descending))

    def page(self, query: tantivy.Query, offset: int, limit: int) -> list[tantivy.DocAddress]:
        """Return one page of a query's documents in the order of the keys."""
        return self._page(query, 0, offset, limit)

    def _page(self, query: tantivy.Query, depth: int, offset: int, limit: int) -> list[tantivy.DocAddress]:
        if limit <= 0 or offset >= self.snapshot.total:
            return []
        if depth == len(self.columns):
            return self.last(query, offset, limit)
        column = self.columns[depth]
        group_range = (self._dates if column.name == DATE else self._texts)(query, column, offset, limit)
        addresses: list[tantivy.DocAddress] = []
        skipped = offset - group_range.passed
        for is_small, run in groupby(group_range.groups, key=lambda group: group[1] <= SMALL_GROUP):
            groups = list(run)
            if is_small:
                members = self._ordered(self._having(query, column, groups), depth, groups)
                addresses += members[skipped : skipped + limit - len(addresses)]
            else:
                for group in groups:
                    member = self._having(query, column, [group])
                    addresses += self._page(member, depth + 1, skipped, limit - len(addresses))
                    skipped = 0
            skipped = 0
        if len(addresses) < limit and column.present is not None:
            without = _Query.boolean_query([(Must, query), (MustNot, self._term(column.present))])
            addresses += self._page(without, depth + 1, max(0, offset - group_range.present), limit - len(addresses))
        return addresses

    # --- which groups overlap the page

    def _texts(self, query: tantivy.Query, column: _Column, offset: int, limit: int) -> _GroupRange:
        if offset > FAR_OFFSET:
            present = self._present(query, column)
            rest = present - offset
            if rest <= 0:
                return _GroupRange([], offset, present)
            if rest < offset:
                groups, _ = self._first_texts(query, column.name, rest, not column.descending)
                groups.reverse()
                return _group_range(groups, present - sum(size for _, size in groups), present, offset, limit)
        groups, present = self._first_texts(query, column.name, offset + limit, column.descending)
        return _group_range(groups, 0, present, offset, limit)

    def _first_texts(self, query: tantivy.Query, column: str, limit: int, descending: bool) -> tuple[_Groups, int]:
        """Return the first values, in order, and the number of documents with any value."""
        aggregation = {"terms": {
            "field": column, "size": limit, "segment_size": limit, "order": {"_key": "desc" if descending else "asc"},
        }}  # fmt: skip
        aggregated = self.snapshot.searcher.aggregate(query, {"v": aggregation})["v"]
        groups = [(bucket["key"], bucket["doc_count"]) for bucket in aggregated["buckets"]]
        return groups, sum(size for _, size in groups) + aggregated["sum_other_doc_count"]

    def _dates(self, query: tantivy.Query, column: _Column, offset: int, limit: int) -> _GroupRange:
        # One more document on either side shows whether a group extends beyond the edge of the page.
        start = max(0, offset - 1)
        count = min(offset - start + limit + 1, self.snapshot.total)
        listed = self.snapshot.searcher.search(
            query, limit=count, count=False, order_by_field=column.name, offset=start, order=column.order
        ).hits
        # Documents without a date come last.
        dates = [date for date, _ in listed if date is not None]
        if len(dates) <= offset - start:
            return _GroupRange([], offset, self._present(query, column))
        groups = [(date, len(list(run))) for date, run in groupby(dates)]
        first, last = groups[0][0], groups[-1][0]
        passed = start
        if offset > start:
            passed = self._before(query, column, first) if groups[0][1] > 1 else start
            groups[0] = (first, self._size(query, column, first) if groups[0][1] > 1 else 1)
        if len(dates) == count and groups[-1][1] > 1 and (last != first or offset == start):
            groups[-1] = (last, self._size(query, column, last))
        return _group_range(groups, passed, start + len(dates), offset, limit)

    def _before(self, query: tantivy.Query, column: _Column, date: int) -> int:
        """Return the number of documents that sort before a date."""
        bounds = (date, None, False, True) if column.descending else (None, date, True, False)
        outside = _Query.range_query(self.snapshot.schema, column.name, tantivy.FieldType.Integer, *bounds)
        return self.snapshot.count(_both(query, outside))

    def _size(self, query: tantivy.Query, column: _Column, value: Any) -> int:
        return self.snapshot.count(self._having(query, column, [(value, 0)]))

    def _present(self, query: tantivy.Query, column: _Column) -> int:
        return self.snapshot.count(query if column.present is None else _both(query, self._term(column.present)))

    # --- ordering the documents of small groups

    def _ordered(self, members: tantivy.Query, depth: int, groups: _Groups) -> list[tantivy.DocAddress]:
        total = sum(size for _, size in groups)
        if len(groups) == total:
            return [address for _, address in self._listed(members, self.columns[depth], total)]
        addresses = self.last(members, 0, total)
        for column in reversed(self.columns[depth + (len(groups) == 1) :]):
            values = self._values(members, column, addresses)
            valued = [(value, address) for value, address in zip(values, addresses, strict=True) if value is not None]
            valued.sort(key=lambda pair: pair[0], reverse=column.descending)
            missing = [address for value, address in zip(values, addresses, strict=True) if value is None]
            addresses = [address for _, address in valued] + missing
        return addresses

    def _values(self, members: tantivy.Query, column: _Column, addresses: list[tantivy.DocAddress]) -> list[Any]:
        if column.name == DATE:
            return self.snapshot.searcher.fast_field_values(DATE, addresses)
        listed = self._listed(members, column, len(addresses))
        values = {(address.segment_ord, address.doc): value for value, address in listed}
        return [values[address.segment_ord, address.doc] for address in addresses]

    def _listed(self, members: tantivy.Query, column: _Column, limit: int) -> list[tuple[Any, tantivy.DocAddress]]:
        return self.snapshot.searcher.search(
            members, limit=limit, count=False, order_by_field=column.name, order=column.order
        ).hits

    # --- queries

    def _having(self, query: tantivy.Query, column: _Column, groups: _Groups) -> tantivy.Query:
        """Return a query for documents of the query that belong to one of the groups."""
        terms = [_Query.term_query(self.snapshot.schema, column.name, value) for value, _ in groups]
        return _both(query, terms[0] if len(terms) == 1 else _Query.boolean_query([(Should, term) for term in terms]))

    def _term(self, filter_term: str) -> tantivy.Query:
        return _Query.term_query(self.snapshot.schema, FILTER_TERMS, filter_term)


def _group_range(groups: _Groups, passed: int, present: int, offset: int, limit: int) -> _GroupRange:
    """Return the adjacent groups that overlap the page; ``passed`` documents come before the first group."""
    first, position = 0, passed
    while first < len(groups) and position + groups[first][1] <= offset:
        position += groups[first][1]
        first += 1
    last, end = first, position
    while last < len(groups) and end < offset + limit:
        end += groups[last][1]
        last += 1
    return _GroupRange(groups[first:last], position, present)


def _both(query: tantivy.Query, condition: tantivy.Query) -> tantivy.Query:
    return _Query.boolean_query([(Must, query), (Must, _Query.const_score_query(condition, 0.0))])


def by_score(snapshot: Snapshot, query: tantivy.Query, offset: int, limit: int) -> list[tantivy.DocAddress]:
    """Return one page of a query's documents by score, best first."""
    if offset >= snapshot.total:
        return []
    limit = min(limit, snapshot.total)
    return [hit[1] for hit in snapshot.searcher.search(query, limit=limit, count=False, offset=offset).hits]


def by_change(snapshot: Snapshot, query: tantivy.Query, offset: int, limit: int) -> list[tantivy.DocAddress]:
    """Return one page of a query's documents by last change, newest first."""
    if offset >= snapshot.total:
        return []
    limit = min(limit, snapshot.total)
    hits = snapshot.searcher.search(
        query, limit=limit, count=False, offset=offset, order_by_field=UPDATED_AT, order=tantivy.Order.Desc
    ).hits
    return [hit[1] for hit in hits]
