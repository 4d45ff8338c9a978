"""Sending requests to a Typesense cluster: the official client's objects over our own connections.

The objects of the ``typesense`` package (collections, documents, keys, multi_search) know the routes and data formats
of Typesense. Their foundation is replaced: the package's ``ApiCall`` shares one session among all processes, uses the
environment's proxies, passes raw transport errors through, retries with a pause, and after a node's failure marks
healthy nodes as dead during an election. :class:`TypesenseTransport` is an ``ApiCall`` that does none of this.

Reads go to the leader, which has every acknowledged write, or without a leader to the most advanced node. Writes wait
for a leader within their budget, and callers can then wait until every live node has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from typesense.api_call import ApiCall
from typesense.configuration import Configuration

from backends.errors import BackendUnavailable
from backends.servers.documents import time_shares
from backends.servers.http import EngineError, HttpPool, Response, TransportFailure
from backends.servers.responses import checked
from backends.servers.server_url import ServerUrl
from backends.servers.waiting import sleep
from backends.typesense.cluster import Cluster
from backends.typesense.results import rejection

_RETRY_SECONDS = 0.1


class TypesenseTransport(ApiCall):
    """Sends the typesense package's requests over :class:`~backends.servers.http.HttpPool` with failover."""

    def __init__(self, url: ServerUrl):
        # The package's own retries are never used: every method that sends is overridden below.
        super().__init__(Configuration({"nodes": list(url.nodes), "api_key": url.key, "num_retries": 0}))
        self.url = url
        self.pool = HttpPool(url, {"X-TYPESENSE-API-KEY": url.key})
        self.cluster = Cluster(url, self.pool)

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
        """Send a read to one node after another until one responds, and return its response.

        Args:
            seconds: Time limit; ``None`` for the usual limit.

        Raises:
            RejectedByTypesense: Typesense rejected the request.
            BackendUnavailable: No node responded in time.
        """
        budget = self.pool.budget(seconds)
        data = _encoded(body)
        failure: Exception | None = None
        for turn in range(2):
            nodes = self.cluster.nodes_for_reading()
            for nodes_left, node in zip(range(len(nodes) - 1, -1, -1), nodes, strict=True):
                try:
                    # Half of the budget, so that a hanging node leaves time for the next one.
                    share = budget.remaining() / 2 if nodes_left else None
                    response = self.pool.send(
                        method, node, path, budget, body=data, params=params, timeout_seconds=share
                    )
                except TransportFailure as error:
                    failure = error
                    self.cluster.record_failure(node)
                    continue
                if response.status < 500 and response.status != 429:
                    return checked(response, rejection)
                failure = EngineError.of(response)
                self.cluster.record_failure(node)
            if budget.remaining() <= _RETRY_SECONDS or _hopeless(failure):
                break
            if turn == 0:
                sleep(_RETRY_SECONDS / 2)
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
        """Send a change to the leader, and return the response; waits for an election if necessary.

        The request may be sent several times, so repeating it must be harmless.

        Args:
            seconds: Time limit; ``None`` for the usual limit, which grows with the body: see :func:`.time_shares`.

        Raises:
            RejectedByTypesense: Typesense rejected the request.
            BackendUnavailable: The change failed, or its outcome is unknown.
        """
        data = _encoded(body)
        budget = self.pool.budget(seconds, time_shares(len(data or b"")))
        # Documents are imported as lines of JSON, which is not JSON as a whole.
        content_type = "text/plain" if isinstance(body, bytes | str) else "application/json"
        failure: Exception | None = None
        tries = 0
        while budget.remaining() > 0:
            node = self.cluster.node_for_writing(tries)
            tries += 1
            try:
                response = self.pool.send(
                    method, node, path, budget, body=data, content_type=content_type, params=params
                )
            except TransportFailure as error:
                failure = error
                self.cluster.record_failure(node)
                # The server may still be applying the change, and sending it again would only add to its load.
                if error.kind == "timeout":
                    break
            else:
                if response.status < 500 and response.status != 429:
                    return checked(response, rejection)
                failure = EngineError.of(response)
                self.cluster.forget_leader()
            # Without other nodes there is no election to wait for.
            if len(self.url.nodes) == 1 and tries > 1 and not _recovers(failure):
                break
            if tries % len(self.url.nodes) == 0 or isinstance(failure, EngineError):
                sleep(min(_RETRY_SECONDS, budget.remaining()))
        raise BackendUnavailable("The search engine did not accept the change.") from failure

    def lines(self, path: str, params: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """Yield the lines of a long response as they arrive.

        Raises:
            RejectedByTypesense: Typesense rejected the request.
            BackendUnavailable: No node responded, or the response ended early.
        """
        failure: Exception | None = None
        for node in self.cluster.nodes_for_reading():
            begun = False
            try:
                for line in self.pool.lines(node, path, self.url.timeout_seconds, params):
                    if isinstance(line, Response):
                        if line.status < 500 and line.status != 429:
                            checked(line, rejection)
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
            self.cluster.record_failure(node)
        raise BackendUnavailable() from failure


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
