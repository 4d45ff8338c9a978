"""Connections to PostgreSQL that notice when the server hangs.

A process that is stopped, or a machine that is stuck, keeps its connections: the system goes on confirming what
arrives, and a client waits for ever. A statement that takes long looks the same. So when a server says nothing for a
while, a new connection is tried: a server that does not even answer that one hangs, and the statement is given up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.errors import ConnectionTimeout

QUIET_SECONDS, LONGEST_QUIET_SECONDS = 1.0, 60.0
"""How long a server may say nothing before it is asked whether it is there; twice as long after each time it was."""


class WatchedServer:
    """A server, and whether it answered when it was asked last.

    Args:
        parameters: Of a connection to it, ``connect_timeout`` among them.
    """

    def __init__(self, parameters: dict[str, Any]):
        self._parameters = parameters
        self._asking = threading.Lock()
        self._asked_at = 0.0
        self._answered = True

    def connect(self) -> WatchedConnection:
        """A new connection.

        Raises:
            psycopg.Error: There is none.
        """
        connection = WatchedConnection.connect(**self._parameters)
        connection.server = self
        return connection

    def answers(self) -> bool:
        """Whether the server responds to a new connection, even by rejecting it; threads share the result."""
        came = time.monotonic()
        with self._asking:
            if self._asked_at < came:
                self._answered = self._ask()
                self._asked_at = time.monotonic()
            return self._answered

    def _ask(self) -> bool:
        try:
            psycopg.connect(**self._parameters).close()
        except ConnectionTimeout:
            return False
        except psycopg.Error:
            pass
        return True


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that ends when its server hangs."""

    server: WatchedServer | None = None

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        return super().wait(self._watched(gen), *args, **kwargs)

    def _watched(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The same steps, which psycopg continues ten times a second with nothing while it waits."""
        quiet = QUIET_SECONDS
        heard_at = time.monotonic()
        try:
            operation = next(steps)
            while True:
                ready = yield operation
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > quiet and self.server is not None:
                    if not self.server.answers():
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the database server does not respond")
                    heard_at, quiet = time.monotonic(), min(2 * quiet, LONGEST_QUIET_SECONDS)
                operation = steps.send(ready)
        except StopIteration as ended:
            return ended.value
