"""Making JSON answers."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Request, Response


def json_answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """``body`` as a JSON response, encoded by orjson."""
    return Response(orjson.dumps(body), status=status, headers=headers, content_type="application/json")


def prefers(req: Request, media_type: str) -> bool:
    """Whether the client names ``media_type`` and ranks it at least as high as JSON, higher if it names that, too.

    Generated clients name all types that an operation has, and read the JSON.
    """
    accepted = req.accept_mimetypes
    named = {kind.partition(";")[0].strip() for kind, _ in accepted}
    quality, of_json = float(accepted.quality(media_type)), float(accepted.quality("application/json"))
    return (
        media_type in named
        and quality > 0
        and (quality > of_json if "application/json" in named else quality >= of_json)
    )
