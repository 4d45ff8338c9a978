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
import re
import select
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
from itertools import islice
from typing import Any

import orjson
from gunicorn import util
from gunicorn.workers.gthread import TConn, ThreadWorker

from app.errors import ApiError, ErrorCode, error_body, error_headers
from app.server.thread_pool import ThreadPool
from app.web.headers import make_request_id

PATIENCE_SECONDS = 10.0
"""Seconds that a client may pause within a request or a response."""
MIN_BYTES_PER_SECOND = 2048
"""Minimum average rate at which a client must send or receive after ``PATIENCE_SECONDS``."""
TURN_SECONDS = 30.0
"""Maximum seconds that a request with a large body waits for a thread."""
LINGER_SECONDS = 2.0
"""Seconds for which a closed connection is still read, so that a client that is still sending gets the response."""
SMALL_BODY_BYTES = 65_536
"""Bodies of up to this many bytes are received completely before a thread gets the request."""
MAX_HEAD_BYTES = 65_536
PIECE_BYTES = 65_536
"""Maximum bytes per read, and number of collected output bytes that triggers sending."""
MAX_PIECES = 64
MAX_UNSENT_BYTES = 1_048_576
"""Unsent bytes of a streamed response at which the thread that produces it waits."""
MAX_WORKER_UNSENT_BYTES = 134_217_728
"""Maximum unsent bytes of all responses of a worker, beyond which the slowest clients are disconnected."""

_FRAMING = re.compile(rb"\r\n(content-length|transfer-encoding|expect):[ \t]*([^\r\n]*)", re.IGNORECASE)
_RESET = struct.pack("ii", 1, 0)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)


class Socket(socket.socket):
    """A client's socket with buffers for unread input and unsent output.

    Either the event loop or one thread uses it at a time. It never blocks in the kernel, regardless of gunicorn's
    settings.

    Attributes:
        received: Input that gunicorn has not read yet.
        unsent: Pieces of the response that the client has not received yet.
        unsent_bytes: Size of these pieces.
        ended: Whether the client has closed its side.
        may_wait: Whether :meth:`recv` waits for the client; otherwise ``received`` contains the whole request.
        deadline: Time (``time.monotonic``) at which the client is disconnected unless it makes progress.
    """

    def __init__(self, accepted: socket.socket):
        # Detached, so that garbage collection of ``accepted`` does not close the descriptor.
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        super().setblocking(False)
        self.received = bytearray()
        self.unsent: deque[memoryview] = deque()
        self.unsent_bytes = 0
        self.ended = False
        self.may_wait = False
        self.deadline = 0.0
        self._timeout: float | None = None

    def setblocking(self, flag: bool) -> None:
        """Do nothing but reset the timeout; see the class."""
        self._timeout = None

    def settimeout(self, value: float | None) -> None:
        """Limit the seconds that :meth:`recv` waits, in addition to the client's deadline."""
        self._timeout = value

    def gettimeout(self) -> float | None:
        """Return the timeout, which gunicorn restores after reading the rest of a body."""
        return self._timeout

    def set_deadline(self, seconds: float) -> None:
        """Set the client's deadline to ``seconds`` from now."""
        self.deadline = time.monotonic() + seconds

    def _progress(self, count: int) -> None:
        """Extend the deadline after progress, at most to ``PATIENCE_SECONDS`` from now."""
        self.deadline = min(time.monotonic() + PATIENCE_SECONDS, self.deadline + count / MIN_BYTES_PER_SECOND)

    def take_in(self, size: int = PIECE_BYTES) -> int:
        """Move input from the kernel to ``received`` without waiting, and return the number of bytes.

        Raises:
            BlockingIOError: There is no input.
        """
        data = super().recv(size)
        if data:
            self.received += data
            self._progress(len(data))
        else:
            self.ended = True
        return len(data)

    def discard(self) -> int:
        """Discard input, and return the number of bytes.

        Raises:
            BlockingIOError: There is no input.
        """
        return len(super().recv(PIECE_BYTES))

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return input, after waiting for it if ``may_wait`` is set.

        Raises:
            TimeoutError: The client is too slow.
        """
        while not self.received and not self.ended:
            if not self.may_wait:
                raise TimeoutError(errno.ETIMEDOUT, "the request is longer than its head announced")
            if not self.deadline:
                self.set_deadline(PATIENCE_SECONDS)
            try:
                self.take_in(size)
            except BlockingIOError:
                self._wait(select.POLLIN)
        received = self.received
        # The usual case, without copying the rest.
        if len(received) <= size:
            self.received = bytearray()
            return bytes(received)
        data = bytes(received[:size])
        del received[:size]
        return data

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Add output for :meth:`flush` to send. Larger amounts are flushed immediately.

        Raises:
            BrokenPipeError: The client receives a streamed response too slowly.
        """
        if self.unsent_bytes > MAX_UNSENT_BYTES:
            self.set_deadline(PATIENCE_SECONDS)
            while self.unsent_bytes > MAX_UNSENT_BYTES:
                try:
                    self._wait(select.POLLOUT)
                except TimeoutError as error:
                    raise BrokenPipeError(errno.EPIPE, "the client receives too slowly") from error
                self.flush()
        # A view, so that sending a part of it does not copy the rest.
        self.unsent.append(memoryview(data))
        self.unsent_bytes += len(data)
        if self.unsent_bytes > PIECE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send as much output as the kernel accepts without waiting."""
        unsent = self.unsent
        while unsent:
            try:
                # One system call sends many pieces, since a response's head and body are separate pieces.
                count = self.sendmsg(list(islice(unsent, MAX_PIECES)))
            except BlockingIOError:
                return
            self._progress(count)
            self.unsent_bytes -= count
            while unsent and count >= len(unsent[0]):
                count -= len(unsent.popleft())
            if count:
                unsent[0] = unsent[0][count:]

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        """Send part of a file as :meth:`sendall` does."""
        file.seek(offset)
        data = file.read(-1 if count is None else count)
        self.sendall(data)
        return len(data)

    def close(self) -> None:
        """Shut the connection down. The event loop may still watch the descriptor, and closes it later."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close the descriptor."""
        super().close()

    def _wait(self, event: int) -> None:
        seconds = self.deadline - time.monotonic()
        if self._timeout is not None:
            seconds = min(seconds, self._timeout)
        poll = select.poll()
        poll.register(self, event)
        if seconds <= 0 or not poll.poll(seconds * 1000):
            raise TimeoutError(errno.ETIMEDOUT, "the client is too slow")


class Connection(TConn):  # type: ignore[misc]  # gunicorn has no types.
    """A client's connection and the state of its next request.

    Attributes:
        events: Events that the poller watches.
        on_event: The event loop's handler for these events; ``None`` while a thread handles the request.
        on_deadline: The event loop's handler for the socket's deadline.
        is_idle: Whether no part of a request has arrived.
        is_kept: Whether the connection stays open after the response that is being sent.
    """

    sock: Socket

    def __init__(self, cfg: Any, sock: Socket, client: Any, server: Any):
        super().__init__(cfg, sock, client, server)
        self.data_ready = True
        self.events = 0
        self.on_event: Callable[[Connection], None] | None = None
        self.on_deadline: Callable[[Connection], None]
        self.is_idle = True
        self.is_kept = False
        self._start_request()

    def _start_request(self) -> None:
        self._searched = 0
        self._body_at = 0
        self._length: int | None = 0

    def start_next_request(self) -> None:
        """Prepare for the next request, which gunicorn may have read together with the last one."""
        self.sock.received[:0] = self.parser.unreader.take_buffered()
        self._start_request()

    @property
    def has_head(self) -> bool:
        """Whether the whole head has arrived."""
        return self._body_at > 0

    @property
    def is_whole(self) -> bool:
        """Whether all the input that gunicorn needs for the request has arrived."""
        return self.sock.ended or (self._length is not None and len(self.sock.received) >= self._body_at + self._length)

    def is_ready(self) -> bool:
        """Whether a thread may get the request: its head and its body, or the beginning of a large body, have arrived.

        A request with invalid line ends or a malformed length is also ready, since gunicorn rejects it.
        """
        received = self.sock.received
        if not self._body_at:
            end = received.find(b"\r\n\r\n", self._searched)
            if end < 0:
                fresh = max(0, self._searched - 1)
                # The four-byte end of the head may be split between two reads, so search the last three bytes again.
                self._searched = max(0, len(received) - 3)
                return received.count(b"\n", fresh) != received.count(b"\r\n", fresh)
            self._body_at = end + 4
            self._read_framing()
        if self.sock.ended:
            return True
        if self._length is not None:
            return len(received) >= self._body_at + min(self._length, SMALL_BODY_BYTES)
        return len(received) >= self._body_at + SMALL_BODY_BYTES or self._may_end_here(received)

    def _may_end_here(self, received: bytearray) -> bool:
        """Whether the chunks may be complete. If these bytes are part of the data, the thread waits for the rest."""
        begin = self._body_at - 2  # The line break before the first chunk.
        return received.endswith(b"\r\n\r\n", self._body_at) or received.find(b"\r\n0\r\n\r\n", begin) >= 0

    def _read_framing(self) -> None:
        """Determine the length of the body, and send "100 Continue" to a client that expects it."""
        received = self.sock.received
        expects = False
        for name, value in _FRAMING.findall(received, 0, self._body_at):
            initial = name[:1].lower()
            if initial == b"t":
                self._length = None
            elif initial == b"e":
                expects = True
            elif self._length is not None:
                # gunicorn rejects malformed lengths, so there is no body to wait for.
                self._length = int(value) if value.isdigit() and len(value) < 19 else 0
        if expects and self._length != 0 and received.find(b" HTTP/1.1\r\n", 0, received.find(b"\n") + 1) > 0:
            # gunicorn would send it only once a thread has the request. Removing the header prevents a second one.
            head, count = _EXPECTS.subn(b"", received[: self._body_at - 2])
            if count:
                received[: self._body_at - 2] = head
                self._body_at = len(head) + 2
                self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                with suppress(OSError):  # The next read reports the error, too.
                    self.sock.flush()


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
