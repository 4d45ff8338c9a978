"""The order of Typesense's hits: ranks, and grouping by the value of a field.

Typesense's hits have no scores to multiply, only classes of equally good matches. Version 0.24 can group hits, but it
puts all documents without a value into one group, counts groups in facets, and always shows the best hit of a group. So
hits are grouped here by their IDs and values, and Typesense counts groups only if there are too many hits to read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.distinct import EXACTLY_COUNTED, choose_preferred, preference
from backends.query import SearchQuery
from backends.servers.documents import encode_id, facet_text
from backends.servers.ranks import WINDOW, Ranks, Values
from backends.standard_fields import STANDARD_FIELDS
from backends.typesense.query import FACET_VALUES, CompiledQuery
from backends.typesense.schema import native_name

LIMITS = "Typesense has no scores: ranks and recency only order pages that match a query equally well."


def columns(ranks: Ranks, types: Mapping[str, str]) -> list[str]:
    """Return the Typesense fields that contain the fields that ranks depend on."""
    names = [name for field in ranks.fields for name in _columns_of(field, types)]
    return [name for name in dict.fromkeys(names) if name in types]


def in_order(hits: Sequence[Mapping[str, Any]], ranks: Ranks, types: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return Typesense's hits with equally good matches ordered by rank, within the first :data:`WINDOW` hits."""

    def sort_key(hit: Mapping[str, Any]) -> tuple[int, float]:
        return -int(hit["text_match"]), -ranks.factor(_values(hit["document"], ranks, types))

    return [*sorted(hits[:WINDOW], key=sort_key), *hits[WINDOW:]]


def _columns_of(field: str, types: Mapping[str, str]) -> Sequence[str]:
    if field == "id":
        return ("_id",)
    if field in ("date", "author"):
        return (f"_v_{field}",)
    return (field,) if field in STANDARD_FIELDS else (f"_v_{field}", native_name(field, "number", types))


def _values(document: Mapping[str, Any], ranks: Ranks, types: Mapping[str, str]) -> Values:
    """``{"_v_size": [<token of "5">], "size": [5]}`` -> ``{"size": ["5", 5]}``, for a rank that depends on ``size``."""
    values_by_field = {}
    for field in ranks.fields:
        values: list[Any] = []
        for column in _columns_of(field, types):
            value = document.get(column, [])
            members = value if isinstance(value, list) else [value]
            values += map(facet_text, members) if column.startswith("_v_") else members
        if values:
            values_by_field[field] = values if field not in STANDARD_FIELDS else values[0]
    return values_by_field


PER_PAGE = 250
PARTS = (1, 3, 12, 24)
"""Pages per chunk: 250 hits at first, then up to 1,000, then up to 10,000."""

Result = Mapping[str, Any]
Order = Callable[[Sequence[Result]], Sequence[Result]]
Ask = Callable[[Sequence[Mapping[str, str]]], Sequence[Result]]


@dataclass(frozen=True, slots=True)
class PageHits:
    """The hits of a page.

    Attributes:
        ids: Ids as sent, in order.
        replaced: Maps the id of each preferred hit on the page to the id of the better hit that it replaces.
        best: Id of the first unpinned hit of the whole search; ``None`` without such a hit.
        total: Number of groups.
        first: Typesense's first result, with the facets.
    """

    ids: Sequence[str]
    replaced: Mapping[str, str]
    best: str | None
    total: int
    first: Result


def find_page_hits(
    query: SearchQuery, compiled: CompiledQuery, pins: Sequence[str], ask: Ask, order: Order = list
) -> PageHits:
    """Return the hits of a page: one per value, or all hits in a search that is not distinct.

    Args:
        pins: The pinned IDs that exist, which Typesense puts first.
        ask: Runs searches.
        order: Reorders hits.
    """
    found_hits: list[Result] = []
    hits: list[Result] = []
    groups: list[tuple[str | None, str]] = []
    total, read, results = 0, 0, list[Result]()
    for pages in PARTS:
        if results:
            pages = min(pages, -(-(total - len(found_hits)) // PER_PAGE))
        part = ask([
            compiled.value_search(
                page=read + number, per_page=PER_PAGE, pins=pins, facet_values=0 if read else FACET_VALUES
            )
            for number in range(1, pages + 1)
        ])  # fmt: skip
        results += part
        read += pages
        total = results[0]["found"]
        found_hits += [hit for result in part for hit in result["hits"]]
        hits = [hit["document"] for hit in order(found_hits)]
        groups = _first_of_each(hits, compiled)
        enough = len(groups) >= query.offset + query.limit and len(hits) >= EXACTLY_COUNTED
        if len(hits) >= total or enough:
            break
    page = _preferred(query, compiled, hits, groups, pins)[query.offset :][: query.limit]
    return PageHits(
        [id for id, _ in page],
        {id: best for id, best in page if id != best},
        next((hit["_id"] for hit in hits if hit["_id"] not in pins), None),
        len(groups) if len(hits) >= total else max(len(groups), _count(compiled, ask)),
        results[0],
    )


def read_page_hits(page: PageHits, compiled: CompiledQuery, ask: Ask, *, explain: bool = False) -> dict[str, Result]:
    """Return Typesense's hits of the page, and the best hit, by ID; with match details if ``explain``."""
    ids = dict.fromkeys([*page.ids, *([] if page.best is None else [page.best])])
    if not ids:
        return {}
    by_id = {"filter_by": f"id:=[{','.join(map(encode_id, ids))}]"}
    whole = {**compiled.search(page=1, per_page=PER_PAGE), **by_id}
    # Pinned hits need not contain the words, so the documents are read without them.
    documents, *marked = ask([
        {**whole, "q": "*", "sort_by": "_changed_at:desc", "highlight_fields": "none"},
        *([whole] if explain or whole["highlight_fields"] != "none" else []),
    ])  # fmt: skip
    highlights = {hit["document"]["_id"]: hit for result in marked for hit in result["hits"]}
    return {hit["document"]["_id"]: highlights.get(hit["document"]["_id"], hit) for hit in documents["hits"]}


def _first_of_each(hits: Sequence[Result], compiled: CompiledQuery) -> list[tuple[str | None, str]]:
    values: set[str] = set()
    groups: list[tuple[str | None, str]] = []
    for hit in hits:
        value = _value(hit, compiled)
        if value is None or value not in values:
            groups.append((value, hit["_id"]))
        if value is not None:
            values.add(value)
    return groups


def _preferred(
    query: SearchQuery,
    compiled: CompiledQuery,
    hits: Sequence[Result],
    groups: Sequence[tuple[str | None, str]],
    pins: Sequence[str],
) -> list[tuple[str, str]]:
    """Return the IDs of the preferred hits, each with the ID of the hit that it replaces; pinned hits stay."""
    preferred = preference(query)
    if preferred is None or not compiled.preferred:
        return [(id, id) for _, id in groups]
    fixed = {value for value, id in groups if id in pins}
    rivals = [
        (value, [facet_text(token) for token in hit.get(compiled.preferred, ())], str(hit["_id"]))
        for hit in hits
        if (value := _value(hit, compiled)) is not None and value not in fixed
    ]
    chosen = choose_preferred(preferred, rivals)
    return [(id if value is None else chosen.get(value, id), id) for value, id in groups]


def _value(hit: Result, compiled: CompiledQuery) -> str | None:
    tokens = hit.get(compiled.distinct, ())
    return facet_text(tokens[0]) if len(tokens) == 1 else None


def _count(compiled: CompiledQuery, ask: Ask) -> int:
    grouped, alone = ask(compiled.count_searches())
    missing: int = alone["found"]
    grouped_found: int = grouped["found"]
    # Typesense counts all hits without a value as one group.
    return grouped_found - bool(missing) + missing
