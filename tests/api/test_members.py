"""Members, their roles, and protection of the account's last owner."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.callers import PASSWORD, ApiClient, Browser, Tenant, add_member, member_id
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_error, assert_ok

BO = "bo@example.com"
CY = "cy@example.com"
NEW_PASSWORD = "another good password"


def log_in(app: Flask, email: str, password: str = PASSWORD) -> TestResponse:
    return ApiClient(app).post("/login", json={"email": email, "password": password})


def roles(tenant: Tenant) -> dict[str, str]:
    answer = assert_ok(tenant.private.get("/api/members"))
    return {member["email"]: member["role"] for member in answer["members"]}


class TestList:
    """GET /api/members."""

    def test_registered_user_is_the_first_owner(self, tenant: Tenant) -> None:
        answer = assert_ok(tenant.browser.get("/api/members"))

        (member,) = answer["members"]
        assert answer == {"members": [member], "total": 1, "limit": 20, "offset": 0}
        assert set(member) == {"id", "name", "email", "role", "created_at"}
        assert (member["email"], member["role"]) == (tenant.email, "owner")

    def test_member_list_is_oldest_first_and_paginated(self, tenant: Tenant) -> None:
        add_member(tenant, BO, "viewer")
        add_member(tenant, CY, "editor")

        answer = assert_ok(tenant.private.get("/api/members?limit=1&offset=1"))
        assert [member["email"] for member in answer["members"]] == [BO]
        assert answer["total"] == 3

    def test_member_is_returned_by_id(self, tenant: Tenant) -> None:
        add_member(tenant, BO, "viewer")
        answer = assert_ok(tenant.private.get(f"/api/members/{member_id(tenant, BO)}"))
        assert answer["member"]["email"] == BO

    @pytest.mark.parametrize("kind", ["public", "search"])
    def test_public_and_search_keys_cannot_list_members(self, tenant: Tenant, kind: str) -> None:
        assert_error(tenant.client(kind).get("/api/members"), 403, "insufficient_permission")


class TestProfiles:
    """Each member has a separate name, email address, and password."""

    def test_member_login_returns_the_shared_account(self, app: Flask, tenant: Tenant) -> None:
        add_member(tenant, BO, "viewer")

        user = assert_ok(log_in(app, BO))["user"]
        assert user == {**user, "id": tenant.account_id, "email": BO, "plan": "pro"}

    def test_member_changes_only_their_own_profile(self, app: Flask, tenant: Tenant) -> None:
        bo = add_member(tenant, BO, "viewer")
        change = {"name": "Bo", "email": "bob@example.com", "current_password": PASSWORD, "new_password": NEW_PASSWORD}

        assert_ok(bo.put("/profile", json=change))

        assert_ok(log_in(app, "bob@example.com", NEW_PASSWORD))
        assert_error(log_in(app, BO), 401, "invalid_credentials")
        assert_ok(log_in(app, tenant.email))
        assert assert_ok(tenant.browser.get("/profile/edit"))["user"]["email"] == tenant.email
        assert_ok(tenant.browser.get("/dashboard"))

    def test_profile_update_by_key_changes_the_first_owner(self, app: Flask, tenant: Tenant) -> None:
        add_member(tenant, BO, "owner")

        assert_ok(tenant.private.put("/profile", json={"email": "anna@example.com"}))

        assert roles(tenant) == {"anna@example.com": "owner", BO: "owner"}
        assert_ok(log_in(app, "anna@example.com"))

    def test_next_owner_represents_the_account_when_the_first_is_removed(self, tenant: Tenant) -> None:
        add_member(tenant, BO, "owner")
        assert_ok(tenant.browser.delete(f"/api/members/{member_id(tenant, tenant.email)}"))

        assert assert_ok(tenant.private.get("/profile/edit"))["user"]["email"] == BO
        listed = tenant.app.test_cli_runner().invoke(args=["account", "list"])
        assert BO in listed.output
        assert tenant.email not in listed.output

    def test_email_of_a_removed_member_can_register_again(self, app: Flask, tenant: Tenant) -> None:
        add_member(tenant, BO, "editor")
        assert_ok(tenant.private.delete(f"/api/members/{member_id(tenant, BO)}"))
        assert_ok(ApiClient(app).post("/register", json={"name": "Bo", "email": BO, "password": PASSWORD}), 201)

    def test_registering_with_a_members_email_is_rejected(self, app: Flask, tenant: Tenant) -> None:
        add_member(tenant, BO, "viewer")
        response = ApiClient(app).post(
            "/register", json={"name": "Bo", "email": " BO@example.com", "password": PASSWORD}
        )
        assert assert_error(response, 400, "validation_failed")["details"][0]["code"] == "taken"

    def test_operator_password_reset_logs_out_only_that_member(self, app: Flask, tenant: Tenant) -> None:
        bo = add_member(tenant, BO, "viewer")
        args = ["account", "reset-password", BO, "--password", NEW_PASSWORD]

        assert app.test_cli_runner().invoke(args=args).exit_code == 0

        assert_error(bo.get("/dashboard"), 401, "missing_api_key")
        assert_ok(log_in(app, BO, NEW_PASSWORD))
        assert_ok(tenant.browser.get("/dashboard"))
        assert_ok(log_in(app, tenant.email))

    def test_account_deletion_requires_an_owner_and_their_own_password(self, app: Flask, tenant: Tenant) -> None:
        editor = add_member(tenant, BO, "editor")
        owner = add_member(tenant, CY, "owner")
        assert_ok(owner.put("/profile", json={"current_password": PASSWORD, "new_password": "the password of cy"}))

        assert_error(editor.delete("/profile", json={"password": PASSWORD}), 403, "insufficient_permission")
        assert_error(owner.delete("/profile", json={"password": PASSWORD}), 403, "password_incorrect")
        assert_ok(owner.delete("/profile", json={"password": "the password of cy"}))
        for email in (tenant.email, BO, CY):
            assert_error(log_in(app, email), 401, "invalid_credentials")
            assert_ok(ApiClient(app).post("/register", json={"name": "N", "email": email, "password": PASSWORD}), 201)


class TestRoles:
    """Changing a role, and removing a member."""

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    def test_role_change_applies_to_the_next_request(self, tenant: Tenant, method: str) -> None:
        bo = add_member(tenant, BO, "editor")
        site = {"name": "Renamed"}
        assert_ok(bo.put(f"/sites/{tenant.site_id}", json=site))

        answer = assert_ok(
            tenant.browser.call(method, f"/api/members/{member_id(tenant, BO)}", json={"role": "viewer"})
        )

        assert answer["member"]["role"] == "viewer"
        assert_error(bo.put(f"/sites/{tenant.site_id}", json=site), 403, "insufficient_permission")
        assert_ok(bo.get("/sites"))

    def test_removed_member_is_logged_out_of_all_sessions(self, app: Flask, tenant: Tenant) -> None:
        bo = add_member(tenant, BO, "owner")
        again = app.test_client()
        assert again.post("/login", json={"email": BO, "password": PASSWORD}).status_code == 200

        assert_ok(tenant.browser.delete(f"/api/members/{member_id(tenant, BO)}"))

        assert_error(bo.get("/dashboard"), 401, "missing_api_key")
        assert again.get("/dashboard").status_code == 401
        assert_error(log_in(app, BO), 401, "invalid_credentials")

    def test_unknown_role_is_rejected(self, tenant: Tenant) -> None:
        answer = tenant.browser.put(f"/api/members/{member_id(tenant, tenant.email)}", json={"role": "admin"})
        assert assert_error(answer, 400, "validation_failed")["details"][0]["field"] == "role"

    @pytest.mark.parametrize("id", [0, -1, 2**62, 2**70])
    def test_unknown_member_returns_404(self, tenant: Tenant, id: int) -> None:
        for response in (
            tenant.private.get(f"/api/members/{id}"),
            tenant.private.put(f"/api/members/{id}", json={"role": "viewer"}),
            tenant.private.delete(f"/api/members/{id}"),
        ):
            assert response.status_code == 404

    def test_another_accounts_member_returns_404(self, tenant: Tenant, stranger: Tenant) -> None:
        add_member(tenant, BO, "editor")
        path = f"/api/members/{member_id(tenant, BO)}"
        for caller in (stranger.browser, stranger.private):
            assert_error(caller.get(path), 404, "member_not_found")
            assert_error(caller.put(path, json={"role": "viewer"}), 404, "member_not_found")
            assert_error(caller.delete(path), 404, "member_not_found")
        assert roles(tenant)[BO] == "editor"


class TestLastOwner:
    """An account always has an owner."""

    @pytest.mark.parametrize("role", ["editor", "viewer"])
    def test_last_owner_cannot_be_demoted(self, tenant: Tenant, role: str) -> None:
        add_member(tenant, BO, "editor")
        path = f"/api/members/{member_id(tenant, tenant.email)}"
        assert_error(tenant.browser.put(path, json={"role": role}), 403, "last_owner")
        assert_error(tenant.private.put(path, json={"role": role}), 403, "insufficient_permission")
        assert_ok(tenant.private.put(path, json={"role": "owner"}))

    def test_last_owner_cannot_be_removed(self, tenant: Tenant) -> None:
        add_member(tenant, BO, "editor")
        path = f"/api/members/{member_id(tenant, tenant.email)}"
        assert_error(tenant.browser.delete(path), 403, "last_owner")

    def test_keys_cannot_invite_promote_demote_or_remove_owners(self, tenant: Tenant) -> None:
        """Otherwise a leaked key would be enough to take over the account."""
        add_member(tenant, BO, "owner")
        add_member(tenant, CY, "editor")
        before = roles(tenant)
        guest = {"email": "guest@example.com", "role": "owner"}
        invited = assert_ok(tenant.browser.post("/api/invitations", json=guest), 201)
        renewal = f"/api/invitations/{invited['invitation']['id']}/renew"
        own, bos, cys = (f"/api/members/{member_id(tenant, email)}" for email in (tenant.email, BO, CY))

        rejected = [tenant.private.delete(path) for path in (own, bos)]
        rejected += [tenant.private.call(method, cys, json={"role": "owner"}) for method in ("PUT", "PATCH")]
        rejected += [tenant.private.put(bos, json={"role": role}) for role in ("editor", "viewer")]
        rejected.append(tenant.private.post("/api/invitations", json={**guest, "email": "more@example.com"}))
        rejected.append(tenant.private.post(renewal))
        for response in rejected:
            assert_error(response, 403, "insufficient_permission")

        assert roles(tenant) == before
        listed = assert_ok(tenant.private.get("/api/invitations"))["invitations"]
        assert [(one["email"], one["expires_at"]) for one in listed] == [
            ("guest@example.com", invited["invitation"]["expires_at"])
        ]
        assert_ok(tenant.private.put(cys, json={"role": "viewer"}))
        assert_ok(tenant.private.delete(cys))
        assert_ok(ApiClient(tenant.app).get(invited["url"].removeprefix("http://localhost")))

    def test_one_of_two_owners_can_be_removed(self, tenant: Tenant) -> None:
        add_member(tenant, BO, "owner")
        assert_ok(tenant.browser.delete(f"/api/members/{member_id(tenant, tenant.email)}"))
        assert_error(tenant.browser.get("/api/members"), 401, "missing_api_key")
        assert roles(tenant) == {BO: "owner"}

    def test_concurrent_mutual_removal_of_two_owners_leaves_one(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bo = add_member(tenant, BO, "owner")
        answers = self._at_once(
            tenant,
            monkeypatch,
            lambda: tenant.browser.delete(f"/api/members/{self.ids[BO]}"),
            lambda: bo.delete(f"/api/members/{self.ids[tenant.email]}"),
        )
        assert sorted(answers) == [200, 403]
        assert list(roles(tenant).values()) == ["owner"]

    def test_concurrent_mutual_demotion_of_two_owners_leaves_one(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bo = add_member(tenant, BO, "owner")
        answers = self._at_once(
            tenant,
            monkeypatch,
            lambda: tenant.browser.put(f"/api/members/{self.ids[BO]}", json={"role": "viewer"}),
            lambda: bo.put(f"/api/members/{self.ids[tenant.email]}", json={"role": "viewer"}),
        )
        assert sorted(answers) == [200, 403]
        assert sorted(roles(tenant).values()) == ["owner", "viewer"]

    def test_removed_owner_cannot_complete_a_concurrent_removal(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The account would still have an owner, but a removed member's request must be rejected nevertheless."""
        bo = add_member(tenant, BO, "owner")
        add_member(tenant, CY, "owner")
        answers = self._at_once(
            tenant,
            monkeypatch,
            lambda: tenant.browser.delete(f"/api/members/{self.ids[BO]}"),
            lambda: bo.delete(f"/api/members/{self.ids[tenant.email]}"),
        )
        assert sorted(answers) == [200, 403]
        assert len(roles(tenant)) == 2

    ids: dict[str, int]

    def _at_once(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, *calls: Callable[[], TestResponse]
    ) -> list[int]:
        """Send requests concurrently: all pass authorization before any of them changes anything."""
        listed = assert_ok(tenant.browser.get("/api/members"))["members"]
        self.ids = {member["email"]: member["id"] for member in listed}
        checked = threading.Barrier(len(calls), timeout=PATIENCE_SECONDS)
        database = tenant.app.extensions["runtime"].database
        write = database.write

        def write_together() -> Any:
            checked.wait()
            return write()

        monkeypatch.setattr(database, "write", write_together)
        statuses: list[int] = []
        threads = [threading.Thread(target=lambda call=call: statuses.append(call().status_code)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        monkeypatch.undo()
        return statuses


class TestWhatMembersMay:
    """Permissions of each role; tests/web/test_policy.py covers every operation."""

    def test_editors_change_sites_but_not_members(self, tenant: Tenant) -> None:
        editor = add_member(tenant, BO, "editor")
        assert_ok(editor.post("/sites", json={"name": "New", "url": "https://new.example"}), 201)
        assert_ok(editor.post(f"/api/sites/{tenant.site_id}/keys", json={"name": "New"}), 201)
        invitation = {"email": CY, "role": "viewer"}
        assert_error(editor.post("/api/invitations", json=invitation), 403, "insufficient_permission")
        assert_error(editor.get("/api/members"), 403, "insufficient_permission")
        assert_error(editor.get("/api/audit-log"), 403, "insufficient_permission")

    def test_editors_cannot_create_or_rotate_keys_with_owner_permissions(self, tenant: Tenant) -> None:
        """A private key with all scopes can invite owners, so an editor could use one to become an owner."""
        editor = add_member(tenant, BO, "editor")
        keys = f"/api/sites/{tenant.site_id}/keys"
        private = {"name": "Mine", "type": "private"}
        for scopes in (None, ["account"]):
            answer = editor.post(keys, json={**private, "scopes": scopes})
            assert "Only an owner" in assert_error(answer, 403, "insufficient_permission")["message"]
        theirs = f"{keys}/{tenant.keys['private']['id']}"
        assert_error(editor.post(f"{theirs}/rotate", json={}), 403, "insufficient_permission")
        assert_ok(editor.post(f"{keys}/{tenant.keys['search']['id']}/rotate", json={}))

        scopes = ["documents", "search", "analytics", "sites", "keys"]
        mine = assert_ok(editor.post(keys, json={**private, "scopes": scopes}), 201)["key"]
        assert_ok(editor.post(f"{keys}/{mine['id']}/rotate", json={}))
        assert_error(editor.put(f"{keys}/{mine['id']}", json={"scopes": None}), 403, "insufficient_permission")
        assert_ok(tenant.browser.put(f"{keys}/{mine['id']}", json={"scopes": None}))

    def test_key_without_account_scope_cannot_read_account_data(self, app: Flask, tenant: Tenant) -> None:
        body = {"name": "Narrow", "type": "private", "scopes": ["sites", "keys"]}
        token = assert_ok(tenant.browser.post(f"/api/sites/{tenant.site_id}/keys", json=body), 201)["api_key"]
        narrow = ApiClient(app, token)
        for path in ("/api/members", "/api/invitations", "/api/audit-log", "/profile/edit"):
            assert_error(narrow.get(path), 403, "insufficient_permission")

    def test_api_key_takes_precedence_over_a_viewers_session(self, tenant: Tenant) -> None:
        viewer: Browser = add_member(tenant, BO, "viewer")
        headers = {"Authorization": f"Bearer {tenant.tokens['private']}"}
        assert_ok(viewer.put(f"/sites/{tenant.site_id}", json={"name": "By key"}, headers=headers))

    def test_viewers_form_without_csrf_token_gets_csrf_failed(self, tenant: Tenant) -> None:
        viewer = add_member(tenant, BO, "viewer")
        response = viewer.client.put(f"/sites/{tenant.site_id}", json={"name": "x"})
        assert_error(response, 403, "csrf_failed")
