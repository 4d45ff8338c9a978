"""Counts of each value of a field among the matches."""

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

MOST_VALUES = 100


def count_facets(
    snapshot: Snapshot, query: tantivy.Query, fields: Sequence[str], kinds: FieldKinds, most: int = MOST_VALUES
) -> tuple[dict[str, dict[str, int]], dict[str, FacetStats]]:
    """The ``most`` frequent values with their counts, and the bounds of numbers and dates."""
    wishes: dict[str, Any] = {"matches": {"value_count": {"field": UPDATED_AT}}}
    for name in fields:
        if name == DATE:
            wishes[f"of {name}"] = {"stats": {"field": DATE}}
        elif name in snapshot.dynamic_columns and kinds.get(name, frozenset()) & NUMBER_KINDS:
            wishes[f"of {name}"] = {"stats": {"field": number_column(snapshot.dynamic_columns[name])}}
    answer: Mapping[str, Any] = snapshot.searcher.aggregate(query, wishes)
    matches = int(answer["matches"]["value"])
    counts: dict[str, Counts] = {name: {} for name in fields}
    if matches:
        counts |= count_values(snapshot, query, matches, [name for name in fields if name != ID], most)
        if ID in fields:
            counts[ID] = dict.fromkeys(_first_ids(snapshot, query, most), 1)
    stats: dict[str, FacetStats] = {}
    for name in fields:
        bounds = answer.get(f"of {name}")
        if bounds is not None and bounds["count"]:
            scale = 1_000_000 if name == DATE else 1
            stats[name] = FacetStats(bounds["min"] / scale, bounds["max"] / scale)
    return {name: first_values(counts[name], most) for name in fields}, stats


def _first_ids(snapshot: Snapshot, query: tantivy.Query, most: int) -> list[str]:
    """The ids that come first when documents are sorted by them."""
    column, frequency = sort_column(ID), snapshot.searcher.doc_freq
    wish = {"terms": {"field": column, "size": most, "segment_size": most, "order": BY_NAME}}
    found: list[tuple[str, int, int, str]] = []
    unclear: dict[str, int] = {}
    for bucket in snapshot.searcher.aggregate(query, {"ids": wish})["ids"]["buckets"]:
        text, size = bucket["key"], bucket["doc_count"]
        id = text[1:]
        # The only document with this text to sort by is the one with this id; it need not be read.
        if sort_text(id) == text and frequency(ID, id) == frequency(column, text) == size == 1:
            found.append((text, 0, 0, id))
        else:
            unclear[text] = size
    if unclear:
        terms = [(Should, _Query.term_query(snapshot.schema, column, text)) for text in unclear]
        having = _Query.boolean_query([(Must, query), (Must, _Query.boolean_query(terms))])
        for _, address in snapshot.searcher.search(having, limit=sum(unclear.values()), order_by_field=UPDATED_AT).hits:
            id = str(snapshot.searcher.doc(address).get_first(ID))
            found.append((sort_text(id), address.segment_ord, address.doc, id))
    return [id for *_, id in sorted(found)[:most]]
