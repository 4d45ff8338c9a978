"""Slow requests of one account leave half of a worker's threads to other accounts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.services.usage.cpu_limits import MAX_WAITING
from tests.server import Server
from tests.service.clients import Customer, crowd, page, register, together
from tests.service.conftest import one_machine

pytestmark = pytest.mark.service

SLOW = {"slow_word": "molasses", "slow_seconds": 4}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Server]:
    """A server with one worker of eight threads."""
    with one_machine(tmp_path, workers=1, application="tests.service.slow_engine:app", **SLOW) as servers:
        yield servers[0]


def join(server: Server, email: str) -> Customer:
    made = register([server], email)
    server.set_plan(made.email, "business", requests_per_minute="unlimited")
    assert made.private.index(page(1)).status == 200
    return made


def test_other_accounts_are_served_at_once_and_the_slow_account_gets_503(machine: Server) -> None:
    slow, other = join(machine, "ann@example.com"), join(machine, "eve@example.com")

    with crowd(MAX_WAITING + 12, lambda _number: slow.search.search("molasses")) as attack:
        attack.wait_for(1, status=503)
        answers = [other.search.search("page") for _ in range(100)]
        attack.wait_for(1, status=200)
    assert {answer.status for answer in answers} == {200}
    assert max(answer.seconds for answer in answers) < 2
    rejected = [answer for _, answer in attack.answers if answer.status == 503]
    assert {(answer.error, answer.headers["Retry-After"]) for answer in rejected} == {("server_busy", "2")}


@pytest.mark.parametrize("searches", [8, 16])
def test_concurrent_searches_of_one_page_on_a_slow_engine_all_succeed_in_turn(machine: Server, searches: int) -> None:
    slow, other = join(machine, "ann@example.com"), join(machine, "eve@example.com")

    with crowd(1, lambda _number: other.search.search("page")) as visitors:
        visitors.wait_for(1)
        answers = together(searches, searches, lambda _number: slow.search.search("molasses"))
    assert {answer.status for answer in answers} == {200}
    assert {answer.status for _, answer in visitors.answers} == {200}
    assert max(answer.seconds for _, answer in visitors.answers) < 2


def test_busy_account_with_fast_requests_is_not_rejected(machine: Server) -> None:
    busy = join(machine, "ann@example.com")

    answers = together(24, 400, lambda _number: busy.search.search("page"))
    assert {answer.status for answer in answers} == {200}
