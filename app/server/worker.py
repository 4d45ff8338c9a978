"""A gunicorn worker whose threads do not wait for slow clients.

gunicorn's own threads wait for the rest of a head, for a body, and for a client to receive a response, and its event
loop waits for clients to close. A few dozen slow clients can therefore block it. In this worker, the event loop waits
for heads, for bodies of up to ``SMALL_BODY_BYTES``, and for clients to receive responses. At most half of the threads
read larger bodies; other requests with large bodies wait in the loop. Clients that make too little progress are
disconnected.
"""

from __future__ import annotations

import errno
import heapq
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson
from gunicorn import util
from gunicorn.workers.gthread import ThreadWorker

from app.errors import ApiError, ErrorCode, error_body, error_headers
from app.server.connection import PATIENCE_SECONDS, Connection, Socket
from app.server.thread_pool import ThreadPool
from app.web.headers import make_request_id

TURN_SECONDS = 30.0
"""Maximum seconds that a request with a large body waits for a thread."""
LINGER_SECONDS = 2.0
"""Seconds for which a closed connection is still read, so that a client that is still sending gets the response."""
MAX_HEAD_BYTES = 65_536
MAX_WORKER_UNSENT_BYTES = 134_217_728
"""Maximum unsent bytes of all responses of a worker, beyond which the slowest clients are disconnected."""

_RESET = struct.pack("ii", 1, 0)


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types.
    """A worker process with one event loop and ``threads`` threads."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._watched: set[Connection] = set()
        """Connections that the event loop watches."""
        self._waiting_for_thread: deque[Connection] = deque()
        """Watched connections whose large bodies wait for a thread."""
        self._reading = 0
        """Number of threads that read bodies from clients."""
        self._max_reading = max(1, self.cfg.threads // 2)
        self._next_check = 0.0
        self._is_ending = False

    def get_thread_pool(self) -> ThreadPool:
        """Return the threads that handle requests."""
        return ThreadPool(self.cfg.threads, "request")

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
                self._make_room()
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        self.nr_conns += 1
        conn = Connection(self.cfg, Socket(accepted), client, listener.getsockname())
        conn.sock.set_deadline(self.cfg.keepalive)
        self._read(conn)

    def handle(self, conn: Connection) -> bool:
        """Handle a request. Runs in a thread of the pool."""
        is_kept = bool(super().handle(conn))
        with suppress(OSError):  # The event loop tries again, and closes the connection.
            conn.sock.flush()
        return is_kept

    def finish_request(self, conn: Connection, fs: Future[bool]) -> None:
        """Continue after a thread has handled a request."""
        if conn.sock.may_wait:
            # This runs in the event loop, so the count needs no lock.
            self._reading -= 1
            if self._waiting_for_thread:
                following = self._waiting_for_thread.popleft()
                # The deadline for getting a thread must not disconnect the client while the thread reads.
                self._unwatch(following)
                self._hand_over(following)
        conn.is_kept = not fs.cancelled() and fs.exception() is None and fs.result()
        conn.sock.set_deadline(PATIENCE_SECONDS)
        self._send(conn)

    def murder_pending(self) -> None:
        """Disconnect slow clients, once a second and when there are too many connections."""
        now = time.monotonic()
        if not self.alive and not self._is_ending:
            # An idle client may be sending another request, which is still handled, with "Connection: close".
            self._is_ending = True
            for conn in self._watched:
                if conn.is_idle:
                    conn.sock.deadline = min(conn.sock.deadline, now + LINGER_SECONDS)
        if now >= self._next_check:
            self._next_check = now + 1.0
            # A list, because the handlers change the set.
            for conn in [conn for conn in self._watched if conn.sock.deadline <= now]:
                conn.on_deadline(conn)
        if self.nr_conns >= self.worker_connections:
            self._make_room()

    def _make_room(self) -> None:
        """Close one in twenty of the watched connections, nearest deadlines first."""
        count = len(self._watched) // 20 + 1
        for conn in heapq.nsmallest(count, self._watched, key=lambda conn: conn.sock.deadline):
            self._abort(conn)

    # Watching connections

    def _watch(
        self,
        conn: Connection,
        event: int,
        on_event: Callable[[Connection], None],
        on_deadline: Callable[[Connection], None],
    ) -> None:
        if not conn.events:
            self.poller.register(conn.sock, event, partial(self._happen, conn))
        elif conn.events != event:
            self.poller.modify(conn.sock, event, partial(self._happen, conn))
        conn.events = event
        conn.on_event = on_event
        conn.on_deadline = on_deadline
        self._watched.add(conn)

    def _unwatch(self, conn: Connection) -> None:
        """Ignore a connection's events without unregistering it, since most clients wait for the response."""
        self._watched.discard(conn)
        conn.on_event = None

    def _happen(self, conn: Connection, _fileobj: Any) -> None:
        if conn.on_event is not None:
            conn.on_event(conn)
        else:
            self._forget(conn)

    def _forget(self, conn: Connection) -> None:
        if conn.events:
            self.poller.unregister(conn.sock)
            conn.events = 0

    def _drop(self, conn: Connection) -> None:
        if conn in self._waiting_for_thread:
            self._waiting_for_thread.remove(conn)
        self._unwatch(conn)
        self._forget(conn)
        self.nr_conns -= 1
        conn.sock.release()

    def _abort(self, conn: Connection) -> None:
        """Close the connection with a reset, since the kernel would otherwise try for minutes to send the rest."""
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._drop(conn)

    # Receiving a request

    def _await_request(self, conn: Connection) -> None:
        conn.is_idle = True
        # A stopping worker gives clients little time, so that it does not wait for idle connections.
        conn.sock.set_deadline(self.cfg.keepalive if self.alive else LINGER_SECONDS)
        self._watch(conn, selectors.EVENT_READ, self._read, self._drop)

    def _read(self, conn: Connection) -> None:
        try:
            conn.sock.take_in()
        except BlockingIOError:
            if not conn.events:
                self._await_request(conn)
            return
        except OSError:
            self._drop(conn)
            return
        if conn.is_idle:
            conn.is_idle = False
            conn.sock.set_deadline(PATIENCE_SECONDS)
        self._process_input(conn)

    def _process_input(self, conn: Connection) -> None:
        """Continue after input has arrived or the client has closed its side."""
        if conn.is_ready():
            self._unwatch(conn)
            self._hand_over(conn)
        elif conn.sock.ended:
            self._drop(conn)
        elif not conn.has_head and len(conn.sock.received) > MAX_HEAD_BYTES:
            self._unwatch(conn)
            util.write_error(conn.sock, 431, "Request Header Fields Too Large", "The request's head is too large.")
            self._send(conn)
        else:
            self._watch(conn, selectors.EVENT_READ, self._read, self._refuse_slow)

    def _hand_over(self, conn: Connection) -> None:
        """Pass the request to a thread, or queue it until a thread may read its large body."""
        conn.sock.may_wait = not conn.is_whole
        if not conn.sock.may_wait:
            self.enqueue_req(conn)
        elif self._reading < self._max_reading:
            self._reading += 1
            conn.sock.deadline = 0.0  # The thread sets it when it starts.
            self.enqueue_req(conn)
        else:
            conn.sock.may_wait = False
            conn.sock.set_deadline(TURN_SECONDS)
            conn.on_deadline = self._refuse_busy
            self._waiting_for_thread.append(conn)
            self._watched.add(conn)

    def _refuse_slow(self, conn: Connection) -> None:
        self._refuse(conn, ApiError(ErrorCode.REQUEST_TIMEOUT, "The request was sent too slowly."))

    def _refuse_busy(self, conn: Connection) -> None:
        self._refuse(
            conn, ApiError(ErrorCode.SERVER_BUSY, "Too many large requests at the same time; try again.", retry_after=5)
        )

    def _refuse(self, conn: Connection, error: ApiError) -> None:
        """Send an error response without calling the application."""
        if conn in self._waiting_for_thread:
            self._waiting_for_thread.remove(conn)
        self._unwatch(conn)
        body = orjson.dumps(error_body(error))
        headers = {
            "Connection": "close",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "X-Request-Id": make_request_id(),
            **error_headers(error),
        }
        lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}", *map(": ".join, headers.items())]
        conn.sock.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        self._send(conn)

    # Sending a response

    def _send(self, conn: Connection) -> None:
        """Send the rest of the response, then wait for the next request or close the connection."""
        try:
            conn.sock.flush()
        except OSError:
            self._drop(conn)
            return
        if conn.sock.unsent:
            self._watch(conn, selectors.EVENT_WRITE, self._write, self._abort)
            self._limit_unsent()
        elif not conn.is_kept:
            self._linger(conn)
        else:
            conn.start_next_request()
            # The client has pipelined the next request, so no event will announce it.
            if conn.sock.received:
                self._process_input(conn)
            else:
                self._await_request(conn)

    def _write(self, conn: Connection) -> None:
        try:
            conn.sock.flush()
        except OSError:
            self._drop(conn)
            return
        if not conn.sock.unsent:
            self._unwatch(conn)
            conn.sock.set_deadline(PATIENCE_SECONDS)
            self._send(conn)

    def _limit_unsent(self) -> None:
        slow = [conn for conn in self._watched if conn.sock.unsent]
        total = sum(conn.sock.unsent_bytes for conn in slow)
        # The nearest deadline belongs to the client with the least progress.
        for conn in sorted(slow, key=lambda conn: conn.sock.deadline) if total > MAX_WORKER_UNSENT_BYTES else ():
            total -= conn.sock.unsent_bytes
            self._abort(conn)
            if total <= MAX_WORKER_UNSENT_BYTES:
                break

    def _linger(self, conn: Connection) -> None:
        """Close the connection so that a client that is still sending gets the response."""
        try:
            # Closing a socket with unread input sends a reset, which can make the client lose the response.
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(conn)
            return
        conn.sock.set_deadline(LINGER_SECONDS)
        self._watch(conn, selectors.EVENT_READ, self._discard, self._drop)

    def _discard(self, conn: Connection) -> None:
        try:
            if conn.sock.discard() == 0:
                self._drop(conn)
        except BlockingIOError:
            return
        except OSError:
            self._drop(conn)
