"""Search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import islice
from typing import Any

from flask import Response, request

from app.apidoc.openapi import ApiBlueprint
from app.errors import ApiError, ErrorCode
from app.plans import describe_quota
from app.services.search.encoding import encode_results, make_query
from app.web.admission import current_admission
from app.web.auth import SEARCHING
from app.web.callers import current_visitor
from app.web.charges import run_charged_search, used_today
from app.web.permissions import choose_searched_site
from app.web.policy import OperationPolicy
from app.web.responses import json_response
from schemas.search import SearchBodySchema, SearchQuerySchema
from schemas.search_results import SearchAnswerSchema
from schemas.validation.keys import Scope
from schemas.validation.problems import MAX_PROBLEMS, closest_name, printable_name

blp = ApiBlueprint("search", __name__, description="Ranked, typo-tolerant full-text search.")

_SEARCH_PARAMETERS = frozenset(field.data_key or name for name, field in SearchQuerySchema().load_fields.items())
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
@blp.described_response(200, SearchAnswerSchema)
def search(parameters: dict[str, Any]) -> Response:
    """Search a site's documents."""
    return run_search(parameters, unknown_parameters(request.args, _SEARCH_PARAMETERS))


@blp.route("/v1/search", methods=["POST"])
@blp.operation(
    "searchByBody",
    OperationPolicy(SEARCHING, Scope.SEARCH, charges_search=True, searches=True),
    errors=ERRORS,
    body=True,
)
@blp.arguments(SearchBodySchema)
@blp.described_response(200, SearchAnswerSchema)
def search_by_body(parameters: dict[str, Any]) -> Response:
    """Search a site's documents, with the parameters in a JSON body."""
    return run_search(parameters, unknown_parameters(request.args, frozenset()))


def unknown_parameters(names: Iterable[str], known_names: Set[str]) -> list[dict[str, str]]:
    """Return a warning for each unknown parameter of the query string."""
    unknown = islice((name for name in names if name not in known_names), MAX_PROBLEMS)
    return [_unknown_parameter(name, closest_name(name, known_names)) for name in unknown]


def _unknown_parameter(name: str, probable_name: str | None) -> dict[str, str]:
    hint = {} if probable_name is None else {"did_you_mean": probable_name}
    return {"code": "unknown_parameter", "field": printable_name(name), **hint}


def run_search(parameters: dict[str, Any], warnings: Sequence[dict[str, str]] = ()) -> Response:
    """Choose the site, search it, record the search, and return the response."""
    admission = current_admission()
    caller = admission.known_caller
    query = make_query(parameters)
    if query.explain and caller.kind == "search":
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION, "A search key gets no explanations; use a private key, or omit explain."
        )
    site = choose_searched_site(caller, parameters["site_id"])
    visitor = current_visitor(admission, site.id, parameters["session_id"])
    outcome = run_charged_search(admission, site, query, visitor)
    results = encode_results(
        outcome.query, parameters["q"], outcome.timed, outcome.hits, outcome.query_id, outcome.links
    )
    if warnings:
        results["warnings"] = warnings
    remaining = describe_quota(caller.account.limits.searches_per_day, used_today(admission))
    return json_response({"results": results, "remaining_quota": remaining})
