"""A TCP proxy that delays responses."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class SlowProxy:
    """Forwards to a port of this machine.

    Attributes:
        delay: Returns the delay of the next piece of a response, in seconds.
    """

    def __init__(self, target: int):
        self._target = target
        self.delay: Callable[[], float] = lambda: 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        """End all connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for end in self._ends:
            _shut(end)
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *self._ends):
            end.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._ends.append(client)
                server = socket.create_connection(("127.0.0.1", self._target))
                self._ends.append(server)
                self._start(self._forward, client, server, False)
                self._start(self._forward, server, client, True)

    def _forward(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if is_answer:
                    time.sleep(self.delay())
                sink.sendall(data)
        _shut(source)
        _shut(sink)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextmanager
def slow_proxy(target: int) -> Iterator[SlowProxy]:
    proxy = SlowProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
