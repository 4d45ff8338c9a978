"""Errors that services raise, and the bodies of all error responses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from schemas.validation.problems import MAX_PROBLEMS


class ErrorCode(StrEnum):
    """All stable error codes of the API."""

    INVALID_JSON = "invalid_json"
    VALIDATION_FAILED = "validation_failed"
    INVALID_FILTER = "invalid_filter"
    INVALID_SORT = "invalid_sort"
    INVALID_FACET = "invalid_facet"
    BROWSER_UNAVAILABLE = "browser_unavailable"
    BATCH_TOO_LARGE = "batch_too_large"
    ANSWER_TOO_LARGE = "answer_too_large"
    SYNC_RUNNING = "sync_running"
    SYNC_REMOVES_TOO_MUCH = "sync_removes_too_much"
    MISSING_API_KEY = "missing_api_key"
    INVALID_API_KEY = "invalid_api_key"
    KEY_DISABLED = "key_disabled"
    KEY_EXPIRED = "key_expired"
    INVALID_CREDENTIALS = "invalid_credentials"
    CODE_REQUIRED = "code_required"
    INSUFFICIENT_PERMISSION = "insufficient_permission"
    ORIGIN_NOT_ALLOWED = "origin_not_allowed"
    SITE_INACTIVE = "site_inactive"
    ACCOUNT_SUSPENDED = "account_suspended"
    KEY_LIMIT_REACHED = "key_limit_reached"
    SITE_LIMIT_REACHED = "site_limit_reached"
    COLLECTION_LIMIT_REACHED = "collection_limit_reached"
    SOURCE_LIMIT_REACHED = "source_limit_reached"
    DOCUMENT_LIMIT_REACHED = "document_limit_reached"
    MEMBER_LIMIT_REACHED = "member_limit_reached"
    WEBHOOK_LIMIT_REACHED = "webhook_limit_reached"
    LAST_OWNER = "last_owner"
    PASSWORD_INCORRECT = "password_incorrect"
    EMAIL_NOT_CONFIRMED = "email_not_confirmed"
    CSRF_FAILED = "csrf_failed"
    ASK_DISABLED = "ask_disabled"
    ACCOUNT_NOT_FOUND = "account_not_found"
    SITE_NOT_FOUND = "site_not_found"
    COLLECTION_NOT_FOUND = "collection_not_found"
    KEY_NOT_FOUND = "key_not_found"
    DOCUMENT_NOT_FOUND = "document_not_found"
    SOURCE_NOT_FOUND = "source_not_found"
    RUN_NOT_FOUND = "run_not_found"
    SYNC_NOT_FOUND = "sync_not_found"
    MEMBER_NOT_FOUND = "member_not_found"
    SESSION_NOT_FOUND = "session_not_found"
    INVITATION_NOT_FOUND = "invitation_not_found"
    WEBHOOK_NOT_FOUND = "webhook_not_found"
    DELIVERY_NOT_FOUND = "delivery_not_found"
    INDEX_NOT_FOUND = "index_not_found"
    ASK_NOT_FOUND = "ask_not_found"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    REQUEST_TIMEOUT = "request_timeout"
    CHANGED_MEANWHILE = "changed_meanwhile"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    URI_TOO_LONG = "uri_too_long"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    RATE_LIMIT_EXCEEDED = "rate_limit_exceeded"
    HEADERS_TOO_LARGE = "headers_too_large"
    INTERNAL_ERROR = "internal_error"
    SEARCH_ENGINE_UNAVAILABLE = "search_engine_unavailable"
    DATABASE_UNAVAILABLE = "database_unavailable"
    COUNTERS_UNAVAILABLE = "counters_unavailable"
    SERVER_BUSY = "server_busy"
    ASK_UNAVAILABLE = "ask_unavailable"
    IDENTITY_PROVIDER_UNAVAILABLE = "identity_provider_unavailable"


STATUS: Mapping[ErrorCode, int] = {
    ErrorCode.INVALID_JSON: 400,
    ErrorCode.VALIDATION_FAILED: 400,
    ErrorCode.INVALID_FILTER: 400,
    ErrorCode.INVALID_SORT: 400,
    ErrorCode.INVALID_FACET: 400,
    ErrorCode.BROWSER_UNAVAILABLE: 400,
    ErrorCode.BATCH_TOO_LARGE: 400,
    ErrorCode.ANSWER_TOO_LARGE: 400,
    ErrorCode.SYNC_RUNNING: 400,
    ErrorCode.SYNC_REMOVES_TOO_MUCH: 400,
    ErrorCode.MISSING_API_KEY: 401,
    ErrorCode.INVALID_API_KEY: 401,
    ErrorCode.KEY_DISABLED: 401,
    ErrorCode.KEY_EXPIRED: 401,
    ErrorCode.INVALID_CREDENTIALS: 401,
    ErrorCode.CODE_REQUIRED: 401,
    ErrorCode.INSUFFICIENT_PERMISSION: 403,
    ErrorCode.ORIGIN_NOT_ALLOWED: 403,
    ErrorCode.SITE_INACTIVE: 403,
    ErrorCode.ACCOUNT_SUSPENDED: 403,
    ErrorCode.KEY_LIMIT_REACHED: 403,
    ErrorCode.SITE_LIMIT_REACHED: 403,
    ErrorCode.COLLECTION_LIMIT_REACHED: 403,
    ErrorCode.SOURCE_LIMIT_REACHED: 403,
    ErrorCode.DOCUMENT_LIMIT_REACHED: 403,
    ErrorCode.MEMBER_LIMIT_REACHED: 403,
    ErrorCode.WEBHOOK_LIMIT_REACHED: 403,
    ErrorCode.LAST_OWNER: 403,
    ErrorCode.PASSWORD_INCORRECT: 403,
    ErrorCode.EMAIL_NOT_CONFIRMED: 403,
    ErrorCode.CSRF_FAILED: 403,
    ErrorCode.ASK_DISABLED: 403,
    ErrorCode.ACCOUNT_NOT_FOUND: 404,
    ErrorCode.SITE_NOT_FOUND: 404,
    ErrorCode.COLLECTION_NOT_FOUND: 404,
    ErrorCode.KEY_NOT_FOUND: 404,
    ErrorCode.DOCUMENT_NOT_FOUND: 404,
    ErrorCode.SOURCE_NOT_FOUND: 404,
    ErrorCode.RUN_NOT_FOUND: 404,
    ErrorCode.SYNC_NOT_FOUND: 404,
    ErrorCode.MEMBER_NOT_FOUND: 404,
    ErrorCode.SESSION_NOT_FOUND: 404,
    ErrorCode.INVITATION_NOT_FOUND: 404,
    ErrorCode.WEBHOOK_NOT_FOUND: 404,
    ErrorCode.DELIVERY_NOT_FOUND: 404,
    ErrorCode.INDEX_NOT_FOUND: 404,
    ErrorCode.ASK_NOT_FOUND: 404,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.REQUEST_TIMEOUT: 408,
    ErrorCode.CHANGED_MEANWHILE: 412,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.URI_TOO_LONG: 414,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: 415,
    ErrorCode.RATE_LIMIT_EXCEEDED: 429,
    ErrorCode.HEADERS_TOO_LARGE: 431,
    ErrorCode.INTERNAL_ERROR: 500,
    ErrorCode.SEARCH_ENGINE_UNAVAILABLE: 503,
    ErrorCode.DATABASE_UNAVAILABLE: 503,
    ErrorCode.COUNTERS_UNAVAILABLE: 503,
    ErrorCode.SERVER_BUSY: 503,
    ErrorCode.ASK_UNAVAILABLE: 503,
    ErrorCode.IDENTITY_PROVIDER_UNAVAILABLE: 503,
}


@dataclass(frozen=True, slots=True)
class Detail:
    """One problem in a request that gets a 400.

    Attributes:
        field: Name of a parameter, or path of a value in the body, such as ``documents[3].id``.
        code: Stable code of the problem, such as ``required``.
        message: A sentence about the problem, which begins with the last name in the path.
        extra: More members: ``index`` and ``id`` of an invalid document, or the ``position`` in an invalid filter.
    """

    field: str
    code: str
    message: str
    extra: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"field": self.field, "code": self.code, "message": self.message, **(self.extra or {})}


class ApiError(Exception):
    """An error that becomes an error response.

    Args:
        code: Error code, which determines the HTTP status.
        message: Message for people.
        details: Individual problems (400 only).
        retry_after: Seconds to wait (429 and 503).
        headers: Additional response headers.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        details: Sequence[Detail] = (),
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ):
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = tuple(details)
        self.retry_after = None if retry_after is None else max(1, math.ceil(retry_after))
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        return STATUS[self.code]


def validation_error(details: Iterable[Detail]) -> ApiError:
    """Return the 400 for a list of problems. Its message contains the first problem and the number of other problems.

    Problems beyond the maximum number of details are not counted.
    """
    problems = list(islice(details, MAX_PROBLEMS + 1))
    first = problems[0]
    name = first.field.rsplit(".", 1)[-1]
    predicate = first.message.removeprefix(name).lstrip() if first.message.startswith(name) else None
    message = f"{first.field} {predicate}" if predicate else first.message
    if len(problems) > MAX_PROBLEMS:
        message += " (and more)"
    elif len(problems) > 1:
        more = len(problems) - 1
        message += f" (and {more} more problem{'s' if more > 1 else ''})"
    return ApiError(ErrorCode.VALIDATION_FAILED, message, details=problems[:MAX_PROBLEMS])


def field_error(field: str, code: str, predicate: str, **extra: Any) -> ApiError:
    """Return the 400 for a problem with one field. ``predicate`` follows the field's name, such as ``is required``."""
    name = field.rsplit(".", 1)[-1]
    return validation_error([Detail(field, code, f"{name} {predicate}", extra or None)])


def error_body(error: ApiError) -> dict[str, Any]:
    """Return the JSON body of an error."""
    body: dict[str, Any] = {"error": error.code.value, "message": error.message}
    if error.details:
        body["details"] = [detail.as_dict() for detail in error.details]
    if error.retry_after is not None:
        body["retry_after"] = error.retry_after
    return body


def error_headers(error: ApiError) -> dict[str, str]:
    """Return the response headers of an error."""
    headers = dict(error.headers)
    if error.status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return headers
