"""Slow clients block no threads: other clients are served meanwhile, and slow ones are disconnected after a while."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import pytest

from tests.server import Server
from tests.service import siege
from tests.service.clients import Customer, eventually, page, register
from tests.service.conftest import one_machine

pytestmark = pytest.mark.service

SEARCHES = 30


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Customer]]:
    """A server with two workers of eight threads, and a tenant."""
    with one_machine(tmp_path_factory.mktemp("siege"), workers=2) as servers:
        customer = register(servers, "ann@example.com")
        servers[0].set_plan(customer.email, "business", requests_per_minute="unlimited")
        assert customer.private.index(*(page(number) for number in range(20))).status == 200
        yield servers[0], customer


def median_of_searches(customer: Customer, seconds: float) -> float:
    """Search repeatedly for this time. Returns the median duration in seconds."""
    took = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = customer.search.call("GET", "/v1/search?q=page", timeout=10)
        assert answer.status == 200, answer.body
        took.append(answer.seconds)
    return statistics.median(took)


SLOW_SENDERS = (
    siege.half_a_head,
    siege.half_a_body,
    siege.half_a_large_body,
    siege.half_a_chunked_body,
    siege.nothing,
)


@pytest.mark.parametrize("begin", SLOW_SENDERS, ids=lambda begin: begin.__name__)
def test_clients_sending_a_byte_per_second_do_not_block_others_and_are_disconnected(
    besieged: tuple[Server, Customer], begin: Callable[[], bytes], record_property: Callable[[str, object], None]
) -> None:
    server, customer = besieged
    record_property("median_alone", median_of_searches(customer, 2))
    with siege.slow_senders(server, begin) as attack:
        record_property("median_besieged", median_of_searches(customer, 6))
        assert customer.private.index(page("meanwhile")).status == 200

        def all_are_cut() -> None:
            assert not attack.open

        eventually(all_are_cut, seconds=60)
    answers = {said.split(b"\r\n")[0] for said in attack.said}
    rejections = {b"HTTP/1.1 408 Request Timeout", b"HTTP/1.1 503 Service Unavailable"}
    if begin is siege.half_a_large_body:
        # Only callers with a key may send a body of this size; others are rejected before it is read.
        rejections = {b"HTTP/1.1 413 REQUEST ENTITY TOO LARGE"}
    assert answers & rejections


def test_clients_that_do_not_read_do_not_block_others_and_are_disconnected(
    besieged: tuple[Server, Customer], record_property: Callable[[str, object], None]
) -> None:
    server, customer = besieged
    record_property("median_alone", median_of_searches(customer, 2))
    with siege.slow_readers(server, "/openapi.json", requests=100) as attack:
        record_property("median_besieged", median_of_searches(customer, 12))

        def all_are_cut() -> None:
            assert not attack.open

        eventually(all_are_cut, seconds=60)
