"""Long lists of queries: sorted and paged as the address asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from flask import request

from app.services.analytics.reports import Analytics, QueryCount

PER_PAGE = 50
LONGEST = 1_000
"""Most queries of a list."""


@dataclass(frozen=True, slots=True)
class ListKind:
    """A list of the analytics.

    Attributes:
        name: In addresses and in the API.
        nothing: What is said where it is empty.
        counted: What its counts are of.
    """

    name: str
    title: str
    nothing: str
    counted: str


KINDS = (
    ListKind("top_queries", "Top searches", "None yet.", "Searches"),
    ListKind("zero_result_queries", "No results", "Every search had results.", "Without results"),
    ListKind("partial_queries", "Some words only", "Every search that had results had one with all words.", "Searches"),
    ListKind("no_click_queries", "No clicks", "Every search with results was clicked.", "Searches"),
)

_SORTS: dict[str, Callable[[QueryCount], float | str]] = {
    "query": lambda item: item.query,
    "count": lambda item: -item.count,
    "clicks": lambda item: -item.clicks,
    "click_through_rate": lambda item: -(item.click_through_rate or 0),
    "average_click_position": lambda item: item.average_click_position or float("inf"),
}
DEFAULT_SORT = "count"


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading.

    Attributes:
        address: Where sorting by it leads.
        order: As ``aria-sort`` says it; empty if the list is not sorted by it.
    """

    name: str
    title: str
    address: str
    order: str


@dataclass(frozen=True, slots=True)
class LongList:
    """A page of a list.

    Attributes:
        total: Queries of all pages.
        first: Number of the first one that is shown, from 1.
        previous, next: Where the other pages are; empty if there are none.
    """

    kind: ListKind
    items: Sequence[QueryCount]
    total: int
    first: int
    columns: Sequence[Column]
    previous: str
    next: str


def find_kind(name: str) -> ListKind | None:
    """The list of this name."""
    return next((kind for kind in KINDS if kind.name == name), None)


def items_of(analytics: Analytics, kind: ListKind) -> Sequence[QueryCount]:
    """The queries of a list."""
    items: Sequence[QueryCount] = getattr(analytics, kind.name)
    return items


def make_list(items: Sequence[QueryCount], kind: ListKind, kept: dict[str, str]) -> LongList:
    """The page of a list that the request's address asks for.

    Args:
        kept: Parameters that every address on the page has.
    """
    sort, descending = _asked_sort()
    ordered = sorted(items, key=lambda item: item.query)
    ordered.sort(key=_SORTS[sort], reverse=descending)
    text = request.args.get("page", "")
    last = max(1, -(-len(items) // PER_PAGE))
    page = min(max(int(text), 1), last) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    shown = ordered[(page - 1) * PER_PAGE : page * PER_PAGE]

    def address(**changes: str) -> str:
        return "?" + urlencode({**kept, "list": kind.name, "sort": ("-" if descending else "") + sort, **changes})

    titles = {
        "query": "Query",
        "count": kind.counted,
        "clicks": "Clicks",
        "click_through_rate": "With a click",
        "average_click_position": "Position",
    }
    columns = [
        Column(
            name,
            title,
            address(sort=f"-{name}" if name == sort and not descending else name),
            _order(name, descending=descending) if name == sort else "",
        )
        for name, title in titles.items()
    ]
    return LongList(
        kind,
        shown,
        len(items),
        (page - 1) * PER_PAGE + 1,
        columns,
        address(page=str(page - 1)) if page > 1 else "",
        address(page=str(page + 1)) if page < last else "",
    )


def _asked_sort() -> tuple[str, bool]:
    asked = request.args.get("sort", DEFAULT_SORT)
    name = asked.removeprefix("-")
    return (name, asked.startswith("-")) if name in _SORTS else (DEFAULT_SORT, False)


def _order(name: str, *, descending: bool) -> str:
    """The order that people see: counts are sorted from the largest unless the order is turned."""
    largest_first = name in ("count", "clicks", "click_through_rate")
    return "descending" if largest_first != descending else "ascending"
