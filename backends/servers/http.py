"""HTTP to a search server: one pool per process, hard time budgets, one kind of failure.

``requests`` is used because its connections can be pooled, shared by threads and intercepted in tests. What it
leaves open is closed here: no proxies or netrc of the environment, no redirects (they would carry our key to another
host), no cookies, no retries behind our back, and a budget for the whole answer instead of one per read. Connecting,
sending the body, and the answer are bounded each.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from ssl import SSLCertVerificationError
from typing import Any

import orjson
import requests
from urllib3.exceptions import HTTPError as Urllib3Error
from urllib3.exceptions import NameResolutionError, NewConnectionError

from backends.errors import ReplyTooLarge, UnreadableReply
from backends.servers.sending import Body, BodyNotTaken, SendingAdapter
from backends.servers.server_url import ServerUrl

_POOL_SIZE = 32
_READ_BYTES = 1 << 16
MAX_REPLY_BYTES = 256 << 20
"""What is read of an answer: a page of the largest documents, which servers may send twice, and escaped."""


class Budget:
    """Time left for one piece of work. It stands still while a body is sent, which has a bound of its own."""

    __slots__ = ("_deadline",)

    def __init__(self, seconds: float):
        self._deadline = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self._deadline - time.monotonic())

    def extend(self, seconds: float) -> None:
        """Let so much time more be left."""
        self._deadline += seconds


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a server."""

    status: int
    body: bytes = field(repr=False)
    retry_after: str = ""

    def json(self) -> Any:
        """The body, decoded.

        Raises:
            UnreadableReply: It is not JSON.
        """
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise UnreadableReply from error


class EngineAnswer(Exception):
    """An engine's own refusal, kept as the cause of ours. For logs of operators, never for callers."""

    def __init__(self, status: int, text: str):
        super().__init__(f"{status}: {text[:500]}")
        self.status = status

    @classmethod
    def of(cls, answer: Answer) -> EngineAnswer:
        """The cause of what an answer makes us raise."""
        return cls(answer.status, answer.body.decode(errors="replace"))


class TransportFailure(Exception):
    """No answer came.

    Attributes:
        kind: ``refused`` (nothing was sent), ``broken`` (the connection ended, or this is no HTTP) or ``timeout`` (the
            body was not taken, or no answer came, in time).
    """

    def __init__(self, kind: str, node: str, why: str = ""):
        super().__init__(f"{kind} at {node}" + (f": {why}" if why else ""))
        self.kind = kind


class HttpPool:
    """Pooled connections to the nodes of one engine; made anew in every process, shared by its threads."""

    def __init__(self, url: ServerUrl, headers: Mapping[str, str]):
        self._url = url
        self._headers = dict(headers)
        self._sessions: dict[int, requests.Session] = {}
        self._operations = threading.local()

    @property
    def timeout_seconds(self) -> float:
        """The time for one piece of work."""
        return self._url.timeout_seconds

    @contextmanager
    def operation(self) -> Iterator[None]:
        """All requests that this thread sends inside have the time of one piece of work together."""
        outer = self._budget_of_this_thread()
        self._operations.budget = outer or Budget(self.timeout_seconds)
        try:
            yield
        finally:
            self._operations.budget = outer

    def budget(self, seconds: float | None = None, shares: int = 1) -> Budget:
        """The time for a request: what is left for the operation under way, or else time of its own.

        Args:
            seconds: The most that it gets; ``None`` for the usual time.
            shares: How many times the usual time that is, outside an operation.
        """
        operation = self._budget_of_this_thread()
        if operation is not None:
            return operation if seconds is None else Budget(min(seconds, operation.remaining()))
        return Budget(self.timeout_seconds * shares if seconds is None else seconds)

    def _budget_of_this_thread(self) -> Budget | None:
        found: Budget | None = getattr(self._operations, "budget", None)
        return found

    def send(
        self,
        method: str,
        node: str,
        path: str,
        budget: Budget,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> Answer:
        """Send one request to one node and read the whole answer.

        Args:
            path: A path of ours; no caller's text is ever a part of it, nor of ``params``.
            timeout_seconds: At most this much of the budget, from which the time that sending takes is not taken.

        Raises:
            TransportFailure: No whole answer came in time.
            ReplyTooLarge: It is larger than :data:`MAX_REPLY_BYTES`.
        """
        seconds = budget.remaining() if timeout_seconds is None else min(timeout_seconds, budget.remaining())
        data = None if body is None else Body.within(self._url.send_timeout_seconds, body)
        response, deadline = self._open(method, node, path, seconds, data, content_type, params)
        if data is not None:
            budget.extend(data.spent_seconds)
        with response:
            chunks, size = [], 0
            for chunk in self._chunks(response, node, deadline):
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_REPLY_BYTES:
                    raise ReplyTooLarge
        return Answer(response.status_code, b"".join(chunks), response.headers.get("Retry-After", ""))

    def lines(
        self, node: str, path: str, idle_seconds: float, params: Mapping[str, str] | None = None
    ) -> Iterator[bytes | Answer]:
        """Read a long answer of lines as it comes; an answer other than 200 is given whole as the only item.

        Args:
            idle_seconds: Longest time without a line.

        Raises:
            TransportFailure: The answer ended early or paused too long.
        """
        response, deadline = self._open("GET", node, path, idle_seconds, None, "", params)
        with response:
            if response.status_code != 200:
                yield Answer(response.status_code, b"".join(self._chunks(response, node, deadline)))
                return
            rest = b""
            for chunk in self._chunks(response, node, None):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line for line in whole if line)
                if whole:
                    deadline = time.monotonic() + idle_seconds
                elif time.monotonic() > deadline:
                    raise TransportFailure("timeout", node)
            if rest:
                yield rest

    def close(self) -> None:
        """Close every connection; the next request opens new ones."""
        session = self._sessions.pop(os.getpid(), None)
        if session is not None:
            session.close()

    def _open(
        self,
        method: str,
        node: str,
        path: str,
        seconds: float,
        body: Body | None,
        content_type: str,
        params: Mapping[str, str] | None,
    ) -> tuple[requests.Response, float]:
        if seconds <= 0:
            raise TransportFailure("timeout", node)
        headers = {"Content-Type": content_type} if body is not None else {}
        deadline = time.monotonic() + seconds
        try:
            response = self._session_of_this_process().request(
                method,
                node + path,
                params=params,
                data=body,
                headers=headers,
                timeout=(min(self._url.connect_timeout_seconds, seconds), seconds),
                allow_redirects=False,
                stream=True,
            )
        except BodyNotTaken as error:
            raise TransportFailure("timeout", node, "it did not take the body of a request") from error
        except requests.exceptions.ConnectTimeout as error:
            raise TransportFailure("refused", node) from error
        except requests.exceptions.Timeout as error:
            raise TransportFailure("timeout", node) from error
        except requests.exceptions.RequestException as error:
            certificate = next((each for each in _causes(error) if isinstance(each, SSLCertVerificationError)), None)
            if certificate is not None:
                why = f"its certificate is refused: {certificate.verify_message.rstrip('.')}"
                raise TransportFailure("refused", node, why) from error
            raise TransportFailure("refused" if _never_connected(error) else "broken", node) from error
        except (Urllib3Error, OSError, ValueError) as error:
            raise TransportFailure("broken", node) from error
        return response, deadline + (0.0 if body is None else body.spent_seconds)

    def _chunks(self, response: requests.Response, node: str, deadline: float | None) -> Iterator[bytes]:
        try:
            while chunk := response.raw.read1(_READ_BYTES, decode_content=True):
                yield chunk
                if deadline is not None and time.monotonic() > deadline:
                    raise TransportFailure("timeout", node)
        except (Urllib3Error, requests.exceptions.RequestException, OSError, ValueError) as error:
            timed_out = "timed out" in str(error)
            raise TransportFailure("timeout" if timed_out else "broken", node) from error

    def _session_of_this_process(self) -> requests.Session:
        # No lock: one held by another thread while this process forks would stay locked in the child.
        session = self._sessions.get(os.getpid())
        return session or self._sessions.setdefault(os.getpid(), self._new_session())

    def _new_session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.headers.update({"User-Agent": "site-search-service", "Accept-Encoding": "identity", **self._headers})
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        session.verify = self._url.ca_file or True
        adapter = SendingAdapter(pool_connections=len(self._url.nodes) + 1, pool_maxsize=_POOL_SIZE, max_retries=0)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        return session


def _never_connected(error: BaseException) -> bool:
    unreachable = (ConnectionRefusedError, NewConnectionError, NameResolutionError)
    return any(isinstance(each, unreachable) for each in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error of ``requests`` and those it was made of, which are in different places."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        reason = getattr(seen, "reason", None) or (seen.args[0] if seen.args else None)
        seen = reason if isinstance(reason, BaseException) else seen.__cause__
