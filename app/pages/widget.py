"""The search box that customers paste into their pages."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from flask import Response, request

SCRIPT = Path(__file__).resolve().parent.parent / "static" / "widget.js"
MAX_AGE_SECONDS = 300
"""How long a browser keeps the script without asking: as long as an improvement may take to arrive."""


def show_widget() -> Response:
    """The script, for pages of any origin."""
    body = SCRIPT.read_bytes()
    response = Response(body, content_type="text/javascript; charset=utf-8")
    response.set_etag(sha256(body).hexdigest()[:20])
    response.cache_control.public = True
    response.cache_control.max_age = MAX_AGE_SECONDS
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.make_conditional(request)
    return response
