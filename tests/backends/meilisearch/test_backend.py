"""The contract and the Meilisearch tests, with a fake server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from backends.errors import BackendMisconfigured, BackendUnavailable, IndexNotFound
from backends.filters import parse_filter
from backends.meilisearch.backend import MeilisearchBackend
from backends.query import Highlight, SearchQuery, SearchSettings, SortKey
from backends.registry import create_backend
from backends.servers import backend as servers_backend
from backends.servers import documents, http, waiting
from tests.backends.contract import SHOP, BackendContract, Case, case_fixture, page  # noqa: F401
from tests.backends.contract.case import settle
from tests.backends.fakes.clock import Clock
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


def test_caller_text_never_appears_in_a_path_or_query_string(case: Case, server: FakeMeilisearch) -> None:
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


def test_timed_out_write_is_not_resent_while_its_task_is_queued(
    server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (http, waiting):
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
    assert len(server.tasks) == tasks, "the queue must not grow"
    server.stuck = False
    case.add(page("a", "word"))
    assert case.ids("word") == ["a"]
    assert len(server.tasks) == tasks + 1


def test_tasks_of_one_write_share_the_sum_of_their_time_budgets(
    server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (http, waiting):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(documents, "MAX_BATCH_DOCUMENTS", 1)
    backend = create_backend(f"{server.url}?timeout_seconds=20")
    backend.create_index("site_1")
    case = Case(backend, "site_1")
    server.stuck = True
    began = clock.now
    with pytest.raises(BackendUnavailable, match="may finish later"):
        case.add(page("a", "word"), page("b", "word"), page("c", "word"))
    assert 59 < clock.now - began <= 60


@pytest.mark.slow
def test_large_documents_get_a_longer_time_budget(server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for module in (http, waiting):
        monkeypatch.setattr(module, "time", clock)
    backend = create_backend(f"{server.url}?timeout_seconds=20")
    backend.create_index("site_1")
    server.stuck = True
    began = clock.now
    with pytest.raises(BackendUnavailable, match="may finish later"):
        Case(backend, "site_1").add(page("a", "word", content="x" * 3 * documents.SHARE_BYTES))
    assert clock.now - began > 3 * 20


def test_write_returns_only_after_its_task_has_finished(
    server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (http, waiting):
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


SYNONYMS = SearchSettings(synonyms=(("laptop", "notebook"),))


def test_search_sends_changed_synonyms_once_without_waiting(case: Case, server: FakeMeilisearch) -> None:
    case.add(page("a", "laptop"), page("b", "notebook"))
    server.stuck = True
    tasks = len(server.tasks)
    query = case.query("laptop", settings=SYNONYMS)
    for _ in range(3):
        assert [hit.id for hit in case.backend.search(case.index, query).hits] == ["a"]
    assert [task["type"] for task in server.tasks[tasks:]] == ["settingsUpdate"]
    server.stuck = False
    settle(case.backend, case.index)
    assert sorted(hit.id for hit in case.backend.search(case.index, query).hits) == ["a", "b"]


def test_most_recent_synonyms_win_over_queued_synonyms(case: Case, server: FakeMeilisearch) -> None:
    case.add(page("a", "laptop"), page("b", "notebook"))
    server.stuck = True
    plain = case.query("laptop")
    for query in (case.query("laptop", settings=SYNONYMS), plain):
        case.backend.search(case.index, query)
    server.stuck = False
    settle(case.backend, case.index)
    assert [hit.id for hit in case.backend.search(case.index, plain).hits] == ["a"]


def test_preview_does_not_change_the_synonyms_of_the_index(case: Case, server: FakeMeilisearch) -> None:
    case.add(page("a", "laptop"), page("b", "notebook"))
    tasks = len(server.tasks)
    case.backend.search(case.index, case.query("laptop", settings=SYNONYMS, is_preview=True))
    assert len(server.tasks) == tasks


def test_rejected_synonyms_do_not_fail_searches_and_are_resent_later(
    case: Case, server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    monkeypatch.setattr(servers_backend, "time", clock)
    case.add(page("a", "laptop"), page("b", "notebook"))
    full = {"message": "No space left on device", "code": "no_space_left_on_device", "type": "system", "link": ""}
    server.fault = lambda request: (422, {}, json.dumps(full).encode()) if request.method == "PUT" else None
    query = case.query("laptop", settings=SYNONYMS)
    for _ in range(3):
        assert [hit.id for hit in case.backend.search(case.index, query).hits] == ["a"]
    assert sum(request.method == "PUT" for request in server.requests) == 1
    assert "keeps its old synonyms for now" in caplog.text
    server.fault = None
    clock.now += 31
    case.backend.search(case.index, query)
    settle(case.backend, case.index)
    assert sorted(hit.id for hit in case.backend.search(case.index, query).hits) == ["a", "b"]


def test_long_query_with_few_matches_is_also_searched_from_its_first_six_words(
    case: Case, server: FakeMeilisearch
) -> None:
    case.add(page("a", "one"), page("b", "six"), page("c", "seven"))
    before = len(server.requests)
    assert sorted(case.ids("one two three four five six seven eight")) == ["a", "b"]
    bodies = [json.loads(request.body or b"{}") for request in server.requests[before:]]
    (merged,) = [body for body in bodies if "federation" in body]
    assert [query["q"].split()[0] for query in merged["queries"]] == [
        "one",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
    ]


def test_matches_are_located_only_in_displayed_fields(case: Case, server: FakeMeilisearch) -> None:
    case.add(page("a", "Documentation", "All of the documentation " * 30))
    before = len(server.requests)
    wish = Highlight(only_fields=frozenset({"title"}))
    (hit,) = case.search("documantation", highlight=wish).hits
    assert hit.formatted == {"title": "<em>Documentation</em>"}
    for request in server.requests[before:]:
        for query in json.loads(request.body or b"{}").get("queries", []):
            assert "showMatchesPosition" not in query, "highlighting parses the displayed texts of every hit"


@contextmanager
def told_of_tasks(server: FakeMeilisearch, change: dict[str, object] | None) -> Iterator[None]:
    """Change the server's responses about tasks, or report every task as missing."""

    def tell(request: requests.PreparedRequest) -> Reply | None:
        if "/tasks/" not in (request.url or ""):
            return None
        if change is None:
            each = recorded("meilisearch", "47_")
            return each["status"], {}, json.dumps(each["answer"]).encode()
        server.fault = None
        status, headers, body = server.answer(request)
        server.fault = tell
        return status, headers, json.dumps({**json.loads(body), **change}).encode()

    server.fault = tell
    yield
    server.fault = None


def test_failed_task_raises_the_matching_error_without_server_details(case: Case, server: FakeMeilisearch) -> None:
    failed = {name: recorded("meilisearch", "13_")["answer"][name] for name in ("status", "error")}
    with told_of_tasks(server, failed), pytest.raises(BackendUnavailable) as caught:
        case.add(page("a", "word"))
    assert "identifier" not in str(caught.value)
    missing = {name: recorded("meilisearch", "20_")["answer"][name] for name in ("status", "error")}
    with told_of_tasks(server, missing), pytest.raises(IndexNotFound):
        case.backend.delete(case.index, ["a"])


@pytest.mark.parametrize("change", [
    None, {"indexUid": "site_2"}, {"enqueuedAt": "2020-01-01T00:00:00Z"}, {"type": "indexSwap"}, {"uid": 10**6},
])  # fmt: skip
def test_write_fails_if_its_task_number_belongs_to_another_task(
    case: Case, server: FakeMeilisearch, change: dict[str, object] | None
) -> None:
    for write in (lambda: case.add(page("a", "word")), lambda: case.backend.delete(case.index, ["a"])):
        with told_of_tasks(server, change), pytest.raises(BackendUnavailable, match="has lost the change"):
            write()


def test_canceled_task_raises_backend_unavailable(case: Case, server: FakeMeilisearch) -> None:
    with told_of_tasks(server, {"status": "canceled"}), pytest.raises(BackendUnavailable, match="did not accept"):
        case.add(page("a", "word"))


def test_task_of_another_index_is_an_unreadable_response(case: Case, server: FakeMeilisearch) -> None:
    answer = {"taskUid": 0, "indexUid": "site_2", "status": "enqueued", "type": "x", "enqueuedAt": "now"}
    server.fault = lambda request: (202, {}, json.dumps(answer).encode()) if request.method == "POST" else None
    with pytest.raises(BackendUnavailable, match="unreadable response"):
        case.add(page("a", "word"))
    server.fault = None


def test_index_recreated_by_another_process_is_searched_without_error(case: Case, server: FakeMeilisearch) -> None:
    case.add(page("a", "word", size=1, kind="x"))
    wishes: tuple[dict[str, Any], ...] = (
        {"facets": ("size",)}, {"sort": (SortKey("size"),)}, {"portable_filter": parse_filter("kind = x OR size > 0")},
        {"distinct": "kind"},
    )  # fmt: skip
    for wish in wishes:
        assert case.search("word", **wish).total == 1
        elsewhere = create_backend(server.url)
        elsewhere.delete_index(case.index)
        elsewhere.create_index(case.index)
        assert case.search("word", **wish).total == 0
        case.add(page("a", "word", size=1, kind="x"))


def test_write_to_a_missing_index_does_not_create_it(backend: MeilisearchBackend, server: FakeMeilisearch) -> None:
    with pytest.raises(IndexNotFound):
        Case(backend, "site_404").add(page("a"))
    assert server.indexes == {}


def test_full_queue_raises_unavailable_with_the_retry_after_of_the_server(case: Case, server: FakeMeilisearch) -> None:
    each = recorded("meilisearch", "33")
    reply: Reply = (each["status"], {"Retry-After": "10"}, json.dumps(each["answer"]).encode())
    server.fault = lambda request: reply if "search" in (request.url or "") else None
    with pytest.raises(BackendUnavailable) as caught:
        case.search("word")
    assert caught.value.retry_after == 10


@pytest.mark.parametrize("name", ["41", "42", "45"])
def test_wrong_or_missing_key_raises_backend_misconfigured(server: FakeMeilisearch, name: str) -> None:
    each = recorded("meilisearch", name)
    reply: Reply = (each["status"], {}, json.dumps(each["answer"]).encode())
    backend = create_backend(server.url)
    server.fault = lambda request: reply if "/health" not in (request.url or "") else None
    for call in (backend.check, backend.list_indexes, lambda: backend.search("site_1", SearchQuery("x"))):
        with pytest.raises(BackendMisconfigured):
            call()


def test_url_with_several_hosts_is_rejected() -> None:
    with pytest.raises(ValueError, match="must contain one host"):
        create_backend("meilisearch://:key@a:7700,b:7700")


def test_tenant_token_is_scoped_to_one_index_and_contains_no_key(case: Case, server: FakeMeilisearch) -> None:
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
"""Recorded exchanges that do not depend on earlier exchanges."""


def test_fake_meilisearch_responds_like_the_recorded_exchanges(server: FakeMeilisearch) -> None:
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
