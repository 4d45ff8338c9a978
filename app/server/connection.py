"""Connections of clients: their sockets with buffers, and the request that is arriving."""

from __future__ import annotations

import errno
import re
import select
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from gunicorn.workers.gthread import TConn

PATIENCE_SECONDS = 10.0
"""Seconds that a client may pause within a request or a response."""
MIN_BYTES_PER_SECOND = 2048
"""Minimum average rate at which a client must send or receive after ``PATIENCE_SECONDS``."""
SMALL_BODY_BYTES = 65_536
"""Bodies of up to this many bytes are received completely before a thread gets the request."""
PIECE_BYTES = 65_536
"""Maximum bytes per read, and number of collected output bytes that triggers sending."""
MAX_PIECES = 64
MAX_UNSENT_BYTES = 1_048_576
"""Number of unsent bytes of a streamed response above which its thread waits for the client."""

_FRAMING = re.compile(rb"\r\n(content-length|transfer-encoding|expect):[ \t]*([^\r\n]*)", re.IGNORECASE)
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
        """Extend the deadline after ``count`` bytes, but not beyond ``PATIENCE_SECONDS`` from now."""
        # Progress earns time. A client that sends a byte now and then therefore runs out of it.
        self.deadline = min(time.monotonic() + PATIENCE_SECONDS, self.deadline + count / MIN_BYTES_PER_SECOND)

    def receive_available(self, size: int = PIECE_BYTES) -> int:
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
                # Only a request that contradicts its own head gets here: the event loop has received everything that
                # was announced.
                raise TimeoutError(errno.ETIMEDOUT, "the request is longer than its head announced")
            if not self.deadline:
                self.set_deadline(PATIENCE_SECONDS)
            try:
                self.receive_available(size)
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

    def is_disconnected(self) -> bool:
        """Whether the client has closed its side, or the connection has failed."""
        poll = select.poll()
        # Without reading, since the input may be the next request.
        poll.register(self, select.POLLRDHUP)
        return bool(poll.poll(0))

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
        # The client may have disconnected already.
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close the descriptor."""
        super().close()

    def _wait(self, event: int) -> None:
        seconds = self.deadline - time.monotonic()
        if self._timeout is not None:
            seconds = min(seconds, self._timeout)
        # Not ``select.select``, which fails for descriptors above 1,023.
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
        # A client may send its next request before the response, and gunicorn's parser reads in blocks.
        self.sock.received[:0] = self.parser.unreader.take_buffered()
        self._start_request()

    def register(self, poller: selectors.BaseSelector, event: int) -> None:
        """Have the poller watch for an event."""
        if not self.events:
            poller.register(self.sock, event, partial(self._happen, poller))
        elif self.events != event:
            poller.modify(self.sock, event, partial(self._happen, poller))
        self.events = event

    def unregister(self, poller: selectors.BaseSelector) -> None:
        """End watching."""
        if self.events:
            poller.unregister(self.sock)
            self.events = 0

    def _happen(self, poller: selectors.BaseSelector, _fileobj: Any) -> None:
        if self.on_event is not None:
            self.on_event(self)
        else:
            self.unregister(poller)

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
                start = max(0, self._searched - 1)
                # The four-byte end of the head may be split between two reads, so search the last three bytes again.
                self._searched = max(0, len(received) - 3)
                return received.count(b"\n", start) != received.count(b"\r\n", start)
            self._body_at = end + 4
            self._read_framing()
        if self.sock.ended:
            return True
        if self._length is not None:
            return len(received) >= self._body_at + min(self._length, SMALL_BODY_BYTES)
        return len(received) >= self._body_at + SMALL_BODY_BYTES or self._may_end_here(received)

    def _may_end_here(self, received: bytearray) -> bool:
        """Whether the chunks may be complete. If the end marker is part of the data, the thread waits for the rest."""
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
