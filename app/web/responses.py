"""Making JSON answers."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Response


def json_answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """``body`` as a JSON response, encoded by orjson."""
    return Response(orjson.dumps(body), status=status, headers=headers, content_type="application/json")
