"""A web server that sends arbitrary bytes, and a fake network that routes every host to it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address

import httpcore

from app.crawl.fetch.addresses import IPAddress

PUBLIC = "93.184.216.34"
"""Default IP address of every host in the tests."""


@dataclass(frozen=True)
class Asked:
    """A received request.

    Attributes:
        target: Path and query.
        headers: Header values by lower-case name.
    """

    target: str
    headers: dict[str, str]


Answer = bytes | Iterable[bytes] | Callable[[Asked], bytes | Iterable[bytes]]
"""The complete response, including its head. Chunks are sent until they run out or the client disconnects."""


def page(body: bytes = b"<p>Hello", *headers: str, status: str = "200 OK", content_type: str = "text/html") -> bytes:
    """Build a response with a body."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(location: str, *headers: str, status: str = "302 Found") -> bytes:
    """Build a redirect response."""
    return page(b"", f"Location: {location}", *headers, status=status)


@dataclass
class HostileSite:
    """Maps request targets to responses; other targets get a 404.

    Attributes:
        answers: The response for each target.
        asked: All requests received so far.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    @property
    def targets(self) -> list[str]:
        """The targets of all received requests."""
        return [asked.target for asked in self.asked]

    def serve(self, connection: socket.socket) -> None:
        """Respond to requests on one connection until it closes."""
        with suppress(OSError), connection:
            while (asked := _read_request(connection)) is not None:
                self.asked.append(asked)
                answer = self.answers.get(asked.target, page(b"", status="404 Not Found"))
                whole = answer(asked) if callable(answer) else answer
                if isinstance(whole, bytes):
                    connection.sendall(whole)
                    continue
                for piece in whole:
                    connection.sendall(piece)
                return


def _read_request(connection: socket.socket) -> Asked | None:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65_536)
        if not piece or not b"GET ".startswith((head + piece)[:4]):
            return None
        head += piece
    first, *lines = head.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Asked(first.split(" ")[1], headers)


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[HostileSite]:
    """Serve on a free local port, over TLS if a context is passed."""
    site = HostileSite()
    listener = socket.create_server(("127.0.0.1", 0))
    site.port = listener.getsockname()[1]
    connections: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            thread = threading.Thread(target=handle, args=(connection,))
            threads.append(thread)
            thread.start()

    def handle(connection: socket.socket) -> None:
        if tls is not None:
            try:
                connection = tls.wrap_socket(connection, server_side=True)
            except OSError:
                connection.close()
                return
            connections.append(connection)
        site.serve(connection)

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield site
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in threads:
            thread.join()


class Names:
    """A resolver that returns :data:`PUBLIC`, or a test's own results: one per lookup, then the last one forever.

    Attributes:
        looked_up: All hostnames resolved so far.
    """

    def __init__(self, **addresses: Sequence[str]) -> None:
        self._addresses = {name.replace("_", "."): [a.split() for a in each] for name, each in addresses.items()}
        self.looked_up: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[IPAddress]:
        self.looked_up.append(host)
        left = self._addresses.get(host, [[PUBLIC]])
        found = left.pop(0) if len(left) > 1 else left[0]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [ip_address(address) for address in found]


class Wires(httpcore.NetworkBackend):
    """Connects every IP address to one local server.

    Attributes:
        connected: Host and port of every connection attempt.
        broken: Hosts that refuse connections.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._sockets = httpcore.SyncBackend()
        self.connected: list[tuple[str, int]] = []
        self.broken: set[str] = set()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        self.connected.append((host, port))
        if host in self.broken:
            raise httpcore.ConnectError("refused")
        return self._sockets.connect_tcp("127.0.0.1", self._port, timeout=timeout)
