"""The path of every request: the steps before its view, after its view, and after its response."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from functools import lru_cache, partial

from flask import Flask, Request, Response, g, request
from prometheus_client import Counter, Histogram

from app.clock import now
from app.counters.limiter import rate_headers
from app.counters.values import WindowState
from app.runtime import Runtime
from app.services.usage.cpu_limits import STREAM_SECONDS, cpu_seconds
from app.services.usage.quota import ADDRESS_LIMIT, MINUTE_SECONDS, address_key
from app.web import headers, hosts, request_checks
from app.web.admission import Admission, current_admission, find_admission
from app.web.charges import settle_search
from app.web.policy import policy_of

access = logging.getLogger("app.access")

REQUESTS = Counter("http_requests_total", "Requests served.", ["method", "endpoint", "status"])
DURATION = Histogram(
    "http_request_duration_seconds",
    "Seconds from the first hook to the response.",
    ["endpoint"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def enter(app: Flask) -> Response | None:
    """Check a request before its view.

    Returns:
        The response to a preflight; ``None`` for other requests.

    Raises:
        ApiError, HTTPException: The request is rejected.
    """
    began = time.perf_counter()
    # Access through Flask's proxies is slow, and this runs for every request.
    req: Request = request._get_current_object()  # type: ignore[attr-defined]
    runtime: Runtime = app.extensions["runtime"]
    settings = runtime.settings
    ip_address = hosts.client_address(req, settings.trusted_proxies)
    admission = g.admission = Admission(
        runtime,
        req.method,
        policy_of(app, req.endpoint),
        headers.choose_request_id(req),
        ip_address,
        address_key(ip_address, settings.secret_key),
        began,
        cpu_seconds(),
    )
    hosts.check_host(req)
    if headers.is_preflight(req) and headers.is_for_browsers(req.path):
        admission.is_preflight = True
        return headers.respond_to_preflight()
    if not admission.policy.uncounted:
        request_checks.check(req, admission)
    return None


def leave(response: Response) -> Response:
    """Settle a request, and complete its response."""
    req: Request = request._get_current_object()  # type: ignore[attr-defined]
    admission = current_admission()
    _add_rate_headers(admission, response)
    _keep_open(admission, response)
    settle_search(admission, response.status_code)
    headers.add_headers(req, admission, response)
    response = headers.compress(req, admission, response)
    _observe(req, admission, response.status_code)
    return response


def end() -> None:
    """Release the caller's share of threads, and count the request's CPU time."""
    # At teardown, which also runs after an error or a broken connection. A lost place would never be freed.
    admission = find_admission()
    if admission is not None and not admission.is_streamed:
        _settle(admission)


def _add_rate_headers(admission: Admission, response: Response) -> None:
    window = admission.window
    if window is None and (admission.policy.without_rate_headers or admission.is_preflight):
        return
    if window is None:  # The response was made before any limit was checked.
        reset_ms = (int(now().timestamp()) + MINUTE_SECONDS) * 1000
        window = WindowState("", ADDRESS_LIMIT, MINUTE_SECONDS, 1, 0, reset_ms)
    for name, value in rate_headers(window):
        response.headers.add(name, value)


def _keep_open(admission: Admission, response: Response) -> None:
    """Let a streamed body count toward the caller's CPU time and threads until its last byte has been sent."""
    admission.is_streamed = response.is_streamed and bool(admission.shares)
    if admission.is_streamed:
        # A body is made after the request has ended for Flask, so it gets the values that it needs.
        response.response = _count_stream(admission, response.iter_encoded())
        # A client may disconnect before the first byte, when the stream has not begun.
        response.call_on_close(partial(_settle, admission))


def _count_stream(admission: Admission, body: Iterator[bytes]) -> Iterator[bytes]:
    try:
        for chunk in body:
            yield chunk
            # A stream may last for minutes. Meanwhile, the caller's other requests are limited.
            if admission.spenders and cpu_seconds() - admission.cpu_began >= STREAM_SECONDS:
                _record_cpu(admission)
    finally:
        _settle(admission)


def _settle(admission: Admission) -> None:
    admission.leave_shares()
    if admission.spenders:
        _record_cpu(admission)


def _record_cpu(admission: Admission) -> None:
    moment = cpu_seconds()
    if not admission.counters_away:
        admission.runtime.cpu_limits.record(admission.spenders, moment - admission.cpu_began)
    admission.cpu_began = moment


def _observe(req: Request, admission: Admission, status: int) -> None:
    """Count a request in the metrics, and log it at INFO: method, path without query string, status, and duration."""
    seconds = time.perf_counter() - admission.began
    method = req.method if req.method in _METHODS else "other"
    requests, duration = _metrics_of(method, req.endpoint or "unknown", status)
    requests.inc()
    duration.observe(seconds)
    if access.isEnabledFor(logging.INFO):
        caller = admission.caller
        entry = {
            "status": status,
            "ms": round(seconds * 1000, 1),
            "account": None if caller is None else caller.account.id,
            "key": None if caller is None or caller.key is None else caller.key.id,
        }
        access.info("%s %s %s", req.method, req.path, status, extra={"fields": entry})


@lru_cache(maxsize=1024)
def _metrics_of(method: str, endpoint: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, endpoint, str(status)), DURATION.labels(endpoint)
