"""Meilisearch over a fake server: the contract, and what is Meilisearch's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from backends.base import SearchQuery
from backends.errors import BackendMisconfigured, BackendUnavailable, IndexNotFound
from backends.meilisearch import transport
from backends.meilisearch.backend import MeilisearchBackend
from backends.registry import create_backend
from backends.servers import batches, http
from tests.backends.contract import SHOP, BackendContract, Case, case_fixture, page  # noqa: F401
from tests.backends.fakes.meilisearch import FakeMeilisearch, Reply
from tests.backends.meilisearch.promises import MeilisearchPromises
from tests.backends.recorded import assert_agrees, recorded, recordings
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def server() -> Iterator[FakeMeilisearch]:
    with FakeMeilisearch().running() as fake:
        yield fake


@pytest.fixture
def backend(server: FakeMeilisearch) -> Iterator[MeilisearchBackend]:
    backend = create_backend(server.url)
    assert isinstance(backend, MeilisearchBackend)
    yield backend
    backend.close()


class TestMeilisearchOverAFake(MeilisearchPromises, BackendContract):
    pass


def test_no_text_of_a_caller_is_ever_in_a_path_or_query_string(case: Case, server: FakeMeilisearch) -> None:
    for id in ("../../site_2", "..", "a/b?c#d", "%2e%2e%2f"):
        case.add(page(id, "caller"))
        case.backend.delete(case.index, [id])
    case.search("caller", "title = caller")
    for request in server.requests:
        parts = urlsplit(request.url or "")
        assert "caller" not in parts.path + parts.query
        assert not any(mark in parts.path for mark in ("..", "%", "//"))
        assert request.headers["Authorization"] == f"Bearer {server.key}"
        assert server.key not in (request.url or "")


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_what_was_given_up_is_not_sent_again_while_it_is_still_in_the_queue(
    server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (http, transport):
        monkeypatch.setattr(module, "time", clock)
    backend = create_backend(server.url)
    backend.create_index("site_1")
    backend.create_index("site_2")
    case = Case(backend, "site_1")
    server.stuck = True
    with pytest.raises(BackendUnavailable):
        case.add(page("a", "word"))
    tasks = len(server.tasks)
    for _ in range(3):
        with pytest.raises(BackendUnavailable, match="may finish later"):
            case.add(page("a", "word"))
    assert len(server.tasks) == tasks, "the queue did not grow"
    server.stuck = False
    case.add(page("a", "word"))
    assert case.ids("word") == ["a"]
    assert len(server.tasks) == tasks + 1


def test_tasks_that_are_done_in_one_go_have_the_time_of_all(
    server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (http, transport):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(batches, "MOST_DOCUMENTS", 1)
    backend = create_backend(f"{server.url}?timeout_seconds=20")
    backend.create_index("site_1")
    case = Case(backend, "site_1")
    server.stuck = True
    began = clock.now
    with pytest.raises(BackendUnavailable, match="may finish later"):
        case.add(page("a", "word"), page("b", "word"), page("c", "word"))
    assert 59 < clock.now - began <= 60


@pytest.mark.slow
def test_large_documents_have_more_time(server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for module in (http, transport):
        monkeypatch.setattr(module, "time", clock)
    backend = create_backend(f"{server.url}?timeout_seconds=20")
    backend.create_index("site_1")
    server.stuck = True
    began = clock.now
    with pytest.raises(BackendUnavailable, match="may finish later"):
        Case(backend, "site_1").add(page("a", "word", content="x" * 3 * batches.SHARE_BYTES))
    assert clock.now - began > 3 * 20


def test_a_write_is_done_only_when_its_task_is(server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for module in (http, transport):
        monkeypatch.setattr(module, "time", clock)
    backend = create_backend(f"{server.url}?timeout_seconds=20")
    backend.create_index("site_1")
    case = Case(backend, "site_1")
    server.stuck, clock.now = True, 0.0
    with pytest.raises(BackendUnavailable, match="may finish later"):
        case.add(page("a", "word"))
    assert 19 < clock.now <= 20
    server.stuck = False
    case.add(page("a", "word"))
    assert backend.count("site_1") == 1


def test_a_failed_task_is_no_success(case: Case, server: FakeMeilisearch) -> None:
    task = recorded("meilisearch", "13_")["answer"]
    body = json.dumps({**task, "uid": 0}).encode()
    server.fault = lambda request: (200, {}, body) if "/tasks/" in (request.url or "") else None
    with pytest.raises(BackendUnavailable) as caught:
        case.add(page("a", "word"))
    assert "identifier" not in str(caught.value)
    body = json.dumps(recorded("meilisearch", "20_")["answer"]).encode()
    with pytest.raises(IndexNotFound):
        case.backend.delete(case.index, ["a"])


def test_writing_to_an_index_that_is_gone_does_not_make_it(
    backend: MeilisearchBackend, server: FakeMeilisearch
) -> None:
    with pytest.raises(IndexNotFound):
        Case(backend, "site_404").add(page("a"))
    assert server.indexes == {}


def test_a_full_queue_is_unavailable_with_its_own_time(case: Case, server: FakeMeilisearch) -> None:
    each = recorded("meilisearch", "33")
    reply: Reply = (each["status"], {"Retry-After": "10"}, json.dumps(each["answer"]).encode())
    server.fault = lambda request: reply if "search" in (request.url or "") else None
    with pytest.raises(BackendUnavailable) as caught:
        case.search("word")
    assert caught.value.retry_after == 10


@pytest.mark.parametrize("name", ["41", "42", "45"])
def test_a_wrong_key_or_none_at_all_is_for_the_operator(server: FakeMeilisearch, name: str) -> None:
    each = recorded("meilisearch", name)
    reply: Reply = (each["status"], {}, json.dumps(each["answer"]).encode())
    backend = create_backend(server.url)
    server.fault = lambda request: reply if "/health" not in (request.url or "") else None
    for call in (backend.check, backend.list_indexes, lambda: backend.search("site_1", SearchQuery("x"))):
        with pytest.raises(BackendMisconfigured):
            call()


def test_one_host_only() -> None:
    with pytest.raises(ValueError, match="one server"):
        create_backend("meilisearch://:key@a:7700,b:7700")


def test_tokens_are_of_the_form_meilisearch_checks(case: Case, server: FakeMeilisearch) -> None:
    token = case.backend.issue_credential(case.index, "holder", datetime.now(UTC) + timedelta(hours=1)).token
    (key,) = server.keys.values()
    assert (key["actions"], key["indexes"]) == (["search"], [case.index])
    assert key["key"] not in token
    assert server.key not in token


ANSWERED_ALIKE = (
    "01",
    "03",
    "04",
    "05",
    "06",
    "07",
    "08",
    "15",
    "20",
    "21",
    "27",
    "37",
    "38",
    "39",
    "40",
    "47",
    "48",
    "49",
)
"""Exchanges of the recordings that stand on their own."""


def test_the_fake_answers_as_meilisearch_does(server: FakeMeilisearch) -> None:
    import requests

    def send(method: str, path: str, body: object = None) -> requests.Response:
        headers = {"Authorization": f"Bearer {server.key}"} | ({"Content-Type": "application/json"} if body else {})
        data = json.dumps(body) if body is not None else None
        return requests.request(
            method, f"http://{server.host}{path}", headers=headers, data=data, timeout=PATIENCE_SECONDS
        )

    server.tasks.append({})
    for each in recordings("meilisearch"):
        if not each["name"].startswith(ANSWERED_ALIKE):
            continue
        if each["name"].startswith("05"):
            send("POST", "/indexes", {"uid": "site_1", "primaryKey": "pk"})
        if each["name"].startswith("20"):
            server.tasks += [{}] * (9 - len(server.tasks))
            send("POST", "/indexes/site_404/documents/delete-batch", ["x"])
        if each["name"].startswith("48"):
            server.tasks += [{}] * (11 - len(server.tasks))
        response = send(each["method"], each["path"], each["body"])
        assert response.status_code == each["status"], each["name"]
        wanted = each["answer"]
        if isinstance(wanted, dict):
            for volatile in ("details", "key", "batchUid"):
                wanted.pop(volatile, None)
            assert_agrees(response.json(), wanted, each["name"])
