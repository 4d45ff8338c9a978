"""For any server reply, a backend returns a plausible result or raises that the engine is unavailable."""

from __future__ import annotations

import contextlib
import copy
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from typing import Any

import orjson
import pytest

from backends.base import Document, Hit, SearchBackend, SearchResult
from backends.errors import BackendError, BackendUnavailable
from backends.filters import OneOf, parse_filter
from backends.query import Boost, FieldKind, Highlight, Preferred, SearchQuery, SearchSettings
from backends.registry import create_backend
from backends.servers import http, waiting
from backends.typesense import cluster as typesense_cluster
from tests.backends.contract import SHOP, Case, page
from tests.backends.fakes.clock import Clock
from tests.backends.fakes.meilisearch import FakeMeilisearch
from tests.backends.fakes.typesense import FakeTypesense
from tests.backends.test_errors import CALLS

Server = FakeTypesense | FakeMeilisearch
Reply = tuple[int, dict[str, str], bytes]
Call = Callable[[SearchBackend], object]

NUMBER = frozenset({FieldKind.NUMBER})
DOCUMENT = Document("a", page("a", "word", size=2), 9_000_000_000_000_000)
SOON = datetime.now(UTC) + timedelta(hours=1)
WRONG = (None, True, -1, 1.5, "x", "", [], {}, [1], {"a": 1}, 10**15)
"""Values that may replace any part of a reply."""


def calls(case: Case) -> dict[str, Call]:
    """Return a call of each method, and one search of every kind, on the documents of SHOP."""

    def search(text: str, **options: Any) -> Call:
        return lambda backend: backend.search(case.index, case.query(text, **options))

    pins = SearchSettings(pinned={"reading": ("sofa",)}, synonyms=(("a", "b"),))
    ranks = SearchSettings(boosts=(Boost(2, parse_filter("price > 100")),))
    latest = SearchSettings(preferred=Preferred("price", "latest"))
    return {
        "create_index": lambda b: b.create_index("site_2"),
        "delete_index": lambda b: b.delete_index("site_3"),
        "list_indexes": lambda b: b.list_indexes(),
        "upsert": lambda b: b.upsert(case.index, [DOCUMENT], {"size": NUMBER}),
        "delete": lambda b: b.delete(case.index, ["x"]),
        "search": search("reading", limit=2, offset=1, facets=("author", "price"), highlight=Highlight(), sections=2),
        "search for fewer words": search("reeding zzzz", limit=3),
        "search with pins": search("reading", settings=pins, max_bytes=10_000),
        "search with ranks": search("reading", settings=ranks, explain=True),
        "search for distinct hits": search("reading", distinct="brand", settings=latest),
        "find_titles": lambda b: b.find_titles(case.index, "so", 5),
        "find_related": lambda b: b.find_related(case.index, OneOf("id", ("sofa",)), SearchQuery("*", limit=4)),
        "count": lambda b: b.count(case.index),
        "document_ids": lambda b: list(b.document_ids(case.index)),
        "check": lambda b: b.check(),
        "version": lambda b: b.version(),
        "index_bytes": lambda b: b.index_bytes(),
        "free_share": lambda b: b.free_share(),
        "issue_credential": lambda b: b.issue_credential(case.index, "holder", SOON),
        "revoke_credential": lambda b: b.revoke_credential("6f4b2a8c"),
        "send_synonyms": lambda b: b.send_synonyms(case.index, SearchSettings(synonyms=(("x", "y"),))),
    }


def check_response(answer: object) -> None:
    """Fail if a value does not match its declared type or a count is negative."""
    if isinstance(answer, SearchResult):
        check_response(answer.total)
        check_response([count for facet in answer.facets.values() for count in facet.values()])
        check_response(answer.hits)
    elif isinstance(answer, Hit):
        check_response(answer.id)
        assert isinstance(orjson.loads(answer.json), dict)
    elif isinstance(answer, list | tuple):
        for each in answer:
            check_response(each)
    elif type(answer) is int:
        assert answer >= 0
    elif type(answer) is float:
        assert answer <= 1
    elif not isinstance(answer, str):
        check_response([getattr(answer, name) for name in getattr(answer, "__slots__", ())])
        assert answer is None or hasattr(answer, "__slots__"), answer
    else:
        assert answer


def parts_of(reply: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each part of a reply, with only the first two members of lists."""
    yield place
    members = reply.items() if isinstance(reply, dict) else enumerate(reply[:2]) if isinstance(reply, list) else ()
    for name, value in members:
        yield from parts_of(value, (*place, name))


def changed(reply: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    reply = copy.copy(reply)
    reply[place[0]] = changed(reply[place[0]], place[1:], value)
    return reply


def lies_of(body: bytes, most: int) -> Iterator[tuple[str, bytes]]:
    """Yield named corrupted replies: half the body, an HTML page, or one part replaced by up to `most` values."""
    yield "half", body[: len(body) // 2]
    yield "a page", b"<html>Welcome to the router</html>"
    try:
        lines, reply = False, json.loads(body) if body else None
    except ValueError:
        lines, reply = True, [json.loads(line) for line in body.split(b"\n")]

    def encoded(lie: Any) -> bytes:
        return "\n".join(map(json.dumps, lie)).encode() if lines and isinstance(lie, list) else json.dumps(lie).encode()

    wrong = cycle(WRONG)
    for place in parts_of(reply):
        for value in islice(wrong, most):
            yield f"{place} is {value!r}", encoded(changed(reply, place, value))


class Liar:
    """A server that replaces one reply of a call."""

    def __init__(self, server: Server):
        self._server = server
        self._route = server.route
        self.replies: list[Reply] = []

    def run(self, call: Call, place: int = -1, body: bytes = b"") -> object:
        """Run a call on a new backend, which has no cached state of the server yet."""
        self.replies = []

        def route(*given: Any) -> Reply:
            status, headers, honest = self._route(*given)
            self.replies.append((status, headers, honest))
            return status, headers, body if len(self.replies) == place + 1 else honest

        self._server.route = route  # type: ignore[method-assign]
        getattr(self._server, "collections", getattr(self._server, "indexes", {})).pop("site_2", None)
        backend = create_backend(self._server.url)
        try:
            return call(backend)
        finally:
            backend.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (http, waiting, typesense_cluster):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture(params=[FakeTypesense, FakeMeilisearch])
def server(request: pytest.FixtureRequest, clock: Clock) -> Iterator[Server]:
    with request.param().running() as server:
        yield server


@pytest.fixture
def case(server: Server) -> Case:
    backend = create_backend(server.url)
    backend.create_index("site_1")
    case = Case(backend, "site_1")
    case.add(*SHOP)
    return case


def test_every_backend_method_is_tested_with_corrupted_responses() -> None:
    assert {name.partition(" ")[0] for name in calls(Case(create_backend("memory://"), ""))} == set(CALLS)


@pytest.mark.parametrize("most", [1, pytest.param(len(WRONG), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", calls(Case(create_backend("memory://"), "")))
def test_corrupted_response_yields_a_valid_result_or_a_backend_error(
    name: str, most: int, server: Server, case: Case
) -> None:
    call, liar = calls(case)[name], Liar(server)
    check_response(liar.run(call))
    for place, (_, _, body) in enumerate(list(liar.replies)):
        for lie, told in lies_of(body, most):
            answer: object = None
            with contextlib.suppress(BackendError):
                answer = liar.run(call, place, told)
            try:
                check_response(answer)
            except (AssertionError, ValueError) as error:
                raise AssertionError(f"reply {place} of {name}, of which {lie}: {answer}") from error


@pytest.mark.parametrize("lie", [
    {"found": 1, "totalHits": 1}, {"found": 10**9, "totalHits": 10**9, "hits": 3},
    {"request_params": {"collection_name": "site_9"}, "indexUid": "site_9"},
])  # fmt: skip
def test_inconsistent_search_response_raises_backend_unavailable(
    server: Server, case: Case, lie: dict[str, Any]
) -> None:
    def tell(request: Any) -> Reply | None:
        server.fault = None
        status, headers, body = server.answer(request)
        server.fault = tell
        if "search" not in request.url or request.method != "POST":
            return status, headers, body
        reply = json.loads(body)
        for result in reply["results"]:
            if lie.get("hits"):
                result["hits"] *= lie["hits"]
            result |= {name: value for name, value in lie.items() if name in result and name != "hits"}
        return status, headers, json.dumps(reply).encode()

    server.fault = tell
    with pytest.raises(BackendUnavailable, match="unreadable response"):
        case.backend.search(case.index, SearchQuery("reading", limit=5))


@pytest.mark.parametrize(
    "name", ["search with pins", "search for fewer words", "find_titles", "find_related", "issue_credential"]
)
def test_requests_of_one_operation_share_its_time_budget(
    name: str, server: Server, case: Case, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = http.HttpPool.send

    def slowly(self: http.HttpPool, method: str, node: str, path: str, budget: http.Budget, **more: Any) -> Any:
        answer = send(self, method, node, path, budget, **more)
        clock.now += min(2.0, budget.remaining())
        if not budget.remaining():
            raise http.TransportFailure("timeout", node)
        return answer

    monkeypatch.setattr(http.HttpPool, "send", slowly)
    began, real = clock.now, time.monotonic()
    with contextlib.suppress(BackendUnavailable):
        Liar(server).run(calls(case)[name])
    assert clock.now - began <= 5.2
    assert time.monotonic() - real < 5
