"""Acknowledged documents are found immediately by every worker, even after crashes, and no batch is partial."""

from __future__ import annotations

import fcntl
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.server import Server
from tests.service.clients import Answer, Customer, NoAnswer, crowd, eventually, page, register, together
from tests.service.stored import rows

pytestmark = pytest.mark.service

CLIENTS = 8
DEATHS = 5


def all_ids(customer: Customer, site_id: int) -> set[str]:
    """Return the IDs of all documents in the site's index, listed while nothing is added."""
    while True:
        hits: list[str] = []
        totals: set[int] = set()
        while len(totals) < 2:
            path = f"/v1/search?q=*&limit=100&offset={len(hits)}&site_id={site_id}"
            results = customer.private.must("GET", path)["results"]
            hits += [hit["id"] for hit in results["hits"]]
            totals.add(results["estimatedTotalHits"])
            if len(results["hits"]) < 100 and len(totals) == 1:
                assert totals == {len(hits)}
                assert len(set(hits)) == len(hits)
                return set(hits)


def indexed_pages(customer: Customer) -> dict[int, int]:
    """Return the reported number of documents of each site."""
    return {site["id"]: site["indexed_pages"] for site in customer.private.must("GET", "/sites")["sites"]}


@pytest.fixture
def unlimited(servers: list[Server], customer: Customer) -> Customer:
    servers[0].set_plan(customer.email, "business", requests_per_minute="unlimited")
    return customer


def test_indexed_documents_are_found_by_the_next_request_at_any_worker(unlimited: Customer) -> None:
    customer = unlimited
    more = [
        customer.private.must("POST", "/sites", {"name": "More", "url": "https://more.example/"})["site"]["id"]
        for _ in range(2)
    ]
    sites = [customer.site_id, customer.site_id, *more]

    def index_and_search(number: int) -> None:
        site_id = sites[number % len(sites)]
        documents = [page(f"{number}-{part}", title=f"unique{number} text") for part in range(1 + number % 3)]
        assert customer.private.index(*documents, site_id=site_id).status == 200
        assert customer.private.found_ids(f'"unique{number}"', site_id=site_id) == {one["id"] for one in documents}
        changed = page(f"{number}-0", title=f"changed{number} text")
        answer = customer.private.index(changed, site_id=site_id)
        assert (answer.status, answer.body["created"], answer.body["updated"]) == (200, 0, 1)
        assert customer.private.found_ids(f'"changed{number}"', site_id=site_id) == {changed["id"]}
        assert changed["id"] not in customer.private.found_ids(f'"unique{number}"', site_id=site_id)
        if number % 4 == 0:
            gone = customer.private.call("DELETE", f"/api/v1/index/destroy?id={changed['id']}&site_id={site_id}")
            assert gone.status == 200
            assert customer.private.found_ids(f'"changed{number}"', site_id=site_id) == set()

    together(CLIENTS, 60, index_and_search)

    counts = indexed_pages(customer)
    assert counts == {site_id: len(all_ids(customer, site_id)) for site_id in set(sites)}
    assert sum(counts.values()) == sum(1 + number % 3 - (number % 4 == 0) for number in range(60))


def test_acknowledged_documents_survive_killing_all_processes_at_any_moment(fresh_servers: list[Server]) -> None:
    """Acknowledged batches are found by the first search after the restart; other batches are complete or absent."""
    servers = fresh_servers
    customer = register(servers, "ann@example.com")
    servers[0].set_plan(customer.email, "business", requests_per_minute="unlimited")
    moments = random.Random(8)
    batches: dict[int, list[dict[str, Any]]] = {}
    acknowledged: set[int] = set()
    begin = 0

    for _ in range(DEATHS):

        def index(number: int, begin: int = begin) -> Answer:
            batch = [page(f"{begin + number}-{part}") for part in range(1 + number % 4)]
            batches[begin + number] = batch
            return customer.private.index(*batch)

        with crowd(CLIENTS, index) as writes:
            writes.wait_for(moments.randint(1, 30), seconds=60)
            time.sleep(moments.uniform(0, 0.05))
            for server in servers:
                server.kill()
        assert {answer.status for _, answer in writes.answers} == {200}
        acknowledged |= {begin + number for number, _ in writes.answers}
        begin = max(batches) + 1
        for server in servers:
            server.start()
        found = all_ids(customer, customer.site_id)
        assert {one["id"] for number in acknowledged for one in batches[number]} <= found

    def all_is_whole() -> None:
        found = all_ids(customer, customer.site_id)
        for batch in batches.values():
            assert len(found & {one["id"] for one in batch}) in (0, len(batch))
        assert indexed_pages(customer) == {customer.site_id: len(found)}

    eventually(all_is_whole)
    ((lagging,),) = rows(servers[0], "SELECT count(*) FROM sites WHERE applied_revision < revision")
    assert lagging == 0


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a lock file as another process would."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_document_of_a_writer_killed_before_indexing_is_indexed_by_the_job(machine: Server) -> None:
    customer = register([machine], "ann@example.com")
    assert customer.private.index(page(1)).status == 200

    def write() -> None:
        with pytest.raises(NoAnswer):
            customer.private.index(page(2))

    with held(machine.folder / "locks" / f"site_{customer.site_id}.lock"):
        writer = threading.Thread(target=write)
        writer.start()

        def is_in_the_database() -> None:
            assert len(rows(machine, "SELECT id FROM documents")) == 2

        eventually(is_in_the_database)
        machine.kill()
        writer.join()
    assert rows(machine, "SELECT revision, applied_revision FROM sites") == [(2, 1)]
    machine.start()

    def is_found() -> None:
        assert all_ids(customer, customer.site_id) == {"page-1", "page-2"}

    eventually(is_found)
