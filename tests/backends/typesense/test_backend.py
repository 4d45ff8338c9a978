"""The contract and the Typesense tests, with a fake server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from backends.errors import BackendMisconfigured, BackendUnavailable
from backends.query import SearchQuery, SearchSettings
from backends.registry import create_backend
from backends.servers import backend as servers_backend
from backends.servers import http, waiting
from backends.servers.documents import SHARE_BYTES
from backends.typesense import cluster, sizes
from backends.typesense.backend import TypesenseBackend
from tests.backends.contract import SHOP, BackendContract, Case, case_fixture, page  # noqa: F401
from tests.backends.fakes.clock import Clock
from tests.backends.fakes.typesense import FakeTypesense, Reply
from tests.backends.recorded import recorded
from tests.backends.typesense.promises import TypesensePromises


@pytest.fixture
def server() -> Iterator[FakeTypesense]:
    with FakeTypesense().running() as fake:
        yield fake


@pytest.fixture
def backend(server: FakeTypesense) -> Iterator[TypesenseBackend]:
    backend = create_backend(server.url)
    assert isinstance(backend, TypesenseBackend)
    yield backend
    backend.close()


class TestTypesenseOverAFake(TypesensePromises, BackendContract):
    pass


def replay(name: str) -> Reply:
    each = recorded("typesense", name)
    return each["status"], {"Content-Type": "application/json"}, json.dumps(each["answer"]).encode()


def test_caller_text_never_appears_in_a_path_or_query_string(case: Case, server: FakeTypesense) -> None:
    for id in ("../../collections/x", "..", "search", "a/b?c#d", "%2e%2e%2f"):
        case.add(page(id, "caller"))
        case.backend.delete(case.index, [id])
    case.search("caller", "title = caller")
    for request in server.requests:
        parts = urlsplit(request.url or "")
        assert "caller" not in parts.path + parts.query
        assert not any(mark in parts.path for mark in ("..", "%", "//"))
        assert request.headers["X-TYPESENSE-API-KEY"] == server.key
        assert server.key not in (request.url or "")


def test_bulk_write_is_imported_in_batches_of_250(case: Case, server: FakeTypesense) -> None:
    case.add(*(page(str(number)) for number in range(600)))
    sizes = [str(r.body, "utf-8").count("\n") + 1 for r in server.requests if "import" in (r.url or "")]
    assert sizes == [250, 250, 100]


def test_documents_are_imported_as_ascii(case: Case, server: FakeTypesense) -> None:
    case.add(page("ü", "Ärger — 漢字 😀", "plain", price=1.5, note="“quoted”\n\u2028"))
    bodies = [bytes(r.body or b"") for r in server.requests if "import" in (r.url or "")]
    assert [body.isascii() for body in bodies] == [True]
    assert case.search("Ärger").hits[0].document["title"] == "Ärger — 漢字 😀"


@pytest.mark.parametrize("name", ["09_import", "10_import"])
def test_failed_import_inside_a_200_response_raises_unavailable(case: Case, server: FakeTypesense, name: str) -> None:
    answer = recorded("typesense", name)["answer"].encode()
    server.fault = lambda request: (200, {}, answer) if "import" in (request.url or "") else None
    with pytest.raises(BackendUnavailable, match="did not accept") as caught:
        case.add(page("a", "word"))
    assert "Field" not in str(caught.value)


@pytest.mark.parametrize("name", ["58", "60"])
def test_search_rejected_for_time_or_load_raises_unavailable(case: Case, server: FakeTypesense, name: str) -> None:
    server.fault = lambda request: replay(name) if "multi_search" in (request.url or "") else None
    with pytest.raises(BackendUnavailable):
        case.search("word")


def test_largest_document_size_is_requested_once_a_minute_and_only_if_needed(
    case: Case, server: FakeTypesense, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(sizes, "time", clock)
    case.add(page("a", "word"))

    def asked(max_bytes: int | None) -> int:
        before = len(server.requests)
        assert case.search("word", max_bytes=max_bytes).total == 1
        return sum(b"_bytes" in bytes(request.body or b"") for request in server.requests[before:])

    assert asked(None) == 0
    assert [asked(10_000) for _ in range(3)] == [1, 0, 0]
    assert asked(500) == 1, "one of many documents may be too large"
    clock.now += 61
    assert asked(10_000) == 1


def test_rejected_synonyms_delay_searches_by_at_most_a_second_and_fail_none(
    case: Case, server: FakeTypesense, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    for module in (http, cluster, waiting, servers_backend):
        monkeypatch.setattr(module, "time", clock)
    case.add(page("a", "laptop"), page("b", "notebook"))
    query = case.query("laptop", settings=SearchSettings(synonyms=(("laptop", "notebook"),)))
    server.fault = lambda request: (503, {}, b'{"message": "Not Ready"}') if request.method == "PUT" else None
    began = clock.now
    for _ in range(3):
        assert [hit.id for hit in case.backend.search(case.index, query).hits] == ["a"]
    assert clock.now - began <= 1.1
    assert "keeps its old synonyms for now" in caplog.text
    server.fault = None
    clock.now += 31
    assert sorted(hit.id for hit in case.backend.search(case.index, query).hits) == ["a", "b"]


def test_check_fails_while_the_server_is_not_ready(backend: TypesenseBackend, server: FakeTypesense) -> None:
    backend.check()
    server.fault = lambda request: replay("59") if "health" in (request.url or "") else None
    with pytest.raises(BackendUnavailable):
        backend.check()


@pytest.mark.slow
def test_check_fails_while_the_server_is_replaying_its_log(backend: TypesenseBackend, server: FakeTypesense) -> None:
    server.queued_writes = 3
    with pytest.raises(BackendUnavailable, match="still loading"):
        backend.check()
    server.committed_index += 3
    server.queued_writes = 0
    backend.check()


def test_wrong_key_raises_backend_misconfigured(server: FakeTypesense) -> None:
    wrong = create_backend(server.url.replace(server.key, "wrong"))
    for call in (wrong.check, wrong.list_indexes, lambda: wrong.search("site_1", SearchQuery("x"))):
        with pytest.raises(BackendMisconfigured):
            call()


def test_request_on_a_stale_connection_is_retried(case: Case, server: FakeTypesense) -> None:
    case.add(*SHOP)
    failures = iter([requests.exceptions.ConnectionError("closed by the server")])

    def once(request: requests.PreparedRequest) -> Reply | None:
        for error in failures:
            raise error
        return None

    server.fault = once
    assert case.search("reading").total == 5


def test_one_backend_serves_many_threads(case: Case) -> None:
    case.add(*SHOP)
    totals: list[int] = []
    threads = [threading.Thread(target=lambda: totals.append(case.search("reading").total)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals == [5] * 16


def test_invalid_index_name_never_reaches_the_server(backend: TypesenseBackend, server: FakeTypesense) -> None:
    for name in ("../keys", "site-1", "", "A", "a" * 65, "site_1?x=1"):
        with pytest.raises(ValueError, match="not a valid index name"):
            backend.search(name, SearchQuery("x"))
    assert server.requests == []


@pytest.mark.slow
def test_large_documents_get_a_longer_time_budget(backend: TypesenseBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []
    send = http.HttpPool.send

    def note(self: http.HttpPool, method: str, node: str, path: str, budget: http.Budget, **more: Any) -> Any:
        if path.endswith("/import"):
            seconds.append(budget.remaining())
        return send(self, method, node, path, budget, **more)

    monkeypatch.setattr(http.HttpPool, "send", note)
    backend.create_index("site_1")
    case = Case(backend, "site_1")
    case.add(page("a", "word"))
    case.add(page("b", "word", content="x" * 4 * SHARE_BYTES))
    assert 4 < seconds[0] <= 5
    assert seconds[1] > 4 * 5


def test_replaced_synonyms_are_missing_one_entry_at_a_time(case: Case, server: FakeTypesense) -> None:
    case.add(page("a", "word"))
    case.backend.send_synonyms(case.index, SearchSettings(synonyms=tuple((f"w{n}", f"x{n}") for n in range(6))))
    after = SearchSettings(synonyms=tuple((f"w{n}", f"x{n}", f"y{n}") for n in range(6)))
    collection, missing = server.collections[case.index], []

    def look(request: requests.PreparedRequest) -> None:
        missing.append(sum(f"w{n}" not in collection.synonyms_of for n in range(6)))

    server.fault = look
    case.backend.send_synonyms(case.index, after)
    assert max(missing) == 1
    assert all(f"y{n}" in collection.synonyms_of for n in range(6))


def test_search_does_not_send_synonyms_while_another_process_sends_some(
    backend: TypesenseBackend, case: Case, server: FakeTypesense
) -> None:
    case.add(page("a", "laptop"), page("b", "notebook"))
    query = case.query("laptop", settings=SearchSettings(synonyms=(("laptop", "notebook"),)))
    with backend.locks.hold(f"synonyms_{case.index}"):
        assert [hit.id for hit in backend.search(case.index, query).hits] == ["a"]
        assert not any("synonyms" in (request.url or "") for request in server.requests)
    assert sorted(hit.id for hit in backend.search(case.index, query).hits) == ["a", "b"]
