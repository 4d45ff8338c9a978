"""The clients of a worker that no thread handles: they send requests, wait for threads, or receive responses."""

from __future__ import annotations

import heapq
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable

from gunicorn.workers.gthread import ThreadWorker

from app.errors import ApiError, ErrorCode
from app.server.connection import PATIENCE_SECONDS, Connection
from app.server.rejections import error_response, headers_too_large

TURN_SECONDS = 30.0
"""Maximum seconds that a request with a large body waits for a thread."""
LINGER_SECONDS = 2.0
"""Seconds for which a closed connection is still read, so that a client that is still sending gets the response."""
MAX_HEAD_BYTES = 65_536
MAX_WORKER_UNSENT_BYTES = 134_217_728
"""Maximum unsent bytes of all responses of a worker, beyond which the slowest clients are disconnected."""

_RESET = struct.pack("ii", 1, 0)
_Handler = Callable[[Connection], None]


class _LargeBodies:
    """Limits the threads that read large bodies, because each waits for its client, which may be slow."""

    def __init__(self, max_reading: int):
        self._max_reading = max_reading
        self._reading = 0
        self._waiting: deque[Connection] = deque()

    def begin_turn(self, conn: Connection) -> bool:
        """Whether a thread may read the body now. If not, the connection waits for its turn."""
        if self._reading < self._max_reading:
            self._reading += 1
            return True
        self._waiting.append(conn)
        return False

    def end_turn(self) -> Connection | None:
        """Return the connection that waits longest, if any, after a thread has finished."""
        self._reading -= 1
        return self._waiting.popleft() if self._waiting else None

    def leave(self, conn: Connection) -> None:
        """Stop waiting, if the connection waits."""
        if conn in self._waiting:
            self._waiting.remove(conn)


class Clients:
    """Connections between the work of threads. Only the event loop uses this object, so it needs no lock.

    Args:
        worker: The worker whose event loop this is, and whose connections these are.
        max_reading: Maximum number of threads that read large bodies.
    """

    def __init__(self, worker: ThreadWorker, max_reading: int):
        self._worker = worker
        self._watched: set[Connection] = set()
        """Connections that the event loop watches."""
        self._large_bodies = _LargeBodies(max_reading)
        self._next_check = 0.0
        self._is_ending = False

    def finish(self, conn: Connection, *, is_kept: bool) -> None:
        """Send the rest of a response that a thread has written."""
        if conn.sock.may_wait:
            following = self._large_bodies.end_turn()
            if following is not None:
                # The deadline for getting a thread must not disconnect the client while the thread reads.
                self._unwatch(following)
                self._hand_over(following)
        conn.is_kept = is_kept
        conn.sock.set_deadline(PATIENCE_SECONDS)
        self._send(conn)

    def check_deadlines(self) -> None:
        """Once a second, disconnect the clients whose deadlines have passed."""
        now = time.monotonic()
        if not self._worker.alive and not self._is_ending:
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

    def close_oldest(self) -> None:
        """Close one in twenty of the watched connections, nearest deadlines first."""
        # Several at once, since sorting all connections for each new one would let an attacker occupy the event loop.
        count = len(self._watched) // 20 + 1
        for conn in heapq.nsmallest(count, self._watched, key=lambda conn: conn.sock.deadline):
            self._abort(conn)

    def _watch(self, conn: Connection, event: int, on_event: _Handler, on_deadline: _Handler) -> None:
        conn.register(self._worker.poller, event)
        conn.on_event = on_event
        conn.on_deadline = on_deadline
        self._watched.add(conn)

    def _unwatch(self, conn: Connection) -> None:
        """Ignore a connection's events without unregistering it, since most clients wait for the response."""
        self._watched.discard(conn)
        conn.on_event = None

    def _drop(self, conn: Connection) -> None:
        self._large_bodies.leave(conn)
        self._unwatch(conn)
        conn.unregister(self._worker.poller)
        # gunicorn stops accepting once its count reaches the limit, so a missed decrement would end the service.
        self._worker.nr_conns -= 1
        conn.sock.release()

    def _abort(self, conn: Connection) -> None:
        """Close the connection with a reset, since the kernel would otherwise try for minutes to send the rest."""
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._drop(conn)

    def _await_request(self, conn: Connection) -> None:
        conn.is_idle = True
        # A stopping worker gives clients little time, so that it does not wait for idle connections.
        conn.sock.set_deadline(self._worker.cfg.keepalive if self._worker.alive else LINGER_SECONDS)
        self._watch(conn, selectors.EVENT_READ, self.read, self._drop)

    def read(self, conn: Connection) -> None:
        """Receive input from a client, and continue if it completes a request."""
        try:
            conn.sock.receive_available()
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
            self._reject(conn, headers_too_large())
        else:
            self._watch(conn, selectors.EVENT_READ, self.read, self._reject_slow)

    def _hand_over(self, conn: Connection) -> None:
        """Pass the request to a thread, or queue it until a thread may read its large body."""
        conn.sock.may_wait = not conn.is_whole
        if not conn.sock.may_wait:
            self._worker.enqueue_req(conn)
        elif self._large_bodies.begin_turn(conn):
            conn.sock.deadline = 0.0  # The thread sets it when it starts.
            self._worker.enqueue_req(conn)
        else:
            conn.sock.may_wait = False
            conn.sock.set_deadline(TURN_SECONDS)
            conn.on_deadline = self._reject_busy
            self._watched.add(conn)

    def _reject_slow(self, conn: Connection) -> None:
        self._reject(conn, ApiError(ErrorCode.REQUEST_TIMEOUT, "The request was sent too slowly."))

    def _reject_busy(self, conn: Connection) -> None:
        self._reject(
            conn, ApiError(ErrorCode.SERVER_BUSY, "Too many large requests at the same time; try again.", retry_after=5)
        )

    def _reject(self, conn: Connection, error: ApiError) -> None:
        """Send an error response without calling the application."""
        self._large_bodies.leave(conn)
        self._unwatch(conn)
        conn.sock.sendall(error_response(error))
        self._send(conn)

    def _send(self, conn: Connection) -> None:
        """Send the rest of the response, then wait for the next request or close the connection."""
        try:
            conn.sock.flush()
        except OSError:
            self._drop(conn)
            return
        if conn.sock.unsent:
            self._watch(conn, selectors.EVENT_WRITE, self._write, self._abort)
            for slow in _slowest(self._watched):
                self._abort(slow)
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


def _slowest(connections: Iterable[Connection]) -> list[Connection]:
    """Return the clients to disconnect, so that the unsent bytes of the others stay within the limit."""
    slow = [conn for conn in connections if conn.sock.unsent]
    total = sum(conn.sock.unsent_bytes for conn in slow)
    slowest: list[Connection] = []
    if total > MAX_WORKER_UNSENT_BYTES:
        # The nearest deadline belongs to the client with the least progress.
        for conn in sorted(slow, key=lambda conn: conn.sock.deadline):
            slowest.append(conn)
            total -= conn.sock.unsent_bytes
            if total <= MAX_WORKER_UNSENT_BYTES:
                break
    return slowest
