"""JSON and CSV responses, and cookies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson
from flask import Request, Response
from werkzeug.datastructures import Headers
from werkzeug.http import dump_cookie

from app.runtime import runtime
from app.services.access import sessions
from app.web.auth import SESSION_COOKIE
from app.web.hosts import is_forwarded, is_loopback

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

CSV = "text/csv"


class JsonResponse(Response):
    """A response with complete headers, which werkzeug need not copy and complete."""

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        """Return the headers."""
        return self.headers


def json_response(body: Any, status: int = 200) -> Response:
    """Return ``body`` as a JSON response, encoded by orjson."""
    return JsonResponse(orjson.dumps(body), status=status, content_type="application/json")


def csv_response(lines: str | Iterable[str], file_name: str | None = None) -> Response:
    """Return a CSV response. With ``file_name``, browsers save it."""
    response = Response(lines, content_type=f"{CSV}; charset=utf-8")
    if file_name is not None:
        response.headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
    return response


def prefers(req: Request, media_type: str) -> bool:
    """Whether the client accepts ``media_type`` by name and prefers it to JSON.

    Generated clients accept all media types of an operation equally and expect JSON.
    """
    accepted = req.accept_mimetypes
    accepted_types = {kind.partition(";")[0].strip() for kind, _ in accepted}
    quality, of_json = float(accepted.quality(media_type)), float(accepted.quality("application/json"))
    return (
        media_type in accepted_types
        and quality > 0
        and (quality > of_json if "application/json" in accepted_types else quality >= of_json)
    )


def cookie_header(request: Request, value: str | None) -> str:
    """Return the ``Set-Cookie`` header that starts or ends a session."""
    longest = int(sessions.LONGEST.total_seconds())
    return cookie_of(request, SESSION_COOKIE, value, seconds=longest, path="/", samesite="Lax")


def cookie_of(
    request: Request, name: str, value: str | None, *, seconds: int, path: str, samesite: str = "Strict"
) -> str:
    """Return the ``Set-Cookie`` header of an HTTP-only cookie. A value of ``None`` deletes the cookie."""
    return dump_cookie(
        name,
        value or "",
        max_age=seconds if value else 0,
        path=path,
        secure=is_secure(request),
        httponly=True,
        samesite=samesite,
    )


def is_secure(request: Request) -> bool:
    """Whether cookies should have the ``Secure`` attribute."""
    public_url = runtime().settings.public_url
    return public_url.startswith("https:") if public_url else is_forwarded(request) or not is_loopback(request)
