"""Several processes send one sync, and are killed during its sweep: unseen documents are removed once, and no
others."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress

import pytest

from tests.server import Server
from tests.service.clients import Answer, Customer, NoAnswer, eventually, page, register, together

pytestmark = pytest.mark.service

DOCUMENTS, BATCH, SEEN, OTHERS = 6_000, 100, 300, 100
KILLS = 6


def send(customer: Customer, sync_id: str, numbers: range) -> None:
    """Send pages in batches, with concurrent clients, to all servers."""

    def one(number: int) -> Answer:
        batch = [page(n) for n in numbers[number * BATCH : (number + 1) * BATCH]]
        return customer.private.call("POST", f"/api/v1/index/bulk?sync={sync_id}", {"documents": batch})

    answers = together(6, len(numbers) // BATCH, one)
    assert {answer.status for answer in answers} == {200}, answers


def begin(customer: Customer) -> str:
    sync_id: str = customer.private.must("POST", "/api/v1/sync", {"source": "wordpress"})["sync"]["id"]
    return sync_id


def kept_ids(customer: Customer) -> set[str]:
    ids: set[str] = set()
    cursor = ""
    while True:
        found = customer.private.must("GET", f"/api/v1/documents?limit=1000&fields=id&cursor={cursor}")
        ids |= {document["id"] for document in found["documents"]}
        cursor = found["next_cursor"]
        if cursor is None:
            return ids


def test_sweep_removes_each_document_once_even_if_its_processes_are_killed(fresh_servers: list[Server]) -> None:
    customer = register(fresh_servers, "ann@example.com")
    fresh_servers[0].set_plan(customer.email, "business", requests_per_minute="unlimited")
    first = begin(customer)
    send(customer, first, range(DOCUMENTS))
    assert customer.private.must("GET", f"/api/v1/sync/{first}")["sync"]["seen"] == DOCUMENTS
    assert customer.private.must("POST", f"/api/v1/sync/{first}/finish")["removed"] == 0
    second = begin(customer)
    send(customer, second, range(SEEN))
    for start in range(DOCUMENTS - OTHERS, DOCUMENTS, BATCH):
        assert customer.private.index(*(page(n) for n in range(start, start + BATCH))).status == 200
    expected = {f"page-{n}" for n in (*range(SEEN), *range(DOCUMENTS - OTHERS, DOCUMENTS))}
    chance = random.Random(9)
    stopping = threading.Event()

    def kill() -> None:
        for _ in range(KILLS):
            if stopping.wait(chance.uniform(0.05, 0.6)):
                return
            with suppress(ProcessLookupError, IndexError):
                os.kill(
                    chance.choice([pid for server in fresh_servers for pid in server.worker_pids()]), signal.SIGKILL
                )

    killer = threading.Thread(target=kill)
    killer.start()
    statuses: list[int] = []
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(NoAnswer):
            answer = customer.private.call("POST", f"/api/v1/sync/{second}/finish", {"max_removed_percent": 100})
            statuses.append(answer.status)
            if answer.status in (200, 404):
                break
    stopping.set()
    killer.join()

    assert statuses[-1:] in ([200], [404]), statuses

    def all_is_done() -> None:
        sync = customer.private.must("GET", f"/api/v1/sync/{second}")["sync"]
        assert (sync["status"], sync["removed"]) == ("finished", DOCUMENTS - len(expected))
        found = customer.private.search("*", limit=1)
        assert found.body["results"]["estimatedTotalHits"] == len(expected)

    eventually(all_is_done)
    assert kept_ids(customer) == expected
    changed = customer.private.must("GET", "/dashboard")["usage"]["indexing_operations_this_month"]
    assert changed == DOCUMENTS + SEEN + OTHERS + (DOCUMENTS - len(expected))
