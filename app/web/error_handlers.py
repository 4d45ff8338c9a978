"""Converts every exception to an error response."""

from __future__ import annotations

import logging
from collections.abc import Callable

import orjson
from flask import Flask, Response, current_app, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge
from werkzeug.routing import RequestRedirect

from app.counters.limiter import RequestLimitExceeded
from app.counters.values import CountersUnavailable
from app.errors import ApiError, ErrorCode, error_body, error_headers
from app.operations.imports import ImportInterrupted, progress_sentence
from app.services.analytics.events import EventJournalUnavailable
from app.services.usage.quota import RateLimited, rejection_message
from app.storage.database import is_unavailable
from app.web.admission import current_admission
from app.web.nearest_route import find_nearest_route
from app.web.parsing import too_large
from backends.errors import BackendUnavailable, EngineNotAsked

log = logging.getLogger(__name__)

ErrorResponder = Callable[[ApiError], Response | None]
"""Renders an error in a format other than JSON; returns ``None`` for errors of other requests."""


def register(app: Flask) -> None:
    """Register the error handlers of ``app``."""
    app.extensions["error_responders"] = []
    app.register_error_handler(ApiError, respond)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _unexpected)


def respond(error: ApiError) -> Response:
    """Return the response for an error."""
    if isinstance(error, RateLimited):
        current_admission().window = error.window
    responders: list[ErrorResponder] = current_app.extensions["error_responders"]
    for responder in responders:
        response = responder(error)
        if response is not None:
            break
    else:
        response = Response(orjson.dumps(error_body(error)), status=error.status, content_type="application/json")
    response.headers.update(error_headers(error))
    return response


def _http(error: HTTPException) -> Response:
    return respond(translate_http(error))


def translate_http(error: HTTPException) -> ApiError:
    """Convert werkzeug's errors to :class:`ApiError`."""
    if isinstance(error, RequestLimitExceeded):
        return ApiError(ErrorCode.RATE_LIMIT_EXCEEDED, rejection_message(error.window), retry_after=error.retry_after)
    if isinstance(error, RequestRedirect):
        return ApiError(ErrorCode.NOT_FOUND, "This URL does not exist.")
    if isinstance(error, RequestEntityTooLarge):
        return too_large(request.max_content_length or 0)
    if isinstance(error, MethodNotAllowed):
        allowed = ", ".join(sorted(error.valid_methods or ()))
        return ApiError(
            ErrorCode.METHOD_NOT_ALLOWED,
            f"This URL supports {allowed}, not {request.method}.",
            headers={"Allow": allowed},
        )
    if error.code == 404:
        nearest = find_nearest_route(request)
        hint = "." if nearest is None else f"; did you mean {nearest}?"
        return ApiError(ErrorCode.NOT_FOUND, f"This URL does not exist{hint}")
    if error.code is not None and 400 <= error.code < 500:
        return ApiError(ErrorCode.VALIDATION_FAILED, "The request is malformed.")
    return _internal(error)


def _unexpected(error: Exception) -> Response:
    return respond(translate(error))


def translate(error: Exception) -> ApiError:
    """Convert any exception to :class:`ApiError`. Unexpected ones are logged and become a 500."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        return translate_http(error)
    if isinstance(error, ImportInterrupted) and isinstance(error.__cause__, Exception):
        why = translate(error.__cause__)
        message = why.message + progress_sentence(error.outcome)
        return ApiError(why.code, message, details=why.details, retry_after=why.retry_after, headers=why.headers)
    if isinstance(error, BackendUnavailable):
        # While an engine hangs, these are many. The requests that failed before them have logged why.
        cause = None if isinstance(error, EngineNotAsked) else error
        log.error("the search engine is unavailable: %s", error, exc_info=cause)
        return ApiError(
            ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
            "The search engine is unavailable; try again.",
            retry_after=error.retry_after,
        )
    if isinstance(error, CountersUnavailable):
        log.error("the counter store is unavailable: %s", error)
        return ApiError(
            ErrorCode.COUNTERS_UNAVAILABLE,
            "The counter store is unavailable; try again.",
            retry_after=error.retry_after,
        )
    if isinstance(error, EventJournalUnavailable):
        log.error("the event journal is unavailable: %s", error)
        return ApiError(ErrorCode.DATABASE_UNAVAILABLE, "The event journal is unavailable; try again.", retry_after=5)
    if is_unavailable(error):
        log.error("the database is unavailable: %s", error, exc_info=error)
        return ApiError(ErrorCode.DATABASE_UNAVAILABLE, "The database is unavailable; try again.", retry_after=5)
    return _internal(error)


def _internal(error: Exception) -> ApiError:
    log.error("unexpected error at %s %s", request.method, request.path, exc_info=error)
    return ApiError(
        ErrorCode.INTERNAL_ERROR, "Internal error. For details, search the service's log for this X-Request-Id."
    )
