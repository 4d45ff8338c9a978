"""Searching a site with its settings and rules, and recording the search for analytics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.runtime import Runtime
from app.services.access.credentials import SiteRecord
from app.services.analytics.clicks import make_query_id
from app.services.search.encoding import encode_hits
from app.services.search.search import TimedResult, Visitor
from app.services.search.site_queries import for_site
from backends.query import SearchQuery


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The outcome of a search.

    Attributes:
        hits: The JSON of each hit.
        query_id: ID of the search, which clicks refer to.
        links: Links for a search without results.
    """

    query: SearchQuery
    timed: TimedResult
    hits: Sequence[bytes]
    query_id: str
    links: Sequence[Mapping[str, str]]


def search_site(
    runtime: Runtime,
    site: SiteRecord,
    search_query: SearchQuery,
    visitor: Visitor | None,
) -> SearchOutcome:
    """Search a site and record the search for analytics. The caller has charged the search.

    Args:
        search_query: The query from ``make_query``, without the site's settings.
        visitor: The visitor, or ``None`` to keep the search out of analytics.

    Raises:
        ApiError: 400 for an invalid query or a response that would be too large.
        BackendUnavailable: The engine is unavailable.
    """
    budget = runtime.searcher.new_budget()
    query = for_site(search_query, site, budget.available)
    timed = runtime.searcher.run(site, query, record_for=visitor)
    hits = encode_hits(timed.result.hits, budget)
    query_id = make_query_id(runtime.settings.secret_key, site.id, query.typed, timed.searched_at)
    links = () if timed.result.total else runtime.popular_pages.links(site, query)
    return SearchOutcome(query, timed, hits, query_id, links)
