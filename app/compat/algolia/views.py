"""Algolia's search API: one search, or several."""

from __future__ import annotations

from typing import Any

from flask import Response, g, request
from flask.blueprints import BlueprintSetupState
from marshmallow import ValidationError

from app.apidoc.openapi import ApiBlueprint, described_errors
from app.compat.algolia.answers import CLOSE, OPEN, AlgoliaSearch, encode_answer
from app.compat.algolia.filters import fields_named, read_filters
from app.errors import ApiError, ErrorCode, field_error
from app.services.access.credentials import SiteRecord
from app.web.auth import Access, TokenPlace
from app.web.parsing import invalid, read_json_once
from app.web.permissions import choose_searched_site
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from app.web.responses import json_answer
from app.web.searches import search_site
from app.web.visitors import typing_visitor
from backends.query import MATCH_ALL, Highlight, SearchQuery
from backends.standard_fields import COUNTED_FIELDS
from backends.text import normal_form
from schemas.compat.algolia import (
    AlgoliaAnswerSchema,
    AlgoliaAnswersSchema,
    AlgoliaErrorSchema,
    AlgoliaQuerySchema,
    AlgoliaRequestsSchema,
    read_requests,
)

PREFIX = "/1/indexes/"
ACCESS = Access(public=True, search=True)
SECTIONS_OF_PAGE = 3
_HITS_OF_PAGE = 1 + SECTIONS_OF_PAGE
_NO_KEY = frozenset(
    {ErrorCode.MISSING_API_KEY, ErrorCode.INVALID_API_KEY, ErrorCode.KEY_DISABLED, ErrorCode.KEY_EXPIRED}
)
_READ = AlgoliaQuerySchema()


def _error_body(error: ApiError) -> dict[str, Any]:
    """The JSON body of an error: Algolia refuses keys with 403."""
    if error.code is ErrorCode.MISSING_API_KEY:
        return {"message": "Send a public or search key of the site in X-Algolia-API-Key.", "status": 403}
    return {"message": error.message, "status": 403 if error.code in _NO_KEY else error.status}


_EXAMPLES = {
    "invalid": field_error("filters", "invalid", "cannot be read at 'lang ='"),
    "forbidden": ApiError(ErrorCode.INVALID_API_KEY, "The API key is invalid."),
    "rate_limit": ApiError(ErrorCode.RATE_LIMIT_EXCEEDED, "The searches of the day are used up."),
    "unavailable": ApiError(ErrorCode.SEARCH_ENGINE_UNAVAILABLE, "The search engine is unavailable."),
}
_ERRORS = {
    400: ("invalid",),
    403: ("forbidden",),
    408: ("invalid",),
    413: ("invalid",),
    415: ("invalid",),
    429: ("rate_limit",),
    500: ("unavailable",),
    503: ("unavailable",),
}
_EXAMPLE_PREFIX = "algolia_"
blp = ApiBlueprint(
    "algolia",
    __name__,
    description="Algolia's search API, as far as DocSearch and plain searches need it.",
    error_examples={f"{_EXAMPLE_PREFIX}{name}": _error_body(error) for name, error in _EXAMPLES.items()},
)


@blp.record_once
def _answer_errors(state: BlueprintSetupState) -> None:
    state.app.extensions["error_responders"].insert(0, respond)


def respond(error: ApiError) -> Response | None:
    """Answer an error of this API in its own shape."""
    if not request.path.startswith(PREFIX):
        return None
    body = _error_body(error)
    return json_answer(body, body["status"])


def _body() -> Any:
    """The request's body: JSON, whatever its type says, since Algolia's clients send it as plain text.

    Raises:
        ApiError: 400, 408, 413, 415.
    """
    return read_json_once(request, any_type=True)


def _queries() -> list[dict[str, Any]]:
    """The searches of the request, checked.

    Raises:
        ApiError: 400.
    """
    if "algolia_queries" not in g:  # The checks before the view ask, too.
        body = _body()
        try:
            sent = read_requests(body) if request.endpoint == "algolia.search_indexes" else [body]
            g.algolia_queries = [_READ.load_query(each) for each in sent]
        except ValidationError as error:
            raise invalid(error) from error
    queries: list[dict[str, Any]] = g.algolia_queries
    return queries


def searched_texts() -> list[str]:
    """The texts that a request searches, in normal form."""
    try:
        return [normal_form(query["query"]) for query in _queries()]
    except ApiError:
        return []  # The view raises it, when it is its turn.


_POLICY = OperationPolicy(
    ACCESS,
    searches=True,
    searched_texts=searched_texts,
    token_places=(TokenPlace("header", "X-Algolia-API-Key"), TokenPlace("query", "x-algolia-api-key")),
)
_DESCRIBED = described_errors(_ERRORS, AlgoliaErrorSchema, prefix=_EXAMPLE_PREFIX)
_KEY = {
    "name": "x-algolia-api-key",
    "in": "query",
    "required": True,
    "schema": {"type": "string"},
    "description": "A public or search key of the site; or in the header `X-Algolia-API-Key`.",
}


@blp.route("/1/indexes/*/queries", methods=["POST"])
@blp.declare("algoliaQueries", _POLICY, _DESCRIBED)
@blp.doc(
    parameters=[_KEY],
    requestBody={"required": True, "content": {"application/json": {"schema": AlgoliaRequestsSchema}}},
)
@blp.response(200, AlgoliaAnswersSchema)
def search_indexes() -> Response:
    """Run up to ten searches, as Algolia does."""
    queries = _queries()
    names = [str(sent.get("indexName", "")) for sent in read_requests(_body())]
    site = choose_searched_site(current_caller(), None)
    seen: set[str] = set()
    return json_answer({"results": [_run(site, sent, name, seen) for sent, name in zip(queries, names, strict=True)]})


@blp.route("/1/indexes/<uid>/query", methods=["POST"])
@blp.declare("algoliaQuery", _POLICY, _DESCRIBED)
@blp.doc(
    parameters=[_KEY],
    requestBody={"required": True, "content": {"application/json": {"schema": AlgoliaQuerySchema}}},
)
@blp.response(200, AlgoliaAnswerSchema)
def search_one_index(uid: str) -> Response:
    """Run one search, as Algolia does."""
    (sent,) = _queries()
    return json_answer(_run(choose_searched_site(current_caller(), None), sent, uid, set()))


def _run(site: SiteRecord, sent: dict[str, Any], index: str, seen: set[str]) -> dict[str, Any]:
    """Run one search; of several for one text, the first is recorded for analytics."""
    search = make_search(sent, index, site)
    text = normal_form(search.query.text)
    visitor = None if text in seen else typing_visitor(site.id)
    seen.add(text)
    shown = {"id", "title", "url", *site.kinds}
    return encode_answer(search, search_site(site, search.query, visitor, shown), site)


def make_search(sent: dict[str, Any], index: str, site: SiteRecord) -> AlgoliaSearch:
    """The checked parameters as a search. Who shows titles above titles, as DocSearch does, gets a hit per section.

    Raises:
        ApiError: 400 for filters that cannot be read.
    """
    by_section = any(name.startswith("hierarchy") for name in sent["attributesToRetrieve"])
    size = sent["hitsPerPage"]
    window = max(1, size // _HITS_OF_PAGE) if by_section and size else size
    facets = _facets(sent["facets"], site)
    query = SearchQuery(
        text=sent["query"].strip() or MATCH_ALL,
        limit=window,
        offset=sent["page"] * window,
        filter=read_filters(sent, site.kinds),
        facets=("*",) if facets is None else tuple(dict.fromkeys(field for of in facets.values() for field in of)),
        highlight=Highlight(pre_tag=OPEN, post_tag=CLOSE, only_fields=frozenset({"title", "content"}), sentences=True),
        sections=SECTIONS_OF_PAGE if by_section else 0,
    )
    return AlgoliaSearch(query, sent, index, window, facets)


def _facets(names: list[str], site: SiteRecord) -> dict[str, tuple[str, ...]] | None:
    """The fields whose values are counted, by the name that was asked for; ``None`` for all fields.

    Names that no document has are passed over, as at Algolia.
    """
    if "*" in names:
        return None
    counted = {*COUNTED_FIELDS, *site.kinds}
    named = {name: tuple(field for field in fields_named(name, site.kinds) if field in counted) for name in names}
    return {name: fields for name, fields in named.items() if fields}
