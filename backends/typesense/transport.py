"""Sending requests to a Typesense cluster: the official client's objects over our own connections.

The objects of the ``typesense`` package (collections, documents, keys, multi_search) know the routes and data formats
of Typesense. Their foundation is replaced: the package's ``ApiCall`` shares one session among all processes, uses the
environment's proxies, passes raw transport errors through, retries with a pause, and after a node's failure marks
healthy nodes as dead during an election. :class:`TypesenseTransport` is an ``ApiCall`` that does none of this.

Reads go to the leader, which has every acknowledged write, or without a leader to the most advanced node. Writes wait
for a leader within their budget, and callers can then wait until every live node has them.
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
from backends.servers.documents import time_shares
from backends.servers.http import Budget, EngineError, HttpPool, Response, TransportFailure
from backends.servers.replies import Refusal, checked
from backends.servers.server_url import ServerUrl

_LEADER_KNOWN_SECONDS = 1.0
"""Seconds for which a known leader is trusted and a failed node is asked last."""

_PROBE_SECONDS = 0.5
_RETRY_SECONDS = 0.1
_FOLLOWER_PAUSE_SECONDS = 0.005
_NO_DOCUMENT = "/collections/none_of_this_name/documents?filter_by=id:=none"
FOLLOWER_WAIT_SECONDS = 3.0
"""Seconds that a write waits for live nodes that are behind."""


class RefusedByTypesense(Refusal):
    """Typesense rejected a request, with a status that concerns the request.

    Attributes:
        status: 400, 404, 408, 409, 413, or 422.
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
    """Sends the typesense package's requests over :class:`~backends.servers.http.HttpPool` with failover."""

    def __init__(self, url: ServerUrl):
        super().__init__(Configuration({"nodes": list(url.nodes), "api_key": url.key, "num_retries": 0}))
        self.url = url
        self.pool = HttpPool(url, {"X-TYPESENSE-API-KEY": url.key})
        self._leader: tuple[str, float] | None = None
        self._resting: dict[str, float] = {}

    # --- the methods that the package's objects call; ``entity_type`` only types their results

    def get(self, endpoint: str, entity_type: Any, as_json: bool = True, params: Any = None) -> Any:
        return _decoded(self.read("GET", endpoint, params=params), as_json)

    def post(self, endpoint: str, entity_type: Any, as_json: bool = True, params: Any = None, body: Any = None) -> Any:
        # The only POST that changes nothing, so any node may answer it.
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
    ) -> Response:
        """Ask one node after another until one responds.

        Args:
            seconds: Time limit; ``None`` for the usual limit.

        Raises:
            RefusedByTypesense: Typesense rejected the request.
            BackendUnavailable: No node responded in time.
        """
        budget = self.pool.budget(seconds)
        data = _encoded(body)
        failure: Exception | None = None
        for turn in range(2):
            nodes = self._nodes_for_reading()
            for nodes_left, node in zip(range(len(nodes) - 1, -1, -1), nodes, strict=True):
                try:
                    # Half of the budget, so that a hanging node leaves time for the next one.
                    share = budget.remaining() / 2 if nodes_left else None
                    response = self.pool.send(
                        method, node, path, budget, body=data, params=params, timeout_seconds=share
                    )
                except TransportFailure as error:
                    failure = error
                    self._failed(node)
                    continue
                if response.status < 500 and response.status != 429:
                    return checked(response, _refusal)
                failure = EngineError.of(response)
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
    ) -> Response:
        """Send a change to the leader, waiting for an election if necessary; repeating it must be harmless.

        Args:
            seconds: Time limit; ``None`` for the usual limit, which grows with the body: see :func:`.time_shares`.

        Raises:
            RefusedByTypesense: Typesense rejected the request.
            BackendUnavailable: The change failed, or its outcome is unknown.
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
                response = self.pool.send(
                    method, node, path, budget, body=data, content_type=content_type, params=params
                )
            except TransportFailure as error:
                failure = error
                self._failed(node)
                if error.kind == "timeout":
                    break
            else:
                if response.status < 500 and response.status != 429:
                    return checked(response, _refusal)
                failure = EngineError.of(response)
                self._leader = None
            # Without other nodes there is no election to wait for.
            if len(self.url.nodes) == 1 and tries > 1 and not _recovers(failure):
                break
            if tries % len(self.url.nodes) == 0 or isinstance(failure, EngineError):
                time.sleep(min(_RETRY_SECONDS, budget.remaining()))
        raise BackendUnavailable("The search engine did not accept the change.") from failure

    def lines(self, path: str, params: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """Read a long response line by line.

        Raises:
            RefusedByTypesense: Typesense rejected the request.
            BackendUnavailable: No node responded, or the response ended early.
        """
        failure: Exception | None = None
        for node in self._nodes_for_reading():
            begun = False
            try:
                for line in self.pool.lines(node, path, self.url.timeout_seconds, params):
                    if isinstance(line, Response):
                        if line.status < 500 and line.status != 429:
                            checked(line, _refusal)
                        failure = EngineError.of(line)
                        break
                    begun = True
                    yield line
                else:
                    return
            except TransportFailure as error:
                failure = error
                # The lines that the caller already has cannot be taken back.
                if begun:
                    break
            self._failed(node)
        raise BackendUnavailable() from failure

    # --- the cluster

    def await_everywhere(self, is_visible: Callable[[Callable[[str], Response]], bool]) -> None:
        """Return when every live node shows a change.

        Args:
            is_visible: Whether the change is visible on a node, given a function that reads a path from that node.

        Raises:
            BackendUnavailable: A live node did not show it in time; the write may be repeated.
        """
        if len(self.url.nodes) == 1:
            return
        budget = Budget(min(FOLLOWER_WAIT_SECONDS, self.url.timeout_seconds))
        waiting = list(self.url.nodes)
        self._nudge(budget)
        while True:
            waiting = [node for node in waiting if not self._shows(node, is_visible, budget)]
            if not waiting:
                return
            if budget.remaining() <= 0:
                raise BackendUnavailable("The search engine's nodes are not in sync yet.")
            time.sleep(_FOLLOWER_PAUSE_SECONDS)

    def _nudge(self, budget: Budget) -> None:
        """Make a harmless write, if a leader accepts it.

        Followers learn that a log entry is committed from the next entry, or else from a heartbeat half a second later.
        (Measured with 0.24.1: 9 ms instead of 501 ms until a write is visible on all of three nodes.)
        """
        # Any node forwards the write to the leader.
        node = self._leader[0] if self._leader is not None else self.url.nodes[0]
        with contextlib.suppress(TransportFailure):
            self.pool.send("DELETE", node, _NO_DOCUMENT, budget, timeout_seconds=_PROBE_SECONDS)

    def status_of(self, node: str, budget: Budget, seconds: float = _PROBE_SECONDS) -> dict[str, Any] | None:
        """Return a node's own view of the cluster, or ``None`` if it does not respond.

        Raises:
            BackendMisconfigured: The node rejects our key.
        """
        try:
            response = self.pool.send("GET", node, "/status", budget, timeout_seconds=seconds)
        except TransportFailure:
            return None
        if response.status in (401, 403):
            checked(response, _refusal)
        status = response.json() if response.status == 200 else None
        return status if isinstance(status, dict) else None

    def is_healthy(self, node: str, budget: Budget) -> bool:
        """Whether a node reports that it is ready."""
        try:
            response = self.pool.send("GET", node, "/health", budget)
        except TransportFailure:
            return False
        return response.status == 200 and response.json() == {"ok": True}

    def _shows(self, node: str, is_visible: Callable[[Callable[[str], Response]], bool], budget: Budget) -> bool:
        def ask(path: str) -> Response:
            return self.pool.send("GET", node, path, budget, timeout_seconds=_PROBE_SECONDS)

        try:
            return is_visible(ask)
        except TransportFailure as error:
            self._failed(node)
            # No search can reach a node that accepts no connections. A node that hangs is asked again.
            return error.kind != "timeout"

    def _nodes_for_reading(self) -> list[str]:
        if len(self.url.nodes) == 1:
            return list(self.url.nodes)
        now = time.monotonic()
        leader = self._leader
        if leader is None or now - leader[1] > _LEADER_KNOWN_SECONDS:
            return self._survey()
        # Nodes that failed a moment ago come last.
        others = [node for node in self.url.nodes if node != leader[0]]
        return [leader[0], *sorted(others, key=lambda node: self._resting.get(node, 0.0) > now)]

    def _survey(self) -> list[str]:
        """Ask the nodes for the leader. Returns the leader first, or else the most advanced nodes first."""
        last_leader = self._leader
        budget = Budget(min(2 * _PROBE_SECONDS, self.url.timeout_seconds / 3))
        now = time.monotonic()
        order = sorted(
            self.url.nodes,
            key=lambda node: (last_leader is None or node != last_leader[0], self._resting.get(node, 0.0) > now),
        )
        ranks: dict[str, int] = {}
        for node in order:
            with contextlib.suppress(BackendMisconfigured):
                status = self.status_of(node, budget, min(_PROBE_SECONDS, self.url.timeout_seconds / 6))
                if status is None:
                    self._failed(node)
                    continue
                # Without a leader, the node with the highest committed index misses the fewest writes.
                ranks[node] = int(status.get("committed_index", 0))
                if status.get("state") == "LEADER":
                    self._leader = (node, time.monotonic())
                    return [node, *(other for other in order if other != node)]
        return sorted(self.url.nodes, key=lambda node: -ranks.get(node, -1))

    def _node_for_writing(self, tries: int) -> str:
        if tries == 0:
            return self._nodes_for_reading()[0]
        # During an election, every node is tried in turn: the first to know the new leader forwards the change.
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
    """Whether a single node may still accept the change, because it is up but not ready."""
    return isinstance(failure, EngineError)


def _encoded(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


def _decoded(response: Response, as_json: bool) -> Any:
    return response.json() if as_json else response.body.decode(errors="replace")
