"""The place where a person goes next."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode, urlsplit

from flask import Response, current_app, request
from werkzeug.exceptions import HTTPException

HOME = "/dashboard"
_LOCAL = re.compile(r"/(?!/)[^\\\s\x00-\x20\x7f-\x9f]{0,2000}")


def local_path(sent: str) -> str:
    """``sent`` if it is a path on this service, else the dashboard.

    A browser takes ``//host``, ``/\\host`` and addresses with control characters in them to other hosts.
    """
    if not _LOCAL.fullmatch(sent):
        return HOME
    parts = urlsplit(sent)
    return HOME if parts.scheme or parts.netloc else sent


def see_other(path: str, **query: str | int | None) -> Response:
    """The 303 after a form that worked."""
    return _redirect(303, path, query)


def to_login() -> Response:
    """The 302 for a browser without a session; afterwards it comes back here, if here can be looked at."""
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
    given = {name: value for name, value in query.items() if value is not None}
    location = path + ("?" + urlencode(given, safe="/") if given else "")
    return Response(status=status, headers={"Location": location, "Cache-Control": "no-store"})
