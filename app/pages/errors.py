"""Error responses for browsers: the login form, the submitted form, or an error page."""

from __future__ import annotations

import logging
from collections.abc import Callable

from flask import Response, request

from app.errors import ApiError
from app.pages.forms import find_refill
from app.pages.layout import render
from app.pages.negotiation import is_page_request, see_other, to_login
from app.web.auth import bearer_token

log = logging.getLogger(__name__)

SHOWN_AT = {"/profile": "/profile/edit", "/profile/totp/confirm": "/profile/edit"}
"""URLs that accept only forms, and the page to show if a browser GETs them, as after reloading a failed form."""

TITLES = {
    400: "Invalid request",
    401: "Please log in",
    403: "Not allowed",
    404: "Page not found",
    405: "Method not allowed",
    408: "Request timed out",
    413: "Request too large",
    415: "Unsupported content type",
    429: "Too many requests",
    500: "Something went wrong",
    503: "Temporarily unavailable",
}


def answer_person(error: ApiError) -> Response | None:
    """Return the page for an error, or ``None`` if the request doesn't come from a page or a browser."""
    if not is_page_request():
        return None
    if error.status == 405 and request.method == "GET" and request.path in SHOWN_AT:
        return see_other(SHOWN_AT[request.path])
    show = find_refill(error)
    if show is None and _leads_to_login(error):
        return to_login()
    try:
        html = _small_page(error) if show is None else _form_again(show, error)
    except Exception:
        log.exception("the error at %s cannot be shown as a page; it is answered as JSON", request.path)
        return None
    return Response(html, status=error.status, content_type="text/html; charset=utf-8")


def _form_again(show: Callable[[ApiError], str], error: ApiError) -> str:
    try:
        return show(error)
    except ApiError:  # The object that the form belongs to does not exist, or no longer exists.
        return _small_page(error)


def _small_page(error: ApiError) -> str:
    return render("error.html", title=TITLES[error.status], error=error)


def _leads_to_login(error: ApiError) -> bool:
    """Whether the caller should log in: the session is missing or has ended. An invalid API key is not such a case."""
    return error.status == 401 and bearer_token(request) is None
