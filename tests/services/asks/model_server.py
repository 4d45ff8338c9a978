"""A server with the API of a language model, which behaves or misbehaves as a test says."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Headers = dict[str, str]
Response = tuple[int, Headers, Iterator[bytes]]
Respond = Callable[[dict[str, Any]], Response]
STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}


def event(text: str | None, finish_reason: str | None = None) -> bytes:
    """Return a piece of text as the API sends it."""
    delta = {} if text is None else {"content": text}
    body = {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


END = event(None, "stop") + b"data: [DONE]\n\n"


def writing(*texts: str) -> Respond:
    """Return a model that writes these pieces of text."""
    return lambda _: (200, STREAM, iter([*map(event, texts), END]))


def sending(*chunks: bytes, status: int = 200, headers: Headers | None = None) -> Respond:
    """Return a server that sends these bytes."""
    return lambda _: (status, STREAM if headers is None else headers, iter(chunks))


@dataclass
class ModelServer:
    """A running server.

    Attributes:
        requests: Headers and bodies of the received requests.
        respond: Creates the response to a request.
        released: Set it to end the responses of :meth:`hang`.
        arrived: Released once for each request.
    """

    url: str
    requests: list[tuple[Headers, dict[str, Any]]] = field(default_factory=list)
    respond: Respond = field(default_factory=lambda: writing("It opens at nine [1]."))
    released: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def hang(self, *first: bytes) -> None:
        """Send some bytes, and then nothing until ``released`` is set."""

        def chunks() -> Iterator[bytes]:
            yield from first
            self.released.wait()

        self.respond = lambda _: (200, STREAM, chunks())


@contextmanager
def run_model_server() -> Iterator[ModelServer]:
    """Run a server on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            running.requests.append((dict(self.headers), body))
            running.arrived.release()
            status, headers, chunks = running.respond(body)
            self.send_response(status)
            for name, value in {"Transfer-Encoding": "chunked", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for chunk in chunks:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.write(b"0\r\n\r\n")
            except ConnectionError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            # A client that closes its connection must not write a traceback into the output of a command.
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        running = ModelServer(f"http://127.0.0.1:{server.server_port}/v1")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield running
        finally:
            running.released.set()
            server.shutdown()
            thread.join()
