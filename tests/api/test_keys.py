"""API keys: create, list, show, change, toggle, rotate, delete."""

from __future__ import annotations

import re
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask

from app.tokens import ALPHABET
from tests.callers import ApiClient, Browser, Tenant, register_browser
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
RECORD = {
    "id",
    "site_id",
    "name",
    "type",
    "prefix",
    "last4",
    "status",
    "active",
    "created_at",
    "updated_at",
    "last_used_at",
    "expires_at",
    "scopes",
    "site_only",
    "allowed_origins",
}
PREFIXES = {"public": "svc_pub_", "search": "svc_srch_", "private": "svc_prv_"}


def create(tenant: Tenant, **fields: Any) -> tuple[dict[str, Any], str]:
    """Create a key and return its record and token."""
    answer = assert_ok(tenant.browser.post(f"/api/sites/{tenant.site_id}/keys", json={"name": "New", **fields}), 201)
    return answer["key"], answer["api_key"]


def path_of(key: dict[str, Any], action: str = "") -> str:
    return f"/api/sites/{key['site_id']}/keys/{key['id']}{action}"


def use(tenant: Tenant, token: str) -> Any:
    return ApiClient(tenant.app, token).get("/v1/client-info")


@pytest.mark.parametrize("kind", PREFIXES)
def test_created_key_has_the_expected_record_and_token_format(ann: Tenant, kind: str) -> None:
    response = ann.browser.post(f"/api/sites/{ann.site_id}/keys", json={"name": "  Shop ", "type": kind})

    answer = assert_ok(response, 201)
    key, token = answer["key"], answer["api_key"]
    assert answer["success"] is True
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Location"] == path_of(key)
    assert set(key) == RECORD
    assert key == {
        **key,
        "site_id": ann.site_id,
        "name": "Shop",
        "type": kind,
        "prefix": PREFIXES[kind],
        "last4": token[-4:],
        "status": "active",
        "active": True,
        "last_used_at": None,
        "expires_at": None,
    }
    assert re.fullmatch(r"key_[A-Z2-7]{10}", key["id"])
    assert re.fullmatch(PREFIXES[kind] + r"[0-9A-Za-z]{38}", token)


def test_token_ends_in_its_checksum(ann: Tenant) -> None:
    _, token = create(ann)
    value = 0
    for digit in token[-6:]:
        value = value * 62 + ALPHABET.index(digit)

    assert ALPHABET == "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    assert value == zlib.crc32(token[:-6].encode())


def test_key_type_defaults_to_search(ann: Tenant) -> None:
    assert create(ann)[0]["type"] == "search"


def test_token_is_returned_once_and_never_stored(app: Flask, tenant: Tenant, tmp_path: Path) -> None:
    key, token = create(tenant, name="Once")
    assert_ok(use(tenant, token))
    app.extensions["jobs"].run_all()
    app.extensions["runtime"].database.dispose()

    for path in (path_of(key), path_of(key, "/edit"), f"/api/sites/{tenant.site_id}/keys"):
        assert token not in tenant.browser.get(path).get_data(as_text=True)
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes(), f"{file} has the token"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": 1}, "name"),
        ({"name": None}, "name"),
        ({"name": "x", "type": "secret"}, "type"),
        ({"name": "x", "type": None}, "type"),
        ({"name": "x", "expires_at": "2001-01-01"}, "expires_at"),
        ({"name": "x", "expires_at": "soon"}, "expires_at"),
        ({"name": "x", "expires_at": 2000000000}, "expires_at"),
        ({"name": "x", "expire_at": "2101-01-01"}, "expire_at"),
        ({"name": "x", "active": False}, "active"),
        ({"name": "x", "id": "key_AAAAAAAAAA"}, "id"),
    ],
)
def test_key_with_invalid_fields_is_rejected(ann: Tenant, body: dict[str, Any], field: str) -> None:
    path = f"/api/sites/{ann.site_id}/keys"
    total = ann.browser.get(path).get_json()["total"]

    assert_error(ann.browser.post(path, json=body), 400, "validation_failed", field=field)
    assert ann.browser.get(path).get_json()["total"] == total


def test_key_list_is_oldest_first_and_paginated(tenant: Tenant) -> None:
    fourth = create(tenant, name="Fourth")[0]

    everything = assert_ok(tenant.browser.get(f"/api/sites/{tenant.site_id}/keys"))
    last = assert_ok(tenant.browser.get(f"/api/sites/{tenant.site_id}/keys?limit=1&offset=3"))

    assert [key["name"] for key in everything["keys"]] == ["public", "search", "private", "Fourth"]
    assert (everything["total"], everything["limit"], everything["offset"]) == (4, 20, 0)
    assert last == {"keys": [fourth], "total": 4, "limit": 1, "offset": 3}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_omitted_fields_stay_unchanged_on_update(ann: Tenant, method: str) -> None:
    key, token = create(ann, expires_at="2101-01-01T00:00:00+02:00")
    assert key["expires_at"] == "2100-12-31T22:00:00.000Z"

    renamed = assert_ok(ann.browser.call(method, path_of(key), json={"name": "Renamed"}))["key"]
    eternal = assert_ok(ann.browser.call(method, path_of(key), json={"expires_at": None}))["key"]

    assert (renamed["name"], renamed["expires_at"]) == ("Renamed", key["expires_at"])
    assert (eternal["name"], eternal["expires_at"]) == ("Renamed", None)
    assert assert_ok(ann.browser.get(path_of(key))) == {"key": eternal}
    assert_ok(use(ann, token))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"type": "private"}, "type"),
        ({"expires_at": "2001-01-01"}, "expires_at"),
        ({"expires": None}, "expires"),
        ({"active": False}, "active"),
    ],
)
def test_key_update_with_invalid_fields_is_rejected(ann: Tenant, body: dict[str, Any], field: str) -> None:
    key, _ = create(ann)

    assert_error(ann.browser.put(path_of(key), json=body), 400, "validation_failed", field=field)
    assert ann.browser.get(path_of(key)).get_json() == {"key": key}


def test_updating_a_key_with_its_current_type_succeeds(ann: Tenant) -> None:
    key, _ = create(ann)

    assert assert_ok(ann.browser.put(path_of(key), json={"type": "search"}))["key"]["type"] == "search"


class TestToggle:
    """POST /api/keys/{key}/toggle."""

    def toggle(self, tenant: Tenant, key: dict[str, Any], **kwargs: Any) -> Any:
        return tenant.browser.post(f"/api/keys/{key['id']}/toggle", **kwargs)

    def test_toggle_disables_and_reenables_the_same_token(self, ann: Tenant) -> None:
        key, token = create(ann)

        disabled = assert_ok(self.toggle(ann, key))
        assert (disabled["success"], disabled["key"]["status"], disabled["key"]["active"]) == (True, "disabled", False)
        assert_error(use(ann, token), 401, "key_disabled")
        enabled = assert_ok(self.toggle(ann, key))
        assert (enabled["key"]["status"], enabled["key"]["active"]) == ("active", True)
        assert_ok(use(ann, token))

    def test_toggle_with_explicit_state_is_idempotent(self, ann: Tenant) -> None:
        key, token = create(ann)

        for _ in range(2):
            assert assert_ok(self.toggle(ann, key, json={"active": False}))["key"]["status"] == "disabled"
        assert_error(use(ann, token), 401, "key_disabled")
        for _ in range(2):
            assert assert_ok(self.toggle(ann, key, json={"active": True}))["key"]["status"] == "active"
        assert_ok(use(ann, token))

    @pytest.mark.parametrize(
        ("body", "field"),
        [({"active": "no"}, "active"), ({"active": 0}, "active"), ({"active": None}, "active"), ({"on": 1}, "on")],
    )
    def test_toggle_with_an_invalid_body_is_rejected(self, ann: Tenant, body: dict[str, Any], field: str) -> None:
        key, token = create(ann)

        assert_error(self.toggle(ann, key, json=body), 400, "validation_failed", field=field)
        assert_ok(use(ann, token))


class TestExpiry:
    """Keys with an expiry."""

    @pytest.fixture
    def browser(self, app: Flask) -> Browser:
        with time_machine.travel(NOON, tick=False):
            return register_browser(app, "ann@example.com")[0]

    @pytest.fixture
    def key(self, browser: Browser) -> dict[str, Any]:
        with time_machine.travel(NOON, tick=False):
            site = browser.post("/sites", json={"name": "S", "url": "https://s.example/"}).get_json()["site"]
            body = {"name": "Brief", "expires_at": (NOON + timedelta(hours=1)).isoformat()}
            answer = assert_ok(browser.post(f"/api/sites/{site['id']}/keys", json=body), 201)
            return {**answer["key"], "token": answer["api_key"]}

    def test_key_stops_working_at_its_expiry(self, app: Flask, browser: Browser, key: dict[str, Any]) -> None:
        with time_machine.travel(NOON + timedelta(minutes=59, seconds=59), tick=False) as clock:
            assert_ok(ApiClient(app, key["token"]).get("/v1/client-info"))
            clock.shift(1)
            assert_error(ApiClient(app, key["token"]).get("/v1/client-info"), 401, "key_expired")
            shown = assert_ok(browser.get(path_of(key)))["key"]
            assert (shown["status"], shown["active"]) == ("expired", False)

    def test_expired_key_cannot_be_toggled_or_rotated_but_can_be_extended(
        self, app: Flask, browser: Browser, key: dict[str, Any]
    ) -> None:
        with time_machine.travel(NOON + timedelta(hours=2), tick=False):
            assert_error(browser.post(f"/api/keys/{key['id']}/toggle"), 400, "validation_failed")
            assert_error(browser.post(path_of(key, "/rotate")), 400, "validation_failed")
            assert_ok(browser.put(path_of(key), json={"expires_at": None}))
            assert_ok(ApiClient(app, key["token"]).get("/v1/client-info"))

    def test_expiry_must_be_in_the_future(self, browser: Browser, key: dict[str, Any]) -> None:
        with time_machine.travel(NOON, tick=False):
            body = {"expires_at": NOON.isoformat()}
            assert_error(browser.put(path_of(key), json=body), 400, "validation_failed", field="expires_at")


class TestRotation:
    """A new token for the same key."""

    def test_rotation_invalidates_the_old_token_at_once(self, ann: Tenant) -> None:
        key, old = create(ann)
        response = ann.browser.post(path_of(key, "/rotate"))

        answer = assert_ok(response)
        assert response.headers["Cache-Control"] == "no-store"
        assert answer["key"]["id"] == key["id"]
        assert answer["key"]["last4"] == answer["api_key"][-4:]
        assert answer["api_key"] != old
        assert_error(use(ann, old), 401, "invalid_api_key")
        assert_ok(use(ann, answer["api_key"]))

    def test_old_token_works_until_the_rotation_overlap_ends(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            browser, _ = register_browser(app, "ann@example.com")
            site = browser.post("/sites", json={"name": "S", "url": "https://s.example/"}).get_json()["site"]
            made = browser.post(f"/api/sites/{site['id']}/keys", json={"name": "K"}).get_json()
            rotate = path_of(made["key"], "/rotate")
            new = assert_ok(browser.post(rotate, json={"overlap_seconds": 60}))["api_key"]

            clock.shift(59)
            for token in (made["api_key"], new):
                assert_ok(ApiClient(app, token).get("/v1/client-info"))
            clock.shift(1)
            assert_error(ApiClient(app, made["api_key"]).get("/v1/client-info"), 401, "invalid_api_key")
            assert_ok(ApiClient(app, new).get("/v1/client-info"))

    def test_second_rotation_ends_the_overlap_of_the_first(self, ann: Tenant) -> None:
        key, first = create(ann)
        second = assert_ok(ann.browser.post(path_of(key, "/rotate"), json={"overlap_seconds": 600}))["api_key"]
        third = assert_ok(ann.browser.post(path_of(key, "/rotate"), json={"overlap_seconds": 600}))["api_key"]

        assert_error(use(ann, first), 401, "invalid_api_key")
        assert_ok(use(ann, second))
        assert_ok(use(ann, third))

    def test_rotated_key_stays_disabled(self, ann: Tenant) -> None:
        key, _ = create(ann)
        ann.browser.post(f"/api/keys/{key['id']}/toggle")

        answer = assert_ok(ann.browser.post(path_of(key, "/rotate")))

        assert answer["key"]["status"] == "disabled"
        assert_error(use(ann, answer["api_key"]), 401, "key_disabled")

    @pytest.mark.parametrize("overlap", [-1, 604_801, "60", 1.5, True, None])
    def test_overlap_out_of_range_returns_400(self, ann: Tenant, overlap: Any) -> None:
        key, token = create(ann)
        response = ann.browser.post(path_of(key, "/rotate"), json={"overlap_seconds": overlap})

        assert_error(response, 400, "validation_failed", field="overlap_seconds")
        assert_ok(use(ann, token))

    def test_overlap_may_be_as_long_as_a_week(self, ann: Tenant) -> None:
        key, token = create(ann)

        assert_ok(ann.browser.post(path_of(key, "/rotate"), json={"overlap_seconds": 604_800}))
        assert_ok(use(ann, token))


def test_deleted_key_returns_404_and_its_token_stops_working(ann: Tenant) -> None:
    key, token = create(ann)

    assert assert_ok(ann.browser.delete(path_of(key))) == {"success": True}
    assert_error(use(ann, token), 401, "invalid_api_key")
    for method, path in (
        ("DELETE", path_of(key)),
        ("GET", path_of(key)),
        ("PUT", path_of(key)),
        ("POST", f"/api/keys/{key['id']}/toggle"),
        ("POST", path_of(key, "/rotate")),
    ):
        body = {"json": {"name": "x"}} if method == "PUT" else {}
        assert_error(ann.browser.call(method, path, **body), 404, "key_not_found")


def test_last_use_of_a_key_is_recorded(app: Flask, tenant: Tenant) -> None:
    key, token = create(tenant)
    assert key["last_used_at"] is None
    moment = datetime.now(UTC).replace(microsecond=0)
    with time_machine.travel(moment, tick=False):
        assert_ok(use(tenant, token))

    app.extensions["jobs"].run_all()

    shown = assert_ok(tenant.browser.get(path_of(key)))["key"]["last_used_at"]
    assert datetime.fromisoformat(shown) == moment


def test_key_edit_form_can_be_submitted_unchanged(ann: Tenant) -> None:
    key, _ = create(ann, name="Edited")

    answer = assert_ok(ann.browser.get(path_of(key, "/edit")))

    assert answer["key"] == key
    form = answer["form"]
    assert (form["method"], form["action"]) == ("PUT", path_of(key))
    assert {field["name"]: field["value"] for field in form["fields"]} == {"name": "Edited", "expires_at": None}
    sent = {field["name"]: field["value"] for field in form["fields"]}
    assert_ok(ann.browser.call(form["method"], form["action"], json=sent))
