"""Error responses to requests that never reach the application: malformed, oversized, or too slow."""

from __future__ import annotations

from http import HTTPStatus

import orjson
from gunicorn.http.errors import (
    ConfigurationProblem,
    InvalidResponseHeader,
    InvalidResponseHeaderName,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
)

from app.errors import ApiError, ErrorCode, error_body, error_headers
from app.web.headers import make_request_id

_SERVER_ERRORS = (ConfigurationProblem, InvalidResponseHeader, InvalidResponseHeaderName)
"""Exceptions that the client did not cause, although gunicorn derives them from exceptions for malformed requests."""


def headers_too_large() -> ApiError:
    """Return the 431 for a request whose headers are too large or too many."""
    return ApiError(ErrorCode.HEADERS_TOO_LARGE, "The request's headers are too large; send fewer or shorter ones.")


def error_of(exception: Exception, max_request_line: int) -> ApiError:
    """Return the error for an exception that gunicorn raised while it read or handled a request.

    Args:
        max_request_line: Maximum length of a request line, in bytes.
    """
    if isinstance(exception, LimitRequestLine):
        return ApiError(
            ErrorCode.URI_TOO_LONG,
            f"The request line is longer than {max_request_line} bytes; send a long search with POST, as JSON.",
        )
    if isinstance(exception, LimitRequestHeaders):
        return headers_too_large()
    if isinstance(exception, ParseException) and not isinstance(exception, _SERVER_ERRORS):
        return ApiError(ErrorCode.VALIDATION_FAILED, "The request is not valid HTTP/1.1.")
    return ApiError(ErrorCode.INTERNAL_ERROR, "Internal error.")


def error_response(error: ApiError) -> bytes:
    """Return a whole HTTP response, after which the connection is closed."""
    body = orjson.dumps(error_body(error))
    headers = {
        # Search boxes on other origins can read the error only with this header; the path may not have been read.
        "Access-Control-Allow-Origin": "*",
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "X-Request-Id": make_request_id(),
        **error_headers(error),
    }
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}", *map(": ".join, headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body
