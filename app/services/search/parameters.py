"""Converting the parameters of a search request, and a site's settings, to a query."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from app.clock import now
from app.errors import ApiError, Detail, ErrorCode
from app.services.access.credentials import SiteRecord
from app.services.search.answers import asks
from app.services.search.search import rejected
from backends.errors import BackendRejected
from backends.query import Highlight, SearchQuery, SortKey

MAX_SORT_KEYS = 3
_SORT_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]{0,63})\s*(?::\s*(asc|desc)\s*)?", re.ASCII | re.IGNORECASE)


def make_query(parameters: dict[str, Any]) -> SearchQuery:
    """Convert checked parameters of a request to a query, without the settings of a site.

    Raises:
        ApiError: 400 for ``sort`` or ``facets``.
    """
    limit = parameters["limit"]
    offset = parameters["offset"]
    if parameters["page"] > 1:
        offset = (parameters["page"] - 1) * limit
        if offset > 2147483647:
            raise ApiError(
                ErrorCode.VALIDATION_FAILED,
                "page is out of range",
                details=[Detail("page", "out_of_range", "page is out of range")],
            )
    return SearchQuery(
        text=parameters["q"].strip(),
        limit=limit,
        offset=offset,
        filters=parameters["filters"].strip(),
        sort=parse_sort(parameters["sort"]),
        facets=parse_names(parameters["facets"]),
        highlight=(
            Highlight(only_fields=parse_fields(parameters["fields"]), sentences=True)
            if parameters["highlight"]
            else None
        ),
        sections=parameters["sections"],
        distinct=parameters["distinct"],
        explain=parameters["explain"],
        answers=True,
    )


def for_site(query: SearchQuery, site: SiteRecord) -> SearchQuery:
    """Return ``query`` with a site's field types, settings, and rules applied."""
    answers = query.answers and site.settings.answers
    site_query = site.rules.apply(replace(query, kinds=site.kinds, settings=site.settings, answers=answers), now)
    return replace(site_query, answers=False) if answers and not asks(site_query) else site_query


def parse_sort(text: str) -> tuple[SortKey, ...]:
    """Parse sort keys such as ``date:desc,title``.

    Raises:
        ApiError: 400 ``invalid_sort``.
    """
    if not text.strip():
        return ()
    keys: list[SortKey] = []
    for part in text.split(","):
        match = _SORT_KEY.fullmatch(part)
        if match is None:
            raise rejected(
                BackendRejected("sort", f"sort must be like date:desc,title:asc; {part.strip()[:80]!r} is not.")
            )
        keys.append(SortKey(match[1], (match[2] or "asc").lower() == "desc"))
    if len(keys) > MAX_SORT_KEYS:
        raise rejected(BackendRejected("sort", f"sort accepts at most {MAX_SORT_KEYS} fields."))
    if len({key.field for key in keys}) < len(keys):
        raise rejected(BackendRejected("sort", "sort names a field twice."))
    return tuple(keys)


def parse_names(text: str) -> tuple[str, ...]:
    """Parse distinct names such as ``author,category``.

    Raises:
        ApiError: 400 ``invalid_facet``.
    """
    if not text.strip():
        return ()
    names = [part.strip() for part in text.split(",")]
    if "" in names:
        raise rejected(BackendRejected("facets", "facets must be field names separated by commas, or *."))
    return tuple(dict.fromkeys(names))


def parse_fields(text: str) -> frozenset[str] | None:
    """Parse the fields of a hit, such as ``title,url``, and add ``id``; ``None`` for all fields."""
    names = {part.strip() for part in text.split(",")} - {""} if text else set()
    return frozenset({*names, "id"}) if names else None
