"""The search box that customers paste into their pages."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from flask import Response, request

_STATIC = Path(__file__).resolve().parent.parent / "static"
SCRIPT = _STATIC / "widget.min.js"
"""``widget.js`` as browsers get it: ``make widget`` minifies it."""

RESULTS_SCRIPT = _STATIC / "widget-results.min.js"
"""The box's full view, which it loads when it is needed."""

MAX_AGE_SECONDS = 300
"""How long a browser keeps the scripts without asking: as long as an improvement may take to arrive."""


def show_widget() -> Response:
    """The script, for pages of any origin."""
    return _script(SCRIPT)


def show_widget_results() -> Response:
    """The module with the full view, for pages of any origin."""
    return _script(RESULTS_SCRIPT)


def _script(file: Path) -> Response:
    body = file.read_bytes()
    response = Response(body, content_type="text/javascript; charset=utf-8")
    response.set_etag(sha256(body).hexdigest()[:20])
    response.cache_control.public = True
    response.cache_control.max_age = MAX_AGE_SECONDS
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.make_conditional(request)
    return response
