"""Connections to PostgreSQL that detect a hanging server.

A stopped server process or a stuck machine keeps its connections open: the operating system still acknowledges data,
and clients wait forever. A slow statement looks the same. To tell them apart, a server that has been silent for a while
is probed with a new connection. If the probe gets no response either, the server hangs, and the statement is abandoned.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.errors import ConnectionTimeout

QUIET_SECONDS, LONGEST_QUIET_SECONDS = 1.0, 60.0
"""Seconds of silence before a server is probed. They double after each successful probe, up to the second value."""


class WatchedServer:
    """A PostgreSQL server, with the result of the last probe.

    Args:
        parameters: Parameters of a connection to the server, including ``connect_timeout``.
    """

    def __init__(self, parameters: dict[str, Any]):
        self._parameters = parameters
        self._asking = threading.Lock()
        self._asked_at = 0.0
        self._responded = True

    def connect(self) -> WatchedConnection:
        """Open a connection.

        Raises:
            psycopg.Error: The connection failed.
        """
        connection = WatchedConnection.connect(**self._parameters)
        connection.server = self
        return connection

    def responds(self) -> bool:
        """Whether the server responds to a new connection, even with an error. Threads share the result of a probe."""
        came = time.monotonic()
        with self._asking:
            # A probe that began after this call is recent enough, even if another thread made it.
            if self._asked_at < came:
                self._responded = self._ask()
                self._asked_at = time.monotonic()
            return self._responded

    def _ask(self) -> bool:
        try:
            psycopg.connect(**self._parameters).close()
        # Only silence means that the server hangs. Any other error is a response.
        except ConnectionTimeout:
            return False
        except psycopg.Error:
            pass
        return True


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that is closed if its server hangs."""

    server: WatchedServer | None = None

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        return super().wait(self._watched(gen), *args, **kwargs)

    def _watched(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run psycopg's ``steps``, and probe the server if it stays silent.

        While psycopg waits, it resumes this generator ten times a second without a result.
        """
        quiet = QUIET_SECONDS
        heard_at = time.monotonic()
        try:
            operation = next(steps)
            while True:
                ready = yield operation
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > quiet and self.server is not None:
                    if not self.server.responds():
                        # Not ``close``, which would first send a message to the hanging server.
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the database server does not respond")
                    heard_at, quiet = time.monotonic(), min(2 * quiet, LONGEST_QUIET_SECONDS)
                operation = steps.send(ready)
        except StopIteration as ended:
            return ended.value
