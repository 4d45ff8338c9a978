"""Counting the values of facets among the matches of a query, as far as needed to find the most frequent ones.

Few matches are read. Many are counted by the engine. Counting is cheap there, but looking up the text of each value and
adding up the segments of the index is not. So only the first values of each segment are requested, and further values
only if the first ones do not determine the order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import orjson
import tantivy

from backends.base import FacetStats
from backends.embedded.index.documents import MAX_FACET_VALUE_CHARS, sort_text
from backends.embedded.index.schema import DATE, ID, SOURCE, UPDATED_AT, facet_path, number_column, sort_column
from backends.embedded.index.snapshots import Snapshot
from backends.field_rules import NUMBER_KINDS, first_values
from backends.query import FieldKinds
from backends.values import value_text

Counts = Mapping[str, int]
"""Number of documents with each value."""

BY_NAME = {"_key": "asc"}

MANY_FIELDS = 20
"""Minimum number of fields for which reading the matches may be cheaper than counting in the engine."""

READ_FOR_EACH = 3
"""Maximum number of matches per field for which reading them is cheaper."""

MAX_BUCKETS = 400_000
"""Maximum number of buckets that the engine builds at a time; each takes about 200 bytes."""

_EVERY_VALUE = 1_000_000
_UNIQUE_FIELDS = "fields whose values all differ"
"""Snapshot cache key for the fields whose values are all different."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d\D\d\d:\d\d:\d\d")
_PLAIN_TIME = re.compile(r"(?:1[7-9]|2[01])\d\d-\d\d-\d\dT\d\d:\d\d:[0-5]\dZ", re.ASCII)


def count_values(
    snapshot: Snapshot, query: tantivy.Query, matches: int, fields: Sequence[str], limit: int
) -> dict[str, Counts]:
    """Count the values of fields among the matches of a query.

    Args:
        matches: Number of matches, at least 1.
        limit: Number of values needed for each field: the most frequent ones, then in alphabetical order.

    Returns:
        The counts of each field, which include at least the needed values.
    """
    if len(fields) >= MANY_FIELDS and matches <= READ_FOR_EACH * len(fields):
        read = _read(snapshot, query, matches, fields)
        if read is not None:
            return read
    return _Counting(snapshot, query, limit).count(fields, matches)


# --- by reading


def _read(snapshot: Snapshot, query: tantivy.Query, matches: int, fields: Sequence[str]) -> dict[str, Counts] | None:
    """Return all values with their counts; ``None`` if the engine would report a value differently from its text."""
    searcher = snapshot.searcher
    listed = searcher.search(query, limit=matches, count=False, order_by_field=UPDATED_AT).hits
    documents = [orjson.loads(bytes(searcher.doc(address).get_first(SOURCE) or b"{}")) for _, address in listed]
    counts_by_field: dict[str, Counts] = {}
    for name in fields:
        values = [document[name] for document in documents if name in document]
        counts = Counter([text for value in values for text in _texts(value)])
        if any(_TIME.match(text) and not _PLAIN_TIME.fullmatch(text) for text in counts):
            return None
        counts_by_field[name] = counts
    return counts_by_field


def _texts(value: Any) -> Iterable[str]:
    """``["a", "a", 5.0]`` -> ``"a", "5"``."""
    if isinstance(value, str):
        return (value[:MAX_FACET_VALUE_CHARS],)
    if isinstance(value, list):
        return dict.fromkeys(text for item in value for text in _texts(item))
    return (value_text(value),)


# --- by the engine


class _Counting:
    """Finds the most frequent values of fields among the matches of one query, by aggregations of the engine."""

    def __init__(self, snapshot: Snapshot, query: tantivy.Query, limit: int):
        self.snapshot = snapshot
        self.query = query
        self.limit = limit
        self.in_one_piece = snapshot.searcher.num_segments == 1

    def count(self, fields: Sequence[str], matches: int) -> dict[str, Counts]:
        """Count the values of each field. The result includes at least the most frequent values."""
        unique_fields = {name for name, is_unique in self._checked_fields().items() if is_unique}.intersection(fields)
        top = self._aggregate({name: self._first_values(name) for name in fields if name not in unique_fields})
        counts = {name: _counts(values) for name, values in top.items()}
        last_counts = {
            name: values["buckets"][self.limit - 1]["doc_count"]
            for name, values in top.items()
            if not self._is_settled(values)
        }
        single_counts = [name for name, size in last_counts.items() if size == 1]
        if not self.in_one_piece:
            unique_fields |= self._fields_with_unique_values(single_counts, matches)
        min_counts = {
            name: max(2, size)
            for name, size in last_counts.items()
            if name not in unique_fields and not (size == 1 and self.in_one_piece)
        }
        return counts | self._complete(matches, counts, min_counts, unique_fields.union(single_counts))

    def _is_settled(self, values: Mapping[str, Any]) -> bool:
        """Whether the counts are exact and no excluded value is as frequent as the last included one."""
        sizes = [bucket["doc_count"] for bucket in values["buckets"]]
        exact = self.in_one_piece or not values["doc_count_error_upper_bound"]
        return exact and (len(sizes) <= self.limit or sizes[self.limit - 1] > sizes[self.limit])

    def _complete(
        self,
        matches: int,
        counts_so_far: Mapping[str, Counts],
        min_counts: Mapping[str, int],
        single_counts: Iterable[str],
    ) -> dict[str, Counts]:
        """Complete the counts of fields for which the first values of each segment were not sufficient.

        Args:
            min_counts: Maps fields to the minimum count of their first values, some of which are still missing.
            single_counts: Fields whose last included value occurs once; the first such values by name are missing.
        """
        every = self._aggregate({name: _values(name, min_doc_count=size) for name, size in min_counts.items()}, matches)
        completed = {name: _counts(values) for name, values in every.items()}
        some = self._aggregate({name: self._first_values(name, order=BY_NAME) for name in single_counts})
        by_name = {name: _counts(values) for name, values in some.items()}
        unsure = {name: _values(name) for name, counts in by_name.items() if _divides_a_second(list(counts))}
        by_name |= {name: _counts(values) for name, values in self._aggregate(unsure, matches).items()}
        for name, counts in by_name.items():
            completed[name] = {**completed.get(name, counts_so_far.get(name, {})), **counts}
        return completed

    def _fields_with_unique_values(self, names: Sequence[str], matches: int) -> set[str]:
        """Return the fields whose values are unique in the index.

        The check runs once per commit, during a search that matches most documents anyway.
        """
        checked = self._checked_fields()
        unchecked = [name for name in names if name not in checked]
        if unchecked and 2 * matches >= self.snapshot.total:
            aggregations = {name: _values(name, size=1, min_doc_count=2) for name in unchecked}
            aggregated = self._aggregate(aggregations, self.snapshot.total, tantivy.Query.all_query())
            checked = {**checked, **{name: not values["buckets"] for name, values in aggregated.items()}}
            self.snapshot.cache(_UNIQUE_FIELDS, checked)
        return {name for name in names if checked.get(name)}

    def _checked_fields(self) -> Mapping[str, bool]:
        """Return the checked fields, and whether all values of each are different."""
        checked: Mapping[str, bool] = self.snapshot.cached(_UNIQUE_FIELDS) or {}
        return checked

    def _first_values(self, name: str, **options: Any) -> dict[str, Any]:
        """Return the aggregation for the first values, plus one more that shows whether the last one is tied."""
        return _values(name, size=self.limit + 1, segment_size=self.limit + 1, **options)

    def _aggregate(
        self, aggregations: Mapping[str, Any], buckets: int = 0, query: tantivy.Query | None = None
    ) -> Mapping[str, Any]:
        """Run aggregations of about ``buckets`` buckets each, few enough at a time for the engine's memory."""
        names = list(aggregations)
        step = max(1, MAX_BUCKETS // buckets) if buckets else len(names)
        aggregated: dict[str, Any] = {}
        for start in range(0, len(names), step or 1):
            part = {name: aggregations[name] for name in names[start : start + step]}
            aggregated |= self.snapshot.searcher.aggregate(query or self.query, part)
        return aggregated


def _values(name: str, **options: Any) -> dict[str, Any]:
    return {"terms": {"field": facet_path(name), "size": _EVERY_VALUE, "segment_size": _EVERY_VALUE, **options}}


def _counts(values: Mapping[str, Any]) -> Counts:
    return {bucket["key"]: bucket["doc_count"] for bucket in values["buckets"]}


def _divides_a_second(names: Sequence[str]) -> bool:
    """Whether times within one second may be out of order: the engine sorts times by time, not by text."""
    return any(one[:19] == other[:19] and _TIME.match(one) for one, other in pairwise(names))


Must, Should = tantivy.Occur.Must, tantivy.Occur.Should
_Query = tantivy.Query

DEFAULT_MAX_VALUES = 100
"""Default maximum number of values per facet."""


def count_facets(
    snapshot: Snapshot, query: tantivy.Query, fields: Sequence[str], kinds: FieldKinds, limit: int = DEFAULT_MAX_VALUES
) -> tuple[dict[str, dict[str, int]], dict[str, FacetStats]]:
    """Return the ``limit`` most frequent values of each field with their counts, and the bounds of numbers and dates.

    Values with equal counts are in alphabetical order. Bounds of dates are in Unix seconds.
    """
    aggregations: dict[str, Any] = {"matches": {"value_count": {"field": UPDATED_AT}}}
    for name in fields:
        if name == DATE:
            aggregations[f"of {name}"] = {"stats": {"field": DATE}}
        elif name in snapshot.dynamic_columns and kinds.get(name, frozenset()) & NUMBER_KINDS:
            aggregations[f"of {name}"] = {"stats": {"field": number_column(snapshot.dynamic_columns[name])}}
    aggregated: Mapping[str, Any] = snapshot.searcher.aggregate(query, aggregations)
    matches = int(aggregated["matches"]["value"])
    counts: dict[str, Counts] = {name: {} for name in fields}
    if matches:
        counts |= count_values(snapshot, query, matches, [name for name in fields if name != ID], limit)
        if ID in fields:
            counts[ID] = dict.fromkeys(_first_ids(snapshot, query, limit), 1)
    stats: dict[str, FacetStats] = {}
    for name in fields:
        bounds = aggregated.get(f"of {name}")
        if bounds is not None and bounds["count"]:
            scale = 1_000_000 if name == DATE else 1
            stats[name] = FacetStats(bounds["min"] / scale, bounds["max"] / scale)
    return {name: first_values(counts[name], limit) for name in fields}, stats


def _first_ids(snapshot: Snapshot, query: tantivy.Query, limit: int) -> list[str]:
    """Return the first IDs in sort order."""
    column, frequency = sort_column(ID), snapshot.searcher.doc_freq
    aggregation = {"terms": {"field": column, "size": limit, "segment_size": limit, "order": BY_NAME}}
    sorted_ids: list[tuple[str, int, int, str]] = []
    ambiguous: dict[str, int] = {}
    for bucket in snapshot.searcher.aggregate(query, {"ids": aggregation})["ids"]["buckets"]:
        text, size = bucket["key"], bucket["doc_count"]
        id = text[1:]
        # If a single document has this sort key and its id matches it, that document need not be read.
        if sort_text(id) == text and frequency(ID, id) == frequency(column, text) == size == 1:
            sorted_ids.append((text, 0, 0, id))
        else:
            ambiguous[text] = size
    if ambiguous:
        terms = [(Should, _Query.term_query(snapshot.schema, column, text)) for text in ambiguous]
        members = _Query.boolean_query([(Must, query), (Must, _Query.boolean_query(terms))])
        for _, address in snapshot.searcher.search(
            members, limit=sum(ambiguous.values()), order_by_field=UPDATED_AT
        ).hits:
            id = str(snapshot.searcher.doc(address).get_first(ID))
            sorted_ids.append((sort_text(id), address.segment_ord, address.doc, id))
    return [id for *_, id in sorted(sorted_ids)[:limit]]
