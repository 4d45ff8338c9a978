"""Messages of the Model Context Protocol over HTTP: reading one, of whichever revision, and answering it.

Revisions from 2026-07-28 on say in every request what earlier ones agreed on in a handshake, and repeat some of it in
headers. Nothing is kept from one request to the next in either.

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from werkzeug.datastructures import Headers

NEWEST = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18")
"""Revisions that begin with a handshake, the newest first."""
REVISIONS = (NEWEST, *LEGACY)

VERSION_HEADER = "MCP-Protocol-Version"
METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_REVISION = -32022

_META = "io.modelcontextprotocol/"
_VERSION = f"{_META}protocolVersion"
_CAPABILITIES = f"{_META}clientCapabilities"
SERVER_INFO = f"{_META}serverInfo"
_BASE64 = ("=?base64?", "?=")


class ProtocolError(Exception):
    """A message that is refused in the words of the protocol.

    Attributes:
        code: Of JSON-RPC.
        status: Of the HTTP answer.
        data: What a program needs to know of it.
    """

    def __init__(self, code: int, message: str, status: int = HTTPStatus.BAD_REQUEST, data: Any = None):
        super().__init__(message)
        self.code = code
        self.status = status
        self.data = data


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was read.

    Attributes:
        id: Of the request; ``None`` for a notification, which nobody answers.
        revision: In which it is to be understood.
    """

    id: str | int | None
    method: str
    params: Mapping[str, Any]
    revision: str

    @property
    def is_legacy(self) -> bool:
        return self.revision in LEGACY


def read_id(body: Any) -> str | int | None:
    """The id by which a request is answered, as far as there is one."""
    identifier = body.get("id") if isinstance(body, dict) else None
    return identifier if isinstance(identifier, str | int) and not isinstance(identifier, bool) else None


def read_message(body: Any, headers: Headers) -> Message:
    """The one message of a body.

    Args:
        body: Decoded JSON.
        headers: Of the request.

    Raises:
        ProtocolError: It is none, or of a revision that is not spoken here, or its headers contradict it.
    """
    if isinstance(body, list):
        raise ProtocolError(INVALID_REQUEST, "Batches are not supported: send one message per request.")
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0" or not isinstance(body.get("method"), str):
        raise ProtocolError(INVALID_REQUEST, "The body must be a request or a notification of JSON-RPC 2.0.")
    identifier = read_id(body)
    if "id" in body and identifier is None:
        raise ProtocolError(INVALID_REQUEST, "id must be a string or an integer.")
    params = body.get("params", {})
    if not isinstance(params, dict):
        raise ProtocolError(INVALID_REQUEST, "params must be an object.")
    message = Message(identifier, body["method"], params, _read_revision(params, headers))
    if identifier is not None and not message.is_legacy:
        _check_envelope(message, headers)
    return message


def _read_revision(params: Mapping[str, Any], headers: Headers) -> str:
    sent = headers.get(VERSION_HEADER)
    meta = params.get("_meta")
    if isinstance(meta, dict) and _VERSION in meta and meta[_VERSION] != sent:
        raise ProtocolError(HEADER_MISMATCH, f"{VERSION_HEADER} must be what _meta names as {_VERSION}.")
    if sent is None:
        return LEGACY[0]
    if sent not in REVISIONS:
        known = {"supported": list(REVISIONS), "requested": sent}
        raise ProtocolError(UNSUPPORTED_REVISION, "Unsupported protocol version", data=known)
    return sent


def _check_envelope(message: Message, headers: Headers) -> None:
    """Refuse a request that does not say of itself what each has to since 2026-07-28."""
    meta = message.params.get("_meta")
    if not isinstance(meta, dict):
        raise ProtocolError(INVALID_PARAMS, "params._meta must be an object.")
    if _VERSION not in meta or not isinstance(meta.get(_CAPABILITIES), dict):
        raise ProtocolError(INVALID_PARAMS, f"params._meta must have {_VERSION} and the object {_CAPABILITIES}.")
    if headers.get(METHOD_HEADER) != message.method:
        raise ProtocolError(HEADER_MISMATCH, f"{METHOD_HEADER} must be the method of the body.")
    if message.method == "tools/call" and _decoded(headers.get(NAME_HEADER)) != message.params.get("name"):
        raise ProtocolError(HEADER_MISMATCH, f"{NAME_HEADER} must be the name in the body.")


def _decoded(value: str | None) -> str | None:
    """The value of a header that may be in base64, as everything but plain ASCII must be."""
    before, after = _BASE64
    if value is None or not (value.startswith(before) and value.endswith(after)):
        return value
    try:
        return base64.b64decode(value[len(before) : -len(after)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def encode_result(message: Message, result: Mapping[str, Any], server: Mapping[str, str]) -> dict[str, Any]:
    """The answer to a request.

    Args:
        server: Name and version of this server.
    """
    if not message.is_legacy:
        result = {"resultType": "complete", **result, "_meta": {SERVER_INFO: server}}
    return {"jsonrpc": "2.0", "id": message.id, "result": result}


def encode_error(identifier: str | int | None, error: ProtocolError) -> dict[str, Any]:
    """The answer to a message that is refused; without an id where none could be read."""
    told: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", **({} if identifier is None else {"id": identifier}), "error": told}
