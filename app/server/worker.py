"""A gunicorn worker whose threads do not wait for slow clients.

gunicorn's own threads wait for the rest of a head, for a body, and for a client to receive a response, and its event
loop waits for clients to close. A few dozen slow clients can therefore block it. In this worker, the event loop waits
for heads, for bodies of up to ``SMALL_BODY_BYTES``, and for clients to receive responses. At most half of the threads
read larger bodies; other requests with large bodies wait in the loop. Clients that make too little progress are
disconnected.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from types import FrameType
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from app.errors import ErrorCode
from app.server.clients import Clients
from app.server.connection import Connection, Socket
from app.server.rejections import error_of, error_response
from app.server.thread_pool import ThreadPool


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types.
    """A worker process with one event loop and ``threads`` threads.

    Attributes:
        on_stop: Called in a signal handler when the worker begins to stop.
    """

    on_stop: Callable[[], None] | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._clients = Clients(self, max(1, self.cfg.threads // 2))

    def get_thread_pool(self) -> ThreadPool:
        """Return the threads that handle requests."""
        return ThreadPool(self.cfg.threads, "request")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop: accept no more connections, and finish the requests that have begun."""
        super().handle_exit(sig, frame)
        if self.on_stop is not None:
            self.on_stop()

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Reject TLS, which a proxy must provide.

        Raises:
            RuntimeError: A certificate is set.
        """
        if cfg.is_ssl:
            raise RuntimeError("This worker does not support TLS: use a proxy in front of it.")

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection."""
        try:
            accepted, client = listener.accept()
        except OSError as error:
            # Without a free descriptor, the listener would stay ready and the event loop would spin.
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._clients.close_oldest()
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        self.nr_conns += 1
        conn = Connection(self.cfg, Socket(accepted), client, listener.getsockname())
        conn.sock.set_deadline(self.cfg.keepalive)
        self._clients.read(conn)

    def handle(self, conn: Connection) -> bool:
        """Handle a request. Runs in a thread of the pool."""
        is_kept = bool(super().handle(conn))
        with suppress(OSError):  # The event loop tries again, and closes the connection.
            conn.sock.flush()
        return is_kept

    def handle_error(self, req: Any, client: Socket, addr: Any, exc: Exception) -> None:
        """Reject a request that gunicorn cannot read, with an error of the API instead of gunicorn's HTML."""
        error = error_of(exc, self.cfg.limit_request_line)
        if error.code is ErrorCode.INTERNAL_ERROR:
            self.log.exception("Error handling a request from ip=%s", addr and addr[0])
        else:
            self.log.warning("Invalid request from ip=%s: %s", addr and addr[0], exc)
        with suppress(OSError):  # The client may have disconnected.
            client.sendall(error_response(error))

    def finish_request(self, conn: Connection, fs: Future[bool]) -> None:
        """Continue after a thread has handled a request."""
        self._clients.finish(conn, is_kept=not fs.cancelled() and fs.exception() is None and fs.result())

    def murder_pending(self) -> None:
        """Disconnect slow clients, once a second and when there are too many connections."""
        self._clients.check_deadlines()
        if self.nr_conns >= self.worker_connections:
            self._clients.close_oldest()
