"""Clients of a running service that never repeat a request automatically, alone and in crowds."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import orjson

from tests.server import Server

T = TypeVar("T")


class NoAnswer(Exception):
    """The connection was refused or ended before the response was complete."""


@dataclass(frozen=True)
class Answer:
    """A complete response, with the times of the request and the response (``time.monotonic``)."""

    status: int
    headers: dict[str, str]
    body: Any
    asked_at: float
    answered_at: float

    @property
    def seconds(self) -> float:
        return self.answered_at - self.asked_at

    @property
    def error(self) -> str:
        """The error code; empty for a success."""
        return str(self.body.get("error", "")) if isinstance(self.body, dict) else ""


class Caller:
    """Calls the service with one key, each time over a new connection, at its servers in turn.

    New connections are accepted by the quickest worker, so that consecutive calls reach different workers.
    """

    def __init__(self, servers: Sequence[Server], token: str | None = None, headers: dict[str, str] | None = None):
        self.servers = list(servers)
        self._turn = itertools.count()
        self.headers = dict(headers or {})
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"

    def call(self, method: str, path: str, body: Any = None, *, timeout: float = 60, **headers: str) -> Answer:
        """Send one request.

        Raises:
            NoAnswer: The connection ended without a complete response.
        """
        server = self.servers[next(self._turn) % len(self.servers)]
        return self.call_at(server, method, path, body, timeout=timeout, **headers)

    def call_at(
        self, server: Server, method: str, path: str, body: Any = None, *, timeout: float = 60, **headers: str
    ) -> Answer:
        """Send one request to one of the servers."""
        sent = {
            "X-Forwarded-For": another_address(),
            **self.headers,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        data = None
        if body is not None:
            data = orjson.dumps(body)
            sent["Content-Type"] = "application/json"
        with contextlib.closing(_connect(server, timeout)) as connection:
            return _ask(connection, method, path, data, {**sent, "Connection": "close"})

    def must(self, method: str, path: str, body: Any = None) -> Any:
        """Send one request that must succeed. Returns the response body."""
        answer = self.call(method, path, body)
        assert answer.status in (200, 201), (method, path, answer.status, answer.body)
        return answer.body

    def search(self, q: str, **parameters: Any) -> Answer:
        """Search once."""
        query = "&".join(f"{name}={quote(str(value))}" for name, value in {"q": q, **parameters}.items())
        return self.call("GET", f"/v1/search?{query}")

    def found_ids(self, q: str, **parameters: Any) -> set[str]:
        """Return the IDs of all hits of a search that must succeed."""
        answer = self.search(q, limit=100, **parameters)
        assert answer.status == 200, answer.body
        return {hit["id"] for hit in answer.body["results"]["hits"]}

    def index(self, *documents: dict[str, Any], site_id: int | None = None) -> Answer:
        """Send documents."""
        path = "/api/v1/index/bulk" + (f"?site_id={site_id}" if site_id else "")
        return self.call("POST", path, {"documents": documents})


_addresses = itertools.count(1)


def another_address() -> str:
    """Return an unused IP address, since callers without a valid key are limited by IP address."""
    number = next(_addresses)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _connect(server: Server, timeout: float) -> http.client.HTTPConnection:
    host, port = server.base_url.removeprefix("http://").split(":")
    return http.client.HTTPConnection(host, int(port), timeout=timeout)


def _ask(
    connection: http.client.HTTPConnection, method: str, path: str, data: bytes | None, headers: dict[str, str]
) -> Answer:
    asked_at = time.monotonic()
    try:
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(str(error)) from error
    answered_at = time.monotonic()
    is_json = "json" in response.headers.get("Content-Type", "")
    body = orjson.loads(content) if is_json else content
    return Answer(response.status, dict(response.headers), body, asked_at, answered_at)


class WorkerConnection:
    """A persistent connection, which always reaches the same worker."""

    def __init__(self, server: Server):
        self._connection = _connect(server, 60)
        self.call("GET", "/healthz")
        self.worker_pid = _other_end(self._connection.sock, server.worker_pids())

    def call(self, method: str, path: str, token: str = "", body: Any = None) -> Answer:
        """Send one request."""
        headers = {"X-Forwarded-For": another_address()}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else orjson.dumps(body)
        if data is not None:
            headers["Content-Type"] = "application/json"
        return _ask(self._connection, method, path, data, headers)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def connections_to_all_workers(servers: Sequence[Server]) -> Iterator[list[WorkerConnection]]:
    """Open one persistent connection to every worker process of ``servers``."""
    found: dict[int, WorkerConnection] = {}
    spare: list[WorkerConnection] = []
    try:
        for server in servers:
            wanted = set(server.worker_pids())
            for _ in range(500):
                connection = WorkerConnection(server)
                if connection.worker_pid in found:
                    spare.append(connection)
                else:
                    found[connection.worker_pid] = connection
                if wanted <= found.keys():
                    break
            else:
                raise AssertionError(f"of the workers {wanted} only {sorted(found)} ever answered")
        yield list(found.values())
    finally:
        for connection in (*found.values(), *spare):
            connection.close()


def _other_end(end: socket.socket, pids: Sequence[int]) -> int:
    """Return the process among ``pids`` at the other end of a loopback connection."""
    ports = f":{end.getpeername()[1]:04X}", f":{end.getsockname()[1]:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    inode = next(row[9] for row in rows if row[1].endswith(ports[0]) and row[2].endswith(ports[1]))
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # It was closed in the meantime.
                if str(descriptor.readlink()) == f"socket:[{inode}]":
                    return pid
    raise AssertionError("no worker holds the connection")


@dataclass
class Customer:
    """A registered tenant with a site and keys."""

    email: str
    account_id: int
    site_id: int
    session: Caller
    tokens: dict[str, str]
    keys: dict[str, str]
    """Public ID of each kind of key."""
    callers: dict[str, Caller] = field(default_factory=dict)
    """Caller for each token, at the servers in turn."""

    @property
    def search(self) -> Caller:
        return self.with_key("search")

    @property
    def private(self) -> Caller:
        return self.with_key("private")

    def with_key(self, kind: str) -> Caller:
        """Return a caller with the key of this kind."""
        token = self.tokens[kind]
        return self.callers.setdefault(token, Caller(self.session.servers, token))

    def used_today(self) -> int:
        """Return the searches charged to the account, which is new."""
        return int(self.private.must("GET", "/dashboard")["usage"]["searches_this_month"])


PASSWORD = "correct horse battery"


def register(servers: Sequence[Server], email: str, kinds: Sequence[str] = ("search", "private")) -> Customer:
    """Register a tenant with a site and keys of these kinds."""
    nobody = Caller(servers)
    answer = nobody.call("POST", "/register", {"name": "Somebody", "email": email, "password": PASSWORD})
    assert answer.status == 201, answer.body
    session = Caller(
        servers,
        headers={
            "Cookie": answer.headers["Set-Cookie"].partition(";")[0],
            "X-CSRF-Token": answer.body["csrf_token"],
        },
    )
    site = session.must("POST", "/sites", {"name": "Pages", "url": "https://www.example.com/"})["site"]
    customer = Customer(email, int(answer.body["user"]["id"]), int(site["id"]), session, {}, {})
    for kind in kinds:
        made = session.must("POST", f"/api/sites/{customer.site_id}/keys", {"name": kind, "type": kind})
        customer.tokens[kind] = made["api_key"]
        customer.keys[kind] = made["key"]["id"]
    return customer


def together(clients: int, count: int, do: Callable[[int], T]) -> list[T]:
    """Run ``do(0)`` to ``do(count - 1)`` with concurrent clients. Returns the results, in order."""
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(do, range(count)))


def until_not_busy(ask: Callable[[], Answer]) -> Answer:
    """Repeat a request, as its Retry-After header says, while the account has too many concurrent requests.

    On a slow machine this happens with every crowd that works for more than a second.
    """
    while (answer := ask()).error == "server_busy":
        time.sleep(int(answer.headers["Retry-After"]))
    return answer


def statuses(answers: Sequence[Answer]) -> Counter[int]:
    """Count the responses by status."""
    return Counter(answer.status for answer in answers)


@dataclass
class Crowd:
    """Clients that send requests continuously.

    Attributes:
        answers: Number of the request and its response, in order of arrival.
        unanswered: Numbers of requests without a response.
    """

    answers: list[tuple[int, Answer]] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def asked(self) -> int:
        return len(self.answers) + len(self.unanswered)

    def wait_for(self, count: int, seconds: float = 60, status: int | None = None) -> None:
        """Wait for this number of further responses, with this status if given."""
        self._wait(len(self.answers), count, seconds, status)

    def wait_for_all(self, count: int, seconds: float = 60, status: int | None = None) -> None:
        """Wait for this number of responses since the start, for a status with a limited number of responses."""
        self._wait(0, count, seconds, status)

    def _wait(self, begin: int, count: int, seconds: float, status: int | None) -> None:
        deadline = time.monotonic() + seconds
        while not self.failures:
            fresh = self.answers[begin:]
            if sum(status in (None, answer.status) for _, answer in fresh) >= count:
                return
            assert time.monotonic() < deadline, f"within {seconds} s came {statuses([a for _, a in fresh])}"
            time.sleep(0.005)


@contextmanager
def crowd(clients: int, do: Callable[[int], Answer], *, pause_seconds: float = 0) -> Iterator[Crowd]:
    """Run ``do(0)``, ``do(1)`` … with concurrent clients for as long as the block lasts.

    A call without a response is recorded; any other exception fails the test at the end of the block.
    """
    made = Crowd()
    numbers = itertools.count()

    def work() -> None:
        while not made.stopping.is_set():
            number = next(numbers)
            try:
                made.answers.append((number, do(number)))
            except NoAnswer:
                made.unanswered.append(number)
                made.stopping.wait(0.01)
            except BaseException as error:  # noqa: BLE001 - raised again below
                made.failures.append(error)
                return
            if pause_seconds:
                made.stopping.wait(pause_seconds)

    threads = [threading.Thread(target=work, name=f"client-{number}") for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        made.stopping.set()
        for thread in threads:
            thread.join()
    if made.failures:
        raise made.failures[0]


def eventually(check: Callable[[], T], *, seconds: float = 60) -> T:
    """Run ``check`` until it raises no AssertionError; raise its last one after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def page(number: int | str, **fields: Any) -> dict[str, Any]:
    """Return a valid document."""
    return {
        "id": f"page-{number}", "title": f"Page {number}", "content": f"The content of page {number}.",
        "url": f"/pages/{number}", **fields,
    }  # fmt: skip
