"""HTTP to a search server: one pool per process, strict time budgets, one kind of failure.

``requests`` is used because threads can share its pooled connections and tests can intercept them. Its open ends are
closed here: no proxies or netrc from the environment, no redirects (they would send our key to another host), no
cookies, no hidden retries, and a budget for the whole response instead of one per read. Connecting, sending the body,
and the response each have a limit. An engine that does not respond is not asked again until it responds to a probe.
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

from backends.errors import ResponseTooLarge, UnreadableResponse
from backends.servers.sending import Body, BodyNotAccepted, SendingAdapter
from backends.servers.server_url import ServerUrl
from backends.servers.silence import MAX_REQUESTS, PROBE_SECONDS, SUSPECT_SECONDS, Silence
from backends.servers.waiting import waiting

_PROBE_PATH = "/health"
"""A path to which every server responds at once, even while its searches are slow."""
_READ_BYTES = 1 << 16
MAX_RESPONSE_BYTES = 256 << 20
"""Maximum size of a response in bytes: a page of the largest documents, which servers may send twice, and escaped."""


class Budget:
    """Time left for one operation. It pauses while a body is sent, which has its own limit."""

    __slots__ = ("_deadline",)

    def __init__(self, seconds: float):
        self._deadline = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left, never below 0."""
        return max(0.0, self._deadline - time.monotonic())

    def extend(self, seconds: float) -> None:
        """Add time to the budget."""
        self._deadline += seconds


@dataclass(frozen=True, slots=True)
class Response:
    """A server's response."""

    status: int
    body: bytes = field(repr=False)
    retry_after: str = ""

    def json(self) -> Any:
        """Return the decoded body.

        Raises:
            UnreadableResponse: The body is not JSON.
        """
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise UnreadableResponse from error


class EngineError(Exception):
    """The engine's own error, as the cause of ours. For operators' logs, never for callers."""

    def __init__(self, status: int, text: str):
        super().__init__(f"{status}: {text[:500]}")
        self.status = status

    @classmethod
    def of(cls, response: Response) -> EngineError:
        """Build the error from a response with an error status."""
        return cls(response.status, response.body.decode(errors="replace"))


class TransportFailure(Exception):
    """No response arrived.

    Attributes:
        kind: ``refused`` (nothing was sent), ``broken`` (the connection ended, or it is not HTTP), or ``timeout`` (the
            body was not accepted, or no response arrived, in time).
        is_silence: Whether the caller waited in vain, instead of learning of the failure at once.
    """

    def __init__(self, kind: str, node: str, why: str = "", *, is_silence: bool = False):
        super().__init__(f"{kind} at {node}" + (f": {why}" if why else ""))
        self.kind = kind
        self.is_silence = is_silence or kind == "timeout"


class _Connections:
    """Pooled connections of one process to the nodes of an engine, and whether it responds."""

    def __init__(self, url: ServerUrl, headers: Mapping[str, str]):
        self._url = url
        self._session = self._new_session(headers)
        self._probe_seconds = min(PROBE_SECONDS, url.timeout_seconds / 2)
        self.silence = Silence(self._probe_seconds)

    def close(self) -> None:
        self._session.close()

    @contextmanager
    def request(self, budget: Budget) -> Iterator[None]:
        """Send a request in the block, and record whether the engine responds; raises if the engine is silent."""
        with waiting():
            while not self.silence.begin(budget.remaining()):
                responded = False
                try:
                    responded = self._responds()
                finally:
                    self.silence.end_probe(responded=responded)
            responded = True
            try:
                yield
            except TransportFailure as error:
                responded = not error.is_silence
                raise
            finally:
                self.silence.end(responded=responded)

    def _responds(self) -> bool:
        for node in self._url.nodes:
            budget = Budget(self._probe_seconds / len(self._url.nodes))
            try:
                self.exchange("GET", node, _PROBE_PATH, budget.remaining(), budget, None, "", None)
            except TransportFailure as error:
                if error.is_silence:
                    continue
            return True
        return False

    def exchange(
        self,
        method: str,
        node: str,
        path: str,
        seconds: float,
        budget: Budget,
        data: Body | None,
        content_type: str,
        params: Mapping[str, str] | None,
    ) -> Response:
        response, deadline = self.open(method, node, path, seconds, data, content_type, params)
        if data is not None:
            # Sending has its own limit, so it must not use up the time in which the server may work.
            budget.extend(data.spent_seconds)
        with response:
            chunks, size = [], 0
            for chunk in self.chunks(response, node, deadline):
                chunks.append(chunk)
                size += len(chunk)
                # Checked while reading, since a length in the head may be missing or wrong.
                if size > MAX_RESPONSE_BYTES:
                    raise ResponseTooLarge
        return Response(response.status_code, b"".join(chunks), response.headers.get("Retry-After", ""))

    def open(
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
        began = time.monotonic()
        try:
            response = self._session.request(
                method,
                node + path,
                params=params,
                data=body,
                headers=headers,
                timeout=(min(self._url.connect_timeout_seconds, seconds), seconds),
                allow_redirects=False,
                stream=True,
            )
        except BodyNotAccepted as error:
            raise TransportFailure("timeout", node, "it did not accept the request body") from error
        # Before ``Timeout``, its base class: here, nothing was sent, so another node may be tried.
        except requests.exceptions.ConnectTimeout as error:
            raise TransportFailure("refused", node, is_silence=True) from error
        except requests.exceptions.Timeout as error:
            raise TransportFailure("timeout", node) from error
        except requests.exceptions.RequestException as error:
            certificate = next((cause for cause in _causes(error) if isinstance(cause, SSLCertVerificationError)), None)
            if certificate is not None:
                why = f"its certificate is invalid: {certificate.verify_message.rstrip('.')}"
                raise TransportFailure("refused", node, why) from error
            kind = "refused" if _never_connected(error) else "broken"
            # Looking up a name has no time limit of its own.
            is_slow = time.monotonic() - began >= SUSPECT_SECONDS
            raise TransportFailure(kind, node, is_silence=is_slow) from error
        except (Urllib3Error, OSError, ValueError) as error:
            raise TransportFailure("broken", node) from error
        return response, began + seconds + (0.0 if body is None else body.spent_seconds)

    def chunks(self, response: requests.Response, node: str, deadline: float | None) -> Iterator[bytes]:
        try:
            # ``read1`` returns what has arrived; ``read`` would wait for the full size, beyond the time limit.
            while chunk := response.raw.read1(_READ_BYTES, decode_content=True):
                yield chunk
                if deadline is not None and time.monotonic() > deadline:
                    raise TransportFailure("timeout", node)
        except (Urllib3Error, requests.exceptions.RequestException, OSError, ValueError) as error:
            # urllib3 wraps the socket's timeout in various exceptions, so only the text tells them apart.
            timed_out = "timed out" in str(error)
            raise TransportFailure("timeout" if timed_out else "broken", node) from error

    def _new_session(self, headers: Mapping[str, str]) -> requests.Session:
        session = requests.Session()
        # Otherwise, requests would use proxies and passwords from the environment and from ``.netrc``.
        session.trust_env = False
        session.headers.update({"User-Agent": "site-search-service", "Accept-Encoding": "identity", **headers})
        # A session would otherwise send cookies that a load balancer sets, in all threads.
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        session.verify = self._url.ca_file or True
        # No retries: whether a request may be repeated, and at which node, only the callers know.
        adapter = SendingAdapter(pool_connections=len(self._url.nodes) + 1, pool_maxsize=MAX_REQUESTS, max_retries=0)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        return session


class HttpPool:
    """Pooled connections to the nodes of one engine; created separately in every process, shared by its threads."""

    def __init__(self, url: ServerUrl, headers: Mapping[str, str]):
        self._url = url
        self._headers = dict(headers)
        self._processes: dict[int, _Connections] = {}
        self._operations = threading.local()

    @property
    def timeout_seconds(self) -> float:
        """Time limit of one operation."""
        return self._url.timeout_seconds

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Give all requests that this thread sends inside the block a single time budget."""
        # A nested operation shares the time of the outer one.
        outer = self._budget_of_this_thread()
        self._operations.budget = outer or Budget(self.timeout_seconds)
        try:
            yield
        finally:
            self._operations.budget = outer

    def budget(self, seconds: float | None = None, shares: int = 1) -> Budget:
        """Return the time budget of a request: the budget of the current :meth:`operation`, or else a new one.

        Args:
            seconds: Limit for this request; ``None`` for the usual limit.
            shares: Factor on the usual limit, outside an operation.
        """
        operation = self._budget_of_this_thread()
        if operation is not None:
            return operation if seconds is None else Budget(min(seconds, operation.remaining()))
        return Budget(self.timeout_seconds * shares if seconds is None else seconds)

    def _budget_of_this_thread(self) -> Budget | None:
        budget: Budget | None = getattr(self._operations, "budget", None)
        return budget

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
    ) -> Response:
        """Send one request to one node and read the whole response.

        Args:
            path: Path on the node; neither it nor ``params`` may contain text from a caller.
            timeout_seconds: Limit within the budget; the time for sending the body does not count.

        Raises:
            TransportFailure: No complete response arrived in time.
            ResponseTooLarge: The response exceeds :data:`MAX_RESPONSE_BYTES`.
            EngineNotAsked: The engine did not respond to earlier requests, so this one was not sent.
        """
        data = None if body is None else Body.within(self._url.send_timeout_seconds, body)
        connections = self._connections()
        with connections.request(budget):
            seconds = budget.remaining() if timeout_seconds is None else min(timeout_seconds, budget.remaining())
            return connections.exchange(method, node, path, seconds, budget, data, content_type, params)

    def lines(
        self, node: str, path: str, idle_seconds: float, params: Mapping[str, str] | None = None
    ) -> Iterator[bytes | Response]:
        """Read a long response line by line; yields a response other than 200 as a single item.

        Args:
            idle_seconds: Maximum time without a line.

        Raises:
            TransportFailure: The response ended early or paused too long.
            EngineNotAsked: The engine does not respond to earlier requests.
        """
        connections = self._connections()
        with connections.request(Budget(idle_seconds)):
            response, deadline = connections.open("GET", node, path, idle_seconds, None, "", params)
        with response:
            if response.status_code != 200:
                yield Response(response.status_code, b"".join(connections.chunks(response, node, deadline)))
                return
            rest = b""
            # No limit for the whole response, which may export a million documents, but for the time between two lines.
            for chunk in connections.chunks(response, node, None):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line for line in whole if line)
                if whole:
                    deadline = time.monotonic() + idle_seconds
                elif time.monotonic() > deadline:
                    raise TransportFailure("timeout", node)
            if rest:
                yield rest

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        connections = self._processes.pop(os.getpid(), None)
        if connections is not None:
            connections.close()

    def _connections(self) -> _Connections:
        # No lock: if another thread held it while this process forks, it would stay locked in the child.
        connections = self._processes.get(os.getpid())
        return connections or self._processes.setdefault(os.getpid(), _Connections(self._url, self._headers))


def _never_connected(error: BaseException) -> bool:
    unreachable = (ConnectionRefusedError, NewConnectionError, NameResolutionError)
    return any(isinstance(cause, unreachable) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception of ``requests`` and its nested causes, which are in ``reason``, ``args``, or ``__cause__``."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        reason = getattr(cause, "reason", None) or (cause.args[0] if cause.args else None)
        cause = reason if isinstance(reason, BaseException) else cause.__cause__
