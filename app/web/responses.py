"""Making JSON answers."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Request, Response


def json_answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """``body`` as a JSON response, encoded by orjson."""
    return Response(orjson.dumps(body), status=status, headers=headers, content_type="application/json")


def prefers(req: Request, media_type: str) -> bool:
    """Whether the client names ``media_type`` and ranks it at least as high as JSON."""
    accepted = req.accept_mimetypes
    named = any(kind.partition(";")[0].strip() == media_type for kind, _ in accepted)
    quality = float(accepted.quality(media_type))
    return named and quality > 0 and quality >= float(accepted.quality("application/json"))
