"""A receiver of webhooks, and an account with webhooks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from flask import Flask

from app.runtime import Runtime
from app.services.webhooks import announce
from tests.callers import Tenant
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_ok

DATA = {"quota": "searches", "percent": 80, "used": 8, "allowed": 10}


@dataclass(frozen=True)
class Received:
    """A received request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Answers every POST request with ``status``, after ``wait``.

    Attributes:
        most_at_once: Path to the maximum number of concurrent requests.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: Callable[[str], object] = lambda path: None
    received: list[Received] = field(default_factory=list)
    most_at_once: dict[str, int] = field(default_factory=dict)
    base_url: str = ""
    _now: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, received: Received) -> None:
        """Record a request, and wait."""
        path = received.path
        with self._lock:
            self.received.append(received)
            self._now[path] = self._now.get(path, 0) + 1
            self.most_at_once[path] = max(self.most_at_once.get(path, 0), self._now[path])
        self.wait(path)
        with self._lock:
            self._now[path] -= 1

    @property
    def ids(self) -> list[str]:
        """IDs of the received deliveries."""
        return [received.headers["webhook-id"] for received in self.received]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive on a free port of this machine."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.take(Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # The client has disconnected.

    server = Server(("127.0.0.1", 0), Handler)
    receiver.base_url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join(PATIENCE_SECONDS)
        server.server_close()


def add_webhook(tenant: Tenant, url: str, *events: str) -> tuple[dict[str, Any], str]:
    """Create a webhook. Returns it and its secret."""
    fields = {"url": url, "events": list(events or ("quota.warning",))}
    answer = assert_ok(tenant.private.post("/api/webhooks", json=fields), 201)
    return answer["webhook"], answer["secret"]


def tell(tenant: Tenant, event: str = "quota.warning") -> None:
    """Announce an event."""
    part: Runtime = tenant.app.extensions["runtime"]
    with part.database.write() as session:
        announce(session, tenant.account_id, event, DATA)


def send(app: Flask) -> None:
    """Send all due deliveries and wait for them."""
    part: Runtime = app.extensions["runtime"]
    part.deliverer.send_due()
    part.deliverer.finish()


def deliveries(tenant: Tenant, webhook: dict[str, Any]) -> list[dict[str, Any]]:
    """Deliveries of a webhook, newest first."""
    path = f"/api/webhooks/{webhook['id']}/deliveries"
    found: list[dict[str, Any]] = assert_ok(tenant.private.get(path, query_string={"limit": 100}))["deliveries"]
    return found
