"""Connecting, sending the body, and reading the response each have a time limit."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from backends.servers.http import Budget, HttpPool, Response, TransportFailure
from backends.servers.server_url import ServerUrl

BODY = b"x" * 8_000_000
"""Larger than the socket buffers of both ends."""


@contextmanager
def slow_server(pause_seconds: float) -> Iterator[int]:
    """Yield the port of a server that pauses before it reads the rest of each body, and then responds."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    done = threading.Event()

    def talk(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while True:
                data = b""
                while b"\r\n\r\n" not in data:
                    if not (more := connection.recv(65_536)):
                        return
                    data += more
                head, _, body = data.partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                if done.wait(pause_seconds):
                    return
                taken = len(body)
                while taken < length:
                    taken += len(connection.recv(1 << 20))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        done.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(2)


def send(port: int, budget: Budget, times: int = 1, **seconds: float) -> list[Response]:
    """Send the body repeatedly over one connection."""
    options = "&".join(f"{name}_seconds={value}" for name, value in seconds.items())
    pool = HttpPool(ServerUrl.parse(f"typesense://:k@127.0.0.1:{port}?{options}", default_port=1), {})
    try:
        return [pool.send("POST", pool._url.nodes[0], "/x", budget, body=BODY) for _ in range(times)]
    finally:
        pool.close()


def test_sending_a_body_may_exceed_the_connect_timeout() -> None:
    with slow_server(0.3) as port:
        answers = send(port, Budget(5), times=2, connect_timeout=0.1, send_timeout=20)
    assert [(answer.status, answer.body) for answer in answers] == [(200, b"ok")] * 2


@pytest.mark.slow
def test_time_spent_sending_is_not_charged_to_the_response_budget() -> None:
    budget = Budget(3)
    with slow_server(0.7) as port:
        assert len(send(port, budget, times=5, send_timeout=20)) == 5
    assert 0 < budget.remaining() <= 3


def test_unaccepted_body_raises_transport_failure_after_the_send_timeout() -> None:
    with slow_server(30) as port:
        began = time.monotonic()
        with pytest.raises(TransportFailure, match="did not accept the request body") as caught:
            send(port, Budget(20), send_timeout=0.3)
        assert time.monotonic() - began < 10, "the server waits for 30 seconds"
    assert caught.value.kind == "timeout"
