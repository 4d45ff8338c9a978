"""Algolia's search API: single and multiple searches, with a hit for each page, or for each section for DocSearch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any
from urllib.parse import urlencode

import orjson
from flask import Request, Response, g, request
from marshmallow import ValidationError

from app.apidoc.openapi import ApiBlueprint, described_errors
from app.compat.algolia_filters import fields_named, read_filters
from app.compat.algolia_hits import DOCSEARCH_HIGHLIGHT, ENCODED_OPEN, HitShape, docsearch_hits
from app.errors import ApiError, ErrorCode, field_error
from app.operations.searches import SearchOutcome
from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.search.budget import ResponseBudget
from app.web.admission import current_admission
from app.web.auth import Access, TokenLocation
from app.web.callers import current_caller, typing_visitor
from app.web.charges import run_charged_search
from app.web.parsing import invalid, read_json_once
from app.web.permissions import choose_searched_site
from app.web.policy import OperationPolicy
from app.web.responses import json_response
from backends.query import MATCH_ALL, SearchQuery
from backends.standard_fields import COUNTED_FIELDS
from backends.text import normal_form
from schemas.compat import (
    AlgoliaAnswerSchema,
    AlgoliaAnswersSchema,
    AlgoliaErrorSchema,
    AlgoliaQuerySchema,
    AlgoliaRequestsSchema,
    read_requests,
)


@dataclass(frozen=True, slots=True)
class AlgoliaSearch:
    """A search and the format of its response.

    Attributes:
        parameters: The checked parameters.
        index: Index name from the request.
        window: Number of documents per page.
        shape: The format of a hit; ``None`` for DocSearch's hits.
        facets: Maps requested names to fields whose values are counted; ``None`` for all fields.
    """

    query: SearchQuery
    parameters: Mapping[str, Any]
    index: str
    window: int
    shape: HitShape | None
    facets: Mapping[str, tuple[str, ...]] | None


def encode_response(
    search: AlgoliaSearch, outcome: SearchOutcome, site: SiteRecord, budget: ResponseBudget
) -> dict[str, Any]:
    """Encode the response to a search.

    Raises:
        ApiError: 400 if the hits with their tags exceed ``budget``.
    """
    result, parameters = outcome.timed.result, search.parameters
    tags = parameters["highlightPreTag"], parameters["highlightPostTag"]
    # A text may consist entirely of matches, and a tag may be a hundred times as long as a match.
    for encoded_hit in outcome.hits:
        budget.spend(len(encoded_hit) + encoded_hit.count(ENCODED_OPEN) * len("".join(tags).encode()))
    documents = map(orjson.loads, outcome.hits)
    response: dict[str, Any] = {
        "hits": (
            [hit for document in documents for hit in docsearch_hits(document, site, tags)]
            if search.shape is None
            else [search.shape.hit(document, site, tags) for document in documents]
        ),
        "nbHits": result.total,
        "page": parameters["page"],
        "nbPages": -(-result.total // search.window) if search.window else 0,
        "hitsPerPage": parameters["hitsPerPage"],
        "exhaustiveNbHits": False,
        "processingTimeMS": outcome.timed.took_ms,
        "query": parameters["query"],
        "params": parameters["params"]
        or urlencode({"query": parameters["query"], "hitsPerPage": parameters["hitsPerPage"]}),
        "index": search.index,
        "queryID": outcome.query_id,
    }
    if not search.query.facets:
        return response
    facets = result.facets if search.facets is None else _facet_counts(search.facets, result.facets)
    return {**response, "facets": facets}


def _facet_counts(names: Mapping[str, tuple[str, ...]], counted: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Return the value counts for each requested name, summed over its fields, most frequent values first."""
    facets = {}
    for name, fields in names.items():
        values: Counter[str] = Counter()
        for field in fields:
            values.update(counted.get(field, {}))
        facets[name] = dict(sorted(values.items(), key=lambda pair: (-pair[1], pair[0])))
    return facets


PREFIX = "/1/indexes/"
ACCESS = Access(public=True, search=True)
SECTIONS_OF_PAGE = 3
_HITS_OF_PAGE = 1 + SECTIONS_OF_PAGE
_NO_KEY = frozenset(
    {ErrorCode.MISSING_API_KEY, ErrorCode.INVALID_API_KEY, ErrorCode.KEY_DISABLED, ErrorCode.KEY_EXPIRED}
)
_READ = AlgoliaQuerySchema()


def _error_body(error: ApiError) -> dict[str, Any]:
    """Return the JSON body of an error. Algolia rejects keys with 403."""
    if error.code is ErrorCode.MISSING_API_KEY:
        return {"message": "Send a public or search key of the site in X-Algolia-API-Key.", "status": 403}
    return {"message": error.message, "status": 403 if error.code in _NO_KEY else error.status}


_EXAMPLES = {
    "invalid": field_error("filters", "invalid", "cannot be read at 'lang ='"),
    "forbidden": ApiError(ErrorCode.INVALID_API_KEY, "The API key is invalid."),
    "rate_limit": ApiError(ErrorCode.RATE_LIMIT_EXCEEDED, "The daily search quota is used up."),
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


@blp.error_responder
def respond(error: ApiError) -> Response | None:
    """Render errors of this API in its own format."""
    if not request.path.startswith(PREFIX):
        return None
    body = _error_body(error)
    return json_response(body, body["status"])


def _body() -> Any:
    """Return the request's body as JSON, regardless of its media type, since Algolia's clients send plain text.

    Raises:
        ApiError: 400, 408, 413, 415.
    """
    return read_json_once(request, any_type=True)


def _queries() -> list[dict[str, Any]]:
    """Return the checked searches of the request.

    Raises:
        ApiError: 400.
    """
    if "algolia_queries" not in g:  # The checks before the view need them, too.
        body = _body()
        try:
            requests = read_requests(body) if request.endpoint == "algolia.search_indexes" else [body]
            g.algolia_queries = [_READ.load_query(query) for query in requests]
        except ValidationError as error:
            raise invalid(error) from error
    queries: list[dict[str, Any]] = g.algolia_queries
    return queries


def searched_texts(_: Request) -> list[str]:
    """Return the normalized queries of the request."""
    try:
        return [normal_form(query["query"]) for query in _queries()]
    except ApiError:
        return []  # The view raises the error.


_POLICY = OperationPolicy(
    ACCESS,
    searches=True,
    searched_texts=searched_texts,
    token_locations=(TokenLocation("header", "X-Algolia-API-Key"), TokenLocation("query", "x-algolia-api-key")),
)
_DESCRIBED = described_errors(_ERRORS, AlgoliaErrorSchema, prefix=_EXAMPLE_PREFIX)
_KEY = {
    "name": "x-algolia-api-key",
    "in": "query",
    "required": True,
    "schema": {"type": "string"},
    "description": "A public or search key of the site. You can also send it in the header `X-Algolia-API-Key`.",
}


@blp.route("/1/indexes/*/queries", methods=["POST"])
@blp.declare("algoliaQueries", _POLICY, _DESCRIBED)
@blp.doc(
    parameters=[_KEY],
    requestBody={"required": True, "content": {"application/json": {"schema": AlgoliaRequestsSchema}}},
)
@blp.described_response(200, AlgoliaAnswersSchema)
def search_indexes() -> Response:
    """Run up to ten searches, as Algolia does."""
    queries = _queries()
    names = [str(parameters.get("indexName", "")) for parameters in read_requests(_body())]
    site = choose_searched_site(current_caller(), None)
    recorded_texts: set[str] = set()
    budget = runtime().searcher.new_budget()
    return json_response(
        {
            "results": [
                _run(site, parameters, name, recorded_texts, budget)
                for parameters, name in zip(queries, names, strict=True)
            ]
        }
    )


@blp.route("/1/indexes/<uid>/query", methods=["POST"])
@blp.declare("algoliaQuery", _POLICY, _DESCRIBED)
@blp.doc(
    parameters=[_KEY],
    requestBody={"required": True, "content": {"application/json": {"schema": AlgoliaQuerySchema}}},
)
@blp.described_response(200, AlgoliaAnswerSchema)
def search_one_index(uid: str) -> Response:
    """Run one search, as Algolia does."""
    (parameters,) = _queries()
    site = choose_searched_site(current_caller(), None)
    return json_response(_run(site, parameters, uid, set(), runtime().searcher.new_budget()))


def _run(
    site: SiteRecord, parameters: dict[str, Any], index: str, recorded_texts: set[str], budget: ResponseBudget
) -> dict[str, Any]:
    """Run one search. Only the first of several searches with the same text is recorded for analytics."""
    search = make_search(parameters, index, site)
    text = normal_form(search.query.text)
    admission = current_admission()
    visitor = None if text in recorded_texts else typing_visitor(admission, site.id)
    recorded_texts.add(text)
    return encode_response(search, run_charged_search(admission, site, search.query, visitor), site, budget)


def make_search(parameters: dict[str, Any], index: str, site: SiteRecord) -> AlgoliaSearch:
    """Create a search from checked parameters. DocSearch gets a hit for each section.

    Raises:
        ApiError: 400 for invalid filters.
    """
    by_section = _is_docsearch(parameters)
    shape = None if by_section else HitShape.of(parameters, site.kinds)
    size = parameters["hitsPerPage"]
    # A document yields up to four hits, so fewer documents keep the response within hitsPerPage.
    window = max(1, size // _HITS_OF_PAGE) if by_section and size else size
    facets = _facets(parameters["facets"], site)
    returned_fields: Set[str] | None = {"id", "title", "url", *site.kinds}
    if shape is not None:
        returned_fields = None if shape.retrieved is None else shape.retrieved | {"id"}
    query = SearchQuery(
        text=parameters["query"].strip() or MATCH_ALL,
        limit=window,
        offset=parameters["page"] * window,
        portable_filter=read_filters(parameters, site.kinds),
        facets=("*",) if facets is None else tuple(dict.fromkeys(field for of in facets.values() for field in of)),
        highlight=DOCSEARCH_HIGHLIGHT if shape is None else shape.highlight(parameters),
        sections=SECTIONS_OF_PAGE if by_section else 0,
        returned_fields=returned_fields,
    )
    return AlgoliaSearch(query, parameters, index, window, shape, facets)


def _is_docsearch(parameters: Mapping[str, Any]) -> bool:
    """Whether the client is DocSearch, judging by the requested fields or the client's name."""
    names = chain.from_iterable(parameters[f"attributesTo{use}"] for use in ("Retrieve", "Highlight", "Snippet"))
    agent = request.args.get("x-algolia-agent") or request.headers.get("X-Algolia-Agent", "")
    return any(name.startswith("hierarchy") for name in names) or "docsearch" in agent.lower()


def _facets(names: list[str], site: SiteRecord) -> dict[str, tuple[str, ...]] | None:
    """Map requested names to fields whose values are counted; ``None`` for all fields.

    As in Algolia, names that don't exist in any document are skipped.
    """
    if "*" in names:
        return None
    counted = {*COUNTED_FIELDS, *site.kinds}
    fields_by_name = {
        name: tuple(field for field in fields_named(name, site.kinds) if field in counted) for name in names
    }
    return {name: fields for name, fields in fields_by_name.items() if fields}
