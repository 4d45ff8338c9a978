"""The gateway: Meilisearch's search API on top of any engine."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from flask import Request, Response, request
from marshmallow import Schema, ValidationError

from app.apidoc.openapi import GATEWAY_PREFIX, ApiBlueprint, View, described_errors
from app.errors import ApiError, ErrorCode
from app.gateway.federation import (
    empty_response,
    federated_response,
    make_federated_search,
    reject_outside_federation,
    with_federation,
)
from app.gateway.queries import (
    EngineSearch,
    make_engine_search,
    make_facet_query,
    matching_values,
    read_filter,
    search_metadata,
)
from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.search.budget import ResponseBudget
from app.services.search.search import Visitor
from app.services.search.suggestions import encode_suggestions
from app.storage.database import is_unavailable
from app.web.admission import current_admission
from app.web.auth import ANYONE, GATEWAY
from app.web.callers import current_caller, typing_visitor
from app.web.charges import require_search
from app.web.gateway_errors import GatewayError, gateway_error_body, invalid_engine_key, is_gateway_path, with_prefix
from app.web.hosts import base_url
from app.web.parsing import check_query_string, read_json_once
from app.web.policy import OperationPolicy
from app.web.responses import json_response
from backends.errors import BackendUnavailable
from backends.query import SearchQuery
from backends.text import normal_form
from schemas.gateway import (
    MAX_QUERIES,
    EngineAnswerSchema,
    EngineErrorSchema,
    EngineFacetAnswerSchema,
    EngineFacetSearchSchema,
    EngineHealthSchema,
    EngineMultiAnswerSchema,
    EngineMultiSearchSchema,
    EngineSearchSchema,
    EngineSuggestSchema,
    first_problem,
    query_parameters,
    read_query_string,
)
from schemas.search import MAX_QUERY_BYTES
from schemas.suggestions import SuggestionsSchema

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

blp = ApiBlueprint(
    "engine",
    __name__,
    description="The gateway: Meilisearch's search API, for its clients and widgets, with public keys, or "
    "engine keys from client-info. Highlights are not HTML-escaped; the widgets escape them.",
)

# Creating a schema copies all its fields, which took 5 percent of the service's part of a search.
_SEARCH_SCHEMA, _MULTI_SEARCH_SCHEMA = EngineSearchSchema(), EngineMultiSearchSchema()
_FACET_SEARCH_SCHEMA, _SUGGEST_SCHEMA = EngineFacetSearchSchema(), EngineSuggestSchema()

METADATA_HEADER = "Meili-Include-Metadata"
_HEADERS = [
    {
        "name": METADATA_HEADER,
        "in": "header",
        "schema": {"type": "boolean"},
        "description": "Whether the response has `metadata` with the `queryUid`, which clicks refer to.",
    }
]

_OPEN_ERRORS = {
    400: ("bad_request",),
    429: ("rate_limit_exceeded",),
    500: ("internal",),
    503: ("search_engine_unavailable", "database_unavailable", "counters_unavailable", "server_busy"),
}
_SEARCH_ERRORS = {
    **_OPEN_ERRORS,
    400: ("bad_request", "invalid_search_…", "answer_too_large"),
    401: ("missing_authorization_header",),
    403: ("invalid_api_key", "origin_not_allowed"),
}
_BODY_ERRORS = {
    **_SEARCH_ERRORS,
    408: ("request_timeout",),
    413: ("payload_too_large",),
    415: ("missing_content_type",),
}


@blp.error_responder
def respond(error: ApiError) -> Response | None:
    """Render errors of paths below ``/engine`` in Meilisearch's format."""
    if not is_gateway_path(request.path):
        return None
    return json_response(gateway_error_body(error, base_url()), error.status)


def _operation(
    operation_id: str, policy: OperationPolicy, errors: dict[int, tuple[str, ...]]
) -> Callable[[View], View]:
    """Declare the policy and the error responses of an operation of the gateway."""
    return blp.declare(operation_id, policy, described_errors(errors, EngineErrorSchema, prefix=GATEWAY_PREFIX))


def _json_body(schema: type[Schema]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


# --- reading requests


def searched_texts(req: Request) -> list[str]:
    """Return the normalized queries of a request."""
    return [_normal_text(text) for text in _sent_texts(req)[:MAX_QUERIES]]


def _sent_texts(req: Request) -> list[Any]:
    if req.method != "POST":
        return [req.args.get("q", "")]
    try:
        body = read_json_once(req)
    except ApiError:
        return []  # The view raises the error.
    if not isinstance(body, dict):
        return []
    # Only a multi-search has a list of queries. Other operations ignore ``queries`` and read ``q``.
    several = req.endpoint == "engine.multi_search" and isinstance(body.get("queries"), list)
    queries = body["queries"] if several else [body]
    return [query.get("q") for query in queries if isinstance(query, dict)]


def _normal_text(text: Any) -> str:
    # The view rejects invalid queries, but they are compared and stored briefly before that.
    return normal_form(text[:MAX_QUERY_BYTES].encode("utf-8", "replace").decode()) if isinstance(text, str) else ""


_SEARCHES = OperationPolicy(GATEWAY, searches=True, searched_texts=searched_texts)
_SUGGESTS = OperationPolicy(GATEWAY, searches=True)


def _covered_site(index: str) -> SiteRecord:
    """Return the site of the caller's key, if ``index`` is the site's index.

    Raises:
        ApiError: 403.
    """
    site = current_caller().site
    assert site is not None
    if index != site.index:
        raise invalid_engine_key(f"The key does not search this index; it searches `{site.index}`.")
    return site


def _load(schema: Schema, data: Any) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = schema.load(data)
    except ValidationError as error:
        raise GatewayError(*first_problem(error)) from error
    return loaded


def _run(
    site: SiteRecord,
    search: EngineSearch,
    budget: ResponseBudget,
    record_for: Visitor | None = None,
    federation_weight: float | None = None,
) -> dict[str, Any]:
    current_runtime = runtime()
    timed = current_runtime.searcher.run(site, search.query, record_for=record_for)
    if federation_weight is not None:
        timed = with_federation(timed, search.query, site, federation_weight)
    links = () if timed.result.total else current_runtime.popular_pages.links(site, search.query)
    response = search.encode(timed, budget, links) | _suggestions_beside(site, search)
    if request.headers.get(METADATA_HEADER, "").strip().lower() in ("true", "1"):
        response["metadata"] = search_metadata(search, timed, site, current_runtime.settings.secret_key)
    return response


def _suggestions_beside(site: SiteRecord, search: EngineSearch) -> dict[str, Any]:
    """Return the suggestions that a search requested; nothing if they are unavailable, since there are hits."""
    if not search.suggestions:
        return {}
    within = SearchQuery("", portable_filter=search.query.portable_filter)
    try:
        suggestions = runtime().suggester.suggest(site, search.text, search.suggestions, within)
    except Exception as error:
        if not (isinstance(error, BackendUnavailable) or is_unavailable(error)):
            raise
        log.warning("a search has no suggestions: %s", error)
        return {}
    return encode_suggestions(suggestions)


# --- operations


@blp.route("/engine/indexes/<uid>/search", methods=["POST"])
@_operation("engineSearch", _SEARCHES, _BODY_ERRORS)
@blp.doc(requestBody=_json_body(EngineSearchSchema), parameters=_HEADERS)
@blp.described_response(200, EngineAnswerSchema)
def search_index(uid: str) -> Response:
    """Search the key's index."""
    site = _covered_site(uid)
    return _search(site, _load(_SEARCH_SCHEMA, read_json_once(request)))


@blp.route("/engine/indexes/<uid>/search", methods=["GET"])
@_operation("engineSearchByQuery", _SEARCHES, _SEARCH_ERRORS)
@blp.doc(parameters=[*query_parameters(EngineSearchSchema), *_HEADERS])
@blp.described_response(200, EngineAnswerSchema)
def search_index_by_query(uid: str) -> Response:
    """Search the key's index, with the parameters in the query string."""
    site = _covered_site(uid)
    check_query_string(request)
    return _search(site, _load(_SEARCH_SCHEMA, read_query_string(EngineSearchSchema, request.args.to_dict())))


def _search(site: SiteRecord, parameters: dict[str, Any]) -> Response:
    admission = current_admission()
    budget = admission.runtime.searcher.new_budget()
    search = make_engine_search(parameters, site, budget.available)
    require_search(admission)
    return json_response(_run(site, search, budget, typing_visitor(admission, site.id)))


@blp.route("/engine/multi-search", methods=["POST"])
@_operation("engineMultiSearch", _SEARCHES, _BODY_ERRORS)
@blp.doc(requestBody=_json_body(EngineMultiSearchSchema), parameters=_HEADERS)
@blp.described_response(200, EngineMultiAnswerSchema)
def multi_search() -> Response:
    """Run up to ten searches. If one fails, the whole request fails. With `federation`, run one search, which a
    collection's index merges from all its sites.
    """
    body = _load(_MULTI_SEARCH_SCHEMA, read_json_once(request))
    queries, federation, sent = body["queries"], body["federation"], read_json_once(request)["queries"]
    covered = [_run_query(position, _covered_site, query["indexUid"]) for position, query in enumerate(queries)]
    if federation is not None:
        return _search_federated(federation, queries, sent, covered)
    reject_outside_federation(sent)
    admission = current_admission()
    budget = admission.runtime.searcher.new_budget()
    pairs = enumerate(zip(queries, covered, strict=True))
    searches = [
        _run_query(position, make_engine_search, query, site, budget.available) for position, (query, site) in pairs
    ]
    require_search(admission)
    visitor = typing_visitor(admission, covered[0].id) if covered else None
    # Several queries with the same text are one search: the first gets the hits, the others count facets.
    first = {_normal_text(search.text): position for position, search in reversed(list(enumerate(searches)))}
    results = [
        {
            "indexUid": site.index,
            **_run_query(
                position, _run, site, search, budget, visitor if first[_normal_text(search.text)] == position else None
            ),
        }
        for position, (site, search) in enumerate(zip(covered, searches, strict=True))
    ]
    return json_response({"results": results})


def _search_federated(
    federation: dict[str, Any], queries: list[dict[str, Any]], sent: list[Any], covered: list[SiteRecord]
) -> Response:
    if not queries:
        return json_response(empty_response(federation))
    admission, site = current_admission(), covered[0]
    budget = admission.runtime.searcher.new_budget()
    search = make_federated_search(federation, queries, sent, site, budget.available)
    require_search(admission)
    weight = (queries[0]["federationOptions"] or {"weight": 1.0})["weight"]
    response = _run_query(0, _run, site, search, budget, typing_visitor(admission, site.id), weight)
    return json_response(federated_response(response, federation, site))


def _run_query(position: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``work`` for the query at this position, and add the position to its errors."""
    try:
        return work(*args, **kwargs)
    except ApiError as error:
        raise with_prefix(error, f".queries[{position}]") from error


@blp.route("/engine/indexes/<uid>/facet-search", methods=["POST"])
@_operation("engineFacetSearch", _SEARCHES, _BODY_ERRORS)
@blp.doc(requestBody=_json_body(EngineFacetSearchSchema))
@blp.described_response(200, EngineFacetAnswerSchema)
def search_facet(uid: str) -> Response:
    """Search the values of one facet of the matching documents."""
    site = _covered_site(uid)
    parameters = _load(_FACET_SEARCH_SCHEMA, read_json_once(request))
    query = make_facet_query(parameters, site)
    require_search(current_admission())
    try:
        timed = runtime().searcher.run(site, query)
    except ApiError as error:
        if error.code is ErrorCode.INVALID_FACET:
            raise GatewayError("invalid_facet_search_facet_name", error.message) from error
        raise
    counts = timed.result.facets[parameters["facetName"]]
    return json_response(
        {
            "facetHits": matching_values(counts, parameters["facetQuery"]),
            "facetQuery": parameters["facetQuery"],
            "processingTimeMs": timed.took_ms,
        }
    )


@blp.route("/engine/suggest", methods=["POST"])
@_operation("engineSuggest", _SUGGESTS, _BODY_ERRORS)
@blp.doc(requestBody=_json_body(EngineSuggestSchema))
@blp.described_response(200, SuggestionsSchema)
def suggest() -> Response:
    """Complete a prefix: frequent queries first, then titles. Not part of Meilisearch's API."""
    return _suggest(_load(_SUGGEST_SCHEMA, read_json_once(request)))


@blp.route("/engine/suggest", methods=["GET"])
@_operation("engineSuggestByQuery", _SUGGESTS, _SEARCH_ERRORS)
@blp.doc(parameters=query_parameters(EngineSuggestSchema))
@blp.described_response(200, SuggestionsSchema)
def suggest_by_query() -> Response:
    """Complete a prefix, with the parameters in the query string."""
    check_query_string(request)
    return _suggest(_load(_SUGGEST_SCHEMA, read_query_string(EngineSuggestSchema, request.args.to_dict())))


def _suggest(parameters: dict[str, Any]) -> Response:
    site = current_caller().site
    assert site is not None
    within = SearchQuery("", portable_filter=read_filter(parameters["filter"]))
    suggestions = runtime().suggester.suggest(site, parameters["q"], parameters["limit"], within)
    return json_response(encode_suggestions(suggestions))


@blp.route("/engine/health", methods=["GET"])
@_operation("engineHealth", OperationPolicy(ANYONE), _OPEN_ERRORS)
@blp.response(200, EngineHealthSchema)
def show_health() -> dict[str, str]:
    """Check the gateway's health."""
    return {"status": "available"}
