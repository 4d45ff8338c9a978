"""Errors below ``/engine``, in the shape of Meilisearch: ``{message, code, type, link}``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.errors import ApiError, Detail, ErrorCode

PREFIX = "/engine"

_CODES = {
    ErrorCode.INVALID_JSON: "bad_request",
    ErrorCode.VALIDATION_FAILED: "bad_request",
    ErrorCode.INVALID_FILTER: "invalid_search_filter",
    ErrorCode.INVALID_SORT: "invalid_search_sort",
    ErrorCode.INVALID_FACET: "invalid_search_facets",
    ErrorCode.MISSING_API_KEY: "missing_authorization_header",
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: "missing_content_type",
    ErrorCode.INTERNAL_ERROR: "internal",
}
"""Maps our error codes to Meilisearch's. Other codes have the same name, or no counterpart."""

_OWN_CODES = frozenset(
    {
        ErrorCode.ANSWER_TOO_LARGE,
        ErrorCode.METHOD_NOT_ALLOWED,
        ErrorCode.ORIGIN_NOT_ALLOWED,
        ErrorCode.RATE_LIMIT_EXCEEDED,
        ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
        ErrorCode.DATABASE_UNAVAILABLE,
        ErrorCode.COUNTERS_UNAVAILABLE,
        ErrorCode.SERVER_BUSY,
        ErrorCode.REQUEST_TIMEOUT,
    }
)
_TYPES = {401: "auth", 403: "auth", 429: "system", 500: "internal", 503: "system"}


class GatewayError(ApiError):
    """An error with a Meilisearch code that has no counterpart in this service's API."""

    def __init__(
        self,
        gateway_code: str,
        message: str,
        *,
        code: ErrorCode = ErrorCode.VALIDATION_FAILED,
        details: Sequence[Detail] = (),
    ):
        super().__init__(code, message, details=details)
        self.gateway_code = gateway_code


def is_gateway_path(path: str) -> bool:
    """Whether a path belongs to the gateway."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def invalid_engine_key(
    message: str = "The key is invalid or has expired; GET /v1/client-info issues a new one.",
) -> GatewayError:
    """Return the 403 for a key that may not search the requested index."""
    return GatewayError("invalid_api_key", message, code=ErrorCode.INSUFFICIENT_PERMISSION)


def code_of(error: ApiError) -> str:
    """Return the code of an error in responses below ``/engine``."""
    return error.gateway_code if isinstance(error, GatewayError) else _CODES.get(error.code, error.code.value)


def with_prefix(error: ApiError, prefix: str) -> ApiError:
    """Return the error with a message prefix that identifies one of several queries."""
    return GatewayError(code_of(error), f"Inside `{prefix}`: {error.message}", code=error.code, details=error.details)


def gateway_error_body(error: ApiError, base_url: str) -> dict[str, Any]:
    """Return the JSON body of an error below ``/engine``."""
    code = code_of(error)
    link = f"{base_url}/docs/errors" if error.code in _OWN_CODES else f"https://docs.meilisearch.com/errors#{code}"
    return {
        "message": error.message,
        "code": code,
        "type": _TYPES.get(error.status, "invalid_request"),
        "link": link,
    }
