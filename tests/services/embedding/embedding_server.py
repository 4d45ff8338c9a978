"""A server with the API of OpenAI embeddings, or with a configured reply."""

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
    """Return the vector of a text: its length and 3."""
    return [float(len(text)), 3.0]


def answering(data: Callable[[list[str]], Any]) -> Reply:
    """Return a reply with ``data``."""

    def reply(request: dict[str, Any]) -> tuple[int, Headers, Iterator[bytes]]:
        return 200, {}, iter([json.dumps({"object": "list", "data": data(request["input"])}).encode()])

    return reply


def items(texts: list[str]) -> list[dict[str, Any]]:
    """Return the vectors of texts, as the API lists them."""
    return [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(texts)]


def failing(status: int, headers: Headers | None = None) -> Reply:
    """Return a reply with an error."""
    return lambda _: (status, headers or {}, iter([b'{"error": {}}']))


@dataclass
class EmbeddingServer:
    """A running server.

    Attributes:
        requests: Headers and bodies of the received requests.
        reply: Creates the response to a request.
    """

    url: str
    requests: list[tuple[Headers, dict[str, Any]]] = field(default_factory=list)
    reply: Reply = field(default_factory=lambda: answering(items))


@contextmanager
def run_server() -> Iterator[EmbeddingServer]:
    """Run a server on a free port."""

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
