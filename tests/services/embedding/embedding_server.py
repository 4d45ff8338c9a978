"""A server that speaks OpenAI's API of embeddings, or answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Headers = dict[str, str]
Reply = Callable[[dict[str, Any]], tuple[int, Headers, Iterator[bytes]]]


def vector(text: str) -> list[float]:
    """The vector of a text: its length beside 3."""
    return [float(len(text)), 3.0]


def answering(data: Callable[[list[str]], Any]) -> Reply:
    """A reply with ``data``."""

    def reply(request: dict[str, Any]) -> tuple[int, Headers, Iterator[bytes]]:
        return 200, {}, iter([json.dumps({"object": "list", "data": data(request["input"])}).encode()])

    return reply


def items(texts: list[str]) -> list[dict[str, Any]]:
    """The vectors of texts, as the API lists them."""
    return [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(texts)]


def failing(status: int, headers: Headers | None = None) -> Reply:
    """A reply with an error."""
    return lambda _: (status, headers or {}, iter([b'{"error": {}}']))


@dataclass
class EmbeddingServer:
    """A running server.

    Attributes:
        requests: Headers and bodies that came.
        reply: What is answered.
    """

    url: str
    requests: list[tuple[Headers, dict[str, Any]]] = field(default_factory=list)
    reply: Reply = field(default_factory=lambda: answering(items))


@contextmanager
def run_server() -> Iterator[EmbeddingServer]:
    """A server on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            running.requests.append((dict(self.headers), body))
            status, headers, pieces = running.reply(body)
            self.send_response(status)
            for name, value in {"Transfer-Encoding": "chunked", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in pieces:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")
            except ConnectionError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        running = EmbeddingServer(f"http://127.0.0.1:{server.server_port}/v1/embeddings")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield running
        server.shutdown()
        thread.join()
