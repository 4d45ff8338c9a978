"""Answers and errors of Custom Search, as Google documents them."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson

from app.errors import ApiError, ErrorCode
from app.services.access.credentials import SiteRecord
from app.services.search.search import TimedResult
from app.web.searches import Found
from backends.base import Matched
from backends.standard_fields import STANDARD_FIELDS
from schemas.compat.custom_search import MAX_RESULTS

_TAG = re.compile(r"</?b>")
_TEMPLATE = (
    "q={searchTerms}&num={count?}&start={startIndex?}&lr={language?}&cx={cx?}&sort={sort?}&dateRestrict={dateRestrict?}"
    "&fileType={fileType?}&siteSearch={siteSearch?}&siteSearchFilter={siteSearchFilter?}&exactTerms={exactTerms?}"
    "&excludeTerms={excludeTerms?}&orTerms={orTerms?}&hq={hq?}&alt=json"
)
_REPEATED = ("sort", "fileType", "siteSearch", "exactTerms", "excludeTerms", "orTerms", "hq")
"""Parameters that an answer repeats as they were sent."""
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


def encode_answer(sent: Mapping[str, Any], found: Found, site: SiteRecord, base_url: str) -> dict[str, Any]:
    """A page of results.

    Args:
        sent: The checked parameters.
        base_url: The service's own address.
    """
    timed = found.timed
    total = timed.result.total
    items = [_item(orjson.loads(hit), site) for hit in timed.hits]
    seconds = timed.took_ms / 1000
    answer: dict[str, Any] = {
        "kind": "customsearch#search",
        "url": {"type": "application/json", "template": f"{base_url}/customsearch/v1?{_TEMPLATE}"},
        "queries": _pages(sent, total, len(items)),
        "context": {"title": site.domain},
        "searchInformation": {
            "searchTime": seconds,
            "formattedSearchTime": f"{seconds:.2f}",
            "totalResults": str(total),
            "formattedTotalResults": f"{total:,}",
        },
        **_spelling(timed),
    }
    return {**answer, "items": items} if items else answer


def _pages(sent: Mapping[str, Any], total: int, count: int) -> dict[str, Any]:
    repeated = {name: sent[name] for name in _REPEATED if sent[name]}
    if sent["siteSearch"]:
        repeated["siteSearchFilter"] = sent["siteSearchFilter"]
    if sent["lr"]:
        repeated["language"] = sent["lr"]
    if sent["dateRestrict"] is not None:
        repeated["dateRestrict"] = "".join(map(str, sent["dateRestrict"]))

    def page(start: int, size: int) -> list[dict[str, Any]]:
        return [
            {
                "title": f"Site Search - {sent['q']}",
                "totalResults": str(total),
                "searchTerms": sent["q"],
                "count": size,
                "startIndex": start,
                "inputEncoding": "utf8",
                "outputEncoding": "utf8",
                "safe": "off",
                "cx": sent["cx"],
                **repeated,
            }
        ]

    first, size = sent["start"], sent["num"]
    pages = {"request": page(first, count)}
    if first > 1:
        pages["previousPage"] = page(max(1, first - size), size)
    following = first + size
    if following <= min(total, MAX_RESULTS):
        pages["nextPage"] = page(following, min(size, MAX_RESULTS - following + 1))
    return pages


def _spelling(timed: TimedResult) -> dict[str, Any]:
    corrected = timed.result.corrected_query
    if timed.result.matched is not Matched.CORRECTED or corrected is None:
        return {}
    shown = html.escape(corrected, quote=False)
    return {"spelling": {"correctedQuery": corrected, "htmlCorrectedQuery": f"<b><i>{shown}</i></b>"}}


def _item(document: Mapping[str, Any], site: SiteRecord) -> dict[str, Any]:
    link = urljoin(site.url, document["url"])
    marked = document["_formatted"]
    shown = html.escape(link, quote=False)
    item: dict[str, Any] = {
        "kind": "customsearch#result",
        "title": document["title"],
        "htmlTitle": marked["title"],
        "link": link,
        "displayLink": urlsplit(link).hostname or site.domain,
        "snippet": html.unescape(_TAG.sub("", marked["content"])),
        "htmlSnippet": marked["content"],
        "formattedUrl": link,
        "htmlFormattedUrl": shown,
    }
    kind = document.get("type")
    if kind in _MEDIA_TYPES:
        item |= {"mime": _MEDIA_TYPES[kind], "fileFormat": kind}
    pagemap = _pagemap(document, site)
    return {**item, "pagemap": pagemap} if pagemap else item


def _pagemap(document: Mapping[str, Any], site: SiteRecord) -> dict[str, Any]:
    """The document's own fields as Google tells what a page says of itself."""
    told = {
        name: value if isinstance(value, str) else orjson.dumps(value).decode()
        for name, value in document.items()
        if name != "_formatted"
        and value not in ("", None)
        and (name in ("author", "date") or name not in STANDARD_FIELDS)
    }
    pagemap: dict[str, Any] = {"metatags": [told]} if told else {}
    image = document.get("image")
    if isinstance(image, str) and image:
        try:
            source = urljoin(site.url, image)
        except ValueError:
            return pagemap  # The field may hold anything.
        pagemap |= {"cse_image": [{"src": source}], "cse_thumbnail": [{"src": source}]}
    return pagemap


def error_status(error: ApiError) -> int:
    """The status of an error where Google's differs from ours: a key is refused by 400, a missing one by 403."""
    if error.code in _REFUSED_KEYS:
        return 400
    return 403 if error.code is ErrorCode.MISSING_API_KEY else error.status


def error_body(error: ApiError) -> dict[str, Any]:
    """The JSON body of an error."""
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
