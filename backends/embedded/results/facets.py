"""Counting the values of facets among the matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tantivy

from backends.base import FacetStats, FieldKinds
from backends.embedded.index.documents import sort_text
from backends.embedded.index.schema import DATE, ID, UPDATED_AT, number_column, sort_column
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.results.value_counts import BY_NAME, Counts, count_values
from backends.field_rules import NUMBER_KINDS, first_values

Must, Should = tantivy.Occur.Must, tantivy.Occur.Should
_Query = tantivy.Query

DEFAULT_MAX_VALUES = 100
"""Default maximum number of values per facet."""


def count_facets(
    snapshot: Snapshot, query: tantivy.Query, fields: Sequence[str], kinds: FieldKinds, limit: int = DEFAULT_MAX_VALUES
) -> tuple[dict[str, dict[str, int]], dict[str, FacetStats]]:
    """The ``most`` frequent values of each field with their counts, and the bounds of numbers and dates."""
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
    """The first ids in sort order."""
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
