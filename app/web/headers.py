"""Headers of every response (request ID, CORS, and security), and compression of pages.

An attacker who sees only response lengths can guess a secret that is compressed together with text of the attacker's
choice (BREACH): the attacker makes a victim's browser request one guess after another, and the shortest response
reveals the right one. Pages for identified callers contain secrets (the session's CSRF token, their data), and many
repeat text from the URL or from strangers, such as queries. So these pages are not compressed at all, which also
protects secrets other than the token. Pages for anonymous callers contain no secrets. Operations with the policy
``reflects_nothing`` contain no text that others can choose.

API responses are not compressed: most are small, and searches would take longer.
"""

from __future__ import annotations

import gzip
import itertools
import os
import re
import secrets
from functools import lru_cache

from flask import Request, Response

from app.web.admission import Admission

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}", re.ASCII)

BROWSER_PREFIXES = ("/v1/", "/engine/", "/customsearch/", "/1/indexes/", "/mcp/", "/agents/")
BROWSER_PATHS = (
    "/mcp", "/api/v1/search-log", "/api/v1/click", "/openapi.json",
    "/widget.js", "/widget-results.js", "/widget-texts.js", "/widget-related.js", "/widget-ask.js",
)  # fmt: skip
ALLOWED_HEADERS = (
    "Authorization, Content-Type, Idempotency-Key, X-Request-Id, X-Meilisearch-Client, X-Search-Session, "
    "X-Search-Analytics, X-Search-Channel, X-Search-Page, Meili-Include-Metadata, X-Algolia-API-Key, "
    "X-Algolia-Application-Id, X-Algolia-Agent, MCP-Protocol-Version, Mcp-Method, Mcp-Name"
)
EXPOSED_HEADERS = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id"
PREFLIGHT_SECONDS = 7200

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


REFERRER_POLICY = "same-origin"
"""Referrer policy of most responses. Pages with a secret in their URL have a stricter one."""


def policy_with_connections(address: str) -> str:
    """Return the content security policy of a page whose scripts may also call another origin."""
    return CONTENT_SECURITY_POLICY.replace("connect-src 'self'", f"connect-src 'self' {address}")


class _Process:
    """Parts of this process's request IDs."""

    def __init__(self) -> None:
        self.choose_prefix()

    def choose_prefix(self) -> None:
        """Choose a new prefix. Required after a fork, so that request IDs stay unique."""
        self.prefix = secrets.token_hex(8)
        self.numbers = itertools.count(secrets.randbits(32))


_process = _Process()
os.register_at_fork(after_in_child=_process.choose_prefix)


def make_request_id() -> str:
    """Return a globally unique request ID: 32 hexadecimal digits."""
    return f"{_process.prefix}{next(_process.numbers):016x}"


def choose_request_id(req: Request) -> str:
    """Return the caller's own request ID if it is valid, otherwise a new one."""
    request_id: str = req.environ.get("HTTP_X_REQUEST_ID", "")
    return request_id if request_id and _REQUEST_ID.fullmatch(request_id) else make_request_id()


def is_for_browsers(path: str) -> bool:
    """Whether web pages of any origin may call this path."""
    return path.startswith(BROWSER_PREFIXES) or path in BROWSER_PATHS


def is_preflight(req: Request) -> bool:
    """Whether the request is a CORS preflight."""
    return req.method == "OPTIONS" and "Origin" in req.headers and "Access-Control-Request-Method" in req.headers


def respond_to_preflight() -> Response:
    """Return the response to a CORS preflight."""
    response = Response(status=204)
    response.headers["Access-Control-Allow-Methods"] = "GET, HEAD, POST, DELETE, OPTIONS"
    response.headers["Access-Control-Allow-Headers"] = ALLOWED_HEADERS
    response.headers["Access-Control-Max-Age"] = str(PREFLIGHT_SECONDS)
    return response


def add_headers(req: Request, admission: Admission, response: Response) -> None:
    """Add the headers of every response, except those about limits."""
    headers = response.headers
    # ``add`` takes a third of the time of an assignment, which first looks for headers to replace.
    headers.add("X-Request-Id", admission.request_id)
    headers.add("X-Content-Type-Options", "nosniff")
    if is_for_browsers(req.path):
        headers.add("Access-Control-Allow-Origin", "*")
        headers.add("Access-Control-Expose-Headers", EXPOSED_HEADERS)
    if response.mimetype == "text/html":
        headers.setdefault("Referrer-Policy", REFERRER_POLICY)
        headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        headers["X-Frame-Options"] = "DENY"
        headers["Vary"] = "Accept, Cookie"
    else:
        headers.add("Referrer-Policy", REFERRER_POLICY)
        if admission.policy.has_page:
            response.vary.update(("Accept", "Cookie"))
    if not req.path.startswith("/static/") and "Cache-Control" not in headers:
        headers.add("Cache-Control", "no-store")


COMPRESSED_TYPES = frozenset({"text/html", "text/css", "text/javascript", "image/svg+xml", "application/json"})
MIN_COMPRESSED_BYTES = 1024
"""Minimum size to compress. Smaller responses fit into one packet anyway."""
GZIP_LEVEL = 6
API_DOCUMENT = "/openapi.json"
_WITHOUT_WHOLE_BODY = frozenset({204, 206, 304})


def compress(req: Request, admission: Admission, response: Response) -> Response:
    """Compress the response if that is safe and the client prefers it."""
    if response.headers.get("Content-Type") == "application/json" and req.path != API_DOCUMENT:
        return response  # The fast path of searches.
    reflects_nothing = admission.policy.reflects_nothing
    if not reflects_nothing and (response.mimetype != "text/html" or admission.caller is not None):
        return response
    if response.mimetype not in COMPRESSED_TYPES or "Content-Encoding" in response.headers:
        return response
    response.vary.add("Accept-Encoding")
    encoding = req.accept_encodings.best_match(("gzip", "identity"))
    if encoding != "gzip" or response.status_code in _WITHOUT_WHOLE_BODY:
        return response
    response.direct_passthrough = False
    content = response.get_data()
    if len(content) < MIN_COMPRESSED_BYTES:
        return response
    tag, is_weak = response.get_etag()
    if tag is not None:
        # Different bytes need a different tag, so that clients never combine ranges of both.
        response.set_etag(f"{tag}-gzip", weak=bool(is_weak))
    response.headers["Content-Encoding"] = "gzip"
    is_for_all = reflects_nothing and admission.caller is None
    response.set_data((_cached_gzip if is_for_all else _gzip)(content))
    if tag is not None:
        response.make_conditional(req)
    return response


def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, GZIP_LEVEL, mtime=0)


_cached_gzip = lru_cache(maxsize=16)(_gzip)
"""Compresses with a cache, for large responses that are the same for everyone."""
