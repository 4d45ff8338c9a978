"""Interpreting Typesense's errors. Its 404 can mean a missing collection or a misspelled field."""

from __future__ import annotations

import re

from backends.base import SearchQuery
from backends.errors import BackendError, BackendRejected, BackendUnavailable
from backends.typesense.transport import RefusedByTypesense

_FIELD = re.compile(r"Could not find a (?P<what>filter |facet )?field named `(?P<name>[^`]*)`(?P<sorting>.*sorting)?")
_IN_FILTER = re.compile(r"filter field `(?P<name>[^`]*)`")
_ABOUT_FILTERS = re.compile(r"filter", re.IGNORECASE)


def is_stale_schema(error: RefusedByTypesense) -> bool:
    """Whether one of the adapter's own fields is missing, which means that the known schema is out of date."""
    match = _FIELD.search(error.message) if error.status == 404 else None
    return match is not None and (match["what"] != "filter " or match["name"].startswith("_"))


def rejection_of(error: RefusedByTypesense, query: SearchQuery) -> BackendError:
    """The exception for a failed search: the caller's fault only if the caller used Typesense's filter syntax."""
    if error.status in (400, 404, 422) and query.filters and _ABOUT_FILTERS.search(error.message):
        match = _FIELD.search(error.message) or _IN_FILTER.search(error.message)
        if match is None:
            return BackendRejected("filters", "The filter is not valid in Typesense's filter syntax.")
        name = match["name"]
        position = query.filters.find(name)
        if error.status == 404:
            message = f"The documents have no field {name!r} to filter by."
        else:
            message = f"The value compared with {name!r} does not match the field's type."
        return BackendRejected("filters", message, position=position if position >= 0 else None)
    if error.status == 408:
        return BackendUnavailable("The search took too long.")
    return BackendUnavailable("The search engine rejected a request.")
