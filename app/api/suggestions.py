"""Suggestions while somebody types."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from app.api.search import unknown_parameters
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.runtime import runtime
from app.services.search.suggestions import encode_suggestions
from app.web.auth import SEARCHING
from app.web.permissions import choose_searched_site
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from app.web.responses import json_answer
from backends.base import SearchQuery
from schemas.suggestions import SuggestAnswerSchema, SuggestQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("suggestions", __name__, description="Queries and titles that continue what was typed.")

_KNOWN = frozenset(SuggestQuerySchema().load_fields)
ERRORS = (
    ErrorCode.INVALID_FILTER,
    ErrorCode.ANSWER_TOO_LARGE,
    ErrorCode.SITE_NOT_FOUND,
    ErrorCode.SITE_INACTIVE,
    ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
)


@blp.route("/v1/suggest", methods=["GET"])
@blp.operation("suggest", OperationPolicy(SEARCHING, Scope.SEARCH, searches=True), errors=ERRORS)
@blp.arguments(SuggestQuerySchema, location="query")
@blp.response(200, SuggestAnswerSchema)
def suggest(parameters: dict[str, Any]) -> Response:
    """Complete what somebody types: frequent queries first, then titles. Never charged as a search."""
    site = choose_searched_site(current_caller(), parameters["site_id"])
    within = SearchQuery("", filters=parameters["filters"].strip())
    found = runtime().suggester.suggest(site, parameters["q"], parameters["limit"], within)
    warnings = unknown_parameters(request.args, _KNOWN)
    return json_answer({**encode_suggestions(found), **({"warnings": warnings} if warnings else {})})
