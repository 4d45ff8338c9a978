"""Visitors are identified consistently with every kind of key."""

from __future__ import annotations

from itertools import repeat

import pytest
from sqlalchemy import select

from app.models import SearchEvent
from tests import shared_servers
from tests.callers import Tenant, page
from tests.gateway.callers import Gateway


def visitors(tenant: Tenant) -> list[int | None]:
    """Return the visitors of all searches, in order."""
    part = tenant.app.extensions["runtime"]
    part.events.flush()
    with part.database.read() as session:
        return list(session.scalars(select(SearchEvent.visitor).order_by(SearchEvent.recorded_at)))


def test_public_and_engine_keys_identify_visitors_by_ip_address(tenant: Tenant) -> None:
    log = {"query": "tram", "results_count": 1, "session_id": "one"}
    for address, session in (("198.51.100.1", "one"), ("198.51.100.1", "two"), ("198.51.100.2", "one")):
        gateway = Gateway(tenant, visitors=repeat(address))
        gateway.send({"q": "tram"}, headers={"X-Search-Session": session})
        gateway.send({"q": "bus"})
        tenant.public.post("/api/v1/search-log", json=log, environ_overrides={"REMOTE_ADDR": address})

    numbers = visitors(tenant)

    assert None not in numbers
    assert numbers[:3] == numbers[3:6] == [numbers[0]] * 3
    assert numbers[6:] == [numbers[6]] * 3
    assert numbers[0] != numbers[6]


@pytest.mark.parametrize("kind", ["search", "private"])
def test_search_and_private_keys_identify_visitors_by_session_id(tenant: Tenant, kind: str) -> None:
    client = tenant.client(kind)
    for session, address in (("one", "198.51.100.1"), ("one", "198.51.100.2"), ("two", "198.51.100.1"), ("", "::1")):
        query = {"q": f"tram {address}", **({"session_id": session} if session else {})}
        client.get("/v1/search", query_string=query, environ_overrides={"REMOTE_ADDR": address})

    one, again, two, nobody = visitors(tenant)

    assert one == again
    assert None not in (one, two)
    assert one != two
    assert nobody is None


def test_search_with_a_cached_key_and_its_visitor_work_without_the_database(tenant: Tenant) -> None:
    tenant.index(page(1, title="Tram"))
    gateway = Gateway(tenant)
    gateway.search("tram")
    with shared_servers.database_away(tenant.app):
        assert gateway.ids("tram") == ["page-1"]

    assert len(set(visitors(tenant))) == 1


def test_search_excluded_from_analytics_records_no_visitor(tenant: Tenant) -> None:
    Gateway(tenant).send({"q": "tram"}, headers={"X-Search-Analytics": "false"})

    assert visitors(tenant) == []
