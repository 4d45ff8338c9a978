"""Counting and timing of every request."""

from __future__ import annotations

import time
from functools import lru_cache

from flask import Flask, Response, g, request
from prometheus_client import Counter, Histogram

REQUESTS = Counter("http_requests_total", "Requests answered.", ["method", "endpoint", "status"])
DURATION = Histogram(
    "http_request_duration_seconds",
    "Time from the first hook to the answer.",
    ["endpoint"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def register(app: Flask) -> None:
    """Count every request of ``app``."""
    app.after_request(_observe)


def _observe(response: Response) -> Response:
    endpoint = request.endpoint or "unknown"
    method = request.method if request.method in _METHODS else "other"
    requests, duration = _metrics_of(method, endpoint, response.status_code)
    requests.inc()
    started = g.get("started")
    if started is not None:
        duration.observe(time.perf_counter() - started)
    return response


@lru_cache(maxsize=1024)
def _metrics_of(method: str, endpoint: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, endpoint, str(status)), DURATION.labels(endpoint)
