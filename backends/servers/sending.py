"""Sending the bodies of requests, each within its own time limit.

urllib3 limits the sending of a body to the time for opening a connection. One second is enough for connecting, but too
little for sending megabytes to a busy or distant server.
"""

from __future__ import annotations

import time
from typing import Any, Self

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

_PIECE = 1 << 18
"""Bytes between checks of the time limit; over TLS, the socket's own limit applies to each write."""


class BodyNotAccepted(Exception):
    """The server did not accept the whole body in time. Not an ``OSError``, so that no layer in between handles it."""


class Body(bytes):
    """The body of a request.

    Attributes:
        seconds: Time limit for sending it.
        spent_seconds: Time that sending took; 0 until it has been sent completely.
    """

    seconds: float
    spent_seconds: float

    @classmethod
    def within(cls, seconds: float, data: bytes) -> Self:
        """Wrap ``data`` with a time limit for sending it."""
        body = cls(data)
        body.seconds, body.spent_seconds = seconds, 0.0
        return body


class _TimedSending:
    """Connection mixin that sends a :class:`Body` within its time limit."""

    sock: Any

    def send(self, data: Any) -> None:
        """Send all data.

        Raises:
            BodyNotAccepted: The server did not accept it in time.
        """
        # The head, which is short.
        if not isinstance(data, Body):
            super().send(data)  # type: ignore[misc]  # Of the connection.
            return
        began = time.monotonic()
        # Slices of a view do not copy the body.
        whole = memoryview(data)
        for offset in range(0, len(whole), _PIECE):
            seconds_left = began + data.seconds - time.monotonic()
            if seconds_left <= 0:
                raise BodyNotAccepted
            self.sock.settimeout(seconds_left)
            try:
                super().send(whole[offset : offset + _PIECE])  # type: ignore[misc]
            except TimeoutError as error:
                raise BodyNotAccepted from error
        data.spent_seconds = time.monotonic() - began


class _Connection(_TimedSending, HTTPConnection):
    pass


class _TlsConnection(_TimedSending, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class SendingAdapter(HTTPAdapter):
    """Sends each :class:`Body` within its own time limit."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Create connection pools of the classes above."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
