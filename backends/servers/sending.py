"""Sending the body of a request within a time of its own.

urllib3 lets a body be sent for as long as a connection may take to open. A second is enough for that, and too little
for megabytes to a server that is busy, or far away.
"""

from __future__ import annotations

import time
from typing import Any, Self

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

_PIECE = 1 << 18
"""Bytes after which the time is looked at; over TLS, the socket's own limit is for each write."""


class BodyNotTaken(Exception):
    """The server did not take the whole body in time. Not an ``OSError``: nobody in between is to handle it."""


class Body(bytes):
    """The body of a request.

    Attributes:
        seconds: How long it may take to send it.
        spent_seconds: How long that took; 0 while it is not sent completely.
    """

    seconds: float
    spent_seconds: float

    @classmethod
    def within(cls, seconds: float, data: bytes) -> Self:
        """``data``, to be sent in so many seconds."""
        body = cls(data)
        body.seconds, body.spent_seconds = seconds, 0.0
        return body


class _TimedSending:
    """The sending of a :class:`Body` by a connection."""

    sock: Any

    def send(self, data: Any) -> None:
        """Send all of it.

        Raises:
            BodyNotTaken: It was not taken in time.
        """
        if not isinstance(data, Body):
            super().send(data)  # type: ignore[misc]  # Of the connection.
            return
        began = time.monotonic()
        whole = memoryview(data)
        for at in range(0, len(whole), _PIECE):
            left = began + data.seconds - time.monotonic()
            if left <= 0:
                raise BodyNotTaken
            self.sock.settimeout(left)
            try:
                super().send(whole[at : at + _PIECE])  # type: ignore[misc]
            except TimeoutError as error:
                raise BodyNotTaken from error
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
    """Sends each :class:`Body` within its own time."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools that requests are sent through."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
