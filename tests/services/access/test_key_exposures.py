"""Private keys in web pages are reported on the dashboard and in the log, once an hour for each key."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy.exc import OperationalError

from app.application import create_app
from tests.callers import ApiClient, Tenant, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.pages.people import Person, person_of
from tests.responses import assert_error, assert_ok
from tests.services.webhooks.receiver import add_webhook, deliveries

PAGE = {"Origin": "https://shop.example"}
NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)


def write_down(app: Flask) -> None:
    """Run the background job that writes sightings."""
    app.extensions["runtime"].key_exposures.flush()


def exposed(tenant: Tenant) -> list[dict[str, Any]]:
    """Return the dashboard's report after the sightings have been written."""
    write_down(tenant.app)
    keys: list[dict[str, Any]] = assert_ok(tenant.browser.get("/dashboard"))["exposed_keys"]
    return keys


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "is used in a web page" in record.getMessage()]


def test_private_key_sent_from_a_web_page_still_works_and_is_reported_to_its_owner(
    tenant: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    with time_machine.travel(NOON, tick=False):
        tenant.browser.post("/login", json={"email": tenant.email, "password": "correct horse battery"})
        assert_ok(tenant.private.get("/v1/search?q=x", headers=PAGE))
        assert_ok(tenant.private.get("/dashboard", headers=PAGE))
        write_down(tenant.app)
        shown = assert_ok(tenant.private.get("/dashboard"))["exposed_keys"]

    key = tenant.keys["private"]
    assert shown == [
        {
            "id": key["id"], "name": "private", "site_id": tenant.site_id, "site_name": "Pages",
            "origin": "https://shop.example", "seen_at": "2031-05-14T12:00:00.000Z",
        }
    ]  # fmt: skip
    (line,) = told(caplog)
    assert key["id"] in line
    assert "https://shop.example" in line
    assert tenant.tokens["private"] not in caplog.text


@pytest.mark.parametrize("kind", ["public", "search"])
def test_public_and_search_keys_in_web_pages_are_not_reported(
    tenant: Tenant, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    tenant.client(kind).get("/v1/client-info", headers=PAGE)

    assert (exposed(tenant), told(caplog)) == ([], [])


def test_requests_without_an_origin_or_from_this_services_pages_are_not_reported(tenant: Tenant) -> None:
    assert_ok(tenant.private.get("/sites"))
    assert_ok(tenant.private.post("/v1/search", json={"q": "x"}, headers={"Origin": "http://localhost"}))

    assert exposed(tenant) == []


def test_rejected_requests_with_a_private_key_are_reported_too(tenant: Tenant) -> None:
    path = f"/api/sites/{tenant.site_id}/keys/{tenant.keys['private']['id']}"
    assert_ok(tenant.browser.put(path, json={"scopes": []}))

    assert_error(tenant.private.get("/sites", headers={"Origin": "null"}), 403, "insufficient_permission")

    assert [key["origin"] for key in exposed(tenant)] == ["null"]


def test_reported_origin_is_sanitized_and_limited_to_300_characters(tenant: Tenant) -> None:
    tenant.private.get("/sites", headers={"Origin": "https://b\xfccher\t<b>" + "x" * 400})

    (key,) = exposed(tenant)

    assert key["origin"].startswith("https://b?cher?<b>x")
    assert len(key["origin"]) == 300


def test_key_exposure_is_logged_at_most_once_an_hour(app: Flask, caplog: pytest.LogCaptureFixture) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        tenant = register_tenant(app, "ann@example.com")
        for minutes in (0, 20, 59, 60, 61, 119):
            clock.move_to(NOON + timedelta(minutes=minutes))
            assert_ok(tenant.private.get("/sites", headers=PAGE))
            write_down(app)
        (key,) = exposed(tenant)

    assert key["seen_at"] == "2031-05-14T13:00:00.000Z"
    assert len(told(caplog)) == 2


def test_key_exposed_webhook_is_sent_once_until_the_key_is_rotated(app: Flask) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        tenant = register_tenant(app, "ann@example.com")
        webhook, _ = add_webhook(tenant, "https://example.com/hook", "key.exposed")
        for hours in (0, 2):
            clock.move_to(NOON + timedelta(hours=hours))
            assert_ok(tenant.private.get("/sites", headers=PAGE))
            write_down(app)
        (first,) = deliveries(tenant, webhook)
        key = tenant.keys["private"]
        rotated = assert_ok(tenant.browser.post(f"/api/sites/{tenant.site_id}/keys/{key['id']}/rotate"))
        tenant.tokens["private"] = rotated["api_key"]
        assert_ok(tenant.private.get("/sites", headers=PAGE))
        write_down(app)

    assert first["payload"] == {
        "type": "key.exposed",
        "timestamp": "2031-05-14T12:00:00.000Z",
        "data": {
            "site": {"id": tenant.site_id, "name": "Pages"},
            "key": {"id": key["id"], "name": "private"},
            "origin": "https://shop.example",
            "seen_at": "2031-05-14T12:00:00.000Z",
        },
    }
    assert len(deliveries(tenant, webhook)) == 2


def test_key_exposure_seen_by_two_processes_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = make_settings(tmp_path, search_url=f"tantivy://{tmp_path / 'indexes'}")
    here = make_app(settings)
    there = create_app(settings, background=False)
    tenant = register_tenant(here, "ann@example.com")

    for app in (here, there):
        assert_ok(ApiClient(app, tenant.tokens["private"]).get("/sites", headers=PAGE))
    for app in (there, here):
        write_down(app)

    assert len(told(caplog)) == 1
    assert len(exposed(tenant)) == 1
    close_app(there)
    close_app(here)


def test_searches_that_expose_a_key_run_no_sql(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_ok(tenant.private.get("/v1/search?q=x"))

    def refuse() -> Iterator[None]:
        raise AssertionError("a search of a known key reads and writes no database")

    database = tenant.app.extensions["runtime"].database
    with monkeypatch.context() as patch:
        patch.setattr(database, "read", refuse)
        patch.setattr(database, "write", refuse)
        for _ in range(3):
            assert_ok(tenant.private.get("/v1/search?q=x", headers=PAGE))

    assert len(exposed(tenant)) == 1


def test_sightings_that_could_not_be_written_are_written_later(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_ok(tenant.private.get("/sites", headers=PAGE))

    def refuse() -> None:
        raise OperationalError("write", {}, Exception("away"))

    with monkeypatch.context() as patch:
        patch.setattr(tenant.app.extensions["runtime"].database, "write", refuse)
        with pytest.raises(OperationalError):
            write_down(tenant.app)

    assert len(exposed(tenant)) == 1


class TestItsEnd:
    """Events that end the notice."""

    @pytest.fixture
    def leaked(self, tenant: Tenant) -> Tenant:
        assert_ok(tenant.private.get("/sites", headers=PAGE))
        assert len(exposed(tenant)) == 1
        return tenant

    def path(self, tenant: Tenant, action: str = "") -> str:
        return f"/api/sites/{tenant.site_id}/keys/{tenant.keys['private']['id']}{action}"

    def test_rotated_key_is_reported_again_only_when_a_page_uses_the_new_token(self, leaked: Tenant) -> None:
        rotated = assert_ok(leaked.browser.post(self.path(leaked, "/rotate"), json={"overlap_seconds": 600}))
        assert exposed(leaked) == []

        assert_ok(leaked.private.get("/sites", headers=PAGE))
        assert exposed(leaked) == [], "the token from before the rotation must expire"
        assert_ok(ApiClient(leaked.app, rotated["api_key"]).get("/sites", headers=PAGE))
        assert len(exposed(leaked)) == 1

    def test_sighting_before_a_rotation_is_not_reported_after_it(self, tenant: Tenant) -> None:
        assert_ok(tenant.private.get("/sites", headers=PAGE))
        assert_ok(tenant.browser.post(self.path(tenant, "/rotate")))

        assert exposed(tenant) == []

    def test_deleting_a_key_removes_its_exposure_notice(self, leaked: Tenant) -> None:
        assert_ok(leaked.browser.delete(self.path(leaked)))

        assert exposed(leaked) == []

    def test_disabling_a_key_hides_its_exposure_notice_until_it_is_enabled_again(self, leaked: Tenant) -> None:
        toggle = f"/api/keys/{leaked.keys['private']['id']}/toggle"
        assert_ok(leaked.browser.post(toggle))
        assert exposed(leaked) == []

        assert_ok(leaked.browser.post(toggle))
        assert len(exposed(leaked)) == 1

    def test_dismissed_exposure_notice_returns_only_after_a_rotation(
        self, leaked: Tenant, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert assert_ok(leaked.private.delete(self.path(leaked, "/exposure"))) == {"success": True}
        caplog.clear()
        for hours in (1, 30):
            with time_machine.travel(datetime.now(UTC) + timedelta(hours=hours), tick=False):
                assert_ok(leaked.private.get("/sites", headers=PAGE))
                write_down(leaked.app)
        assert (exposed(leaked), told(caplog)) == ([], [])

        rotated = assert_ok(leaked.browser.post(self.path(leaked, "/rotate")))
        assert_ok(ApiClient(leaked.app, rotated["api_key"]).get("/sites", headers=PAGE))
        assert len(exposed(leaked)) == 1

    def test_other_accounts_cannot_dismiss_an_exposure_notice(self, leaked: Tenant, stranger: Tenant) -> None:
        assert_error(stranger.private.delete(self.path(leaked, "/exposure")), 404, "site_not_found")
        assert exposed(stranger) == []
        assert len(exposed(leaked)) == 1


def test_dashboard_shows_the_exposed_key_and_its_button_dismisses_the_notice(tenant: Tenant) -> None:
    person: Person = person_of(tenant)
    assert "in a web page" not in person.go("/dashboard").text
    assert_ok(tenant.private.get("/sites", headers={"Origin": "https://<b>.example"}))
    write_down(tenant.app)

    section = person.go("/dashboard").one("section", aria_labelledby="exposed-title")
    assert section.one("h2").text == "1 private key in a web page"
    assert "“private” of Pages, last sent by a page on https://<b>.example" in section.text
    assert section.first("a", "Keys of Pages").attributes["href"] == f"/api/sites/{tenant.site_id}/keys"
    person.press("Dismiss")

    assert person.notice.startswith("Notice dismissed.")
    assert person.page.all("section", aria_labelledby="exposed-title") == []
