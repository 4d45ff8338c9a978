"""Addresses for Prometheus: ``/metrics`` of the service, and a port of its own for a process that only crawls."""

from __future__ import annotations

import hmac
import logging
import threading
from collections.abc import Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from flask import Flask, Request, Response, request
from prometheus_client import CONTENT_TYPE_LATEST
from werkzeug.exceptions import HTTPException, NotFound, Unauthorized

from app.metrics import requests
from app.metrics.installation import InstallationMetrics
from app.metrics.processes import show_processes
from app.runtime import Runtime, runtime
from app.web.auth import ANYONE, bearer_token, invalid_key, missing_key
from app.web.client_ip import is_forwarded, is_loopback
from app.web.policy import OperationPolicy, set_policy

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

log = logging.getLogger(__name__)


def register(app: Flask, current_runtime: Runtime) -> None:
    """Count every request of ``app`` and serve ``/metrics``."""
    requests.register(app)
    installation = InstallationMetrics(current_runtime)

    def show() -> Response:
        """The metrics: to loopback without a proxy in between, else with METRICS_TOKEN."""
        if not _may_see(request, runtime().settings.metrics_token):
            raise missing_key() if bearer_token(request) is None else invalid_key()
        return Response(show_processes() + installation.show(), content_type=CONTENT_TYPE_LATEST)

    app.add_url_rule("/metrics", "metrics", show, methods=["GET"])
    set_policy(app, "metrics", OperationPolicy(ANYONE, uncounted=True))


def _may_see(asking: Request, token: str) -> bool:
    if is_loopback(asking) and not is_forwarded(asking):
        return True
    sent = bearer_token(asking)
    return bool(token) and sent is not None and hmac.compare_digest(sent.encode(), token.encode())


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)


def serve_processes(host: str, port: int, token: str) -> WSGIServer:
    """Serve ``/metrics`` of this process alone, in a thread that ends with it.

    Args:
        host: Address to listen on.
        port: 0 for one that is free.
        token: What callers from elsewhere must send as a bearer token; empty: they are refused.

    Returns:
        The server, already at work.

    Raises:
        OSError: The port cannot be had.
    """

    def show(asking: Request) -> Response:
        if asking.path != "/metrics":
            raise NotFound
        if not _may_see(asking, token):
            raise Unauthorized
        return Response(show_processes(), content_type=CONTENT_TYPE_LATEST)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        asking = Request(environ)
        try:
            response: Response | HTTPException = show(asking)
        except HTTPException as error:
            response = error
        return response(environ, start_response)

    server = make_server(host, port, answer, server_class=_Server, handler_class=_Handler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
