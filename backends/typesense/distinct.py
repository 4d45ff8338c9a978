"""One hit of each value of a field, chosen here from the ids and values of hits.

Typesense 0.24 can group hits. But it has all documents without a value in one group, counts groups as facets, and
knows no other first of a group than the best. So it counts groups only where there are too many hits to read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.base import SearchQuery
from backends.distinct import EXACTLY_COUNTED, choose, preference
from backends.servers.document_ids import encode_id
from backends.servers.sort_text import facet_text
from backends.typesense.query import FACET_VALUES, CompiledQuery

PER_PAGE = 250
PARTS = (1, 3, 12, 24)
"""Pages of each part that is read: 250 hits, up to 1,000, up to 10,000."""

Result = Mapping[str, Any]
Order = Callable[[Sequence[Result]], Sequence[Result]]
Ask = Callable[[Sequence[Mapping[str, str]]], Sequence[Result]]


@dataclass(frozen=True, slots=True)
class ShownHits:
    """The hits of a page.

    Attributes:
        ids: As sent, in order.
        replaced: Those of them that are preferred to a better hit, with that hit's id.
        best: The first hit of all that is not pinned, if there is one.
        total: Number of all that are shown.
        first: Typesense's first answer, with the facets.
    """

    ids: Sequence[str]
    replaced: Mapping[str, str]
    best: str | None
    total: int
    first: Result


def find_shown(
    query: SearchQuery, compiled: CompiledQuery, pins: Sequence[str], ask: Ask, order: Order = list
) -> ShownHits:
    """The hits that are shown: those of different values, or all where nothing is distinct.

    Args:
        pins: The pinned ids that are there, which Typesense puts first.
        ask: Runs searches.
        order: Puts hits into another order.
    """
    found_hits: list[Result] = []
    hits: list[Result] = []
    shown: list[tuple[str | None, str]] = []
    found, read, results = 0, 0, list[Result]()
    for pages in PARTS:
        if results:
            pages = min(pages, -(-(found - len(found_hits)) // PER_PAGE))
        part = ask([
            compiled.value_search(
                page=read + at, per_page=PER_PAGE, pins=pins, facet_values=0 if read else FACET_VALUES
            )
            for at in range(1, pages + 1)
        ])  # fmt: skip
        results += part
        read += pages
        found = results[0]["found"]
        found_hits += [hit for result in part for hit in result["hits"]]
        hits = [hit["document"] for hit in order(found_hits)]
        shown = _first_of_each(hits, compiled)
        enough = len(shown) >= query.offset + query.limit and len(hits) >= EXACTLY_COUNTED
        if len(hits) >= found or enough:
            break
    page = _preferred(query, compiled, hits, shown, pins)[query.offset :][: query.limit]
    return ShownHits(
        [id for id, _ in page],
        {id: best for id, best in page if id != best},
        next((each["_id"] for each in hits if each["_id"] not in pins), None),
        len(shown) if len(hits) >= found else max(len(shown), _count(compiled, ask)),
        results[0],
    )


def read_shown(shown: ShownHits, compiled: CompiledQuery, ask: Ask, *, explain: bool = False) -> dict[str, Result]:
    """Hits as Typesense gives them, by id: those of the page, and the best; with how they match, to explain them."""
    ids = dict.fromkeys([*shown.ids, *([] if shown.best is None else [shown.best])])
    if not ids:
        return {}
    by_id = {"filter_by": f"id:=[{','.join(map(encode_id, ids))}]"}
    whole = {**compiled.search(page=1, per_page=PER_PAGE), **by_id}
    documents, *marked = ask([
        {**whole, "q": "*", "sort_by": "_changed_at:desc", "highlight_fields": "none"},
        *([whole] if explain or whole["highlight_fields"] != "none" else []),
    ])  # fmt: skip
    highlights = {hit["document"]["_id"]: hit for result in marked for hit in result["hits"]}
    return {hit["document"]["_id"]: highlights.get(hit["document"]["_id"], hit) for hit in documents["hits"]}


def _first_of_each(hits: Sequence[Result], compiled: CompiledQuery) -> list[tuple[str | None, str]]:
    """Value and id of the first hit of each value, and of each hit without one."""
    seen: set[str] = set()
    shown: list[tuple[str | None, str]] = []
    for hit in hits:
        value = _value(hit, compiled)
        if value is None or value not in seen:
            shown.append((value, hit["_id"]))
        if value is not None:
            seen.add(value)
    return shown


def _preferred(
    query: SearchQuery,
    compiled: CompiledQuery,
    hits: Sequence[Result],
    shown: Sequence[tuple[str | None, str]],
    pins: Sequence[str],
) -> list[tuple[str, str]]:
    """The ids of the hits to show for the values of the first ones, with those of the latter; pinned ones stay."""
    preferred = preference(query)
    if preferred is None or not compiled.preferred:
        return [(id, id) for _, id in shown]
    fixed = {value for value, id in shown if id in pins}
    rivals = [
        (value, [facet_text(token) for token in hit.get(compiled.preferred, ())], str(hit["_id"]))
        for hit in hits
        if (value := _value(hit, compiled)) is not None and value not in fixed
    ]
    chosen = choose(preferred, rivals)
    return [(id if value is None else chosen.get(value, id), id) for value, id in shown]


def _value(hit: Result, compiled: CompiledQuery) -> str | None:
    tokens = hit.get(compiled.distinct, ())
    return facet_text(tokens[0]) if len(tokens) == 1 else None


def _count(compiled: CompiledQuery, ask: Ask) -> int:
    """Number of values, and of hits without one."""
    grouped, alone = ask(compiled.count_searches())
    missing: int = alone["found"]
    grouped_found: int = grouped["found"]
    return grouped_found - bool(missing) + missing
