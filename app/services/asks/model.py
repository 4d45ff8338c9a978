"""A client of a language model with OpenAI's API for chats, whose response it reads as a stream."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import requests
from prometheus_client import Counter, Histogram
from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError, ProtocolError

from app.logs import redact_configured
from app.services.model_server import BearerKey, root_cause
from backends.servers.waiting import waiting

Message = Mapping[str, str]
"""A message of a chat: its ``role`` and its ``content``."""

FIRST_TEXT_SHARE = 0.5
"""Share of the time for an answer after which its first words must have arrived."""
MAX_STREAM_BYTES = 2_097_152
MAX_ANSWER_LENGTH = 8_000
"""Maximum length of an answer in characters. A model that writes more does not stop, and fails."""
MAX_THREADS = 16
"""Maximum number of threads that wait for the model. A thread outlives its answer if a DNS lookup hangs."""
WAITING_SECONDS = 1.0
"""Seconds without text after which an empty piece lets the reader of an answer check whether it is still wanted."""
CHECK_SECONDS = 20.0
"""Seconds that a check of the model may take."""
MAX_RETRY_SECONDS = 60
RETRY_SECONDS = 5
_DONE = b"[DONE]"
_REASONS = {
    401: " (it rejects LLM_KEY)",
    403: " (LLM_KEY may not use the model)",
    404: " (it has no model LLM_MODEL, or LLM_URL has a wrong path)",
    429: " (too many questions, or no credit)",
}
"""What a status means for the operator."""

MODEL_SECONDS = Histogram(
    "ask_model_seconds",
    "Seconds until the language model has written an answer.",
    buckets=(0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120),
)
MODEL_FAILURES = Counter("ask_model_failures_total", "Answers that the language model did not complete.")


class ModelUnavailable(Exception):
    """The language model is unavailable, too slow, or does not respond in OpenAI's format.

    The message is for the operator.

    Attributes:
        retry_after: Seconds after which a retry makes sense.
        has_begun: Whether the model had written something, for which its server may charge.
    """

    def __init__(self, message: str, retry_after: int = RETRY_SECONDS):
        super().__init__(message)
        self.retry_after = retry_after
        self.has_begun = False


class LanguageModel:
    """A language model on a server.

    Args:
        url: Base URL of the API, such as ``https://api.openai.com/v1``.
        name: Name of the model on the server.
        key: Bearer token; empty for none.
        timeout_seconds: Seconds in which an answer must be complete. Its first words must arrive in half of them.
    """

    def __init__(self, url: str, name: str, key: str, timeout_seconds: float):
        self.name = name
        self.host: Final = urlsplit(url).netloc
        self.timeout_seconds = timeout_seconds
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._key = key
        self._free_threads = threading.BoundedSemaphore(MAX_THREADS)

    def check(self) -> str:
        """Ask one short question, and return the answer. Takes at most :data:`CHECK_SECONDS`.

        The first words may arrive in all of that time, because some servers load a model with its first question.

        Raises:
            ModelUnavailable: The model does not answer.
        """
        seconds = min(CHECK_SECONDS, self.timeout_seconds)
        question = {"role": "user", "content": "Reply with the word yes."}
        return "".join(self._write([question], seconds, seconds)).strip()

    def write(self, messages: Sequence[Message]) -> Generator[str]:
        """Yield the pieces of the model's answer to a chat, as they arrive, and ``""`` each second without text.

        Closing the iterator closes the connection to the model, whatever it is waiting for.

        Raises:
            ModelUnavailable: The answer is incomplete.
        """
        began = time.monotonic()
        try:
            yield from self._write(messages, self.timeout_seconds, self.timeout_seconds * FIRST_TEXT_SHARE)
        except ModelUnavailable:
            MODEL_FAILURES.inc()
            raise
        MODEL_SECONDS.observe(time.monotonic() - began)

    def _write(self, messages: Sequence[Message], timeout_seconds: float, first_seconds: float) -> Generator[str]:
        began = time.monotonic()
        # Neither a maximum number of tokens nor a temperature, because some models reject them.
        body = orjson.dumps({"model": self.name, "messages": list(messages), "stream": True})
        pieces: SimpleQueue[str | Exception | None] = SimpleQueue()
        request = _Request()
        # A thread, because the requests library has no timeout for DNS lookups or for responses that arrive byte by
        # byte. A daemon, because a DNS lookup that hangs must not keep a process from ending.
        if not self._free_threads.acquire(blocking=False):
            raise ModelUnavailable(f"{MAX_THREADS} connections to {self.host} hang")
        threading.Thread(target=self._read, args=(body, pieces, request), name="language-model", daemon=True).start()
        deadline = began + timeout_seconds
        length = 0
        try:
            while True:
                until = deadline if length else began + first_seconds
                remaining = until - time.monotonic()
                try:
                    with waiting():
                        piece = pieces.get(timeout=max(0.0, min(remaining, WAITING_SECONDS)))
                except Empty:
                    if remaining <= WAITING_SECONDS:
                        seconds = timeout_seconds if length else first_seconds
                        what = "did not complete its answer" if length else "wrote nothing"
                        raise ModelUnavailable(f"{self.host} {what} within {seconds:g} seconds") from None
                    yield ""
                    continue
                if piece is None:
                    return
                if isinstance(piece, Exception):
                    raise piece
                length += len(piece)
                if length > MAX_ANSWER_LENGTH or time.monotonic() > deadline:
                    raise ModelUnavailable(f"the answer of {self.host} is too long or too slow")
                yield piece
        except ModelUnavailable as error:
            error.has_begun = length > 0
            raise
        finally:
            # Also if the visitor disconnects: closing the connection ends the work of most servers.
            request.cancel()

    def _read(self, body: bytes, pieces: SimpleQueue[str | Exception | None], request: _Request) -> None:
        """Put the pieces of the answer into the queue, and ``None`` or the failure after them."""
        try:
            with (
                self._open_session(request) as session,
                # A redirect would send the key to another host.
                session.post(
                    self._url, data=body, timeout=self.timeout_seconds, allow_redirects=False, stream=True
                ) as response,
            ):
                self._check(response)
                for piece in _read_pieces(_events(self._chunks(response)), self.host):
                    pieces.put(piece)
            pieces.put(None)
        except ProtocolError:
            pieces.put(ModelUnavailable(f"{self.host} cut the connection"))
        except (requests.RequestException, HTTPError, OSError) as error:
            pieces.put(ModelUnavailable(f"{self.host} does not respond: {root_cause(error)}"))
        except Exception as error:  # noqa: BLE001 - raised by the thread that reads the pieces
            pieces.put(error)
        finally:
            self._free_threads.release()

    def _open_session(self, request: _Request) -> requests.Session:
        # A session for each answer: a kept connection that the server has closed meanwhile would fail an answer.
        session = requests.Session()
        session.auth = BearerKey(self._key)
        session.headers.update(
            {"Accept": "text/event-stream", "Accept-Encoding": "identity", "Content-Type": "application/json"}
        )
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Adapter(request))
        return session

    def _check(self, response: requests.Response) -> None:
        status, content_type = response.status_code, response.headers.get("Content-Type", "")
        if status != 200:
            raise ModelUnavailable(
                f"{self.host} responds with status {status}{_REASONS.get(status, '')}",
                _retry_seconds(response.headers.get("Retry-After", "")),
            )
        if content_type.partition(";")[0].strip().lower() != "text/event-stream":
            # Such as an error inside a 200, or the page of a proxy. Redacted before it is cut, which would split a key.
            raise ModelUnavailable(
                f"{self.host} responds with {redact_configured(content_type)[:80] or 'no type'} instead of a stream"
            )
        # Read as text, it would seem to end too early.
        if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise ModelUnavailable(f"{self.host} compresses its stream, although the request does not accept that")

    def _chunks(self, response: requests.Response) -> Iterator[bytes]:
        size = 0
        # ``read1`` returns what has arrived, so that the first words are not held back.
        while chunk := response.raw.read1(65_536):
            size += len(chunk)
            if size > MAX_STREAM_BYTES:
                raise ModelUnavailable(f"the stream of {self.host} is too long")
            yield chunk


class _Request:
    """A request that another thread can cancel while its own thread connects, sends, or receives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_canceled = False

    def use(self, connected: socket.socket) -> None:
        """Set the request's socket, when it has connected."""
        with self._lock:
            self._socket = connected
            self._shut_down()

    def cancel(self) -> None:
        """End whatever the request waits for, without waiting. May be called after its end."""
        with self._lock:
            self._is_canceled = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self._is_canceled and self._socket is not None:
            # The plain socket's method, because TLS must not be ended while another thread receives.
            with suppress(OSError):  # The connection has ended.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Adapter(HTTPAdapter):
    """Connects as the requests library does, and sets the sockets of a request."""

    def __init__(self, request: _Request):
        super().__init__()
        self._request = request

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        pool = super().get_connection_with_tls_context(*args, **kwargs)
        used_by = self._request.use

        class Connection(pool.ConnectionCls):  # type: ignore[name-defined, misc]
            def connect(self) -> None:
                super().connect()
                # TLS to a proxy that forwards TLS is not a socket, but contains one.
                connected: Any = self.sock
                used_by(getattr(connected, "socket", connected))

        pool.ConnectionCls = Connection
        return pool


def _retry_seconds(text: str) -> int:
    """``"7" -> 7``; another form of the header, such as a date, has the default."""
    return max(1, min(int(text), MAX_RETRY_SECONDS)) if text.isascii() and text.isdigit() else RETRY_SECONDS


def _events(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of each server-sent event: ``b"data: a\\n\\ndata: b\\n\\n" -> b"a", b"b"``."""
    pending = b""
    data: list[bytes] = []
    for chunk in chunks:
        # Lines may also end with CRLF. Only the end of the buffer may have half of it.
        *lines, pending = (pending + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data = []


def _read_pieces(events: Iterable[bytes], host: str) -> Iterator[str]:
    """Yield the text of each event until the stream says that the answer is complete.

    Raises:
        ModelUnavailable: An event is malformed or an error, or the stream ends too early.
    """
    is_finished = False
    for event in events:
        if event == _DONE:
            return
        try:
            text, is_last = _read_event(orjson.loads(event))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ModelUnavailable(f"{host} did not respond in OpenAI's format: {error}") from error
        is_finished = is_finished or is_last
        if text:
            yield text
    if not is_finished:
        raise ModelUnavailable(f"the stream of {host} ended before the answer was complete")


def _read_event(event: Any) -> tuple[str, bool]:
    """Return the text of an event, and whether it is the last one with text.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: The event is an error, or malformed.
    """
    if event.get("error"):
        raise ValueError("it sent an error")
    if not event["choices"]:  # Such as an event with the number of tokens.
        return "", False
    choice = event["choices"][0]
    text = (choice.get("delta") or {}).get("content") or ""
    if not isinstance(text, str):
        raise TypeError("its text is not a string")
    # Also checks that the text has no lone surrogate, which could not be sent on.
    text.encode()
    return text, bool(choice.get("finish_reason"))
