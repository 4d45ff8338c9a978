"""Metrics for Prometheus, right across worker processes.

With several workers, gunicorn.conf.py names a folder in ``PROMETHEUS_MULTIPROC_DIR`` in which all
of them keep their numbers; any of them can then answer for all.
"""

from __future__ import annotations

import hmac
import os
import time
from functools import lru_cache

from flask import Flask, Response, g, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest, multiprocess

from app.runtime import runtime
from app.services.analytics.events import LOST_EVENTS
from app.services.sources.runs import ENDED_RUNS
from app.web.auth import bearer_token, invalid_key, missing_key
from app.web.client_ip import is_forwarded, is_loopback
from app.web.policy import OperationPolicy, set_policy

REQUESTS = Counter("http_requests_total", "Requests answered.", ["method", "endpoint", "status"])
DURATION = Histogram(
    "http_request_duration_seconds",
    "Time from the first hook to the answer.",
    ["endpoint"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def register(app: Flask) -> None:
    """Count every request of ``app`` and serve ``/metrics``."""
    app.after_request(_observe)
    app.add_url_rule("/metrics", "metrics", _show, methods=["GET"])
    set_policy(app, "metrics", OperationPolicy(uncounted=True))


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


def _show() -> Response:
    """The metrics: to loopback without a proxy in between, else with METRICS_TOKEN."""
    if not is_loopback(request) or is_forwarded(request):
        token = runtime().settings.metrics_token
        sent = bearer_token(request)
        if sent is None:
            raise missing_key()
        if not token or not hmac.compare_digest(sent.encode(), token.encode()):
            raise invalid_key()
    registry = CollectorRegistry()
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # It has no types.
    else:
        for metric in (REQUESTS, DURATION, LOST_EVENTS, ENDED_RUNS):
            registry.register(metric)
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
