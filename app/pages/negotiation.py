"""Responses for browsers: whether a request gets a page or JSON, forms that replace other methods, and errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from flask import Flask, Response, current_app, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.formparser import parse_form_data
from werkzeug.wrappers import Request

from app.errors import ApiError
from app.pages.forms import find_refill
from app.pages.layout import render
from app.web.auth import SESSION_COOKIE, bearer_token
from app.web.policy import SAFE_METHODS, policies, policy_of, set_policy
from app.web.request_checks import FORM_TYPES
from app.web.responses import cookie_of

View = Callable[..., Any]

_NEVER_PAGES = ("/v1/", "/api/v1/", "/engine/", "/static/")


def prefers_html() -> bool:
    """Whether the client accepts HTML by name and at least as much as JSON. Browsers never send only ``*/*``."""
    accepted = request.accept_mimetypes
    accepts_by_name = any(kind.partition(";")[0].strip() in ("text/html", "text/*") for kind, _ in accepted)
    html = float(accepted.quality("text/html"))
    return accepts_by_name and html > 0 and html >= float(accepted.quality("application/json"))


def sends_form() -> bool:
    """Whether the request is a form from a page. Programs with a bearer token send JSON."""
    return request.mimetype in FORM_TYPES and bearer_token(request) is None


def wants_page() -> bool:
    """Whether this request comes from a page or a browser: it asks for HTML, or sends a form."""
    return prefers_html() if request.method in SAFE_METHODS else sends_form()


def add_pages(app: Flask, pages: Mapping[str, View]) -> None:
    """Serve browsers with these views at the URLs of JSON views with these endpoints, with the same path parameters."""
    declared = policies(app)
    for endpoint, page in pages.items():
        app.view_functions[endpoint] = _choice(page, app.view_functions[endpoint])
        set_policy(app, endpoint, replace(declared[endpoint], has_page=True))


def _choice(page: View, json_view: View) -> View:
    @wraps(json_view)
    def either(**path: Any) -> Any:
        return page(**path) if wants_page() else json_view(**path)

    return either


def is_page_request() -> bool:
    """Whether an error of this request is shown as a page."""
    if request.endpoint is not None:
        return policy_of(current_app, request.endpoint).has_page and wants_page()
    return not request.path.startswith(_NEVER_PAGES) and wants_page()


if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

METHODS = frozenset({"PUT", "PATCH", "DELETE"})


class MethodOverride:
    """WSGI middleware that applies ``_method`` from forms sent with a session, before routing.

    HTML forms can send only GET and POST. Requests with a bearer token or JSON body, or without a session cookie, keep
    their method.

    Args:
        limit: Maximum size of a form in bytes. Larger forms pass through unread, and the application rejects them.
    """

    def __init__(self, application: WSGIApplication, limit: int):
        self._application = application
        self._limit = limit

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "POST":
            request = Request(environ, populate_request=False, shallow=True)
            length = request.content_length
            if length is not None and 0 < length <= self._limit and _is_form_of_session(request):
                method = self._read_method(environ, length)
                if method in METHODS:
                    environ["REQUEST_METHOD"] = method
        return self._application(environ, start_response)

    def _read_method(self, environ: WSGIEnvironment, length: int) -> str:
        body = environ["wsgi.input"].read(length)
        # Parsing consumes its input, and the application reads the form again.
        environ["wsgi.input"] = BytesIO(body)
        try:
            _, form, files = parse_form_data({**environ, "wsgi.input": BytesIO(body)}, max_form_memory_size=self._limit)
        except RequestEntityTooLarge:
            return ""
        for file in files.values():
            file.close()
        return str(form.get("_method", "")).upper()


def _is_form_of_session(request: Request) -> bool:
    return request.mimetype in FORM_TYPES and SESSION_COOKIE in request.cookies and bearer_token(request) is None  # type: ignore[arg-type]


HOME = "/dashboard"
_SECRET_SECONDS = 120
"""Seconds for which a cookie keeps a new secret."""
_LOCAL = re.compile(r"/(?!/)[^\\\s\x00-\x20\x7f-\x9f]{0,2000}")


def local_path(path: str) -> str:
    """Return ``path`` if it is a path on this service, otherwise the dashboard's path.

    Browsers go to other hosts for ``//host``, ``/\\host``, and URLs with control characters.
    """
    if not _LOCAL.fullmatch(path):
        return HOME
    parts = urlsplit(path)
    return HOME if parts.scheme or parts.netloc else path


def see_other(path: str, **query: str | int | None) -> Response:
    """Return the redirect (303) after a form was processed successfully."""
    return _redirect(303, path, query)


@dataclass(frozen=True, slots=True)
class SecretCookie:
    """A short-lived cookie that passes a new secret to the page at a path, which shows the secret once."""

    name: str

    def read(self) -> str:
        """Return the secret; empty if there is none."""
        return request.cookies.get(self.name, "")

    def see_other(self, path: str, secret: str) -> Response:
        """Redirect to the page that shows the secret."""
        return self._set(see_other(path), path, secret)

    def show(self, html: str, path: str) -> Response:
        """Return the page with the secret, and delete the cookie."""
        response = Response(html, content_type="text/html; charset=utf-8")
        return self._set(response, path, None) if self.name in request.cookies else response

    def _set(self, response: Response, path: str, secret: str | None) -> Response:
        cookie = cookie_of(request, self.name, secret, seconds=_SECRET_SECONDS, path=path)
        response.headers.add("Set-Cookie", cookie)
        return response


def to_login() -> Response:
    """Return a redirect (302) to the login form, which then leads back to the requested URL if GET can show it."""
    here = request.full_path if request.query_string else request.path
    here = quote(here, safe="/?&=%:@!$'()*+,;~-._")
    return _redirect(302, "/login", {"next": here if _can_be_shown(request.path) else None})


def _can_be_shown(path: str) -> bool:
    try:
        current_app.create_url_adapter(request).match(path, method="GET")  # type: ignore[union-attr]
    except HTTPException:
        return False
    return True


def _redirect(status: int, path: str, query: dict[str, str | int | None]) -> Response:
    arguments = {name: value for name, value in query.items() if value is not None}
    location = path + (("&" if "?" in path else "?") + urlencode(arguments, safe="/") if arguments else "")
    return Response(status=status, headers={"Location": location, "Cache-Control": "no-store"})


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


def render_error_page(error: ApiError) -> Response | None:
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
        log.exception("the error at %s cannot be shown as a page; it is sent as JSON", request.path)
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
