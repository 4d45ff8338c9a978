"""Search."""

from __future__ import annotations

from typing import Any

from flask import Response

from app.answers import json_answer
from app.api.choice import choose_searched_site
from app.auth import SEARCHING
from app.clock import now
from app.errors import ErrorCode
from app.guard import current_caller, require_search, used_today
from app.openapi import ApiBlueprint
from app.plans import shown
from app.runtime import runtime
from app.services.events import SearchEvent
from app.services.search import encode_results, make_query
from backends.base import MATCH_ALL
from schemas.search import SearchAnswerSchema, SearchBodySchema, SearchQuerySchema

blp = ApiBlueprint("search", __name__, description="Ranked, typo-tolerant full-text search.")

ERRORS = (
    ErrorCode.VALIDATION_FAILED,
    ErrorCode.INVALID_FILTER,
    ErrorCode.INVALID_SORT,
    ErrorCode.INVALID_FACET,
    ErrorCode.SITE_NOT_FOUND,
    ErrorCode.SITE_INACTIVE,
    ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
)


@blp.route("/v1/search", methods=["GET"])
@blp.operation("search", access=SEARCHING, errors=ERRORS, charges_search=True, searches=True)
@blp.arguments(SearchQuerySchema, location="query")
@blp.response(200, SearchAnswerSchema)
def search(parameters: dict[str, Any]) -> Response:
    """Search a site's documents."""
    return run_search(parameters)


@blp.route("/v1/search", methods=["POST"])
@blp.operation("searchByBody", access=SEARCHING, errors=ERRORS, body=True, charges_search=True, searches=True)
@blp.arguments(SearchBodySchema)
@blp.response(200, SearchAnswerSchema)
def search_by_body(parameters: dict[str, Any]) -> Response:
    """Search a site's documents; the parameters are a JSON body."""
    return run_search(parameters)


def run_search(parameters: dict[str, Any]) -> Response:
    """Choose the site, search it, write the search down and answer."""
    part = runtime()
    caller = current_caller()
    site = choose_searched_site(caller, parameters["site_id"])
    query = make_query(parameters, site)
    require_search()
    timed = part.searcher.run(site, query)
    if query.text != MATCH_ALL:
        part.events.record(
            SearchEvent(
                site_id=site.id,
                query=query.text,
                results_count=timed.result.total,
                session_id=parameters["session_id"],
                occurred_at=now(),
                response_ms=timed.took_ms,
            )
        )
    limit = caller.account.limits.searches_per_day
    return json_answer(
        {
            "results": encode_results(query, parameters["q"], timed),
            "remaining_quota": {
                "daily_limit": shown(limit),
                "used_today": used_today(),
                "unlimited": limit is None,
            },
        }
    )


