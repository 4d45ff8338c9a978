"""Engine keys at the gateway: their access, and when they become invalid."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from flask import Flask

from app.application import create_app
from app.services.access.engine_keys import EngineClaims, sign
from tests.callers import PASSWORD, ApiClient, Tenant, page, register_tenant
from tests.conftest import SECRET, close_app, make_app, make_settings
from tests.gateway.callers import Gateway, VisitorClient, assert_engine_error, used_today

BOTH = pytest.mark.parametrize("field", ["engine_key", "engine_public_key"])


def searches(app: Flask, token: str, index: str = "site_1") -> int:
    """Return the status of a search with this token."""
    response = VisitorClient(app, token).post(f"/engine/indexes/{index}/search", json={"q": "page"})
    if response.status_code != 200:
        assert_engine_error(response, 403, "invalid_api_key")
    return response.status_code


@pytest.fixture
def two_processes(tmp_path: Path) -> Iterator[tuple[Flask, Flask]]:
    """Two applications on the same files, as in two worker processes."""
    settings = make_settings(tmp_path, search_url=f"tantivy://{tmp_path / 'indexes'}")
    first = make_app(settings)

    second = create_app(settings)
    yield first, second
    close_app(second)
    close_app(first)


@pytest.mark.parametrize("kind", ["public", "search", "private"])
@BOTH
def test_every_kind_of_service_key_gets_working_engine_keys(tenant: Tenant, kind: str, field: str) -> None:
    tenant.index(page(1))

    assert Gateway(tenant, kind, field).ids("page") == ["page-1"]


@BOTH
def test_engine_key_searches_only_its_own_index(tenant: Tenant, stranger: Tenant, field: str) -> None:
    other = tenant.browser.post("/sites", json={"name": "Other", "url": "https://other.example/"}).get_json()["site"]
    gateway = Gateway(tenant, "public", field)

    for index in (stranger.site["index"], other["index"], "site_999", f"{gateway.index}_1", f"{gateway.index}0", "*"):
        assert_engine_error(gateway.send({"q": "page"}, index=index), 403, "invalid_api_key")
        assert_engine_error(gateway.multi({}, {"indexUid": index}), 403, "invalid_api_key")
        facet = gateway.client.post(f"/engine/indexes/{index}/facet-search", json={"facetName": "author"})
        assert_engine_error(facet, 403, "invalid_api_key")


def test_documents_of_another_tenant_are_never_found(tenant: Tenant, stranger: Tenant) -> None:
    stranger.index(page("secret", author="Eve"))
    tenant.index(page("own"))
    gateway = Gateway(tenant)

    assert gateway.ids() == ["page-own"]
    assert gateway.ids(filter="id = page-secret OR NOT id = page-secret") == ["page-own"]
    assert gateway.search(facets=["author"])["facetDistribution"] == {"author": {}}


def test_invalid_engine_keys_are_rejected(tenant: Tenant) -> None:
    secret = [tenant.tokens[kind] for kind in ("search", "private")]
    for token in (*secret, tenant.tokens["public"][:-1] + "!", "bogus", "x" * 5000, "a.b", ".", "é", "null"):
        assert searches(tenant.app, token) == 403


@pytest.mark.parametrize("header", ["", "Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "Token x"])
def test_missing_bearer_token_returns_401(tenant: Tenant, header: str) -> None:
    client = VisitorClient(tenant.app, None)
    for method, path in (
        ("POST", "/engine/indexes/site_1/search"), ("GET", "/engine/indexes/site_1/search?q=x"),
        ("POST", "/engine/multi-search"), ("POST", "/engine/indexes/site_1/facet-search"),
    ):  # fmt: skip
        response = client.call(method, path, headers={"Authorization": header} if header else {})
        assert_engine_error(response, 401, "missing_authorization_header")
        assert response.headers["WWW-Authenticate"] == "Bearer"


def test_session_cookie_is_not_accepted_at_the_gateway(tenant: Tenant) -> None:
    response = tenant.browser.post("/engine/indexes/site_1/search", json={"q": "x"})

    assert_engine_error(response, 401, "missing_authorization_header")


def test_engine_key_is_rejected_by_the_other_apis(tenant: Tenant) -> None:
    token = Gateway(tenant, "private", "engine_key").token

    for method, path in (
        ("GET", "/v1/search?q=x"),
        ("GET", "/v1/client-info"),
        ("GET", "/sites"),
        ("GET", "/dashboard"),
    ):
        response = VisitorClient(tenant.app, token).call(method, path)
        assert response.status_code == 401
        assert response.get_json()["error"] == "invalid_api_key"


@BOTH
def test_tampered_engine_key_is_rejected(tenant: Tenant, field: str) -> None:
    token = Gateway(tenant, "public", field).token
    letters = string.ascii_letters + string.digits + "-_"

    assert searches(tenant.app, token) == 200
    for at in (0, len(token) // 3, len(token) - 2):
        assert searches(tenant.app, token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]) == 403
    last = [token[:-1] + letter for letter in letters if letter != token[-1]]
    assert {searches(tenant.app, tampered) for tampered in last} == {403}
    assert searches(tenant.app, token[:-1]) == searches(tenant.app, token + "A") == 403
    # Decoders of base64 skip some of these.
    ignored = [token + ending for ending in ("=", "==", "!", "%", ".", "\xe9")]
    assert {searches(tenant.app, tampered) for tampered in ignored} == {403}


def test_claims_with_another_secret_or_account_are_rejected(tenant: Tenant, stranger: Tenant) -> None:
    until = int((datetime.now(UTC) + timedelta(hours=1)).timestamp())
    own, theirs = tenant.account_id, stranger.account_id
    key = tenant.keys["public"]["id"]

    assert searches(tenant.app, sign(EngineClaims(own, 1, None, 1, until), SECRET)) == 200
    for claims in (
        EngineClaims(theirs, 1, None, 1, until),
        EngineClaims(own, stranger.site_id, None, 1, until),
        EngineClaims(own, 1, None, 2, until),
        EngineClaims(own, 1, key, 2, until),
        EngineClaims(own, 1, stranger.keys["public"]["id"], 1, until),
        EngineClaims(own, 1, "key_NONE", 1, until),
    ):
        assert searches(tenant.app, sign(claims, SECRET)) == 403
    assert searches(tenant.app, sign(EngineClaims(own, 1, None, 1, until), SECRET + "x")) == 403


@BOTH
def test_engine_key_expires_after_a_day(tenant: Tenant, field: str) -> None:
    start = datetime.now(UTC)
    with time_machine.travel(start, tick=False) as clock:
        token = Gateway(tenant, "public", field).token
        clock.move_to(start + timedelta(hours=23, minutes=59))
        assert searches(tenant.app, token) == 200
        clock.move_to(start + timedelta(hours=24, seconds=1))
        assert searches(tenant.app, token) == 403
        assert searches(tenant.app, Gateway(tenant, "public", field).token) == 200


def test_disabling_a_service_key_ends_its_engine_key_but_not_the_public_engine_key(tenant: Tenant) -> None:
    own, public = (Gateway(tenant, "search", field).token for field in ("engine_key", "engine_public_key"))
    assert searches(tenant.app, own) == searches(tenant.app, public) == 200
    path = f"/api/keys/{tenant.keys['search']['id']}/toggle"

    tenant.browser.post(path, json={"active": False})
    assert searches(tenant.app, own) == 403
    assert searches(tenant.app, public) == 200

    tenant.browser.post(path, json={"active": True})
    assert searches(tenant.app, own) == 403, "keys issued before must stay revoked"
    assert searches(tenant.app, Gateway(tenant, "search", "engine_key").token) == 200


@pytest.mark.parametrize("overlap_seconds", [0, 600])
def test_rotating_a_service_key_revokes_its_engine_keys(tenant: Tenant, overlap_seconds: int) -> None:
    gateway = Gateway(tenant, "search", "engine_key")
    assert searches(tenant.app, gateway.token) == 200

    path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}/rotate"
    rotated = tenant.browser.post(path, json={"overlap_seconds": overlap_seconds})
    tenant.tokens["search"] = rotated.get_json()["api_key"]

    assert searches(tenant.app, gateway.token) == 403
    assert searches(tenant.app, Gateway(tenant, "search", "engine_key").token) == 200


def test_engine_key_from_the_previous_token_ends_with_the_rotation_overlap(tenant: Tenant) -> None:
    path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}/rotate"
    with time_machine.travel(datetime(2031, 5, 14, 12, 0, tzinfo=UTC), tick=False) as clock:
        rotated = tenant.private.post(path, json={"overlap_seconds": 60})
        before = Gateway(tenant, "search", "engine_key").token
        tenant.tokens["search"] = rotated.get_json()["api_key"]
        after = Gateway(tenant, "search", "engine_key").token
        assert (searches(tenant.app, before), searches(tenant.app, after)) == (200, 200)

        clock.shift(61)

        assert (searches(tenant.app, before), searches(tenant.app, after)) == (403, 200)


def test_deleting_a_service_key_revokes_its_engine_key_but_not_the_public_engine_key(tenant: Tenant) -> None:
    own, public = (Gateway(tenant, "search", field).token for field in ("engine_key", "engine_public_key"))
    assert searches(tenant.app, own) == 200

    tenant.browser.delete(f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}")

    assert searches(tenant.app, own) == 403
    assert searches(tenant.app, public) == 200


def test_engine_key_is_invalid_while_its_service_key_is_expired(tenant: Tenant) -> None:
    start = datetime.now(UTC)
    path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}"
    with time_machine.travel(start, tick=False) as clock:
        tenant.browser.put(path, json={"expires_at": (start + timedelta(hours=1)).isoformat()})
        token = Gateway(tenant, "search", "engine_key").token
        assert searches(tenant.app, token) == 200

        clock.move_to(start + timedelta(hours=1, seconds=1))
        assert searches(tenant.app, token) == 403
        assert tenant.search.get("/v1/search?q=x").status_code == 401

        tenant.browser.put(path, json={"expires_at": None})
        assert searches(tenant.app, token) == 200
        assert tenant.search.get("/v1/search?q=x").status_code == 200


def test_bringing_the_expiry_of_a_service_key_forward_revokes_its_engine_keys(tenant: Tenant) -> None:
    start = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
    path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['search']['id']}"
    with time_machine.travel(start, tick=False):
        for hours, stops in ((9, True), (5, True), (5, False), (7, False), (None, False), (8, True)):
            own, public = (Gateway(tenant, "search", field).token for field in ("engine_key", "engine_public_key"))
            expires_at = None if hours is None else (start + timedelta(hours=hours)).isoformat()

            assert tenant.private.put(path, json={"expires_at": expires_at}).status_code == 200

            assert searches(tenant.app, own) == (403 if stops else 200), hours
            assert searches(tenant.app, public) == 200


@BOTH
def test_pausing_a_site_ends_its_engine_keys(tenant: Tenant, field: str) -> None:
    token = Gateway(tenant, "search", field).token
    assert searches(tenant.app, token) == 200

    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})
    assert searches(tenant.app, token) == 403
    assert searches(tenant.app, Gateway(tenant, "search", field).token) == 403

    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": True})
    assert searches(tenant.app, Gateway(tenant, "search", field).token) == 200


@BOTH
def test_deleting_a_site_revokes_its_engine_keys(tenant: Tenant, field: str) -> None:
    token = Gateway(tenant, "search", field).token
    assert searches(tenant.app, token) == 200

    tenant.browser.delete(f"/sites/{tenant.site_id}")

    assert searches(tenant.app, token) == 403


@BOTH
def test_deleting_an_account_ends_its_engine_keys(tenant: Tenant, field: str) -> None:
    token = Gateway(tenant, "search", field).token
    assert searches(tenant.app, token) == 200

    assert tenant.browser.delete("/profile", json={"password": PASSWORD, "reason": "done"}).status_code == 200

    assert searches(tenant.app, token) == 403


def test_invalidation_takes_effect_with_the_next_request_in_every_process(two_processes: tuple[Flask, Flask]) -> None:

    here, there = two_processes
    tenant = register_tenant(here, "ann@example.com")
    tenant.index(page(1))
    for _ in range(3):  # One process makes the change while the other has the old state cached.
        own, public = (Gateway(tenant, "search", field).token for field in ("engine_key", "engine_public_key"))
        for _ in range(2):
            assert searches(there, own) == searches(there, public) == 200
        tenant.browser.post(f"/api/keys/{tenant.keys['search']['id']}/toggle", json={"active": False})
        assert searches(there, own) == 403
        assert searches(there, public) == 200
        tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})
        assert searches(there, public) == 403
        tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": True})
        tenant.browser.post(f"/api/keys/{tenant.keys['search']['id']}/toggle", json={"active": True})


def test_reenabled_service_key_works_again_in_every_process(two_processes: tuple[Flask, Flask]) -> None:

    here, there = two_processes
    tenant = register_tenant(here, "ann@example.com")
    client = ApiClient(there, tenant.tokens["search"])
    path = f"/api/keys/{tenant.keys['search']['id']}/toggle"
    for _ in range(2):
        assert client.get("/v1/search?q=x").status_code == 200
        tenant.browser.post(path, json={"active": False})
        for _ in range(2):
            assert client.get("/v1/search?q=x").status_code == 401
        tenant.browser.post(path, json={"active": True})
    assert client.get("/v1/search?q=x").status_code == 200


def test_cached_engine_key_is_not_read_from_the_database_again(tenant: Tenant) -> None:
    tokens = [Gateway(tenant, "search", field).token for field in ("engine_key", "engine_public_key")]
    for token in tokens:
        searches(tenant.app, token)
    database = tenant.app.extensions["runtime"].database
    real, reads = database.read, []

    def counted():
        reads.append(1)
        return real()

    database.read = counted
    try:
        assert [searches(tenant.app, token) for token in tokens] == [200, 200]
        # Another visitor's key for the same site is a different token, but its claims are cached as well.
        until = int((datetime.now(UTC) + timedelta(hours=5)).timestamp())
        assert (
            searches(tenant.app, sign(EngineClaims(tenant.account_id, tenant.site_id, None, 1, until), SECRET)) == 200
        )
    finally:
        database.read = real
    assert reads == []


def preview_gateway(tenant: Tenant) -> Gateway:
    """Return the gateway as the preview on the site's search box page calls it."""
    shown = tenant.browser.get(f"/sites/{tenant.site_id}/box", headers={"Accept": "text/html"})
    info = json.loads(re.findall(r"data-client-info='(.+?)'", shown.get_data(as_text=True))[0])
    gateway = Gateway(tenant)
    gateway.client = VisitorClient(tenant.app, info["engine_public_key"])
    assert (info["index"], info["active"]) == (gateway.index, True)
    return gateway


def restrict(tenant: Tenant) -> None:
    """Restrict all public keys of the tenant's site to another origin."""
    for key in tenant.browser.get(f"/api/sites/{tenant.site_id}/keys").get_json()["keys"]:
        if key["type"] == "public":
            changed = tenant.browser.put(
                f"/api/sites/{tenant.site_id}/keys/{key['id']}", json={"allowed_origins": ["https://shop.example.com"]}
            )
            assert changed.status_code == 200


def test_preview_key_searches_from_our_pages_even_if_the_public_key_is_restricted(tenant: Tenant) -> None:
    tenant.index(page(1))
    restrict(tenant)
    own = {"Origin": "http://localhost"}

    assert preview_gateway(tenant).send({"q": "page"}, headers=own).status_code == 200
    assert_engine_error(Gateway(tenant).send({"q": "page"}, headers=own), 403, "origin_not_allowed")


def test_searches_with_a_preview_key_are_free_not_recorded_and_limited(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.index(page(1))
    gateway = preview_gateway(tenant)
    monkeypatch.setattr("app.services.usage.quota.PREVIEW_LIMIT", 3)

    assert gateway.ids("page") == ["page-1"]
    tenant.settle()
    assert used_today(tenant) == 0
    assert tenant.browser.get("/api/analytics").get_json()["top_queries"] == []
    gateway.search("page")
    gateway.search("page")
    assert_engine_error(gateway.send({"q": "page"}), 429, "rate_limit_exceeded")
    assert Gateway(tenant).ids("page") == ["page-1"], "visitors must have separate limits"


def test_preview_key_expires_and_is_revoked_when_its_site_is_paused(tenant: Tenant) -> None:
    gateway = preview_gateway(tenant)
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=12, seconds=1), tick=False):
        assert_engine_error(gateway.send({"q": "page"}), 403, "invalid_api_key")
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})
    assert_engine_error(gateway.send({"q": "page"}), 403, "invalid_api_key")
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": True})
    assert_engine_error(gateway.send({"q": "page"}), 403, "invalid_api_key")
