"""Counts of values of fields among the matches of a query, as far as needed to tell which come first.

Few matches are read. For many, the engine counts. Counting is cheap there; what costs is to give every value its text
and to add up the segments of the index. So only the first values of each segment are asked for, and more only where
those leave open which values come first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import orjson
import tantivy

from backends.embedded.index.documents import LONGEST_FACET_VALUE
from backends.embedded.index.schema import SOURCE, UPDATED_AT, facet_path
from backends.embedded.index.snapshots import Snapshot
from backends.values import value_text

Counts = Mapping[str, int]
"""Value to number of documents."""

BY_NAME = {"_key": "asc"}

MANY_FIELDS = 20
READ_FOR_EACH = 3
"""Matches for each of many fields up to which reading them is cheaper than to let the engine count."""

MOST_BUCKETS = 400_000
"""Buckets the engine holds at a time; each takes about 200 bytes."""

_EVERY_VALUE = 1_000_000
_DIFFERING = "fields whose values all differ"
"""The name under which a snapshot remembers them."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d\D\d\d:\d\d:\d\d")
_PLAIN_TIME = re.compile(r"(?:1[7-9]|2[01])\d\d-\d\d-\d\dT\d\d:\d\d:[0-5]\dZ", re.ASCII)


def count_values(
    snapshot: Snapshot, query: tantivy.Query, matches: int, fields: Sequence[str], most: int
) -> dict[str, Counts]:
    """Counts of values of each field, which hold the ``most`` first by count, then by name; ``matches`` above 0."""
    if len(fields) >= MANY_FIELDS and matches <= READ_FOR_EACH * len(fields):
        read = _read(snapshot, query, matches, fields)
        if read is not None:
            return read
    return _Counting(snapshot, query, most).count(fields, matches)


# --- by reading


def _read(snapshot: Snapshot, query: tantivy.Query, matches: int, fields: Sequence[str]) -> dict[str, Counts] | None:
    """All values with their counts; ``None`` where the engine would not have them as they are written."""
    searcher = snapshot.searcher
    listed = searcher.search(query, limit=matches, count=False, order_by_field=UPDATED_AT).hits
    documents = [orjson.loads(bytes(searcher.doc(address).get_first(SOURCE) or b"{}")) for _, address in listed]
    found: dict[str, Counts] = {}
    for name in fields:
        values = [document[name] for document in documents if name in document]
        counts = Counter([text for value in values for text in _texts(value)])
        if any(_TIME.match(text) and not _PLAIN_TIME.fullmatch(text) for text in counts):
            return None
        found[name] = counts
    return found


def _texts(value: Any) -> Iterable[str]:
    """Texts that a value counts as; an element of a list counts once."""
    if isinstance(value, str):
        return (value[:LONGEST_FACET_VALUE],)
    if isinstance(value, list):
        return dict.fromkeys(text for item in value for text in _texts(item))
    return (value_text(value),)


# --- by the engine


class _Counting:
    """Lets the engine find the first values of fields among the matches of one query."""

    def __init__(self, snapshot: Snapshot, query: tantivy.Query, most: int):
        self.snapshot = snapshot
        self.query = query
        self.most = most
        self.in_one_piece = snapshot.searcher.num_segments == 1

    def count(self, fields: Sequence[str], matches: int) -> dict[str, Counts]:
        """For each field, values with their counts, the first ones among them."""
        differing = {name for name, differ in self._known().items() if differ}.intersection(fields)
        top = self._ask({name: self._some(name) for name in fields if name not in differing})
        found = {name: _counts(values) for name, values in top.items()}
        least = {
            name: values["buckets"][self.most - 1]["doc_count"]
            for name, values in top.items()
            if not self._is_settled(values)
        }
        once = [name for name, size in least.items() if size == 1]
        if not self.in_one_piece:
            differing |= self._differing(once, matches)
        often = {
            name: max(2, size)
            for name, size in least.items()
            if name not in differing and not (size == 1 and self.in_one_piece)
        }
        return found | self._completed(matches, found, often, differing.union(once))

    def _is_settled(self, values: Mapping[str, Any]) -> bool:
        """Tell whether the counts are right and no value left out is as frequent as the last one wanted."""
        sizes = [bucket["doc_count"] for bucket in values["buckets"]]
        exact = self.in_one_piece or not values["doc_count_error_upper_bound"]
        return exact and (len(sizes) <= self.most or sizes[self.most - 1] > sizes[self.most])

    def _completed(
        self, matches: int, found: Mapping[str, Counts], often: Mapping[str, int], once: Iterable[str]
    ) -> dict[str, Counts]:
        """Counts where the most frequent values of each segment left something open.

        Args:
            often: Field to how often any of its first values occurs at least; not yet all of them are found.
            once: Fields whose first values end with such that occur once: the first of those by name are missing.
        """
        every = self._ask({name: _values(name, min_doc_count=size) for name, size in often.items()}, matches)
        completed = {name: _counts(values) for name, values in every.items()}
        some = self._ask({name: self._some(name, order=BY_NAME) for name in once})
        by_name = {name: _counts(values) for name, values in some.items()}
        unsure = {name: _values(name) for name, counts in by_name.items() if _divides_a_second(list(counts))}
        by_name |= {name: _counts(values) for name, values in self._ask(unsure, matches).items()}
        for name, counts in by_name.items():
            completed[name] = {**completed.get(name, found.get(name, {})), **counts}
        return completed

    def _differing(self, names: Sequence[str], matches: int) -> set[str]:
        """Those fields of which no value occurs twice in the index.

        That is looked at once for each commit, when the matches are most documents: then it takes little more than
        looking at those, and spares every other search it.
        """
        known = self._known()
        unknown = [name for name in names if name not in known]
        if unknown and 2 * matches >= self.snapshot.total:
            wishes = {name: _values(name, size=1, min_doc_count=2) for name in unknown}
            answer = self._ask(wishes, self.snapshot.total, tantivy.Query.all_query())
            known = {**known, **{name: not values["buckets"] for name, values in answer.items()}}
            self.snapshot.cache(_DIFFERING, known)
        return {name for name in names if known.get(name)}

    def _known(self) -> Mapping[str, bool]:
        """The fields that were looked at, and whether all values of each differ."""
        known: Mapping[str, bool] = self.snapshot.cached(_DIFFERING) or {}
        return known

    def _some(self, name: str, **options: Any) -> dict[str, Any]:
        """The first values, and one more that tells whether others are like the last of them."""
        return _values(name, size=self.most + 1, segment_size=self.most + 1, **options)

    def _ask(
        self, wishes: Mapping[str, Any], buckets: int = 0, query: tantivy.Query | None = None
    ) -> Mapping[str, Any]:
        """The engine's answer to wishes of about so many buckets each, few enough at a time for its memory."""
        names = list(wishes)
        step = max(1, MOST_BUCKETS // buckets) if buckets else len(names)
        answer: dict[str, Any] = {}
        for at in range(0, len(names), step or 1):
            part = {name: wishes[name] for name in names[at : at + step]}
            answer |= self.snapshot.searcher.aggregate(query or self.query, part)
        return answer


def _values(name: str, **options: Any) -> dict[str, Any]:
    return {"terms": {"field": facet_path(name), "size": _EVERY_VALUE, "segment_size": _EVERY_VALUE, **options}}


def _counts(values: Mapping[str, Any]) -> Counts:
    return {bucket["key"]: bucket["doc_count"] for bucket in values["buckets"]}


def _divides_a_second(names: Sequence[str]) -> bool:
    """Tell whether times of one second may be cut apart: the engine has times in order of time, not of text."""
    return any(one[:19] == other[:19] and _TIME.match(one) for one, other in pairwise(names))
