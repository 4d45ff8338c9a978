"""Endpoints of a site for AI agents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from flask import Flask, Request, Response, g, request
from werkzeug.http import quote_etag

from app.compat.agents import protocol
from app.compat.agents.files import AgentUrls, describe_search, find_page, list_pages, write_pages
from app.compat.agents.protocol import CALL, ProtocolError, failed_call, run_method, server_info
from app.errors import ApiError, ErrorCode, error_body
from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.sites import get_site, site_inactive
from app.storage.files import Copy
from app.web.admission import current_admission
from app.web.auth import ANY_KEY, Access, TokenLocation
from app.web.callers import current_caller
from app.web.hosts import base_url
from app.web.parsing import check_query_string, load_values, read_json_once
from app.web.permissions import own_site
from app.web.policy import OperationPolicy, set_policy
from app.web.responses import json_response
from schemas.compat import PageQuerySchema
from schemas.validation.keys import Scope

IN_PATH = Access(public=True)
"""Paths contain only public keys, since many programs log paths."""

_FORMAT = 2
"""Version of the files' format. Increment it with every change to invalidate clients' caches."""


def _is_search(req: Request) -> bool:
    """Whether the request calls the search tool."""
    try:
        body = read_json_once(req)
    except ApiError:
        return False  # The view raises the error.
    params = body.get("params") if isinstance(body, dict) and body.get("method") == CALL else None
    return isinstance(params, dict) and params.get("name") == "search"


_BEARER_POLICY = OperationPolicy(ANY_KEY, Scope.SEARCH, charges_search=_is_search, searches=True)
_KEY_IN_PATH = (TokenLocation("path", "key"),)
_PATH_POLICY = OperationPolicy(IN_PATH, charges_search=_is_search, searches=True, token_locations=_KEY_IN_PATH)
_FILE_POLICY = OperationPolicy(IN_PATH, is_file=True, token_locations=_KEY_IN_PATH)


def _open_site(off: ErrorCode) -> SiteRecord:
    """Return the site of the caller's key.

    Args:
        off: Error code for sites whose owner has not allowed agents.

    Raises:
        ApiError: The site is closed to agents or paused.
    """
    site = own_site(current_caller())
    if not site.agents:
        raise ApiError(off, "The site is closed to agents; its owner can open it with agents: true.")
    if not site.active:
        raise site_inactive()
    return site


# --- the Model Context Protocol


def call_with_key(key: str) -> Response:
    """Respond to a message of the Model Context Protocol, with a public key in the URL."""
    return call()


def call() -> Response:
    """Respond to a message of the Model Context Protocol."""
    site = _open_site(ErrorCode.INSUFFICIENT_PERMISSION)
    body: Any = None
    try:
        body = _read_body()
        message = protocol.read_message(body, request.headers)
        if message.id is None:
            return Response(status=202)
        g.mcp_message = (message, site)
        return json_response(protocol.encode_result(message, run_method(message, site), server_info(site)))
    except ProtocolError as error:
        return json_response(protocol.encode_error(protocol.read_id(body), error), error.status)


def respond(error: ApiError) -> Response | None:
    """Render an error that occurs after a message was read, as the result of a tool call or as a protocol error.

    Clients of the protocol also get earlier errors, such as a 401, as protocol errors.
    """
    if "mcp_message" not in g:
        return _as_message(error) if _is_from_protocol_client() else None
    message, site = g.mcp_message
    if message.method == CALL:
        current_admission().search_failed = True
        return json_response(protocol.encode_result(message, failed_call(error), server_info(site)))
    problem = ProtocolError(protocol.INTERNAL_ERROR, error.message, error.status)
    return json_response(protocol.encode_error(message.id, problem), error.status)


def _is_from_protocol_client() -> bool:
    """Whether the request accepts event streams, as the protocol requires of its clients."""
    is_message = request.method == "POST" and (request.path + "/").startswith("/mcp/")
    return is_message and "text/event-stream" in request.accept_mimetypes.values()


def _as_message(error: ApiError) -> Response:
    # Only a body that was already read has an ID: an error may mean that reading it would take too long.
    body, _ = current_admission().json_body or (None, None)
    code = protocol.INTERNAL_ERROR if error.status >= 500 else protocol.INVALID_REQUEST
    problem = ProtocolError(code, error.message, error.status, error_body(error))
    return json_response(protocol.encode_error(protocol.read_id(body), problem), error.status)


def _read_body() -> Any:
    try:
        return read_json_once(request)
    except ApiError as error:
        if error.code is ErrorCode.INVALID_JSON:
            raise ProtocolError(protocol.PARSE_ERROR, error.message) from error
        raise


# --- files


def _state_of(site: SiteRecord) -> tuple[int, int, datetime]:
    """Return the site's number of pages, revision, and time of the last change."""
    with runtime().database.read() as session:
        row = get_site(session, site.account_id, site.id)
        return row.document_count, row.revision, row.updated_at


def _tag(*version: object) -> str:
    """Return the entity tag of the requested file.

    Args:
        version: Values that change with the content, in addition to the service's URL.
    """
    text = ":".join(map(str, (_FORMAT, base_url(), request.full_path, *version)))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _send(make: Callable[[], str], media_type: str, *version: object) -> Response:
    """Send a text, or 304 if the client already has it."""
    tag = _tag(*version)
    if _is_current(tag):
        return _complete(Response(status=304, content_type=media_type), tag)
    return _complete(Response("" if request.method == "HEAD" else make(), content_type=media_type), tag)


def _is_current(tag: str) -> bool:
    return bool(request.if_none_match.contains_weak(tag))


def _complete(response: Response, tag: str) -> Response:
    response.headers["ETag"] = quote_etag(tag)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Robots-Tag"] = "noindex"
    return response


def _send_copy(
    name: str,
    make: Callable[[SiteRecord, int], Iterable[bytes]],
    send: Callable[[Copy, str], Response],
    encoding: str = "identity",
) -> Response:
    """Send a file about the whole site, or 304 if the client already has it. The file is cached until the site changes.

    Args:
        make: Creates the content from the site and its number of pages.
        send: Creates the response from the content and its entity tag.
        encoding: Content coding of the response. Different bytes have different tags, also in a 304.
    """
    site = _open_site(ErrorCode.NOT_FOUND)
    total, *version = _state_of(site)
    state = ":".join(map(str, (_FORMAT, *version)))
    tag = _tag(state, encoding)
    if request.method == "HEAD" or _is_current(tag):
        return _complete(Response(status=304 if _is_current(tag) else 200, content_type=_TEXT), tag)
    copy = runtime().file_copies.get(f"{name}-{site.id}", state, lambda: make(site, total))
    tag = _tag(copy.header.state, encoding)
    return _complete(Response(status=304, content_type=_TEXT), tag) if _is_current(tag) else send(copy, tag)


_TEXT = "text/plain; charset=utf-8"
_MARKDOWN = "text/markdown; charset=utf-8"
_OPENSEARCH = "application/opensearchdescription+xml; charset=utf-8"


_ANY_BASE, _ANY_KEY = "\ue000base\ue000", "\ue000key\ue000"
"""Placeholders in copies for the service's URL and the key, which differ between requests."""


def show_llms_txt(key: str) -> Response:
    """Send ``llms.txt``: the site's pages by section."""

    def make(site: SiteRecord, total: int) -> list[bytes]:
        return [list_pages(runtime().database, site, AgentUrls(_ANY_BASE, _ANY_KEY), total).encode()]

    def send(copy: Copy, tag: str) -> Response:
        text = b"".join(copy.text()).decode().replace(_ANY_BASE, base_url()).replace(_ANY_KEY, key)
        return _complete(Response(text, content_type=_TEXT), tag)

    return _send_copy("llms", make, send)


def show_llms_full_txt(key: str) -> Response:
    """Send ``llms-full.txt``: the site's pages as one text of at most 5 MiB."""
    encoding = request.accept_encodings.best_match(("gzip", "identity"), "identity")

    def send(copy: Copy, tag: str) -> Response:
        if encoding == "gzip":
            return _complete(Response(copy.gzipped, content_type=_TEXT), tag)
        response = _complete(Response(copy.text(), content_type=_TEXT), tag)
        response.content_length = copy.header.length
        return response

    response = _send_copy("llms-full", lambda site, total: write_pages(runtime().database, site, total), send, encoding)
    response.vary.add("Accept-Encoding")
    if encoding == "gzip" and response.status_code == 200:
        response.headers["Content-Encoding"] = encoding
    return response


def show_page(key: str) -> Response:
    """Send a page as Markdown."""
    site = _open_site(ErrorCode.NOT_FOUND)
    check_query_string(request)
    url = load_values(PageQuerySchema(), request.args)["url"]
    page = find_page(site, url=url)
    return _send(lambda: page.markdown, _MARKDOWN, page.id, page.revision, page.url)


def show_open_search(key: str) -> Response:
    """Send the OpenSearch description of a site's search."""
    site = _open_site(ErrorCode.NOT_FOUND)
    _, _, changed = _state_of(site)
    return _send(lambda: describe_search(site, AgentUrls(base_url(), key)), _OPENSEARCH, changed)


_ROUTES: tuple[tuple[str, str, Callable[..., Response], OperationPolicy], ...] = (
    ("POST", "/mcp", call, _BEARER_POLICY),
    ("POST", "/mcp/<key>", call_with_key, _PATH_POLICY),
    ("GET", "/agents/<key>/llms.txt", show_llms_txt, _FILE_POLICY),
    ("GET", "/agents/<key>/llms-full.txt", show_llms_full_txt, _FILE_POLICY),
    ("GET", "/agents/<key>/page.md", show_page, _FILE_POLICY),
    ("GET", "/agents/<key>/opensearch.xml", show_open_search, _FILE_POLICY),
)


def register(app: Flask) -> None:
    """Register the endpoints on ``app``.

    The OpenAPI document omits them: the protocol describes its own tools, and the other responses are text.
    """
    for method, rule, view, policy in _ROUTES:
        endpoint = f"agents_{view.__name__}"
        app.add_url_rule(rule, endpoint, view, methods=[method])
        set_policy(app, endpoint, policy)
    app.extensions["error_responders"].insert(0, respond)
