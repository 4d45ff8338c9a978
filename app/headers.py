"""Headers of every response: request id, CORS, security."""

from __future__ import annotations

import re
import secrets

from flask import Flask, Response, g, request

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}", re.ASCII)

BROWSER_PREFIXES = ("/v1/", "/engine/")
BROWSER_PATHS = ("/api/v1/search-log", "/openapi.json", "/widget.js")
ALLOWED_HEADERS = "Authorization, Content-Type, Idempotency-Key, X-Request-Id, X-Meilisearch-Client"
EXPOSED_HEADERS = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id"
PREFLIGHT_SECONDS = 7200

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


def register(app: Flask) -> None:
    """Add the headers of this module to all responses of ``app``; must come before other hooks."""
    app.before_request(_name_request)
    app.before_request(_answer_preflight)
    app.after_request(_add_headers)


def _name_request() -> None:
    sent = request.headers.get("X-Request-Id", "")
    g.request_id = sent if _REQUEST_ID.fullmatch(sent) else secrets.token_hex(16)


def is_for_browsers() -> bool:
    """Whether pages of any origin may call this path."""
    return request.path.startswith(BROWSER_PREFIXES) or request.path in BROWSER_PATHS


def is_preflight() -> bool:
    """Whether a browser asks if it may send a request."""
    return (
        request.method == "OPTIONS"
        and "Origin" in request.headers
        and "Access-Control-Request-Method" in request.headers
    )


def _answer_preflight() -> Response | None:
    if not is_preflight() or not is_for_browsers():
        return None
    g.preflight = True
    response = Response(status=204)
    response.headers["Access-Control-Allow-Methods"] = "GET, HEAD, POST, DELETE, OPTIONS"
    response.headers["Access-Control-Allow-Headers"] = ALLOWED_HEADERS
    response.headers["Access-Control-Max-Age"] = str(PREFLIGHT_SECONDS)
    return response


def _add_headers(response: Response) -> Response:
    headers = response.headers
    headers["X-Request-Id"] = g.get("request_id", "")
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "same-origin"
    if is_for_browsers():
        headers["Access-Control-Allow-Origin"] = "*"
        headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
    if response.mimetype == "text/html":
        headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        headers["X-Frame-Options"] = "DENY"
        headers["Vary"] = "Accept, Cookie"
    if "Cache-Control" not in headers and not request.path.startswith("/static/"):
        headers["Cache-Control"] = "no-store"
    return response
