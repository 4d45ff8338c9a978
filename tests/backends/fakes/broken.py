"""A loopback server that is broken in a chosen way."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.patience import PATIENCE_SECONDS

_JSON = "Content-Type: application/json\r\nConnection: close\r\n"


def _reply(status: str, body: str, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\n{_JSON}Content-Length: {size}\r\n\r\n{body}".encode()


ANSWERS: dict[str, bytes] = {
    "garbage": b"\x00\x01 this is no HTTP \xff\r\n\r\n",
    "page": _reply("200 OK", "<html>Welcome to the router</html>"),
    "nothing": _reply("200 OK", ""),
    "other JSON": _reply("200 OK", '{"unexpected": 1}'),
    "other list": _reply("200 OK", "[1, null]"),
    "null": _reply("200 OK", "null"),
    "cut": _reply("200 OK", '{"results": [', 5000),
    "cut in a chunk": b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{"results": [',
    "cut between chunks": b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{"results": [\r\n',
    "cut without a length": b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"results": [',
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: http://example.invalid/\r\nContent-Length: 0\r\n\r\n",
    "500 empty": _reply("500 Internal Server Error", ""),
    "500": _reply("500 Internal Server Error", '{"message": "secret words of the engine", "code": "internal"}'),
    "503": _reply("503 Service Unavailable", '{"message": "Not Ready or Lagging"}'),
    "429": _reply("429 Too Many Requests", '{"message": "slow down"}'),
    "401": _reply("401 Unauthorized", '{"message": "secret words of the engine"}'),
    "403": _reply("403 Forbidden", '{"message": "secret words of the engine", "code": "invalid_api_key"}'),
    "400": _reply("400 Bad Request", '{"message": "secret words of the engine", "code": "weird"}'),
    "404 page": _reply("404 Not Found", "<html>nginx</html>"),
    "418": _reply("418 I'm a teapot", ""),
}
"""The server's response to every request."""

WAYS = ("refuses", "hangs", "resets", "resets in the middle", "drips", *ANSWERS)


@contextmanager
def broken_server(way: str) -> Iterator[int]:
    """Yield the port of a server that is broken in one of :data:`WAYS`."""
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    if way == "refuses":
        listener.close()
        yield port
        return
    done = threading.Event()
    held: list[socket.socket] = []
    thread = threading.Thread(target=_serve, args=(listener, way, done, held), daemon=True)
    thread.start()
    try:
        yield port
    finally:
        done.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in held:
            connection.close()
        thread.join(2)


def _serve(listener: socket.socket, way: str, done: threading.Event, held: list[socket.socket]) -> None:
    while not done.is_set():
        try:
            connection, _address = listener.accept()
        except OSError:
            return
        held.append(connection)
        threading.Thread(target=_talk, args=(connection, way, done), daemon=True).start()


def _talk(connection: socket.socket, way: str, done: threading.Event) -> None:
    with contextlib.suppress(OSError):
        connection.settimeout(PATIENCE_SECONDS)
        if way.startswith("resets"):
            connection.recv(16)
            if way == "resets in the middle":
                connection.sendall(ANSWERS["cut"])
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            return
        _read_request(connection)
        if way == "drips":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
            while not done.wait(0.02):
                connection.sendall(b" ")
        elif way == "hangs":
            done.wait(30)
        else:
            connection.sendall(ANSWERS[way])
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1 << 16)
            connection.close()


def _read_request(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(1 << 16)
