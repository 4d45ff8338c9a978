"""Flask that returns the same bytes for every request. Served by :mod:`benchmarks.own_work`."""

from __future__ import annotations

import os
from pathlib import Path

from flask import Flask, Response

app = Flask(__name__)
BODY = Path(os.environ["ANSWER_FILE"]).read_bytes()


@app.get("/search")
def search() -> Response:
    """Return the fixed response."""
    return Response(BODY, content_type="application/json")
