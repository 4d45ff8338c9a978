"""Custom Search: the operation of Google's API, with responses and errors in Google's documented formats."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson
from flask import Response, request

from app.apidoc.openapi import ApiBlueprint, described_errors
from app.clock import now
from app.compat.custom_search_queries import make_search_query, read_narrowing, search_narrowed
from app.errors import ApiError, ErrorCode, field_error
from app.operations.searches import SearchOutcome
from app.services.access.credentials import SiteRecord
from app.services.search.search import TimedResult
from app.web.admission import current_admission
from app.web.auth import Access, TokenLocation
from app.web.callers import current_caller, current_visitor
from app.web.charges import run_charged_search
from app.web.hosts import base_url
from app.web.permissions import choose_searched_site
from app.web.policy import OperationPolicy
from app.web.responses import json_response
from backends.base import Matched
from backends.standard_fields import STANDARD_FIELDS
from schemas.compat import (
    MAX_GOOGLE_RESULTS,
    CustomSearchAnswerSchema,
    CustomSearchErrorSchema,
    CustomSearchQuerySchema,
)

_TAG = re.compile(r"</?b>")
_TEMPLATE = (
    "q={searchTerms}&num={count?}&start={startIndex?}&lr={language?}&cx={cx?}&sort={sort?}&dateRestrict={dateRestrict?}"
    "&fileType={fileType?}&siteSearch={siteSearch?}&siteSearchFilter={siteSearchFilter?}&exactTerms={exactTerms?}"
    "&excludeTerms={excludeTerms?}&orTerms={orTerms?}&hq={hq?}&alt=json"
)
_REPEATED = ("sort", "fileType", "siteSearch", "exactTerms", "excludeTerms", "orTerms", "hq")
"""Parameters that are repeated in the response."""
_MEDIA_TYPES = {"pdf": "application/pdf", "epub": "application/epub+zip"}
_STATUSES = {
    400: ("INVALID_ARGUMENT", "badRequest"),
    403: ("PERMISSION_DENIED", "forbidden"),
    404: ("NOT_FOUND", "notFound"),
    405: ("UNIMPLEMENTED", "methodNotAllowed"),
    429: ("RESOURCE_EXHAUSTED", "rateLimitExceeded"),
    500: ("INTERNAL", "backendError"),
    503: ("UNAVAILABLE", "backendError"),
}
_NO_KEY = "Send a public or search key of the site as the parameter key."
_REFUSED_KEYS = frozenset({ErrorCode.INVALID_API_KEY, ErrorCode.KEY_DISABLED, ErrorCode.KEY_EXPIRED})


def encode_response(
    parameters: Mapping[str, Any], outcome: SearchOutcome, site: SiteRecord, base_url: str
) -> dict[str, Any]:
    """Encode a page of results.

    Args:
        parameters: The checked parameters.
        base_url: URL of this service.
    """
    timed = outcome.timed
    total = timed.result.total
    items = [_item(orjson.loads(hit), site) for hit in outcome.hits]
    seconds = timed.took_ms / 1000
    response: dict[str, Any] = {
        "kind": "customsearch#search",
        "url": {"type": "application/json", "template": f"{base_url}/customsearch/v1?{_TEMPLATE}"},
        "queries": _page_links(parameters, total, len(items)),
        "context": {"title": site.domain},
        "searchInformation": {
            "searchTime": seconds,
            "formattedSearchTime": f"{seconds:.2f}",
            "totalResults": str(total),
            "formattedTotalResults": f"{total:,}",
        },
        **_spelling(timed),
    }
    return {**response, "items": items} if items else response


def _page_links(parameters: Mapping[str, Any], total: int, count: int) -> dict[str, Any]:
    repeated = {name: parameters[name] for name in _REPEATED if parameters[name]}
    if parameters["siteSearch"]:
        repeated["siteSearchFilter"] = parameters["siteSearchFilter"]
    if parameters["lr"]:
        repeated["language"] = parameters["lr"]
    if parameters["dateRestrict"] is not None:
        repeated["dateRestrict"] = "".join(map(str, parameters["dateRestrict"]))

    def page(start: int, size: int) -> list[dict[str, Any]]:
        return [
            {
                "title": f"Site Search - {parameters['q']}",
                "totalResults": str(total),
                "searchTerms": parameters["q"],
                "count": size,
                "startIndex": start,
                "inputEncoding": "utf8",
                "outputEncoding": "utf8",
                "safe": "off",
                "cx": parameters["cx"],
                **repeated,
            }
        ]

    first, size = parameters["start"], parameters["num"]
    pages = {"request": page(first, count)}
    if first > 1:
        pages["previousPage"] = page(max(1, first - size), size)
    following = first + size
    if following <= min(total, MAX_GOOGLE_RESULTS):
        pages["nextPage"] = page(following, min(size, MAX_GOOGLE_RESULTS - following + 1))
    return pages


def _spelling(timed: TimedResult) -> dict[str, Any]:
    corrected = timed.result.corrected_query
    if timed.result.matched is not Matched.CORRECTED or corrected is None:
        return {}
    escaped = html.escape(corrected, quote=False)
    return {"spelling": {"correctedQuery": corrected, "htmlCorrectedQuery": f"<b><i>{escaped}</i></b>"}}


def _item(document: Mapping[str, Any], site: SiteRecord) -> dict[str, Any]:
    link = urljoin(site.url, document["url"])
    marked = document["_formatted"]
    escaped = html.escape(link, quote=False)
    item: dict[str, Any] = {
        "kind": "customsearch#result",
        "title": document["title"],
        "htmlTitle": marked["title"],
        "link": link,
        "displayLink": urlsplit(link).hostname or site.domain,
        "snippet": html.unescape(_TAG.sub("", marked["content"])),
        "htmlSnippet": marked["content"],
        "formattedUrl": link,
        "htmlFormattedUrl": escaped,
    }
    kind = document.get("type")
    if kind in _MEDIA_TYPES:
        item |= {"mime": _MEDIA_TYPES[kind], "fileFormat": kind}
    pagemap = _pagemap(document, site)
    return {**item, "pagemap": pagemap} if pagemap else item


def _pagemap(document: Mapping[str, Any], site: SiteRecord) -> dict[str, Any]:
    """Return the document's own fields in the format of Google's page metadata."""
    metatags = {
        name: value if isinstance(value, str) else orjson.dumps(value).decode()
        for name, value in document.items()
        if name != "_formatted"
        and value not in ("", None)
        and (name in ("author", "date") or name not in STANDARD_FIELDS)
    }
    pagemap: dict[str, Any] = {"metatags": [metatags]} if metatags else {}
    image = document.get("image")
    if isinstance(image, str) and image:
        try:
            source = urljoin(site.url, image)
        except ValueError:
            return pagemap  # The field may contain anything.
        pagemap |= {"cse_image": [{"src": source}], "cse_thumbnail": [{"src": source}]}
    return pagemap


def error_status(error: ApiError) -> int:
    """Return the status of an error. Unlike our API, Google uses 400 for an invalid key and 403 for a missing key."""
    if error.code in _REFUSED_KEYS:
        return 400
    return 403 if error.code is ErrorCode.MISSING_API_KEY else error.status


def error_body(error: ApiError) -> dict[str, Any]:
    """Return the JSON body of an error."""
    code = error_status(error)
    status, reason = _STATUSES.get(code, _STATUSES[400])
    message = _NO_KEY if error.code is ErrorCode.MISSING_API_KEY else error.message
    body: dict[str, Any] = {
        "code": code,
        "message": message,
        "errors": [{"message": message, "domain": "global", "reason": reason}],
        "status": status,
    }
    if error.code in _REFUSED_KEYS:
        body["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
                "metadata": {"service": "customsearch.googleapis.com"},
            }
        ]
    return {"error": body}


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
            "rateLimitExceeded": ApiError(ErrorCode.RATE_LIMIT_EXCEEDED, "The daily search quota is used up."),
            "backendError": ApiError(ErrorCode.SEARCH_ENGINE_UNAVAILABLE, "The search engine is unavailable."),
        }.items()
    },
)
_POLICY = OperationPolicy(
    ACCESS,
    charges_search=True,
    searches=True,
    token_locations=(TokenLocation("query", "key"),),
)
_ERRORS = {
    400: ("badRequest",),
    403: ("forbidden",),
    429: ("rateLimitExceeded",),
    500: ("backendError",),
    503: ("backendError",),
}


@blp.error_responder
def respond(error: ApiError) -> Response | None:
    """Render errors of this API in its own format."""
    return json_response(error_body(error), error_status(error)) if request.path == PATH else None


@blp.route(PATH, methods=["GET"])
@blp.declare("customSearch", _POLICY, described_errors(_ERRORS, CustomSearchErrorSchema, prefix=_PREFIX))
@blp.arguments(CustomSearchQuerySchema, location="query")
@blp.described_response(200, CustomSearchAnswerSchema)
def custom_search(parameters: dict[str, Any]) -> Response:
    """Search the key's site, as Google's Custom Search JSON API does."""
    site = choose_searched_site(current_caller(), None)
    query = make_search_query(parameters, site, now().date())
    narrowing = read_narrowing(parameters, site)
    admission = current_admission()
    visitor = current_visitor(admission, site.id, None)
    if narrowing is None:
        outcome = run_charged_search(admission, site, query, visitor)
    else:
        outcome = search_narrowed(site, query, narrowing, visitor)
    return json_response(encode_response(parameters, outcome, site, base_url()))
