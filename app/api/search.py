"""Search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import islice
from typing import Any

from flask import Response, request

from app.apidoc.openapi import ApiBlueprint
from app.errors import ApiError, ErrorCode
from app.plans import shown
from app.services.search.search import encode_results, make_query, parse_shown
from app.web.auth import SEARCHING
from app.web.permissions import choose_searched_site
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller, used_today
from app.web.responses import json_answer
from app.web.searches import search_site
from app.web.visitors import current_visitor
from schemas.search import SearchAnswerSchema, SearchBodySchema, SearchQuerySchema
from schemas.validation.keys import Scope
from schemas.validation.problems import MAX_PROBLEMS, shown_name

blp = ApiBlueprint("search", __name__, description="Ranked, typo-tolerant full-text search.")

_KNOWN = frozenset(field.data_key or name for name, field in SearchQuerySchema().load_fields.items())
ERRORS = (
    ErrorCode.INVALID_FILTER,
    ErrorCode.INVALID_SORT,
    ErrorCode.INVALID_FACET,
    ErrorCode.ANSWER_TOO_LARGE,
    ErrorCode.SITE_NOT_FOUND,
    ErrorCode.SITE_INACTIVE,
    ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
)


@blp.route("/v1/search", methods=["GET"])
@blp.operation("search", OperationPolicy(SEARCHING, Scope.SEARCH, charges_search=True, searches=True), errors=ERRORS)
@blp.arguments(SearchQuerySchema, location="query")
@blp.response(200, SearchAnswerSchema)
def search(parameters: dict[str, Any]) -> Response:
    """Search a site's documents."""
    return run_search(parameters, unknown_parameters(request.args, _KNOWN))


@blp.route("/v1/search", methods=["POST"])
@blp.operation(
    "searchByBody",
    OperationPolicy(SEARCHING, Scope.SEARCH, charges_search=True, searches=True),
    errors=ERRORS,
    body=True,
)
@blp.arguments(SearchBodySchema)
@blp.response(200, SearchAnswerSchema)
def search_by_body(parameters: dict[str, Any]) -> Response:
    """Search a site's documents, with the parameters in a JSON body."""
    return run_search(parameters)


def unknown_parameters(sent: Iterable[str], known: Set[str]) -> list[dict[str, str]]:
    """A warning for each parameter that an operation does not know."""
    unknown = islice((name for name in sent if name not in known), MAX_PROBLEMS)
    return [{"code": "unknown_parameter", "field": shown_name(name)} for name in unknown]


def run_search(parameters: dict[str, Any], warnings: Sequence[dict[str, str]] = ()) -> Response:
    """Choose the site, search it, write the search down and answer."""
    caller = current_caller()
    query = make_query(parameters)
    if query.explain and caller.kind == "search":
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION, "A search key gets no explanations; use a private key, or omit explain."
        )
    site = choose_searched_site(caller, parameters["site_id"])
    visitor = current_visitor(site.id, parameters["session_id"])
    found = search_site(site, query, visitor, parse_shown(parameters["fields"]))
    results = encode_results(found.query, parameters["q"], found.timed, found.query_id, found.links)
    if warnings:
        results["warnings"] = warnings
    limit = caller.account.limits.searches_per_day
    return json_answer(
        {
            "results": results,
            "remaining_quota": {
                "daily_limit": shown(limit),
                "used_today": used_today(),
                "unlimited": limit is None,
            },
        }
    )
