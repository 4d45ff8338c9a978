"""gunicorn's worker as shipped: a thread has a request when it is there, and is free when its answer is made.

gunicorn's own threads wait for clients: for the rest of a head, for a body, for an answer to be taken, and its event
loop waits for clients to close. A few dozen slow clients therefore stop it. Here the event loop does the waiting,
for heads, for bodies of up to ``SMALL_BODY`` and for answers; larger bodies are read by at most half of the threads,
the next in line waiting in the loop. Whoever makes too little progress is cut.
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
"""How long a client may send or take nothing in the middle of a request or answer."""
LEAST_BYTES_A_SECOND = 2048
"""What it must send or take on average after that."""
TURN_SECONDS = 30.0
"""How long a large body waits for its turn."""
LINGER_SECONDS = 2.0
"""How long a closed connection is read, so that the client gets the answer although it still sends."""
SMALL_BODY = 65_536
"""Bytes of a body that are waited for before a thread has the request."""
LARGEST_HEAD = 65_536
PIECE = 65_536
"""Bytes that are read at a time, and that are sent as soon as they have come together."""
MOST_PIECES = 64
MOST_AHEAD = 1_048_576
"""Bytes of an answer in pieces that may wait to be sent; then the thread that makes more of it waits."""
MOST_UNSENT = 134_217_728
"""Bytes of answers that may wait to be sent in a worker; beyond, those that are taken most slowly are cut."""

_FRAMING = re.compile(rb"\r\n(content-length|transfer-encoding|expect):[ \t]*([^\r\n]*)", re.IGNORECASE)
_RESET = struct.pack("ii", 1, 0)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)


class Socket(socket.socket):
    """A client's socket: what has come and nobody has read, what is to go and is not sent.

    Either the event loop or one thread has it at a time. It never blocks in the kernel, whatever gunicorn sets.

    Attributes:
        received: Read from the client, not yet by gunicorn.
        unsent: Pieces of the answer that the client did not take yet.
        unsent_bytes: How much that is.
        ended: The client sends no more.
        may_wait: Whether :meth:`recv` waits for the client; else all of the request is in ``received``.
        deadline: When the client is cut (``time.monotonic``), if it makes no progress.
    """

    def __init__(self, accepted: socket.socket):
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
        """As if: see the class."""
        self._timeout = None

    def settimeout(self, value: float | None) -> None:
        """Seconds that :meth:`recv` waits at most, beside the client's deadline."""
        self._timeout = value

    def gettimeout(self) -> float | None:
        """The timeout, which gunicorn puts back when it has read the rest of a body."""
        return self._timeout

    def give(self, seconds: float) -> None:
        """Let the client have so many seconds from now on."""
        self.deadline = time.monotonic() + seconds

    def _progress(self, count: int) -> None:
        """Put the deadline off, never further than ``PATIENCE_SECONDS`` from now."""
        self.deadline = min(time.monotonic() + PATIENCE_SECONDS, self.deadline + count / LEAST_BYTES_A_SECOND)

    def take_in(self, size: int = PIECE) -> int:
        """Move what the client has sent to ``received``, without waiting; gives how much that was.

        Raises:
            BlockingIOError: Nothing has come.
        """
        data = super().recv(size)
        if data:
            self.received += data
            self._progress(len(data))
        else:
            self.ended = True
        return len(data)

    def discard(self) -> int:
        """Take what the client has sent for nothing; gives how much that was.

        Raises:
            BlockingIOError: Nothing has come.
        """
        return len(super().recv(PIECE))

    def recv(self, size: int, flags: int = 0) -> bytes:
        """The bytes that have come; waits for them in a thread that may.

        Raises:
            TimeoutError: The client is too slow.
        """
        while not self.received and not self.ended:
            if not self.may_wait:
                raise TimeoutError(errno.ETIMEDOUT, "the request is not what it seemed")
            if not self.deadline:
                self.give(PATIENCE_SECONDS)
            try:
                self.take_in(size)
            except BlockingIOError:
                self._wait(select.POLLIN)
        received = self.received
        if len(received) <= size:
            self.received = bytearray()
            return bytes(received)
        data = bytes(received[:size])
        del received[:size]
        return data

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Have this sent by :meth:`flush`, which is called here only when much has come together.

        Raises:
            BrokenPipeError: Of an answer in pieces the client takes too little.
        """
        if self.unsent_bytes > MOST_AHEAD:
            self.give(PATIENCE_SECONDS)
            while self.unsent_bytes > MOST_AHEAD:
                try:
                    self._wait(select.POLLOUT)
                except TimeoutError as error:
                    raise BrokenPipeError(errno.EPIPE, "the client takes too little") from error
                self.flush()
        self.unsent.append(memoryview(data))
        self.unsent_bytes += len(data)
        if self.unsent_bytes > PIECE:
            self.flush()

    def flush(self) -> None:
        """Send what the client takes at once of what is unsent."""
        unsent = self.unsent
        while unsent:
            try:
                sent = self.sendmsg(list(islice(unsent, MOST_PIECES)))
            except BlockingIOError:
                return
            self._progress(sent)
            self.unsent_bytes -= sent
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.popleft())
            if sent:
                unsent[0] = unsent[0][sent:]

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        """Send part of a file as :meth:`sendall` does."""
        file.seek(offset)
        data = file.read(-1 if count is None else count)
        self.sendall(data)
        return len(data)

    def close(self) -> None:
        """End the conversation; the event loop, which may still watch the descriptor, closes it by :meth:`release`."""
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
    """A client's connection and how much of its next request is there.

    Attributes:
        events: What the poller looks for.
        on_event: What the event loop does when that happens; ``None`` while a thread has the request.
        on_deadline: What it does at the socket's deadline.
        is_idle: Nothing of a request has come.
        is_kept: Another request may follow the answer that is being sent.
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

    def begin_anew(self) -> None:
        """Begin with the next request, which gunicorn may have read together with the last one."""
        self.sock.received[:0] = self.parser.unreader.take_buffered()
        self._start_request()

    @property
    def has_head(self) -> bool:
        """Tell whether all of the head has come."""
        return self._body_at > 0

    @property
    def is_whole(self) -> bool:
        """Tell whether gunicorn will need no more of the client than has come."""
        return self.sock.ended or (self._length is not None and len(self.sock.received) >= self._body_at + self._length)

    def is_ready(self) -> bool:
        """Tell whether a thread may have the request: its head and its (beginning of a) body have come.

        Also if waiting is in vain: gunicorn refuses lines that end otherwise than HTTP's, and malformed lengths.
        """
        received = self.sock.received
        if not self._body_at:
            end = received.find(b"\r\n\r\n", self._searched)
            if end < 0:
                fresh = max(0, self._searched - 1)
                self._searched = max(0, len(received) - 3)
                return received.count(b"\n", fresh) != received.count(b"\r\n", fresh)
            self._body_at = end + 4
            self._read_framing()
        if self.sock.ended:
            return True
        if self._length is not None:
            return len(received) >= self._body_at + min(self._length, SMALL_BODY)
        return len(received) >= self._body_at + SMALL_BODY or self._may_end_here(received)

    def _may_end_here(self, received: bytearray) -> bool:
        """Tell whether the chunks may be complete. Their data can look so, too; the thread then waits for the rest."""
        begin = self._body_at - 2  # The line break before the first chunk.
        return received.endswith(b"\r\n\r\n", self._body_at) or received.find(b"\r\n0\r\n\r\n", begin) >= 0

    def _read_framing(self) -> None:
        """Find out how much body there will be, and tell a client that waits for it to go on."""
        received = self.sock.received
        expects = False
        for name, value in _FRAMING.findall(received, 0, self._body_at):
            initial = name[:1].lower()
            if initial == b"t":
                self._length = None
            elif initial == b"e":
                expects = True
            elif self._length is not None:
                self._length = int(value) if value.isdigit() and len(value) < 19 else 0
        if expects and self._length != 0 and received.find(b" HTTP/1.1\r\n", 0, received.find(b"\n") + 1) > 0:
            # gunicorn would tell it only once a thread has the request. It need not know that it was asked.
            head, count = _EXPECTS.subn(b"", received[: self._body_at - 2])
            if count:
                received[: self._body_at - 2] = head
                self._body_at = len(head) + 2
                self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                with suppress(OSError):  # Reading tells it, too.
                    self.sock.flush()


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types.
    """A worker process with one event loop and ``threads`` threads."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._watched: set[Connection] = set()
        """Connections that the event loop waits for."""
        self._in_line: deque[Connection] = deque()
        """Those of them that wait until a thread may read their body."""
        self._reading = 0
        """Threads that may read bodies from clients now."""
        self._most_reading = max(1, self.cfg.threads // 2)
        self._next_look = 0.0
        self._is_ending = False

    def get_thread_pool(self) -> ThreadPool:
        """The threads that answer requests."""
        return ThreadPool(self.cfg.threads, "request")

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Refuse TLS, which is a proxy's.

        Raises:
            RuntimeError: A certificate is set.
        """
        if cfg.is_ssl:
            raise RuntimeError("This worker speaks no TLS: let a proxy in front of it do so.")

    def accept(self, listener: socket.socket) -> None:
        """Take a new connection."""
        try:
            accepted, client = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._make_room()
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        self.nr_conns += 1
        conn = Connection(self.cfg, Socket(accepted), client, listener.getsockname())
        conn.sock.give(self.cfg.keepalive)
        self._read(conn)

    def handle(self, conn: Connection) -> bool:
        """Answer a request, in a thread."""
        is_kept = bool(super().handle(conn))
        with suppress(OSError):  # The event loop tries again, and ends it.
            conn.sock.flush()
        return is_kept

    def finish_request(self, conn: Connection, fs: Future[bool]) -> None:
        """A thread is done with a request."""
        if conn.sock.may_wait:
            self._reading -= 1
            if self._in_line:
                following = self._in_line.popleft()
                self._unwatch(following)
                self._hand_over(following)
        conn.is_kept = not fs.cancelled() and fs.exception() is None and fs.result()
        conn.sock.give(PATIENCE_SECONDS)
        self._send(conn)

    def murder_pending(self) -> None:
        """Once a second, and when there are too many connections: cut those that are too slow."""
        now = time.monotonic()
        if not self.alive and not self._is_ending:
            # A client may be sending its next request: it is answered, and told that it is the last one.
            self._is_ending = True
            for conn in self._watched:
                if conn.is_idle:
                    conn.sock.deadline = min(conn.sock.deadline, now + LINGER_SECONDS)
        if now >= self._next_look:
            self._next_look = now + 1.0
            for conn in [conn for conn in self._watched if conn.sock.deadline <= now]:
                conn.on_deadline(conn)
        if self.nr_conns >= self.worker_connections:
            self._make_room()

    def _make_room(self) -> None:
        """Cut one in twenty of the connections that are waited for: those nearest to their deadlines."""
        count = len(self._watched) // 20 + 1
        for conn in heapq.nsmallest(count, self._watched, key=lambda conn: conn.sock.deadline):
            self._abort(conn)

    # What the event loop waits for.

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
        """Wait no more. The poller goes on, since most clients do nothing until they are answered."""
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
        if conn in self._in_line:
            self._in_line.remove(conn)
        self._unwatch(conn)
        self._forget(conn)
        self.nr_conns -= 1
        conn.sock.release()

    def _abort(self, conn: Connection) -> None:
        """Close at once; the kernel would try for minutes to send the rest."""
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._drop(conn)

    # A request comes.

    def _await_request(self, conn: Connection) -> None:
        conn.is_idle = True
        conn.sock.give(self.cfg.keepalive if self.alive else LINGER_SECONDS)
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
            conn.sock.give(PATIENCE_SECONDS)
        self._look(conn)

    def _look(self, conn: Connection) -> None:
        """Something of a request is there, or the client sends no more."""
        if conn.is_ready():
            self._unwatch(conn)
            self._hand_over(conn)
        elif conn.sock.ended:
            self._drop(conn)
        elif not conn.has_head and len(conn.sock.received) > LARGEST_HEAD:
            self._unwatch(conn)
            util.write_error(conn.sock, 431, "Request Header Fields Too Large", "The request's head is too large.")
            self._send(conn)
        else:
            self._watch(conn, selectors.EVENT_READ, self._read, self._refuse_slow)

    def _hand_over(self, conn: Connection) -> None:
        """Give the request to a thread, or let it wait until a thread may read its body."""
        conn.sock.may_wait = not conn.is_whole
        if not conn.sock.may_wait:
            self.enqueue_req(conn)
        elif self._reading < self._most_reading:
            self._reading += 1
            conn.sock.deadline = 0.0  # It begins when the thread does.
            self.enqueue_req(conn)
        else:
            conn.sock.may_wait = False
            conn.sock.give(TURN_SECONDS)
            conn.on_deadline = self._refuse_busy
            self._in_line.append(conn)
            self._watched.add(conn)

    def _refuse_slow(self, conn: Connection) -> None:
        self._refuse(conn, ApiError(ErrorCode.REQUEST_TIMEOUT, "The request was sent too slowly."))

    def _refuse_busy(self, conn: Connection) -> None:
        self._refuse(
            conn, ApiError(ErrorCode.SERVER_BUSY, "Too many large requests at once; try again.", retry_after=5)
        )

    def _refuse(self, conn: Connection, error: ApiError) -> None:
        """Answer in the application's place."""
        if conn in self._in_line:
            self._in_line.remove(conn)
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

    # An answer goes.

    def _send(self, conn: Connection) -> None:
        """Send the rest of the answer, then wait for the next request or end the connection."""
        try:
            conn.sock.flush()
        except OSError:
            self._drop(conn)
            return
        if conn.sock.unsent:
            self._watch(conn, selectors.EVENT_WRITE, self._write, self._abort)
            self._bound_unsent()
        elif not conn.is_kept:
            self._linger(conn)
        else:
            conn.begin_anew()
            if conn.sock.received:
                self._look(conn)
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
            conn.sock.give(PATIENCE_SECONDS)
            self._send(conn)

    def _bound_unsent(self) -> None:
        slow = [conn for conn in self._watched if conn.sock.unsent]
        total = sum(conn.sock.unsent_bytes for conn in slow)
        for conn in sorted(slow, key=lambda conn: conn.sock.deadline) if total > MOST_UNSENT else ():
            total -= conn.sock.unsent_bytes
            self._abort(conn)
            if total <= MOST_UNSENT:
                break

    def _linger(self, conn: Connection) -> None:
        """Close the connection in the way in which a client that still sends gets its answer."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(conn)
            return
        conn.sock.give(LINGER_SECONDS)
        self._watch(conn, selectors.EVENT_READ, self._discard, self._drop)

    def _discard(self, conn: Connection) -> None:
        try:
            if conn.sock.discard() == 0:
                self._drop(conn)
        except BlockingIOError:
            return
        except OSError:
            self._drop(conn)
