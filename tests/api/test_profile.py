"""Profile updates and account deletion."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from flask import Flask
from sqlalchemy import select

from app.models import Account, DepartureReason, EngineTask, Key, SearchEvent, Session, Site, StoredDocument
from app.operations.attempts import PASSWORD_CHECKS
from tests.callers import PASSWORD, ApiClient, Browser, Tenant, page, register_browser, register_tenant
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
NEW_PASSWORD = "a new long password"


def log_in(app: Flask, email: str, password: str) -> Any:
    return ApiClient(app).post("/login", json={"email": email, "password": password})


class TestUpdate:
    """Name, email, password."""

    def test_name_and_email_can_be_changed(self, shared_app: Flask) -> None:
        browser, account_id = register_browser(shared_app, "old@example.com")

        renamed = assert_ok(browser.put("/profile", json={"name": " Anna "}))
        change = {"email": " New.Ann@Example.com ", "current_password": PASSWORD}
        moved = assert_ok(browser.put("/profile", json=change))

        assert renamed["success"] is True
        assert renamed["user"] == {**renamed["user"], "id": account_id, "name": "Anna", "email": "old@example.com"}
        assert moved["user"] == {**renamed["user"], "email": "New.Ann@Example.com"}
        assert_ok(log_in(shared_app, "new.ann@example.com", PASSWORD))
        assert_error(log_in(shared_app, "old@example.com", PASSWORD), 401, "invalid_credentials")

    def test_unchanged_email_is_not_rejected_as_taken(self, ann: Tenant) -> None:
        assert_ok(ann.browser.put("/profile", json={"email": ann.email.upper()}))
        assert_ok(ann.browser.put("/profile", json={"email": ann.email}))

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "body"),
            ({"name": ""}, "name"),
            ({"name": None}, "name"),
            ({"name": "x" * 101}, "name"),
            ({"email": "nonsense"}, "email"),
            ({"email": "EVE@example.com", "current_password": PASSWORD}, "email"),
            ({"email": "new@example.com"}, "current_password"),
            ({"name": "Anna", "email": "new@example.com"}, "current_password"),
            ({"email": "new@example.com", "current_password": ""}, "current_password"),
            ({"email": "new@example.com", "new_password": NEW_PASSWORD}, "current_password"),
            ({"plan": "business"}, "plan"),
            ({"new_password": NEW_PASSWORD}, "current_password"),
            ({"current_password": PASSWORD}, "new_password"),
            ({"current_password": PASSWORD, "new_password": "short"}, "new_password"),
            ({"current_password": PASSWORD, "new_password": "x" * 1025}, "new_password"),
            ({"current_password": PASSWORD, "new_password": "1234567890"}, "new_password"),
            ({"current_password": PASSWORD, "new_password": "Somebody-1"}, "new_password"),
            ({"name": "Joan Harbor", "current_password": PASSWORD, "new_password": "joan harbor"}, "new_password"),
            ({"password": "x"}, "password"),
        ],
    )
    def test_profile_update_with_invalid_fields_is_rejected(
        self, ann: Tenant, eve: Tenant, body: dict[str, Any], field: str
    ) -> None:
        before = ann.browser.get("/profile/edit").get_json()["user"]

        assert_error(ann.browser.put("/profile", json=body), 400, "validation_failed", field=field)
        assert ann.browser.get("/profile/edit").get_json()["user"] == before

    def test_password_change_ends_other_sessions(self, shared_app: Flask) -> None:
        email = "sessions@example.com"
        here, _ = register_browser(shared_app, email)
        client = shared_app.test_client()
        token = client.post("/login", json={"email": email, "password": PASSWORD}).get_json()["csrf_token"]
        elsewhere = Browser(client, token)

        assert_ok(here.put("/profile", json={"current_password": PASSWORD, "new_password": NEW_PASSWORD}))

        assert_ok(here.get("/dashboard"))
        assert_error(elsewhere.get("/dashboard"), 401, "missing_api_key")
        assert_error(log_in(shared_app, email, PASSWORD), 401, "invalid_credentials")
        assert_ok(log_in(shared_app, email, NEW_PASSWORD))

    def test_email_change_ends_other_sessions(self, shared_app: Flask) -> None:
        here, _ = register_browser(shared_app, "moves@example.com")
        elsewhere = shared_app.test_client()
        assert_ok(elsewhere.post("/login", json={"email": "moves@example.com", "password": PASSWORD}))

        assert_ok(here.put("/profile", json={"email": "MOVES@example.com", "name": "Mo"}))
        assert_ok(elsewhere.get("/dashboard"))
        assert_ok(here.put("/profile", json={"email": "moved@example.com", "current_password": PASSWORD}))

        assert_ok(here.get("/dashboard"))
        assert_error(elsewhere.get("/dashboard"), 401, "missing_api_key")

    @pytest.mark.parametrize(
        "body",
        [
            {"current_password": PASSWORD, "new_password": NEW_PASSWORD},
            {"new_password": NEW_PASSWORD},
            {"name": "Changed", "email": "changed@example.com", "new_password": NEW_PASSWORD},
        ],
    )
    def test_private_key_cannot_change_the_password(self, ann: Tenant, body: dict[str, Any]) -> None:
        before = ann.browser.get("/profile/edit").get_json()["user"]

        assert_error(ann.private.put("/profile", json=body), 403, "insufficient_permission")

        assert ann.browser.get("/profile/edit").get_json()["user"] == before
        assert_ok(log_in(ann.app, ann.email, PASSWORD))

    def test_private_key_can_change_name_and_email(self, shared_app: Flask) -> None:
        tenant = register_tenant(shared_app, "by-key@example.com")

        user = assert_ok(tenant.private.put("/profile", json={"name": "K", "email": "key@example.com"}))["user"]

        assert (user["name"], user["email"]) == ("K", "key@example.com")
        assert_ok(tenant.browser.get("/dashboard"))

    @pytest.mark.parametrize("change", [{"new_password": NEW_PASSWORD}, {"email": "x@example.com"}], ids=str)
    def test_a_wrong_current_password_changes_nothing(self, ann: Tenant, change: dict[str, Any]) -> None:
        body = {"name": "Changed", "current_password": "not the password", **change}

        assert_error(ann.browser.put("/profile", json=body), 403, "password_incorrect")
        user = ann.browser.get("/profile/edit").get_json()["user"]
        assert (user["name"], user["email"]) == ("Somebody", ann.email)
        assert_ok(log_in(ann.app, ann.email, PASSWORD))

    def test_wrong_passwords_of_updates_and_deletion_share_a_limit_of_five(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            browser, _ = register_browser(app, "ann@example.com")
            wrong, right = ({"email": "b@example.com", "current_password": p} for p in ("not this one", PASSWORD))
            for _ in range(4):
                assert_error(browser.put("/profile", json=wrong), 403, "password_incorrect")
            assert_error(browser.delete("/profile", json={"password": "nor this"}), 403, "password_incorrect")

            assert_error(browser.put("/profile", json=right), 429, "rate_limit_exceeded")
            clock.shift(3600)
            assert_ok(browser.put("/profile", json=right))

    def test_right_passwords_count_towards_the_password_check_limit(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            browser, _ = register_browser(app, "ann@example.com")
            for number in range(PASSWORD_CHECKS):
                changed = {"email": f"ann{number}@example.com", "current_password": PASSWORD}
                assert_ok(browser.put("/profile", json=changed))

            assert_error(browser.post("/profile/totp", json={"current_password": PASSWORD}), 429, "rate_limit_exceeded")
            clock.shift(3600)
            assert_ok(browser.post("/profile/totp", json={"current_password": PASSWORD}))

    def test_profile_form_for_keys_has_no_password_fields(self, ann: Tenant) -> None:
        fields = assert_ok(ann.private.get("/profile/edit"))["form"]["fields"]
        assert [field["name"] for field in fields] == ["name", "email", "weekly_digest"]

    def test_profile_form_has_current_values_and_empty_passwords(self, ann: Tenant) -> None:
        answer = assert_ok(ann.browser.get("/profile/edit"))

        form = answer["form"]
        assert (form["method"], form["action"]) == ("PUT", "/profile")
        values = {field["name"]: field["value"] for field in form["fields"]}
        assert (values["name"], values["email"]) == (answer["user"]["name"], answer["user"]["email"])
        assert [field["type"] for field in form["fields"] if "password" in field["name"]] == ["password", "password"]
        assert all(field["value"] is None for field in form["fields"] if field["type"] == "password")


class TestDeletion:
    """DELETE /profile."""

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "password"),
            ({"reason": "x"}, "password"),
            ({"password": ""}, "password"),
            ({"password": 5}, "password"),
            ({"password": PASSWORD, "reason": "x" * 2001}, "reason"),
            ({"password": PASSWORD, "reasons": "x"}, "reasons"),
        ],
    )
    def test_account_deletion_with_an_invalid_body_is_rejected(
        self, ann: Tenant, body: dict[str, Any], field: str
    ) -> None:
        assert_error(ann.browser.delete("/profile", json=body), 400, "validation_failed", field=field)
        assert_ok(ann.browser.get("/dashboard"))

    def test_five_wrong_passwords_block_account_deletion_for_an_hour(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            browser, _ = register_browser(app, "ann@example.com")
            for _ in range(5):
                assert_error(browser.delete("/profile", json={"password": "wrong"}), 403, "password_incorrect")

            body = assert_error(browser.delete("/profile", json={"password": PASSWORD}), 429, "rate_limit_exceeded")
            assert body["retry_after"] == 3600
            assert_ok(browser.get("/dashboard"))
            clock.shift(3600)
            assert_ok(browser.delete("/profile", json={"password": PASSWORD}))

    @pytest.mark.parametrize("kind", ["session", "private"])
    def test_account_deletion_removes_sites_keys_documents_and_sessions_but_keeps_the_reason(
        self, app: Flask, tenant: Tenant, stranger: Tenant, kind: str
    ) -> None:
        tenant.index(page(1), page(2))
        stranger.index(page(1))
        tenant.found_ids("page")
        stranger.found_ids("page")
        part = app.extensions["runtime"]
        part.events.flush()
        caller = tenant.browser if kind == "session" else tenant.private

        response = caller.delete("/profile", json={"password": PASSWORD, "reason": "Too expensive"})

        assert assert_ok(response) == {"success": True}
        assert "session=;" in response.headers["Set-Cookie"].replace('""', "")
        assert_error(tenant.browser.get("/dashboard"), 401, "missing_api_key")
        for client in (tenant.private, tenant.search, tenant.public):
            assert_error(client.get("/v1/client-info"), 401, "invalid_api_key")
        app.extensions["jobs"].run_all()
        part.events.flush()
        with part.database.read() as session:
            assert [account.email for account in session.scalars(select(Account))] == [stranger.email]
            for table in (Site, Key, StoredDocument, Session):
                assert len(session.scalars(select(table)).all()) == {Key: 3}.get(table, 1), table
            assert {event.site_id for event in session.scalars(select(SearchEvent))} == {stranger.site_id}
            assert [row.reason for row in session.scalars(select(DepartureReason))] == ["Too expensive"]
            assert session.scalars(select(EngineTask)).all() == []
        assert stranger.found_ids("page") == ["page-1"]

    def test_reregistered_email_gets_a_new_empty_account(self, app: Flask, tenant: Tenant) -> None:
        tenant.index(page(1))
        tenant.found_ids("page")
        assert_ok(tenant.browser.delete("/profile", json={"password": PASSWORD}))

        again = register_tenant(app, tenant.email)

        assert again.account_id > tenant.account_id
        assert again.site_id > tenant.site_id
        assert again.found_ids("*") == []
        dashboard = assert_ok(again.browser.get("/dashboard"))
        assert dashboard["usage"] == {
            "searches_this_month": 1,
            "indexed_pages": 0,
            "indexing_operations_this_month": 0,
            "refused_searches_this_month": 0,
            "most_indexed_pages_this_month": 0,
            "pages_crawled_this_month": 0,
            "asks_today": 0,
        }
