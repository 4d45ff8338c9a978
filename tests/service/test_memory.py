"""After large bodies and responses, a worker's memory shrinks again."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server import Server
from tests.service.clients import Customer, eventually, page, register, together
from tests.service.conftest import one_machine

pytestmark = pytest.mark.service

MOST_KEPT = 150 * 2**20
CLIENTS, REQUESTS = 4, 12


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Server]:
    with one_machine(tmp_path, workers=1) as servers:
        yield servers[0]


@pytest.fixture
def customer(machine: Server) -> Customer:
    """A tenant whose requests have reached all threads."""
    made = register([machine], "ann@example.com")
    machine.set_plan(made.email, "business", requests_per_minute="unlimited")
    assert made.private.index(page(1)).status == 200
    together(16, 100, lambda _number: made.search.search("page"))
    return made


def private_bytes(server: Server) -> int:
    """Return the worker's private memory, without memory shared with the master and mapped files."""
    (pid,) = server.worker_pids()
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * int(re.findall(r"^Private_Dirty: +(\d+) kB", text, re.MULTILINE)[0])


def words(characters: int, chance: random.Random) -> str:
    known = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(3000)]
    return " ".join(chance.choices(known, k=characters // 7))


def many_documents(number: int) -> list[dict[str, Any]]:
    text = words(15_000, random.Random(number))
    return [page(f"{number % 4}-{n}", content=text[n:]) for n in range(1000)]


def large_documents(number: int) -> list[dict[str, Any]]:
    text = words(1_000_000, random.Random(number))
    return [page(f"large-{number % 4}-{n}", content=text[n:]) for n in range(15)]


def invalid_documents(number: int) -> list[dict[str, Any]]:
    return [{"id": number, "title": n, "content": ["x", {"y": n}], "unknown": {"a": [n]}} for n in range(100_000)]


def test_worker_releases_the_memory_of_large_requests(machine: Server, customer: Customer) -> None:
    before = private_bytes(machine)

    for make, status in ((many_documents, 200), (large_documents, 200), (invalid_documents, 400)):
        answers = together(CLIENTS, REQUESTS, lambda number, make=make: customer.private.index(*make(number)))
        assert {answer.status for answer in answers} == {status}
    answers = together(CLIENTS, REQUESTS, lambda _number: customer.search.search("*", limit=15))
    assert {answer.status for answer in answers} == {200}

    def it_is_small_again() -> None:
        assert private_bytes(machine) < before + MOST_KEPT

    eventually(it_is_small_again, seconds=30)
