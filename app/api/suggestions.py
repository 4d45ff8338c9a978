"""Suggestions while a visitor types."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from app.api.search import unknown_parameters
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.runtime import runtime
from app.services.search.suggestions import encode_suggestions
from app.web.auth import SEARCHING
from app.web.callers import current_caller
from app.web.permissions import choose_searched_site
from app.web.policy import OperationPolicy
from app.web.responses import json_response
from backends.query import SearchQuery
from schemas.suggestions import SuggestAnswerSchema, SuggestQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("suggestions", __name__, description="Queries and titles that complete a prefix.")

_SUGGEST_PARAMETERS = frozenset(SuggestQuerySchema().load_fields)
_SUGGEST_ERRORS = (
    ErrorCode.INVALID_FILTER,
    ErrorCode.ANSWER_TOO_LARGE,
    ErrorCode.SITE_NOT_FOUND,
    ErrorCode.SITE_INACTIVE,
    ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
)


@blp.route("/v1/suggest", methods=["GET"])
@blp.operation("suggest", OperationPolicy(SEARCHING, Scope.SEARCH, searches=True), errors=_SUGGEST_ERRORS)
@blp.arguments(SuggestQuerySchema, location="query")
@blp.response(200, SuggestAnswerSchema)
def suggest(parameters: dict[str, Any]) -> Response:
    """Complete a prefix: frequent queries first, then titles. Suggestions are never charged as searches."""
    site = choose_searched_site(current_caller(), parameters["site_id"])
    within = SearchQuery("", native_filter=parameters["filters"].strip())
    suggestions = runtime().suggester.suggest(site, parameters["q"], parameters["limit"], within)
    warnings = unknown_parameters(request.args, _SUGGEST_PARAMETERS)
    return json_response({**encode_suggestions(suggestions), **({"warnings": warnings} if warnings else {})})
