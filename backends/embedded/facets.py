"""How often each value of a field occurs among the matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tantivy

from backends.base import STANDARD_FIELDS, FacetStats, FieldKinds
from backends.embedded.documents import NO_FACETS
from backends.embedded.schema import DATE, ID, NUMBER_KINDS, facet_path, number_column, sort_column
from backends.embedded.snapshots import Snapshot
from backends.errors import BackendRejected

MOST_VALUES = 100
_FIRST_LOOK = 400
_EVERY_VALUE = 1_000_000


def facet_fields(wanted: Sequence[str], kinds: FieldKinds) -> list[str]:
    """The fields to count, ``*`` spelt out, each once.

    Raises:
        BackendRejected: One is unknown or cannot be a facet.
    """
    found: dict[str, None] = {}
    for name in wanted:
        if name == "*":
            found |= dict.fromkeys(field for field in STANDARD_FIELDS if field not in NO_FACETS)
            found |= dict.fromkeys(sorted(kinds))
        elif name in NO_FACETS:
            raise BackendRejected("facets", f"The values of {name!r} cannot be counted.")
        elif name not in STANDARD_FIELDS and name not in kinds:
            raise BackendRejected("facets", f"No document has a field {name!r}.")
        else:
            found[name] = None
    return list(found)


def count_facets(
    snapshot: Snapshot, query: tantivy.Query, fields: Sequence[str], kinds: FieldKinds, most: int = MOST_VALUES
) -> tuple[dict[str, dict[str, int]], dict[str, FacetStats]]:
    """The ``most`` frequent values with their counts, and the bounds of numbers and dates."""
    asked = _FIRST_LOOK if most <= MOST_VALUES else _EVERY_VALUE
    wishes: dict[str, Any] = {}
    for at, name in enumerate(fields):
        if name != ID:
            wishes[f"v{at}"] = _values_wish(name, asked)
        if name == DATE:
            wishes[f"s{at}"] = {"stats": {"field": DATE}}
        elif name in snapshot.slots and kinds.get(name, frozenset()) & NUMBER_KINDS:
            wishes[f"s{at}"] = {"stats": {"field": number_column(snapshot.slots[name])}}
    answer: Mapping[str, Any] = snapshot.searcher.aggregate(query, wishes) if wishes else {}
    counts: dict[str, dict[str, int]] = {}
    stats: dict[str, FacetStats] = {}
    for at, name in enumerate(fields):
        counts[name] = (
            _ids(snapshot, query, most) if name == ID else _values(snapshot, query, name, answer[f"v{at}"], most)
        )
        bounds = answer.get(f"s{at}")
        if bounds is not None and bounds["count"]:
            scale = 1_000_000 if name == DATE else 1
            stats[name] = FacetStats(bounds["min"] / scale, bounds["max"] / scale)
    return counts, stats


def _values_wish(name: str, size: int) -> dict[str, Any]:
    return {"terms": {"field": facet_path(name), "size": size, "segment_size": _EVERY_VALUE}}


def _values(
    snapshot: Snapshot, query: tantivy.Query, name: str, answer: Mapping[str, Any], most: int
) -> dict[str, int]:
    buckets = answer["buckets"]
    # Values as frequent as the last that is shown may be missing among those that were fetched; then all are.
    if len(buckets) == _FIRST_LOOK and buckets[-1]["doc_count"] == buckets[most - 1]["doc_count"]:
        buckets = snapshot.searcher.aggregate(query, {"v": _values_wish(name, _EVERY_VALUE)})["v"]["buckets"]
    return _first(((bucket["key"], bucket["doc_count"]) for bucket in buckets), most)


def _first(counts: Iterable[tuple[str, int]], most: int) -> dict[str, int]:
    return dict(sorted(counts, key=lambda item: (-item[1], item[0]))[:most])


def _ids(snapshot: Snapshot, query: tantivy.Query, most: int) -> dict[str, int]:
    """Ids occur once each: the first ones in order."""
    listed = snapshot.searcher.search(
        query, limit=most, count=False, order_by_field=sort_column(ID), order=tantivy.Order.Asc
    ).hits
    ids = [str(snapshot.searcher.doc(address).get_first(ID)) for _, address in listed]
    return dict.fromkeys(sorted(ids), 1)
