"""Invitations: links that work once and expire after a week."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from flask import Flask
from werkzeug.test import TestResponse

from app.logs import redact
from app.services.accounts import members
from tests.callers import PASSWORD, ApiClient, Tenant, accept_invitation, add_member
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_error, assert_ok
from tests.shared_servers import stored_bytes

BO = "bo@example.com"
NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


def invite(tenant: Tenant, email: str = BO, role: str = "editor") -> dict[str, str]:
    answer = assert_ok(tenant.private.post("/api/invitations", json={"email": email, "role": role}), 201)
    return {**answer["invitation"], "url": answer["url"]}


def accept(app: Flask, url: str, **fields: str) -> TestResponse:
    body = {"name": "Bo", "password": PASSWORD, **fields}
    return ApiClient(app).post(url.removeprefix("http://localhost"), json=body)


class TestInviting:
    """Creating, renewing, and revoking invitations."""

    def test_creating_an_invitation_returns_its_link_and_expiry(self, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False):
            response = tenant.private.post("/api/invitations", json={"email": " Bo@example.com ", "role": "viewer"})
        answer = assert_ok(response, 201)

        invitation = answer["invitation"]
        token = answer["token"]
        url = f"http://localhost/invitations/{token}"
        assert answer == {"success": True, "invitation": invitation, "url": url, "token": token}
        assert set(invitation) == {"id", "email", "role", "created_at", "expires_at"}
        assert (invitation["email"], invitation["role"]) == ("Bo@example.com", "viewer")
        assert invitation["expires_at"] == "2031-05-21T12:00:00.000Z"
        assert response.headers["Cache-Control"] == "no-store"

    def test_invitation_role_defaults_to_editor(self, tenant: Tenant) -> None:
        answer = assert_ok(tenant.private.post("/api/invitations", json={"email": BO}), 201)
        assert answer["invitation"]["role"] == "editor"

    def test_invitation_list_omits_the_link(self, tenant: Tenant) -> None:
        made = invite(tenant)
        answer = assert_ok(tenant.private.get("/api/invitations"))
        link = made.pop("url")
        assert answer == {"invitations": [made], "total": 1, "limit": 20, "offset": 0}
        assert link.rpartition("/")[2] not in str(answer)

    def test_invitation_token_is_not_stored(self, app: Flask, tenant: Tenant) -> None:
        token = invite(tenant)["url"].rpartition("/")[2]
        stored = stored_bytes(app)
        assert BO.encode() in stored
        assert token.encode() not in stored

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "email"),
            ({"email": "bo"}, "email"),
            ({"email": BO, "role": "admin"}, "role"),
            ({"email": BO, "name": "Bo"}, "name"),
        ],
    )
    def test_invitation_with_invalid_fields_returns_400(self, tenant: Tenant, body: dict[str, str], field: str) -> None:
        answer = assert_error(tenant.private.post("/api/invitations", json=body), 400, "validation_failed")
        assert answer["details"][0]["field"] == field

    def test_duplicate_invitation_is_rejected_ignoring_case(self, tenant: Tenant) -> None:
        invite(tenant)
        answer = tenant.private.post("/api/invitations", json={"email": "BO@EXAMPLE.COM"})
        assert "already invited" in assert_error(answer, 400, "validation_failed")["message"]

    def test_invitation_of_an_existing_member_is_rejected(self, tenant: Tenant) -> None:
        answer = tenant.private.post("/api/invitations", json={"email": tenant.email.upper()})
        assert "already belongs to a member" in assert_error(answer, 400, "validation_failed")["message"]

    def test_inviting_a_user_of_another_account_does_not_reveal_it(self, tenant: Tenant, stranger: Tenant) -> None:
        assert invite(tenant, stranger.email)["email"] == stranger.email

    def test_invitations_over_the_member_limit_return_403(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(members, "MAX_MEMBERS", 2)
        invite(tenant)
        answer = tenant.private.post("/api/invitations", json={"email": "cy@example.com"})
        assert_error(answer, 403, "member_limit_reached")

    def test_renewing_an_invitation_replaces_its_link_and_extends_it(self, app: Flask, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            made = invite(tenant)
            clock.shift(timedelta(days=3))
            response = tenant.private.post(f"/api/invitations/{made['id']}/renew")
            answer = assert_ok(response)
            assert answer["invitation"]["expires_at"] == "2031-05-24T12:00:00.000Z"
            assert_error(accept(app, made["url"]), 404, "invitation_not_found")
            assert_ok(accept(app, answer["url"]), 201)
        assert response.headers["Cache-Control"] == "no-store"

    def test_expired_invitation_can_be_renewed_for_a_week(self, app: Flask, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            made = invite(tenant)
            clock.shift(timedelta(days=13))
            app.extensions["jobs"].run_all()
            answer = assert_ok(tenant.private.post(f"/api/invitations/{made['id']}/renew"))
            assert_ok(accept(app, answer["url"]), 201)

    def test_expired_invitation_is_deleted_after_another_week(self, app: Flask, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            made = invite(tenant)
            clock.shift(timedelta(days=14))
            app.extensions["jobs"].run_all()
            assert assert_ok(tenant.private.get("/api/invitations"))["total"] == 0
            assert_error(tenant.private.post(f"/api/invitations/{made['id']}/renew"), 404, "invitation_not_found")

    def test_another_accounts_invitation_returns_404(self, tenant: Tenant, stranger: Tenant) -> None:
        path = f"/api/invitations/{invite(tenant)['id']}"
        assert_error(stranger.private.post(f"{path}/renew"), 404, "invitation_not_found")
        assert_error(stranger.private.delete(path), 404, "invitation_not_found")
        assert_error(stranger.private.delete("/api/invitations/inv_%00"), 404, "invitation_not_found")
        assert assert_ok(tenant.private.get("/api/invitations"))["total"] == 1


class TestAccepting:
    """Accepting an invitation."""

    def test_invitation_link_shows_account_email_and_role(self, app: Flask, tenant: Tenant) -> None:
        path = invite(tenant, role="viewer")["url"].removeprefix("http://localhost")
        answer = assert_ok(ApiClient(app).get(path))
        assert answer["invitation"] == {
            **answer["invitation"], "account": "Somebody", "email": BO, "role": "viewer"
        }  # fmt: skip
        assert [field["name"] for field in answer["form"]["fields"]] == ["name", "password"]

    def test_accepting_an_invitation_logs_in_with_its_role(self, app: Flask, tenant: Tenant) -> None:
        bo = accept_invitation(app, invite(tenant, role="viewer")["url"], "Bo")
        assert_ok(bo.get("/sites"))
        assert_error(bo.post("/sites", json={}), 403, "insufficient_permission")
        answer = assert_ok(ApiClient(app).post("/login", json={"email": BO, "password": PASSWORD}))
        assert (answer["user"]["name"], answer["user"]["id"]) == ("Bo", tenant.account_id)
        assert assert_ok(tenant.private.get("/api/invitations"))["total"] == 0

    @pytest.mark.parametrize("password", ["1234567890", "Joan Harbor", BO])
    def test_weak_password_is_rejected_and_the_link_stays_valid(
        self, app: Flask, tenant: Tenant, password: str
    ) -> None:
        url = invite(tenant)["url"]

        rejected = accept(app, url, name="Joan Harbor", password=password)

        assert_error(rejected, 400, "validation_failed", field="password")
        assert_ok(accept(app, url), 201)

    def test_invitation_link_works_once(self, app: Flask, tenant: Tenant) -> None:
        url = invite(tenant)["url"]
        assert_ok(accept(app, url), 201)
        assert_error(accept(app, url), 404, "invitation_not_found")
        assert_error(ApiClient(app).get(url.removeprefix("http://localhost")), 404, "invitation_not_found")

    def test_concurrent_acceptance_of_an_invitation_creates_one_member(
        self, app: Flask, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url = invite(tenant)["url"]
        database = app.extensions["runtime"].database
        checked = threading.Barrier(2, timeout=PATIENCE_SECONDS)
        write = database.write
        monkeypatch.setattr(database, "write", lambda: (checked.wait(), write())[1])
        answers: list[TestResponse] = []
        threads = [
            threading.Thread(target=lambda name=name: answers.append(accept(app, url, name=name))) for name in "AB"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        monkeypatch.undo()

        first, second = sorted(answers, key=lambda answer: answer.status_code)
        assert_ok(first, 201)
        assert_error(second, 404, "invitation_not_found")
        assert assert_ok(tenant.private.get("/api/members"))["total"] == 2

    def test_invitation_token_is_redacted_from_request_logs(self, tenant: Tenant) -> None:
        assert redact(f"GET {invite(tenant)['url']} 200") == "GET http://localhost/invitations/[secret] 200"

    def test_invitation_expires_after_seven_days(self, app: Flask, tenant: Tenant) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            url = invite(tenant)["url"]
            clock.shift(timedelta(days=7))
            assert_error(accept(app, url), 404, "invitation_not_found")
            clock.shift(timedelta(seconds=-1))
            assert_ok(accept(app, url), 201)

    def test_revoked_invitation_returns_404(self, app: Flask, tenant: Tenant) -> None:
        made = invite(tenant)
        assert_ok(tenant.private.delete(f"/api/invitations/{made['id']}"))
        assert_error(accept(app, made["url"]), 404, "invitation_not_found")
        assert_error(tenant.private.delete(f"/api/invitations/{made['id']}"), 404, "invitation_not_found")

    @pytest.mark.parametrize("token", ["x", "svc_inv_" + "x" * 43, "svc_inv_" + "x" * 200, "%00" * 30, "%C3%A9" * 30])
    def test_invented_invitation_token_returns_404(self, app: Flask, tenant: Tenant, token: str) -> None:
        assert_error(accept(app, f"/invitations/{token}"), 404, "invitation_not_found")

    @pytest.mark.parametrize(("fields", "field"), [({"password": "short"}, "password"), ({"name": " "}, "name")])
    def test_invalid_acceptance_does_not_use_up_the_invitation(
        self, app: Flask, tenant: Tenant, fields: dict[str, str], field: str
    ) -> None:
        url = invite(tenant)["url"]
        answer = assert_error(accept(app, url, **fields), 400, "validation_failed")
        assert answer["details"][0]["field"] == field
        assert_ok(accept(app, url), 201)

    def test_cross_origin_acceptance_is_rejected_as_csrf(self, app: Flask, tenant: Tenant) -> None:
        path = invite(tenant)["url"].removeprefix("http://localhost")
        body = {"name": "Bo", "password": PASSWORD}
        response = ApiClient(app).post(path, json=body, headers={"Origin": "https://evil.example"})
        assert_error(response, 403, "csrf_failed")

    def test_deleting_the_account_invalidates_its_invitations(self, app: Flask, tenant: Tenant) -> None:
        add_member(tenant, "cy@example.com", "viewer")
        url = invite(tenant)["url"]
        assert_ok(tenant.browser.delete("/profile", json={"password": PASSWORD}))
        assert_error(accept(app, url), 404, "invitation_not_found")
