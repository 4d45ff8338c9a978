"""A site's public key as the API key of the gateway: a static page needs no client-info."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from sqlalchemy import select

from app.models import Key
from tests.callers import Tenant, page
from tests.gateway.callers import Gateway, VisitorClient, assert_engine_error, used_today
from tests.gateway.test_limits import limit
from tests.responses import assert_ok

GOOD, BAD = {"Origin": "https://www.example.com"}, {"Origin": "https://evil.example"}


def visitor(tenant: Tenant, token: str | None = None) -> VisitorClient:
    return VisitorClient(tenant.app, token or tenant.tokens["public"])


def search(tenant: Tenant, client: VisitorClient, q: str = "page", headers: dict[str, str] | None = None) -> int:
    """Return the status of a search; fail for any error except ``invalid_api_key``."""
    response = client.post(f"/engine/indexes/{tenant.site['index']}/search", json={"q": q}, headers=headers or {})
    if response.status_code != 200:
        assert_engine_error(response, 403, "invalid_api_key")
    return response.status_code


def test_public_key_works_for_every_operation_of_the_gateway(tenant: Tenant) -> None:
    tenant.index(page(1, author="Ann"))
    client, index = visitor(tenant), tenant.site["index"]

    found = [
        assert_ok(client.post(f"/engine/indexes/{index}/search", json={"q": "page"}))["hits"],
        assert_ok(client.get(f"/engine/indexes/{index}/search?q=page"))["hits"],
        assert_ok(client.post("/engine/multi-search", json={"queries": [{"indexUid": index, "q": "page"}]}))["results"][
            0
        ]["hits"],
    ]

    assert [[hit["id"] for hit in hits] for hits in found] == [["page-1"]] * 3
    facet = client.post(f"/engine/indexes/{index}/facet-search", json={"facetName": "author"})
    assert assert_ok(facet)["facetHits"] == [{"value": "Ann", "count": 1}]
    assert assert_ok(client.post("/engine/suggest", json={"q": "page"})) == assert_ok(
        client.get("/engine/suggest?q=page")
    )


def test_public_key_searches_only_its_own_index(tenant: Tenant, stranger: Tenant) -> None:
    other = tenant.browser.post("/sites", json={"name": "Other", "url": "https://other.example/"}).get_json()["site"]

    for index in (stranger.site["index"], other["index"], "*"):
        response = visitor(tenant).post(f"/engine/indexes/{index}/search", json={"q": "page"})
        body = assert_engine_error(response, 403, "invalid_api_key")
        assert f"`{tenant.site['index']}`" in body["message"]


@pytest.mark.parametrize("kind", ["search", "private"])
def test_secret_keys_are_rejected_with_a_hint(tenant: Tenant, kind: str) -> None:
    response = visitor(tenant, tenant.tokens[kind]).get("/engine/suggest?q=page")

    body = assert_engine_error(response, 403, "invalid_api_key")
    assert body["message"] == (
        f"A {kind} key is a secret and must not be in a web page; use a public key, or an engine key from "
        "GET /v1/client-info."
    )


def test_public_key_stops_and_works_again_with_the_next_request(tenant: Tenant) -> None:
    client = visitor(tenant)
    assert search(tenant, client) == 200
    toggle = f"/api/keys/{tenant.keys['public']['id']}/toggle"

    for method, path, off, on in (
        ("POST", toggle, {"active": False}, {"active": True}),
        ("PUT", f"/sites/{tenant.site_id}", {"active": False}, {"active": True}),
    ):
        tenant.browser.call(method, path, json=off)
        assert search(tenant, client) == search(tenant, client) == 403
        tenant.browser.call(method, path, json=on)
        assert search(tenant, client) == search(tenant, client) == 200

    tenant.browser.delete(f"/api/sites/{tenant.site_id}/keys/{tenant.keys['public']['id']}")
    assert search(tenant, client) == 403


def test_public_key_of_a_deleted_site_stops(tenant: Tenant) -> None:
    client = visitor(tenant)
    assert search(tenant, client) == 200

    tenant.browser.delete(f"/sites/{tenant.site_id}")

    assert search(tenant, client) == 403


def test_public_key_of_a_suspended_account_stops(tenant: Tenant) -> None:
    client = visitor(tenant)
    assert search(tenant, client) == 200

    for command, status in (("suspend", 403), ("resume", 200)):
        result = tenant.app.test_cli_runner().invoke(args=["account", command, tenant.email])
        assert result.exit_code == 0, result.output
        assert search(tenant, client) == status


def test_public_key_does_not_expire_after_a_day_but_at_its_own_expiry(tenant: Tenant) -> None:
    start = datetime.now(UTC)
    client = visitor(tenant)
    with time_machine.travel(start, tick=False) as clock:
        clock.move_to(start + timedelta(days=40))
        assert search(tenant, client) == 200
        expires_at = (start + timedelta(days=41)).isoformat()
        path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['public']['id']}"
        assert_ok(tenant.private.put(path, json={"expires_at": expires_at}))
        assert search(tenant, client) == 200

        clock.move_to(start + timedelta(days=41, seconds=1))

        assert search(tenant, client) == 403


def test_previous_token_of_a_rotated_public_key_works_during_the_overlap(tenant: Tenant) -> None:
    path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['public']['id']}/rotate"
    with time_machine.travel(datetime(2031, 5, 14, 12, 0, tzinfo=UTC), tick=False) as clock:
        old = visitor(tenant)
        new = visitor(tenant, tenant.private.post(path, json={"overlap_seconds": 60}).get_json()["api_key"])
        assert search(tenant, old) == search(tenant, new) == 200

        clock.shift(61)

        assert (search(tenant, old), search(tenant, new)) == (403, 200)


def test_allowed_origins_of_the_public_key_apply(tenant: Tenant) -> None:
    path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['public']['id']}"
    assert_ok(tenant.private.put(path, json={"allowed_origins": [GOOD["Origin"]]}))
    client = visitor(tenant)

    assert search(tenant, client, headers=GOOD) == search(tenant, client) == 200
    for call in (
        lambda: client.post(f"/engine/indexes/{tenant.site['index']}/search", json={"q": "page"}, headers=BAD),
        lambda: client.get("/engine/suggest?q=page", headers=BAD),
    ):
        assert_engine_error(call(), 403, "origin_not_allowed")


def test_typing_with_a_public_key_is_charged_like_typing_with_its_engine_key(tenant: Tenant) -> None:
    tenant.index(page(1))
    own = Gateway(tenant, "public", "engine_key").client

    assert [search(tenant, visitor(tenant), text) for text in ("p", "pa", "page")] == [200] * 3
    assert used_today(tenant) == 1
    assert search(tenant, own, "pages") == 200
    assert used_today(tenant) == 1, "both keys belong to the same visitor"
    assert search(tenant, own, "other") == 200
    assert used_today(tenant) == 2


def test_quota_and_request_limits_of_public_keys_apply(tenant: Tenant) -> None:
    limit(tenant, searches_per_day=1)
    path = f"/engine/indexes/{tenant.site['index']}/search"
    assert_ok(visitor(tenant).post(path, json={"q": "page"}))
    assert_engine_error(visitor(tenant).post(path, json={"q": "other"}), 429, "rate_limit_exceeded")
    limit(tenant, requests_per_minute=3)

    statuses = [visitor(tenant).post(path, json={"q": f"text {number}"}).status_code for number in range(4)]

    assert statuses == [200, 429, 429, 429], "the two previous searches must count, too"


def test_public_keys_use_at_the_gateway_is_recorded_with_its_page(tenant: Tenant) -> None:
    assert search(tenant, visitor(tenant), headers=GOOD) == 200

    part = tenant.app.extensions["runtime"]
    part.keys_last_used.flush()
    with part.database.read() as session:
        key = session.scalars(select(Key).where(Key.id == tenant.keys["public"]["id"])).one()
    assert key.last_used_at is not None
    assert key.seen_host == "www.example.com"


def test_preflight_of_the_gateway_succeeds_from_any_origin(tenant: Tenant) -> None:
    headers = {**BAD, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}

    response = VisitorClient(tenant.app, None).call("OPTIONS", "/engine/multi-search", headers=headers)

    assert (response.status_code, response.headers["Access-Control-Allow-Origin"]) == (204, "*")
