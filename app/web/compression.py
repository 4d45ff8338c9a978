"""Compressed answers: pages, the documentation, the API document and static files, where clients take gzip.

Who sees only lengths on the wire can guess a secret that is compressed together with text of their choice (the attack
BREACH): they make a victim's browser ask with one guess after another, and the shortest answer is right. A page for
somebody who is known holds secrets (the session's CSRF token, their own data), and many such pages repeat what the
address or strangers say: a query, the searches of visitors. So these pages are not compressed at all, which also
protects what no masking of the token would. Pages for nobody in particular hold no secret; and operations whose
policy is ``reflects_nothing`` hold no text that anybody else can choose, whoever asks.

Answers of the API are left as they are: most are small, and a search would take longer.
"""

from __future__ import annotations

import gzip
from functools import lru_cache

from flask import Flask, Response, g, request

from app.web.policy import policy_of

TYPES = frozenset({"text/html", "text/css", "text/javascript", "image/svg+xml", "application/json"})
LEAST_BYTES = 1024
"""Shorter answers fit into one packet anyway."""
LEVEL = 6
API_DOCUMENT = "/openapi.json"
_WITHOUT_WHOLE_BODY = frozenset({204, 206, 304})


def register(app: Flask) -> None:
    """Compress answers of ``app``; must come before the hooks that add headers, so that it runs after them."""
    app.after_request(compress)


def compress(response: Response) -> Response:
    """The answer, compressed if it may be and the client prefers that."""
    if response.content_type == "application/json" and request.path != API_DOCUMENT:
        return response  # The way out of searches, where nothing more is to be paid.
    reflects_nothing = policy_of(request.endpoint).reflects_nothing
    if not reflects_nothing and (response.mimetype != "text/html" or g.get("caller") is not None):
        return response
    if response.mimetype not in TYPES or "Content-Encoding" in response.headers:
        return response
    response.vary.add("Accept-Encoding")
    wanted = request.accept_encodings.best_match(("gzip", "identity"))
    if wanted != "gzip" or response.status_code in _WITHOUT_WHOLE_BODY:
        return response
    response.direct_passthrough = False
    content = response.get_data()
    if len(content) < LEAST_BYTES:
        return response
    tag, is_weak = response.get_etag()
    if tag is not None:
        # Other bytes, another tag: a range of one must never be put together with a range of the other.
        response.set_etag(f"{tag}-gzip", weak=bool(is_weak))
    response.headers["Content-Encoding"] = "gzip"
    is_for_all = reflects_nothing and g.get("caller") is None
    response.set_data((_kept_gzip if is_for_all else _gzip)(content))
    if tag is not None:
        response.make_conditional(request)
    return response


def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, LEVEL, mtime=0)


_kept_gzip = lru_cache(maxsize=16)(_gzip)
"""For answers that are the same for everybody, and large."""
