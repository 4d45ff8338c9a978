"""A client of a language model with OpenAI's API for chats, whose response it reads as a stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import requests
from prometheus_client import Counter, Histogram
from urllib3.exceptions import HTTPError

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
"""Maximum number of threads that wait for the model. A thread outlives its answer if the server hangs."""
CHECK_SECONDS = 20.0
"""Seconds that a check of the model may take."""
MAX_RETRY_SECONDS = 60
RETRY_SECONDS = 5
_DONE = b"[DONE]"

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
    """

    def __init__(self, message: str, retry_after: int = RETRY_SECONDS):
        super().__init__(message)
        self.retry_after = retry_after


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
        self._session = requests.Session()
        self._session.auth = BearerKey(key)
        self._session.headers.update(
            {"Accept": "text/event-stream", "Accept-Encoding": "identity", "Content-Type": "application/json"}
        )
        # The requests library has no timeout for DNS lookups or for responses that arrive byte by byte.
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="language-model")

    def check(self) -> str:
        """Ask one short question, and return the answer. Takes at most :data:`CHECK_SECONDS`.

        Raises:
            ModelUnavailable: The model does not answer.
        """
        timeout_seconds = min(CHECK_SECONDS, self.timeout_seconds)
        return "".join(self._write([{"role": "user", "content": "Reply with the word yes."}], timeout_seconds)).strip()

    def write(self, messages: Sequence[Message]) -> Iterator[str]:
        """Yield the pieces of the model's answer to a chat, as they arrive.

        Raises:
            ModelUnavailable: The answer is incomplete.
        """
        began = time.monotonic()
        try:
            yield from self._write(messages, self.timeout_seconds)
        except ModelUnavailable:
            MODEL_FAILURES.inc()
            raise
        MODEL_SECONDS.observe(time.monotonic() - began)

    def close(self) -> None:
        """Start no more requests, and close the connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._session.close()

    def _write(self, messages: Sequence[Message], timeout_seconds: float) -> Iterator[str]:
        began = time.monotonic()
        # Neither a maximum number of tokens nor a temperature, because some models reject them.
        body = orjson.dumps({"model": self.name, "messages": list(messages), "stream": True})
        pieces: SimpleQueue[str | ModelUnavailable | None] = SimpleQueue()
        stopping = threading.Event()
        self._threads.submit(self._read, body, pieces, stopping)
        deadline = began + timeout_seconds
        length = 0
        try:
            while True:
                until = deadline if length else began + timeout_seconds * FIRST_TEXT_SHARE
                try:
                    with waiting():
                        piece = pieces.get(timeout=max(0.0, until - time.monotonic()))
                except Empty:
                    raise ModelUnavailable(f"{self.host} does not respond in time") from None
                if piece is None:
                    return
                if isinstance(piece, ModelUnavailable):
                    raise piece
                length += len(piece)
                if length > MAX_ANSWER_LENGTH or time.monotonic() > deadline:
                    raise ModelUnavailable(f"the answer of {self.host} is too long or too slow")
                yield piece
        finally:
            # Also if the visitor disconnects: closing the connection ends the work of most servers.
            stopping.set()

    def _read(self, body: bytes, pieces: SimpleQueue[str | ModelUnavailable | None], stopping: threading.Event) -> None:
        """Put the pieces of the answer into the queue, and ``None`` or the failure after them."""
        try:
            # A redirect would send the key to another host.
            with self._session.post(
                self._url, data=body, timeout=self.timeout_seconds, allow_redirects=False, stream=True
            ) as response:
                self._check(response)
                for piece in _read_pieces(_events(self._chunks(response, stopping)), self.host):
                    pieces.put(piece)
            pieces.put(None)
        except (requests.RequestException, HTTPError, OSError) as error:
            pieces.put(ModelUnavailable(f"{self.host} does not respond: {root_cause(error)}"))
        except ModelUnavailable as error:
            pieces.put(error)

    def _check(self, response: requests.Response) -> None:
        status, content_type = response.status_code, response.headers.get("Content-Type", "")
        if status != 200:
            raise ModelUnavailable(
                f"{self.host} responds with status {status}", _retry_seconds(response.headers.get("Retry-After", ""))
            )
        if content_type.partition(";")[0].strip().lower() != "text/event-stream":
            # Such as an error inside a 200, or the page of a proxy.
            raise ModelUnavailable(f"{self.host} responds with {content_type[:80] or 'no type'} instead of a stream")

    def _chunks(self, response: requests.Response, stopping: threading.Event) -> Iterator[bytes]:
        size = 0
        # ``read1`` returns what has arrived, so that the first words are not held back.
        while not stopping.is_set() and (chunk := response.raw.read1(65_536)):
            size += len(chunk)
            if size > MAX_STREAM_BYTES:
                raise ModelUnavailable(f"the stream of {self.host} is too long")
            yield chunk


def _retry_seconds(text: str) -> int:
    """``"7" -> 7``; another form of the header, such as a date, has the default."""
    return max(1, min(int(text), MAX_RETRY_SECONDS)) if text.isascii() and text.isdigit() else RETRY_SECONDS


def _events(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of each server-sent event: ``b"data: a\\n\\ndata: b\\n\\n" -> b"a", b"b"``."""
    pending = b""
    data: list[bytes] = []
    for chunk in chunks:
        # Lines may also end with \\r\\n. Only the end of the buffer may have half of it.
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
