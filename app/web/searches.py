"""Searching with what the request was charged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial

from flask import request

from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.analytics.clicks import make_query_id
from app.services.search.parameters import for_site
from app.services.search.responses import encode_hit
from app.services.search.search import TimedResult, Visitor
from app.web.request_checks import require_search
from backends.query import SearchQuery


@dataclass(frozen=True, slots=True)
class Found:
    """A search and what it found.

    Attributes:
        query_id: The search's name, by which clicks refer to it.
        links: The site's, for searches that find nothing.
    """

    query: SearchQuery
    timed: TimedResult
    query_id: str
    links: Sequence[Mapping[str, str]]


def search_site(site: SiteRecord, wanted: SearchQuery, visitor: Visitor | None, shown: Set[str] | None = None) -> Found:
    """Search a site and write the search down for analytics. The charge was reserved by :mod:`app.web.request_checks`.

    Args:
        wanted: What ``make_query`` gives; the site's own settings are added here.
        visitor: Who searches; ``None`` leaves the search out of analytics.
        shown: The fields of a hit; ``None`` for all.

    Raises:
        ApiError: 400 for what the query got wrong, or an answer that would be too large; 429 if the day's searches are
            used up.
        BackendUnavailable: The engine cannot answer now.
    """
    current_runtime = runtime()
    query = for_site(wanted, site)
    require_search()
    encode = encode_hit if shown is None else partial(encode_hit, fields=shown)
    counted = None if request.method == "HEAD" else visitor
    room = current_runtime.searcher.new_room()
    timed = current_runtime.searcher.run(site, query, encode, room, record_for=counted, is_whole=shown is None)
    query_id = make_query_id(current_runtime.settings.secret_key, site.id, query.typed, timed.searched_at)
    return Found(query, timed, query_id, site.no_results_links)
