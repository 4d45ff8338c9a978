"""Malicious clients: many connections, each slow in one way."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.server import Server
from tests.service.clients import another_address

CONNECTIONS = 100


@dataclass
class Siege:
    """Connections under attack.

    Attributes:
        open: Connections that the server has not closed.
        said: Data from the server on each connection that it closed.
    """

    open: list[socket.socket] = field(default_factory=list)
    said: list[bytes] = field(default_factory=list)


def head(path: str, method: str = "GET", **headers: str | int) -> bytes:
    """Return the head of a request, without its end."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"X-Forwarded-For: {another_address()}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n"


def half_a_head() -> bytes:
    return head("/v1/search?q=page") + b"X-Long: "


def half_a_body() -> bytes:
    """Return a partial body that fits into the buffer for reading without a thread."""
    return head("/login", "POST", Content_Type="application/json", Content_Length=30_000) + b'\r\n{"email": "'


def half_a_large_body() -> bytes:
    return head("/login", "POST", Content_Type="application/json", Content_Length=900_000) + b"\r\n" + b" " * 100_000


def half_a_chunked_body() -> bytes:
    """Return a partial chunked body whose first chunk looks like the last one."""
    begin = head("/login", "POST", Content_Type="application/json", Transfer_Encoding="chunked")
    return begin + b"\r\n4000\r\n[\r\n0\r\n\r\n"


def nothing() -> bytes:
    return b""


@contextmanager
def slow_senders(server: Server, begin: Callable[[], bytes], connections: int = CONNECTIONS) -> Iterator[Siege]:
    """Open connections that send ``begin()`` immediately and then a byte per second."""
    siege, done = Siege(), threading.Event()

    def drip() -> None:
        while not done.wait(1):
            for client in list(siege.open):
                try:
                    client.send(b"x")
                    said = client.recv(65_536)
                except BlockingIOError:
                    continue
                except OSError:
                    said = b""
                client.close()
                siege.open.remove(client)
                siege.said.append(said)

    for _ in range(connections):
        client = _connect(server)
        siege.open.append(client)
        client.sendall(begin())
        client.setblocking(False)
    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield siege
    finally:
        done.set()
        thread.join()
        for client in siege.open:
            client.close()


@contextmanager
def slow_readers(server: Server, path: str, requests: int, connections: int = CONNECTIONS) -> Iterator[Siege]:
    """Open connections that send the same request repeatedly without reading."""
    siege, done = Siege(), threading.Event()

    def look() -> None:
        while not done.wait(1):
            for client in list(siege.open):
                poll = select.poll()
                poll.register(client, 0)
                if poll.poll(0):  # The server has reset it; the data it sent before is readable even then.
                    client.close()
                    siege.open.remove(client)

    for _ in range(connections):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(10)
        client.connect(_address(server))
        siege.open.append(client)
        client.sendall(b"".join(head(path) + b"\r\n" for _ in range(requests)))
    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield siege
    finally:
        done.set()
        thread.join()
        for client in siege.open:
            client.close()


def _address(server: Server) -> tuple[str, int]:
    host, port = server.base_url.removeprefix("http://").split(":")
    return host, int(port)


def _connect(server: Server) -> socket.socket:
    return socket.create_connection(_address(server), timeout=10)
