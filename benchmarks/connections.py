"""A cheap HTTP client, so that measurements show the server: one connection, or many concurrent ones."""

from __future__ import annotations

import multiprocessing
import re
import selectors
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_LAST_CHUNK = b"0\r\n\r\n"
"""End of a chunked response; JSON never contains it."""

_PIECE = 262_144


class Connection:
    """A kept-alive connection, reopened after the server closes it.

    Args:
        url: The server's URL, without a path.
        headers: Sent with every request.
    """

    def __init__(self, url: str, headers: Mapping[str, str]):
        self.url = url
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._exchange: Exchange | None = None

    def message(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Return the bytes of a request."""
        length = "" if body is None else f"Content-Length: {len(body)}\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: {urlsplit(self.url).netloc}\r\n{self._headers}{length}\r\n"
        return head.encode() + (body or b"")

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send a request, and return the body. Exits the program unless the status is 200."""
        return self.send(self.message(method, path, body))

    def send(self, message: bytes) -> bytes:
        """Send a request from :meth:`message`, and return the body. Exits the program unless the status is 200."""
        try:
            return self._send(message)
        except ConnectionError:
            # It was idle for longer than the server keeps it, while another system was filled.
            self._exchange = None
            return self._send(message)

    def _send(self, message: bytes) -> bytes:
        if self._exchange is None or self._exchange.is_closed:
            self._exchange = Exchange(self.url)
        self._exchange.begin(message)
        while not self._exchange.is_complete:
            self._exchange.read()
        return self._exchange.answer()


class Exchange:
    """A request over a connection, and its response, read as it arrives."""

    def __init__(self, url: str):
        host, _, port = urlsplit(url).netloc.partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_closed = False
        self.started = 0.0
        self._received = bytearray()
        self._body_at = self._size = -1
        self._is_chunked = False

    def begin(self, message: bytes) -> None:
        """Send a request."""
        self._received.clear()
        self._body_at = self._size = -1
        self._is_chunked = False
        self.started = time.perf_counter()
        self.socket.sendall(message)

    def read(self) -> None:
        """Read the bytes that have arrived.

        Raises:
            ConnectionError: The server has closed the connection.
        """
        data = self.socket.recv(_PIECE)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        self._received += data
        if self._size < 0:
            self._body_at = self._received.find(b"\r\n\r\n") + 4
            if self._body_at >= 4:
                length = _LENGTH.search(self._received, 0, self._body_at)
                self._is_chunked = length is None
                self._size = self._body_at + (0 if length is None else int(length[1]))

    @property
    def is_complete(self) -> bool:
        """Whether the response is complete."""
        if self._is_chunked:
            return self._received.endswith(_LAST_CHUNK)
        return 0 <= self._size <= len(self._received)

    def answer(self) -> bytes:
        """Return the body. Exits the program unless the status is 200."""
        status = _STATUS.match(self._received)
        if status is None or status[1] != b"200":
            sys.exit(f"no 200: {bytes(self._received[:600])!r}")
        if _CLOSES.search(self._received, 0, self._body_at):
            self.is_closed = True
            self.socket.close()
        if self._is_chunked:
            return b"".join(self._chunks())
        return bytes(self._received[self._body_at :])

    def _chunks(self) -> Iterator[bytes]:
        at = self._body_at
        while True:
            start = self._received.index(b"\r\n", at) + 2
            size = int(self._received[at : start - 2], 16)
            if not size:
                return
            yield bytes(self._received[start : start + size])
            at = start + size + 2


@dataclass
class Load:
    """Results of concurrent clients.

    Attributes:
        seconds: Duration of the requests.
        times: Milliseconds from a request to the last byte of its response, by the request's name.
    """

    seconds: float
    times: dict[str, list[float]] = field(default_factory=dict)

    @property
    def requests_per_second(self) -> float:
        """The times of all requests, of every name."""
        return sum(map(len, self.times.values())) / self.seconds


def ask_at_once(url: str, messages: Sequence[tuple[str, bytes]], clients: int, seconds: float) -> Load:
    """Send requests from concurrent clients for some time. Each sends its next request after a response.

    The clients share a separate process, which does nothing else.

    Args:
        messages: Requests and the names under which they are counted. The clients share one cycle through them.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=lambda: sender.send(_ask_at_once(url, messages, clients, seconds))
    )
    process.start()
    sender.close()
    try:
        load: Load = receiver.recv()
    except EOFError:
        sys.exit("the clients failed")
    process.join()
    return load


def _ask_at_once(url: str, messages: Sequence[tuple[str, bytes]], clients: int, seconds: float) -> Load:
    load, at = Load(0.0), 0
    started = time.perf_counter()
    with selectors.DefaultSelector() as selector:

        def ask(exchange: Exchange) -> None:
            nonlocal at
            name, message = messages[at % len(messages)]
            at += 1
            exchange.begin(message)
            selector.modify(exchange.socket, selectors.EVENT_READ, (exchange, name))

        for _ in range(clients):
            exchange = Exchange(url)
            selector.register(exchange.socket, selectors.EVENT_READ)
            ask(exchange)
        while time.perf_counter() < started + seconds:
            for key, _ in selector.select(1.0):
                exchange, name = key.data
                exchange.read()
                if not exchange.is_complete:
                    continue
                exchange.answer()
                load.times.setdefault(name, []).append((time.perf_counter() - exchange.started) * 1000)
                if exchange.is_closed:
                    selector.unregister(key.fileobj)
                    exchange = Exchange(url)
                    selector.register(exchange.socket, selectors.EVENT_READ)
                ask(exchange)
    load.seconds = time.perf_counter() - started
    return load
