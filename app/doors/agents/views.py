"""The addresses of a site for agents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from flask import Response, g, request, stream_with_context
from flask.blueprints import BlueprintSetupState
from werkzeug.http import quote_etag

from app.apidoc.openapi import ApiBlueprint, described_errors, error_responses
from app.doors.agents import protocol
from app.doors.agents.files import Doors, describe_search, list_pages, write_pages
from app.doors.agents.pages import find_page
from app.doors.agents.protocol import ProtocolError
from app.doors.agents.server import CALL, answer, failed_call, server_info
from app.errors import ApiError, ErrorCode
from app.runtime import runtime
from app.services.access.credentials import SiteRecord
from app.services.sites import get_site, site_inactive
from app.web.auth import ANY_KEY, Access, TokenPlace
from app.web.hosts import base_url
from app.web.parsing import read_json_once
from app.web.permissions import own_site
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller, note_failed_search
from app.web.responses import json_answer
from schemas.doors.agents import McpAnswerSchema, McpErrorSchema, McpRequestSchema, PageQuerySchema
from schemas.validation.keys import Scope

IN_PATH = Access(public=True)
"""Only public keys stand in paths, which are written down in many places."""

_PREFIX = "mcp_"
_FORMAT = 1
"""Grows with every change of what files look like, so that no client keeps the earlier ones."""
_PROBLEMS = {
    "parse_error": ProtocolError(protocol.PARSE_ERROR, "The body is not valid JSON in UTF-8 (line 1, column 1)."),
    "invalid_request": ProtocolError(
        protocol.INVALID_REQUEST, "Batches are not supported: send one message per request."
    ),
    "invalid_params": ProtocolError(protocol.INVALID_PARAMS, "There is no such tool; there are search, fetch."),
    "header_mismatch": ProtocolError(protocol.HEADER_MISMATCH, "Mcp-Method must be the method of the body."),
    "unsupported_version": ProtocolError(
        protocol.UNSUPPORTED_REVISION,
        "Unsupported protocol version",
        data={"supported": list(protocol.REVISIONS), "requested": "2024-11-05"},
    ),
    "method_not_found": ProtocolError(protocol.METHOD_NOT_FOUND, "Method not found: resources/list"),
}
blp = ApiBlueprint(
    "agents",
    __name__,
    description="A site for agents: its search by the Model Context Protocol, and its pages as files. Off until the "
    "site's `agents` is true.",
    error_examples={f"{_PREFIX}{name}": protocol.encode_error(1, error) for name, error in _PROBLEMS.items()},
)


def _is_search() -> bool:
    """Tell whether the request calls the tool that searches."""
    try:
        body = read_json_once(request)
    except ApiError:
        return False  # The view raises it, when it is its turn.
    params = body.get("params") if isinstance(body, dict) and body.get("method") == CALL else None
    return isinstance(params, dict) and params.get("name") == "search"


_BEARER_POLICY = OperationPolicy(ANY_KEY, Scope.SEARCH, charges_search=_is_search, searches=True)
_KEY_IN_PATH = (TokenPlace("path", "key"),)
_PATH_POLICY = OperationPolicy(IN_PATH, charges_search=_is_search, searches=True, token_places=_KEY_IN_PATH)
_FILE_POLICY = OperationPolicy(IN_PATH, token_places=_KEY_IN_PATH)

_CHECKED = {
    ErrorCode.MISSING_API_KEY, ErrorCode.INVALID_API_KEY, ErrorCode.KEY_DISABLED, ErrorCode.KEY_EXPIRED,
    ErrorCode.INSUFFICIENT_PERMISSION, ErrorCode.ORIGIN_NOT_ALLOWED, ErrorCode.SITE_INACTIVE,
    ErrorCode.RATE_LIMIT_EXCEEDED, ErrorCode.INTERNAL_ERROR, ErrorCode.DATABASE_UNAVAILABLE,
    ErrorCode.COUNTERS_UNAVAILABLE, ErrorCode.SERVER_BUSY,
}  # fmt: skip
_MESSAGE_ANSWERS = {
    "202": {"description": "A notification was taken."},
    **error_responses(
        {*_CHECKED, ErrorCode.REQUEST_TIMEOUT, ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE}
    ),
    **described_errors(
        {400: tuple(name for name in _PROBLEMS if name != "method_not_found"), 404: ("method_not_found",)},
        McpErrorSchema,
        prefix=_PREFIX,
    ),
}
_REQUEST: dict[str, Any] = {"required": True, "content": {"application/json": {"schema": McpRequestSchema}}}


def _open_site(off: ErrorCode) -> SiteRecord:
    """The site of the caller's key.

    Args:
        off: What it is called that the owner has not switched agents on.

    Raises:
        ApiError: It is closed to agents, or paused.
    """
    site = own_site(current_caller())
    if not site.agents:
        raise ApiError(off, "The site is closed to agents; its owner can open it with agents: true.")
    if not site.active:
        raise site_inactive()
    return site


# --- the Model Context Protocol


@blp.route("/mcp/<key>", methods=["POST"])
@blp.declare("callMcpWithKey", _PATH_POLICY, _MESSAGE_ANSWERS)
@blp.doc(requestBody=_REQUEST)
@blp.response(200, McpAnswerSchema)
def call_with_key(key: str) -> Response:
    """Send a message of the Model Context Protocol, with a public key in the address."""
    return _answer_message()


@blp.route("/mcp", methods=["POST"])
@blp.declare("callMcp", _BEARER_POLICY, _MESSAGE_ANSWERS)
@blp.doc(requestBody=_REQUEST)
@blp.response(200, McpAnswerSchema)
def call() -> Response:
    """Send a message of the Model Context Protocol."""
    return _answer_message()


def _answer_message() -> Response:
    site = _open_site(ErrorCode.INSUFFICIENT_PERMISSION)
    body: Any = None
    try:
        body = _read_body()
        message = protocol.read_message(body, request.headers)
        if message.id is None:
            return Response(status=202)
        g.answered_message = (message, site)
        return json_answer(protocol.encode_result(message, answer(message, site), server_info(site)))
    except ProtocolError as error:
        return json_answer(protocol.encode_error(protocol.read_id(body), error), error.status)


@blp.record_once
def _answer_errors(state: BlueprintSetupState) -> None:
    state.app.extensions["error_responders"].insert(0, respond)


def respond(error: ApiError) -> Response | None:
    """Answer what goes wrong once a message is read: in a tool for the model, elsewhere in the protocol's words."""
    if "answered_message" not in g:
        return None
    message, site = g.answered_message
    if message.method == CALL:
        note_failed_search()
        return json_answer(protocol.encode_result(message, failed_call(error), server_info(site)))
    problem = ProtocolError(protocol.INTERNAL_ERROR, error.message, error.status)
    return json_answer(protocol.encode_error(message.id, problem), error.status)


def _read_body() -> Any:
    try:
        return read_json_once(request)
    except ApiError as error:
        if error.code is ErrorCode.INVALID_JSON:
            raise ProtocolError(protocol.PARSE_ERROR, error.message) from error
        raise


# --- files


def _file(name: str, operation_id: str, *errors: ErrorCode) -> Callable[[Callable[..., Response]], Any]:
    """Say what holds for a file of a site."""

    def decorate(view: Callable[..., Response]) -> Any:
        described = blp.operation(
            operation_id, _FILE_POLICY, errors=(ErrorCode.NOT_FOUND, ErrorCode.SITE_INACTIVE, *errors)
        )
        return blp.route(f"/agents/<key>/{name}", methods=["GET"])(described(view))

    return decorate


def _state_of(site: SiteRecord) -> tuple[int, int, datetime]:
    """How many pages the site has, its revision, and when it was changed itself."""
    with runtime().database.read() as session:
        row = get_site(session, site.account_id, site.id)
        return row.document_count, row.revision, row.updated_at


def _send(make: Callable[[], str | Iterator[bytes]], media_type: str, *version: object) -> Response:
    """A file, unless the client has it.

    Args:
        make: Makes the content, whole or in parts.
        version: What changes whenever the content does, beside the service's own address.
    """
    told = ":".join(map(str, (_FORMAT, base_url(), request.full_path, *version)))
    tag = hashlib.blake2b(told.encode(), digest_size=12).hexdigest()
    if request.if_none_match.contains_weak(tag):
        response = Response(status=304)
    elif request.method == "HEAD":
        response = Response(content_type=media_type)
    else:
        content = make()
        response = Response(
            content if isinstance(content, str) else stream_with_context(content), content_type=media_type
        )
    response.headers["ETag"] = quote_etag(tag)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Robots-Tag"] = "noindex"
    return response


_STRING = {"type": "string"}
_TEXT = "text/plain; charset=utf-8"
_MARKDOWN = "text/markdown; charset=utf-8"
_OPENSEARCH = "application/opensearchdescription+xml; charset=utf-8"


@_file("llms.txt", "showLlmsTxt")
@blp.alt_response(200, schema=_STRING, content_type="text/plain")
def show_llms_txt(key: str) -> Response:
    """Get a site's contents: its pages by section, each with a line."""
    site = _open_site(ErrorCode.NOT_FOUND)
    total, *state = _state_of(site)
    doors = Doors(base_url(), key)
    return _send(lambda: list_pages(runtime().database, site, doors, total), _TEXT, *state)


@_file("llms-full.txt", "showLlmsFullTxt")
@blp.alt_response(200, schema=_STRING, content_type="text/plain")
def show_llms_full_txt(key: str) -> Response:
    """Get a site's pages as one text, up to 5 MiB of whole pages."""
    site = _open_site(ErrorCode.NOT_FOUND)
    total, *state = _state_of(site)
    doors = Doors(base_url(), key)
    return _send(lambda: write_pages(runtime().database, site, doors, total), _TEXT, *state)


@_file("page.md", "showPageAsMarkdown", ErrorCode.DOCUMENT_NOT_FOUND, ErrorCode.SEARCH_ENGINE_UNAVAILABLE)
@blp.arguments(PageQuerySchema, location="query")
@blp.alt_response(200, schema=_STRING, content_type="text/markdown")
def show_page(query: dict[str, Any], key: str) -> Response:
    """Get a page as Markdown."""
    site = _open_site(ErrorCode.NOT_FOUND)
    page = find_page(site, url=query["url"])
    return _send(lambda: page.markdown, _MARKDOWN, page.id, page.revision, page.url)


@_file("opensearch.xml", "showOpenSearch")
@blp.alt_response(200, schema=_STRING, content_type="application/opensearchdescription+xml")
def show_open_search(key: str) -> Response:
    """Get the description of a site's search, as OpenSearch has it."""
    site = _open_site(ErrorCode.NOT_FOUND)
    _, _, changed = _state_of(site)
    return _send(lambda: describe_search(site, Doors(base_url(), key)), _OPENSEARCH, changed)
