"""Sending requests to a Typesense cluster: the official client's objects over our own connections.

The objects of the ``typesense`` package (collections, documents, keys, multi_search) know the routes and the shapes
of Typesense. What they stand on is replaced: the package's ``ApiCall`` keeps one session for all processes, lets the
environment's proxies and raw transport errors through, re-sends with a pause and, after a node has failed, marks
healthy ones as dead during an election. :class:`TypesenseTransport` is an ``ApiCall`` that does none of this.

Reads go to the leader, which has every acknowledged write; while there is none, to the node that is furthest. Writes
wait for a leader within their budget and can then be awaited on every node that is alive.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
from typesense.api_call import ApiCall
from typesense.configuration import Configuration

from backends.errors import BackendMisconfigured, BackendUnavailable
from backends.servers.batches import time_shares
from backends.servers.http import Answer, Budget, EngineAnswer, HttpPool, TransportFailure
from backends.servers.replies import Refusal, checked
from backends.servers.server_url import ServerUrl

_LEADER_KNOWN_SECONDS = 1.0
_PROBE_SECONDS = 0.5
_RETRY_SECONDS = 0.1
_FOLLOWER_PAUSE_SECONDS = 0.005
_NO_DOCUMENT = "/collections/none_of_this_name/documents?filter_by=id:=none"
FOLLOWER_WAIT_SECONDS = 3.0
"""How long a write waits for a node that is alive but behind."""


class RefusedByTypesense(Refusal):
    """Typesense said no, with a status that is about the request.

    Attributes:
        status: 400, 404, 408, 409, 413 or 422.
        message: Typesense's own words; never shown to a caller.
    """

    def __init__(self, status: int, message: str):
        super().__init__(f"{status}: {message[:500]}")
        self.status = status
        self.message = message

    @property
    def is_missing_index(self) -> bool:
        missing = self.message in ("Not Found", "Not found.") or "collection with" in self.message
        return self.status == 404 and missing


class TypesenseTransport(ApiCall):
    """The typesense package's requests, sent over :class:`~backends.servers.http.HttpPool` with failover."""

    def __init__(self, url: ServerUrl):
        super().__init__(Configuration({"nodes": list(url.nodes), "api_key": url.key, "num_retries": 0}))
        self.url = url
        self.pool = HttpPool(url, {"X-TYPESENSE-API-KEY": url.key})
        self._leader: tuple[str, float] | None = None
        self._resting: dict[str, float] = {}

    # --- what the package's objects call; ``entity_type`` only types their results

    def get(self, endpoint: str, entity_type: Any, as_json: bool = True, params: Any = None) -> Any:
        return _decoded(self.read("GET", endpoint, params=params), as_json)

    def post(self, endpoint: str, entity_type: Any, as_json: bool = True, params: Any = None, body: Any = None) -> Any:
        send = self.read if endpoint == "/multi_search" else self.write
        return _decoded(send("POST", endpoint, params=params, body=body), as_json)

    def put(self, endpoint: str, entity_type: Any, body: Any, params: Any = None) -> Any:
        return _decoded(self.write("PUT", endpoint, params=params, body=body), True)

    def patch(self, endpoint: str, entity_type: Any, body: Any, params: Any = None) -> Any:
        return _decoded(self.write("PATCH", endpoint, params=params, body=body), True)

    def delete(self, endpoint: str, entity_type: Any, params: Any = None) -> Any:
        return _decoded(self.write("DELETE", endpoint, params=params), True)

    # --- sending

    def read(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        seconds: float | None = None,
    ) -> Answer:
        """Ask one node after the other until one answers.

        Args:
            seconds: The time for it; ``None`` for the usual one.

        Raises:
            RefusedByTypesense: Typesense said no.
            BackendUnavailable: No node answered in time.
        """
        budget = self.pool.budget(seconds)
        data = _encoded(body)
        failure: Exception | None = None
        for turn in range(2):
            nodes = self._nodes_for_reading()
            for left, node in zip(range(len(nodes) - 1, -1, -1), nodes, strict=True):
                try:
                    # A node that hangs leaves time for the next one.
                    share = budget.remaining() / 2 if left else None
                    answer = self.pool.send(method, node, path, budget, body=data, params=params, timeout_seconds=share)
                except TransportFailure as error:
                    failure = error
                    self._failed(node)
                    continue
                if answer.status < 500 and answer.status != 429:
                    return checked(answer, _refusal)
                failure = EngineAnswer.of(answer)
                self._failed(node)
            if budget.remaining() <= _RETRY_SECONDS or _hopeless(failure):
                break
            if turn == 0:
                time.sleep(_RETRY_SECONDS / 2)
        raise BackendUnavailable() from failure

    def write(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        seconds: float | None = None,
    ) -> Answer:
        """Send a change to the leader, waiting for one to be elected; repeating it must be harmless.

        Args:
            seconds: The time for it; ``None`` for the usual one, which grows with the body: see :func:`.time_shares`.

        Raises:
            RefusedByTypesense: Typesense said no.
            BackendUnavailable: It was not, or perhaps not, done in time.
        """
        data = _encoded(body)
        budget = self.pool.budget(seconds, time_shares(len(data or b"")))
        content_type = "text/plain" if isinstance(body, bytes | str) else "application/json"
        failure: Exception | None = None
        tries = 0
        while budget.remaining() > 0:
            node = self._node_for_writing(tries)
            tries += 1
            try:
                answer = self.pool.send(method, node, path, budget, body=data, content_type=content_type, params=params)
            except TransportFailure as error:
                failure = error
                self._failed(node)
                if error.kind == "timeout":
                    break
            else:
                if answer.status < 500 and answer.status != 429:
                    return checked(answer, _refusal)
                failure = EngineAnswer.of(answer)
                self._leader = None
            if len(self.url.nodes) == 1 and tries > 1 and not _recovers(failure):
                break
            if tries % len(self.url.nodes) == 0 or isinstance(failure, EngineAnswer):
                time.sleep(min(_RETRY_SECONDS, budget.remaining()))
        raise BackendUnavailable("The search engine did not take the change.") from failure

    def lines(self, path: str, params: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """Read a long answer of lines.

        Raises:
            RefusedByTypesense: Typesense said no.
            BackendUnavailable: No node answered, or the answer ended early.
        """
        failure: Exception | None = None
        for node in self._nodes_for_reading():
            begun = False
            try:
                for line in self.pool.lines(node, path, self.url.timeout_seconds, params):
                    if isinstance(line, Answer):
                        if line.status < 500 and line.status != 429:
                            checked(line, _refusal)
                        failure = EngineAnswer.of(line)
                        break
                    begun = True
                    yield line
                else:
                    return
            except TransportFailure as error:
                failure = error
                if begun:
                    break
            self._failed(node)
        raise BackendUnavailable() from failure

    # --- the cluster

    def await_everywhere(self, seen: Callable[[Callable[[str], Answer]], bool]) -> None:
        """Return when every node that is alive shows a change.

        Args:
            seen: Is given a function that reads a path from one node, and tells whether the change shows there.

        Raises:
            BackendUnavailable: A node that is alive did not show it in time; it is a write that may be repeated.
        """
        if len(self.url.nodes) == 1:
            return
        budget = Budget(min(FOLLOWER_WAIT_SECONDS, self.url.timeout_seconds))
        waiting = list(self.url.nodes)
        self._nudge(budget)
        while True:
            waiting = [node for node in waiting if not self._shows(node, seen, budget)]
            if not waiting:
                return
            if budget.remaining() <= 0:
                raise BackendUnavailable("The search engine's nodes do not agree yet.")
            time.sleep(_FOLLOWER_PAUSE_SECONDS)

    def _nudge(self, budget: Budget) -> None:
        """Write something harmless, if a leader takes it.

        Followers learn that an entry of the log is committed from the next one, or else from a heartbeat half a
        second later. (Measured with 0.24.1: 9 ms instead of 501 ms until a write shows on all of three nodes.)
        """
        node = self._leader[0] if self._leader is not None else self.url.nodes[0]
        with contextlib.suppress(TransportFailure):
            self.pool.send("DELETE", node, _NO_DOCUMENT, budget, timeout_seconds=_PROBE_SECONDS)

    def status_of(self, node: str, budget: Budget, seconds: float = _PROBE_SECONDS) -> dict[str, Any] | None:
        """A node's own view of the cluster, or ``None`` if it does not answer.

        Raises:
            BackendMisconfigured: It refuses our key.
        """
        try:
            answer = self.pool.send("GET", node, "/status", budget, timeout_seconds=seconds)
        except TransportFailure:
            return None
        if answer.status in (401, 403):
            checked(answer, _refusal)
        status = answer.json() if answer.status == 200 else None
        return status if isinstance(status, dict) else None

    def is_healthy(self, node: str, budget: Budget) -> bool:
        """Tell whether a node says that it is ready."""
        try:
            answer = self.pool.send("GET", node, "/health", budget)
        except TransportFailure:
            return False
        return answer.status == 200 and answer.json() == {"ok": True}

    def _shows(self, node: str, seen: Callable[[Callable[[str], Answer]], bool], budget: Budget) -> bool:
        def ask(path: str) -> Answer:
            return self.pool.send("GET", node, path, budget, timeout_seconds=_PROBE_SECONDS)

        try:
            return seen(ask)
        except TransportFailure as error:
            self._failed(node)
            # Nobody can search on a node that takes no connection. One that hangs is asked again.
            return error.kind != "timeout"

    def _nodes_for_reading(self) -> list[str]:
        if len(self.url.nodes) == 1:
            return list(self.url.nodes)
        now = time.monotonic()
        leader = self._leader
        if leader is None or now - leader[1] > _LEADER_KNOWN_SECONDS:
            return self._survey()
        others = [node for node in self.url.nodes if node != leader[0]]
        return [leader[0], *sorted(others, key=lambda node: self._resting.get(node, 0.0) > now)]

    def _survey(self) -> list[str]:
        """Ask the nodes who leads; the leader first, then the others, the furthest first."""
        known = self._leader
        budget = Budget(min(2 * _PROBE_SECONDS, self.url.timeout_seconds / 3))
        now = time.monotonic()
        order = sorted(
            self.url.nodes, key=lambda node: (known is None or node != known[0], self._resting.get(node, 0.0) > now)
        )
        ranks: dict[str, int] = {}
        for node in order:
            with contextlib.suppress(BackendMisconfigured):
                status = self.status_of(node, budget, min(_PROBE_SECONDS, self.url.timeout_seconds / 6))
                if status is None:
                    self._failed(node)
                    continue
                ranks[node] = int(status.get("committed_index", 0))
                if status.get("state") == "LEADER":
                    self._leader = (node, time.monotonic())
                    return [node, *(other for other in order if other != node)]
        return sorted(self.url.nodes, key=lambda node: -ranks.get(node, -1))

    def _node_for_writing(self, tries: int) -> str:
        if tries == 0:
            return self._nodes_for_reading()[0]
        # During an election every node is asked in turn: the first to know the new leader passes the change on.
        return self.url.nodes[tries % len(self.url.nodes)]

    def _failed(self, node: str) -> None:
        self._resting[node] = time.monotonic() + _LEADER_KNOWN_SECONDS
        if self._leader is not None and self._leader[0] == node:
            self._leader = None


def _refusal(status: int, reply: Any) -> RefusedByTypesense:
    return RefusedByTypesense(status, str(reply["message"]))


def _hopeless(failure: Exception | None) -> bool:
    return isinstance(failure, TransportFailure) and failure.kind == "timeout"


def _recovers(failure: Exception | None) -> bool:
    """Tell whether a single node may still take the change: it is up, but not ready."""
    return isinstance(failure, EngineAnswer)


def _encoded(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


def _decoded(answer: Answer, as_json: bool) -> Any:
    return answer.json() if as_json else answer.body.decode(errors="replace")
