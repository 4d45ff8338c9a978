"""The nodes of a Typesense cluster: which one leads, which ones failed, and whether all have a change."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from backends.errors import BackendMisconfigured, BackendUnavailable
from backends.servers.http import Budget, HttpPool, Response, TransportFailure
from backends.servers.responses import checked
from backends.servers.server_url import ServerUrl
from backends.servers.waiting import sleep
from backends.typesense.results import rejection

_LEADER_KNOWN_SECONDS = 1.0
"""Seconds for which a known leader is trusted and a failed node is asked last."""

_PROBE_SECONDS = 0.5
_FOLLOWER_PAUSE_SECONDS = 0.005
_NO_DOCUMENT = "/collections/none_of_this_name/documents?filter_by=id:=none"
FOLLOWER_WAIT_SECONDS = 3.0
"""Seconds that a write waits for live nodes that are behind."""


class Cluster:
    """The nodes of a server's URL, as this process knows them."""

    def __init__(self, url: ServerUrl, pool: HttpPool):
        self._url = url
        self._pool = pool
        self._leader: tuple[str, float] | None = None
        self._resting: dict[str, float] = {}

    def await_everywhere(self, is_visible: Callable[[Callable[[str], Response]], bool]) -> None:
        """Wait until every live node shows a change.

        Args:
            is_visible: Whether the change is visible on a node, given a function that reads a path from that node.

        Raises:
            BackendUnavailable: A live node did not show it in time; the write may be repeated.
        """
        if len(self._url.nodes) == 1:
            return
        budget = Budget(min(FOLLOWER_WAIT_SECONDS, self._url.timeout_seconds))
        waiting = list(self._url.nodes)
        self._nudge(budget)
        while True:
            waiting = [node for node in waiting if not self._shows(node, is_visible, budget)]
            if not waiting:
                return
            if budget.remaining() <= 0:
                raise BackendUnavailable("The search engine's nodes are not in sync yet.")
            sleep(_FOLLOWER_PAUSE_SECONDS)

    def _nudge(self, budget: Budget) -> None:
        """Send a harmless write, so that followers learn at once that the previous one is committed.

        Followers learn that a log entry is committed from the next entry, or else from a heartbeat half a second later.
        (Measured with 0.24.1: 9 ms instead of 501 ms until a write is visible on all of three nodes.)
        """
        # Any node forwards the write to the leader.
        node = self._leader[0] if self._leader is not None else self._url.nodes[0]
        with contextlib.suppress(TransportFailure):
            self._pool.send("DELETE", node, _NO_DOCUMENT, budget, timeout_seconds=_PROBE_SECONDS)

    def status_of(self, node: str, budget: Budget, seconds: float = _PROBE_SECONDS) -> dict[str, Any] | None:
        """Return a node's own view of the cluster, or ``None`` if it does not respond.

        Raises:
            BackendMisconfigured: The node rejects our key.
        """
        try:
            response = self._pool.send("GET", node, "/status", budget, timeout_seconds=seconds)
        except TransportFailure:
            return None
        if response.status in (401, 403):
            checked(response, rejection)
        status = response.json() if response.status == 200 else None
        return status if isinstance(status, dict) else None

    def is_healthy(self, node: str, budget: Budget) -> bool:
        """Whether a node reports that it is ready."""
        try:
            response = self._pool.send("GET", node, "/health", budget)
        except TransportFailure:
            return False
        return response.status == 200 and response.json() == {"ok": True}

    def _shows(self, node: str, is_visible: Callable[[Callable[[str], Response]], bool], budget: Budget) -> bool:
        def ask(path: str) -> Response:
            return self._pool.send("GET", node, path, budget, timeout_seconds=_PROBE_SECONDS)

        try:
            return is_visible(ask)
        except TransportFailure as error:
            self.record_failure(node)
            # No search can reach a node that accepts no connections. A node that hangs is asked again.
            return error.kind != "timeout"

    def nodes_for_reading(self) -> list[str]:
        """Return the nodes in the order in which to try them."""
        if len(self._url.nodes) == 1:
            return list(self._url.nodes)
        now = time.monotonic()
        leader = self._leader
        if leader is None or now - leader[1] > _LEADER_KNOWN_SECONDS:
            return self._survey()
        # Nodes that failed a moment ago come last.
        others = [node for node in self._url.nodes if node != leader[0]]
        return [leader[0], *sorted(others, key=lambda node: self._resting.get(node, 0.0) > now)]

    def _survey(self) -> list[str]:
        """Ask the nodes for the leader. Returns the leader first, or else the most advanced nodes first."""
        last_leader = self._leader
        budget = Budget(min(2 * _PROBE_SECONDS, self._url.timeout_seconds / 3))
        now = time.monotonic()
        order = sorted(
            self._url.nodes,
            key=lambda node: (last_leader is None or node != last_leader[0], self._resting.get(node, 0.0) > now),
        )
        ranks: dict[str, int] = {}
        for node in order:
            with contextlib.suppress(BackendMisconfigured):
                status = self.status_of(node, budget, min(_PROBE_SECONDS, self._url.timeout_seconds / 6))
                if status is None:
                    self.record_failure(node)
                    continue
                # Without a leader, the node with the highest committed index misses the fewest writes.
                ranks[node] = int(status.get("committed_index", 0))
                if status.get("state") == "LEADER":
                    self._leader = (node, time.monotonic())
                    return [node, *(other for other in order if other != node)]
        return sorted(self._url.nodes, key=lambda node: -ranks.get(node, -1))

    def node_for_writing(self, tries: int) -> str:
        """Return the node that gets a change, after ``tries`` attempts."""
        if tries == 0:
            return self.nodes_for_reading()[0]
        # During an election, every node is tried in turn: the first to know the new leader forwards the change.
        return self._url.nodes[tries % len(self._url.nodes)]

    def record_failure(self, node: str) -> None:
        """Try a node after all others for a while, because it did not respond or failed."""
        self._resting[node] = time.monotonic() + _LEADER_KNOWN_SECONDS
        if self._leader is not None and self._leader[0] == node:
            self._leader = None

    def forget_leader(self) -> None:
        """Forget the leader, which may have changed; the next read looks it up."""
        self._leader = None
