"""Long lists of queries, sorted and paginated by URL parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from flask import request

from app.services.analytics.reports import Analytics, QueryCount

PER_PAGE = 50
MAX_QUERIES = 1_000
"""Maximum number of queries in a list."""


@dataclass(frozen=True, slots=True)
class ListKind:
    """A type of query list in analytics.

    Attributes:
        name: Name in URLs and in the API.
        nothing: Text for an empty list.
        counted: Column heading of the counts.
    """

    name: str
    title: str
    nothing: str
    counted: str


KINDS = (
    ListKind("top_queries", "Top searches", "No searches yet.", "Searches"),
    ListKind("zero_result_queries", "No results", "Every search had results.", "Without results"),
    ListKind(
        "partial_queries", "Partial matches", "Every search with results found a page with all its words.", "Searches"
    ),
    ListKind("no_click_queries", "No clicks", "Every search with results got a click.", "Searches"),
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
    """A column heading.

    Attributes:
        address: URL of the list sorted by this column.
        order: Value of ``aria-sort``; empty if the list isn't sorted by this column.
    """

    name: str
    title: str
    address: str
    order: str


@dataclass(frozen=True, slots=True)
class LongList:
    """A page of a list.

    Attributes:
        total: Number of queries on all pages.
        first: Number of the first query on this page, from 1.
        previous, next: URLs of the adjacent pages; empty if there are none.
    """

    kind: ListKind
    items: Sequence[QueryCount]
    total: int
    first: int
    columns: Sequence[Column]
    previous: str
    next: str


def find_kind(name: str) -> ListKind | None:
    """Return the list with this name, or ``None``."""
    return next((kind for kind in KINDS if kind.name == name), None)


def items_of(analytics: Analytics, kind: ListKind) -> Sequence[QueryCount]:
    """Return the queries in a list."""
    items: Sequence[QueryCount] = getattr(analytics, kind.name)
    return items


def make_list(items: Sequence[QueryCount], kind: ListKind, base_query: dict[str, str]) -> LongList:
    """Return the requested page of a list.

    Args:
        base_query: Query parameters of every URL on the page.
    """
    sort, descending = _requested_sort()
    ordered = sorted(items, key=lambda item: item.query)
    ordered.sort(key=_SORTS[sort], reverse=descending)
    text = request.args.get("page", "")
    last = max(1, -(-len(items) // PER_PAGE))
    page = min(max(int(text), 1), last) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    page_items = ordered[(page - 1) * PER_PAGE : page * PER_PAGE]

    def address(**changes: str) -> str:
        return "?" + urlencode({**base_query, "list": kind.name, "sort": ("-" if descending else "") + sort, **changes})

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
        page_items,
        len(items),
        (page - 1) * PER_PAGE + 1,
        columns,
        address(page=str(page - 1)) if page > 1 else "",
        address(page=str(page + 1)) if page < last else "",
    )


def _requested_sort() -> tuple[str, bool]:
    sort = request.args.get("sort", DEFAULT_SORT)
    name = sort.removeprefix("-")
    return (name, sort.startswith("-")) if name in _SORTS else (DEFAULT_SORT, False)


def _order(name: str, *, descending: bool) -> str:
    """Return the value of ``aria-sort``. Counts are sorted in descending order by default, other values ascending."""
    largest_first = name in ("count", "clicks", "click_through_rate")
    return "descending" if largest_first != descending else "ascending"
