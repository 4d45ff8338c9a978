"""A service and an engine in one small server: what the search box says to engines that browsers reach directly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from app.pages.widget import SCRIPT

SCRIPT_ELEMENT = '<script src="/widget.js" data-key="svc_pub_test" async></script>'


def page_with(script: str, *, attributes: str = 'lang="en"') -> str:
    """A customer's page with room for two boxes."""
    return (
        f'<!doctype html><html {attributes}><meta charset="utf-8"><link rel="icon" href="data:,"><title>Museum</title>'
        f'<div id="site-search"></div><div id="other"></div>{script}</html>'
    )


class Stub:
    """What the server answers, and what it was sent.

    Attributes:
        info: The answer of client-info; its ``engine_host`` is the server.
        page: The customer's page.
        answers: Path to statuses and bodies, one for each request, the last one for all further ones.
        sent: Path, header Authorization and body of every request, as they came.
    """

    def __init__(self) -> None:
        self.base_url = ""
        self.page = page_with(SCRIPT_ELEMENT)
        self.info: dict[str, Any] = {}
        self.answers: dict[str, list[tuple[int, Any]]] = {}
        self.sent: list[tuple[str, str, Any]] = []

    def bodies(self, path: str) -> list[Any]:
        return [body for sent_path, _, body in self.sent if sent_path == path]

    def answer(self, path: str) -> tuple[int, str, bytes]:
        if path == "/":
            return 200, "text/html", self.page.encode()
        if path == "/widget.js":
            return 200, "text/javascript", SCRIPT.read_bytes()
        if path == "/v1/client-info":
            return 200, "application/json", json.dumps({"active": True, **self.info}).encode()
        answers = self.answers.get(path, [(200, {"success": True})])
        status, body = answers.pop(0) if len(answers) > 1 else answers[0]
        return status, "application/json", json.dumps(body).encode()


@contextmanager
def running_stub() -> Iterator[Stub]:
    """The server, on a free port of this machine."""
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            path = urlsplit(self.path).path
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            stub.sent.append((path, self.headers.get("Authorization", self.path), json.loads(body) if body else None))
            status, kind, content = stub.answer(path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer

        def log_message(self, format: str, *args: Any) -> None:
            """Tests print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        stub.base_url = f"http://127.0.0.1:{httpd.server_port}"
        thread = Thread(target=httpd.serve_forever)
        thread.start()
        yield stub
        httpd.shutdown()
        thread.join()
