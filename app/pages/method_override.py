"""HTML forms can only GET and POST: a hidden field names the method that is meant."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import parse_form_data
from werkzeug.wrappers import Request

from app.web.auth import SESSION_COOKIE, bearer_token
from app.web.request_checks import FORM_TYPES

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

METHODS = frozenset({"PUT", "PATCH", "DELETE"})


class MethodOverride:
    """WSGI middleware that reads ``_method`` from the forms of sessions, before the address is looked up.

    Nobody else's request is touched: a bearer token, a JSON body or a missing session cookie leaves POST what it is.

    Args:
        limit: Largest form in bytes; a larger one passes unread and is refused behind.
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
