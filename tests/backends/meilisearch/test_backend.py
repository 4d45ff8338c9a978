"""Meilisearch over a fake server: the contract, and what is Meilisearch's own."""

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
from backends.meilisearch import transport
from backends.meilisearch.backend import MeilisearchBackend
from backends.query import Highlight, SearchQuery, SearchSettings, SortKey
from backends.registry import create_backend
from backends.servers import backend as servers_backend
from backends.servers import documents, http
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
def test_large_documents_have_more_time(server: FakeMeilisearch, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for module in (http, transport):
        monkeypatch.setattr(module, "time", clock)
    backend = create_backend(f"{server.url}?timeout_seconds=20")
    backend.create_index("site_1")
    server.stuck = True
    began = clock.now
    with pytest.raises(BackendUnavailable, match="may finish later"):
        Case(backend, "site_1").add(page("a", "word", content="x" * 3 * documents.SHARE_BYTES))
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


SYNONYMS = SearchSettings(synonyms=(("laptop", "notebook"),))


def test_a_search_waits_for_no_synonyms_and_sends_them_once(case: Case, server: FakeMeilisearch) -> None:
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


def test_the_synonyms_that_were_sent_last_win_while_others_are_in_the_queue(
    case: Case, server: FakeMeilisearch
) -> None:
    case.add(page("a", "laptop"), page("b", "notebook"))
    server.stuck = True
    plain = case.query("laptop")
    for query in (case.query("laptop", settings=SYNONYMS), plain):
        case.backend.search(case.index, query)
    server.stuck = False
    settle(case.backend, case.index)
    assert [hit.id for hit in case.backend.search(case.index, plain).hits] == ["a"]


def test_a_preview_leaves_the_synonyms_of_the_index_as_they_are(case: Case, server: FakeMeilisearch) -> None:
    case.add(page("a", "laptop"), page("b", "notebook"))
    tasks = len(server.tasks)
    case.backend.search(case.index, case.query("laptop", settings=SYNONYMS, is_preview=True))
    assert len(server.tasks) == tasks


def test_synonyms_that_the_server_does_not_take_fail_no_search_and_are_sent_again_later(
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


def test_a_long_query_is_asked_for_from_its_first_six_words_on_where_few_documents_have_all(
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


def test_matches_are_found_in_the_texts_that_are_shown_only(case: Case, server: FakeMeilisearch) -> None:
    case.add(page("a", "Documentation", "All of the documentation " * 30))
    before = len(server.requests)
    wish = Highlight(only_fields=frozenset({"title"}))
    (hit,) = case.search("documantation", highlight=wish).hits
    assert hit.formatted == {"title": "<em>Documentation</em>"}
    for request in server.requests[before:]:
        for query in json.loads(request.body or b"{}").get("queries", []):
            assert "showMatchesPosition" not in query, "it takes every displayed text of every hit apart"


@contextmanager
def told_of_tasks(server: FakeMeilisearch, change: dict[str, object] | None) -> Iterator[None]:
    """The server says something else of tasks, or that it knows none of them."""

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


def test_a_failed_task_is_no_success(case: Case, server: FakeMeilisearch) -> None:
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
def test_a_change_is_not_done_because_another_task_is_that_has_its_number(
    case: Case, server: FakeMeilisearch, change: dict[str, object] | None
) -> None:
    for write in (lambda: case.add(page("a", "word")), lambda: case.backend.delete(case.index, ["a"])):
        with told_of_tasks(server, change), pytest.raises(BackendUnavailable, match="has lost the change"):
            write()


def test_a_task_that_was_canceled_is_no_success(case: Case, server: FakeMeilisearch) -> None:
    with told_of_tasks(server, {"status": "canceled"}), pytest.raises(BackendUnavailable, match="did not accept"):
        case.add(page("a", "word"))


def test_a_task_of_another_index_is_no_answer_to_a_change(case: Case, server: FakeMeilisearch) -> None:
    answer = {"taskUid": 0, "indexUid": "site_2", "status": "enqueued", "type": "x", "enqueuedAt": "now"}
    server.fault = lambda request: (202, {}, json.dumps(answer).encode()) if request.method == "POST" else None
    with pytest.raises(BackendUnavailable, match="unreadable response"):
        case.add(page("a", "word"))
    server.fault = None


def test_an_index_made_anew_elsewhere_is_searched_as_it_is_now(case: Case, server: FakeMeilisearch) -> None:
    case.add(page("a", "word", size=1, kind="x"))
    wishes: tuple[dict[str, Any], ...] = (
        {"facets": ("size",)}, {"sort": (SortKey("size"),)}, {"filter": parse_filter("kind = x OR size > 0")},
        {"distinct": "kind"},
    )  # fmt: skip
    for wish in wishes:
        assert case.search("word", **wish).total == 1
        elsewhere = create_backend(server.url)
        elsewhere.delete_index(case.index)
        elsewhere.create_index(case.index)
        assert case.search("word", **wish).total == 0
        case.add(page("a", "word", size=1, kind="x"))


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
    with pytest.raises(ValueError, match="must contain one host"):
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
