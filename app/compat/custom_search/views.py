"""Custom Search: the one operation of Google's API."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from flask.blueprints import BlueprintSetupState

from app.apidoc.openapi import ApiBlueprint, described_errors
from app.clock import now
from app.compat.custom_search.answers import encode_answer, error_body, error_status
from app.compat.custom_search.narrowing import read_narrowing, search_narrowed
from app.compat.custom_search.queries import make_search_query, shown_fields
from app.errors import ApiError, ErrorCode, field_error
from app.web.auth import Access, TokenPlace
from app.web.hosts import base_url
from app.web.permissions import choose_searched_site
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from app.web.responses import json_answer
from app.web.searches import search_site
from app.web.visitors import current_visitor
from schemas.compat.custom_search import CustomSearchAnswerSchema, CustomSearchErrorSchema, CustomSearchQuerySchema

PATH = "/customsearch/v1"
ACCESS = Access(public=True, search=True)

_PREFIX = "customsearch_"
blp = ApiBlueprint(
    "custom_search",
    __name__,
    description="Google's Custom Search JSON API, for programs that were written for it.",
    error_examples={
        f"{_PREFIX}{reason}": error_body(error)
        for reason, error in {
            "badRequest": field_error("num", "out_of_range", "must be between 1 and 10"),
            "forbidden": ApiError(ErrorCode.INSUFFICIENT_PERMISSION, "A private key cannot do this; use a search key."),
            "rateLimitExceeded": ApiError(ErrorCode.RATE_LIMIT_EXCEEDED, "The searches of the day are used up."),
            "backendError": ApiError(ErrorCode.SEARCH_ENGINE_UNAVAILABLE, "The search engine is unavailable."),
        }.items()
    },
)
_POLICY = OperationPolicy(
    ACCESS,
    charges_search=True,
    searches=True,
    token_places=(TokenPlace("query", "key"),),
)
_ERRORS = {
    400: ("badRequest",),
    403: ("forbidden",),
    429: ("rateLimitExceeded",),
    500: ("backendError",),
    503: ("backendError",),
}


@blp.record_once
def _answer_errors(state: BlueprintSetupState) -> None:
    state.app.extensions["error_responders"].insert(0, respond)


def respond(error: ApiError) -> Response | None:
    """Answer an error of this API in its own shape."""
    return json_answer(error_body(error), error_status(error)) if request.path == PATH else None


@blp.route(PATH, methods=["GET"])
@blp.declare("customSearch", _POLICY, described_errors(_ERRORS, CustomSearchErrorSchema, prefix=_PREFIX))
@blp.arguments(CustomSearchQuerySchema, location="query")
@blp.response(200, CustomSearchAnswerSchema)
def custom_search(parameters: dict[str, Any]) -> Response:
    """Search the key's site, as Google's Custom Search JSON API does."""
    site = choose_searched_site(current_caller(), None)
    query = make_search_query(parameters, site, now().date())
    narrowing = read_narrowing(parameters, site)
    visitor, shown = current_visitor(site.id, None), shown_fields(site)
    if narrowing is None:
        found = search_site(site, query, visitor, shown)
    else:
        found = search_narrowed(site, query, narrowing, visitor, shown)
    return json_answer(encode_answer(parameters, found, site, base_url()))
