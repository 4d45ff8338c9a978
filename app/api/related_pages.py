"""Related pages and popular pages, for pages and searches that lead nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from flask import Response, request

from app.api.search import unknown_parameters
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.runtime import runtime
from app.services.search.related_pages import find_related_pages, possible_urls
from app.web.auth import ANY_KEY
from app.web.callers import current_caller
from app.web.permissions import choose_searched_site
from app.web.policy import OperationPolicy
from app.web.responses import json_response
from backends.base import Hit
from backends.filters import OneOf
from schemas.related_pages import PageListSchema, PopularPagesQuerySchema, RelatedPagesQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("related-pages", __name__, description="Pages on the same topic, and popular pages.")

CACHE_CONTROL = "private, max-age=300"
"""Browsers may reuse a list for five minutes. Shared caches may not, since they don't check keys."""

_POLICY = OperationPolicy(ANY_KEY, Scope.SEARCH, searches=True)
_ERRORS = (
    ErrorCode.INVALID_FILTER,
    ErrorCode.ANSWER_TOO_LARGE,
    ErrorCode.SITE_NOT_FOUND,
    ErrorCode.SITE_INACTIVE,
    ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
)
_RELATED_PARAMETERS = frozenset(RelatedPagesQuerySchema().load_fields)
_POPULAR_PARAMETERS = frozenset(PopularPagesQuerySchema().load_fields)


@blp.route("/v1/related", methods=["GET"])
@blp.operation("listRelatedPages", _POLICY, errors=(*_ERRORS, ErrorCode.DOCUMENT_NOT_FOUND))
@blp.arguments(RelatedPagesQuerySchema, location="query")
@blp.response(200, PageListSchema)
def list_related_pages(parameters: dict[str, Any]) -> Response:
    """List the pages on the same topic as a page; empty if there are none. Never charged as a search."""
    site = choose_searched_site(current_caller(), parameters["site_id"])
    id, url = parameters["id"], parameters["url"]
    page = OneOf("id", (id,)) if url is None else possible_urls(site, url)
    filters = parameters["filters"].strip()
    hits = find_related_pages(runtime().searcher, site, page, parameters["limit"], filters)
    return _page_list(hits, unknown_parameters(request.args, _RELATED_PARAMETERS))


@blp.route("/v1/popular", methods=["GET"])
@blp.operation("listPopularPages", _POLICY, errors=_ERRORS)
@blp.arguments(PopularPagesQuerySchema, location="query")
@blp.response(200, PageListSchema)
def list_popular_pages(parameters: dict[str, Any]) -> Response:
    """List the pages that most visitors clicked in results, at least three visitors each. Never charged as a search."""
    site = choose_searched_site(current_caller(), parameters["site_id"])
    filters = parameters["filters"].strip()
    hits = runtime().popular_pages.find(site, parameters["period"], parameters["limit"], filters)
    return _page_list(hits, unknown_parameters(request.args, _POPULAR_PARAMETERS))


def _page_list(hits: Sequence[Hit], warnings: Sequence[dict[str, str]]) -> Response:
    pages = [orjson.Fragment(hit.json) for hit in hits]
    response = json_response({"pages": pages, **({"warnings": warnings} if warnings else {})})
    response.headers["Cache-Control"] = CACHE_CONTROL
    # The key determines the site.
    response.headers["Vary"] = "Authorization"
    return response
