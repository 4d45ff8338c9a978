"""Headers of every response: request id, CORS, security."""

from __future__ import annotations

import itertools
import os
import re
import secrets

from flask import Flask, Response, g, request

from app.web import hosts

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}", re.ASCII)

BROWSER_PREFIXES = ("/v1/", "/engine/", "/customsearch/", "/1/indexes/", "/mcp/", "/agents/")
BROWSER_PATHS = ("/mcp", "/api/v1/search-log", "/api/v1/click", "/openapi.json", "/widget.js", "/widget-results.js")
ALLOWED_HEADERS = (
    "Authorization, Content-Type, Idempotency-Key, X-Request-Id, X-Meilisearch-Client, X-Search-Session, "
    "X-Search-Analytics, X-Search-Channel, X-Search-Page, Meili-Include-Metadata, X-Algolia-API-Key, "
    "X-Algolia-Application-Id, X-Algolia-Agent, "
    "MCP-Protocol-Version, Mcp-Method, Mcp-Name"
)
EXPOSED_HEADERS = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id"
PREFLIGHT_SECONDS = 7200

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


REFERRER_POLICY = "same-origin"
"""That of most answers; pages whose address holds a secret have a stricter one."""


def policy_with_connections(address: str) -> str:
    """The policy of a page whose scripts may also call another address."""
    return CONTENT_SECURITY_POLICY.replace("connect-src 'self'", f"connect-src 'self' {address}")


def register(app: Flask) -> None:
    """Add the headers of this module to all responses of ``app``; must come before other hooks."""
    app.before_request(_name_request)
    hosts.register(app)
    app.before_request(_answer_preflight)
    app.after_request(_add_headers)


class _Process:
    """Parts of the names of one process's requests."""

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """Name requests otherwise than before, as a child process must."""
        self.prefix = secrets.token_hex(8)
        self.numbers = itertools.count(secrets.randbits(32))


_process = _Process()
os.register_at_fork(after_in_child=_process.start_anew)


def make_request_id() -> str:
    """A name that no other request has, in any process: 32 hexadecimal digits."""
    return f"{_process.prefix}{next(_process.numbers):016x}"


def _name_request() -> None:
    sent = request.environ.get("HTTP_X_REQUEST_ID", "")
    g.request_id = sent if sent and _REQUEST_ID.fullmatch(sent) else make_request_id()


def is_for_browsers(path: str) -> bool:
    """Tell whether pages of any origin may call this path."""
    return path.startswith(BROWSER_PREFIXES) or path in BROWSER_PATHS


def is_preflight() -> bool:
    """Tell whether a browser asks if it may send a request."""
    return (
        request.method == "OPTIONS"
        and "Origin" in request.headers
        and "Access-Control-Request-Method" in request.headers
    )


def _answer_preflight() -> Response | None:
    if not is_preflight() or not is_for_browsers(request.path):
        return None
    g.preflight = True
    response = Response(status=204)
    response.headers["Access-Control-Allow-Methods"] = "GET, HEAD, POST, DELETE, OPTIONS"
    response.headers["Access-Control-Allow-Headers"] = ALLOWED_HEADERS
    response.headers["Access-Control-Max-Age"] = str(PREFLIGHT_SECONDS)
    return response


def _add_headers(response: Response) -> Response:
    headers = response.headers
    path = request.path
    # ``add`` costs a third of an assignment, which first looks for what it is to replace.
    headers.add("X-Request-Id", g.get("request_id", ""))
    headers.add("X-Content-Type-Options", "nosniff")
    if is_for_browsers(path):
        headers.add("Access-Control-Allow-Origin", "*")
        headers.add("Access-Control-Expose-Headers", EXPOSED_HEADERS)
    if response.mimetype == "text/html":
        headers.setdefault("Referrer-Policy", REFERRER_POLICY)
        headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        headers["X-Frame-Options"] = "DENY"
        headers["Vary"] = "Accept, Cookie"
    else:
        headers.add("Referrer-Policy", REFERRER_POLICY)
    if not path.startswith("/static/") and "Cache-Control" not in headers:
        headers.add("Cache-Control", "no-store")
    return response
