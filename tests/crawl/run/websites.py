"""A website whose pages tests can change, break, and move; it records all requests."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.callers import Tenant, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_ok


@dataclass
class Answer:
    """A response of the website.

    Attributes:
        validators: Whether the response supports conditional requests.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    validators: bool = True


def html(title: str, text: str = "", links: tuple[str, ...] | list[str] = (), head: str = "") -> Answer:
    """Build an HTML page."""
    anchors = "".join(f'<li><a href="{link}">next</a></li>' for link in links)
    body = f"<p>{text or title + ' has a text of its own that nobody else has.'}</p>"
    return Answer(
        f"<!doctype html><html><head><title>{title}</title>{head}</head>"
        f"<body><main>{body}</main><nav><ul>{anchors}</ul></nav></body></html>".encode(),
        headers={"Content-Type": "text/html; charset=utf-8"},
    )


def respond(handler: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Send a response; a 304 has no body."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    if status != 304:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if status != 304:
        handler.wfile.write(body)


class Website:
    """Serves ``pages``, which maps paths to responses, on its own port.

    Attributes:
        asked: Path and status of every response except robots.txt, in order.
        sent: The headers of every request, by lower-case name.
        before: Called with each request's path before the response.
    """

    def __init__(self, *, one_at_a_time: bool = False) -> None:
        """With ``one_at_a_time``, handle connections strictly one after another, in order."""
        self.pages: dict[str, Answer] = {}
        self.asked: list[tuple[str, int]] = []
        self.sent: list[dict[str, str]] = []
        self.before: Callable[[str], object] = lambda path: None
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0" if one_at_a_time else "HTTP/1.1"

            def do_GET(self) -> None:
                site.before(self.path)
                answer = site.pages.get(self.path, Answer(b"gone", 404))
                status, headers, body = answer.status, dict(answer.headers), answer.body
                if status == 200 and answer.validators:
                    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
                    headers["ETag"] = etag
                    if self.headers["If-None-Match"] == etag:
                        status, body = 304, b""
                with site._lock:
                    site.sent.append({name.lower(): value for name, value in self.headers.items()})
                    if self.path != "/robots.txt":
                        site.asked.append((self.path, status))
                respond(self, status, headers, body)

            def log_message(self, *args: Any) -> None:
                pass

        server: type[HTTPServer] = HTTPServer if one_at_a_time else ThreadingHTTPServer
        self._server = server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def address(self, path: str) -> str:
        """Return the URL of a path."""
        return self.url + path

    def forget(self) -> None:
        """Clear the recorded requests."""
        self.asked.clear()

    def bodies(self) -> list[str]:
        """Return the paths whose bodies were sent."""
        return sorted(path for path, status in self.asked if status == 200)

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def crawling_tenant(folder: Path, website: Website, **settings: Any) -> Iterator[Tenant]:
    """Register a customer of an installation that may crawl private IP addresses; the website is their site."""
    app = make_app(make_settings(folder, crawl_private_addresses=True, **settings))
    tenant = register_tenant(app, "ann@example.com")
    assert_ok(tenant.private.put(f"/sites/{tenant.site_id}", json={"url": website.url}))
    yield tenant
    close_app(app)


@contextmanager
def serving(*, one_at_a_time: bool = False) -> Iterator[Website]:
    """Serve a website, and close it afterwards."""
    site = Website(one_at_a_time=one_at_a_time)
    try:
        yield site
    finally:
        site.close()
