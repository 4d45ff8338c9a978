"""An email address that belongs to several accounts, and choosing one of them at login."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from app.clock import now
from app.models import Account
from app.runtime import Runtime
from app.services.access.rights import Role
from app.services.accounts.accounts import hash_password
from app.services.accounts.members import add_member, find_members
from tests.callers import PASSWORD, ApiClient, Tenant, register_tenant
from tests.pages.people import Person
from tests.responses import assert_error, assert_ok

OTHER_PASSWORD = "another horse battery"


@pytest.fixture
def both(tenant: Tenant, stranger: Tenant) -> tuple[Tenant, Tenant]:
    """Return Ann's account and Eve's account, which Ann has joined with a different password."""
    join(tenant.app, stranger, tenant.email, OTHER_PASSWORD)
    return tenant, stranger


def join(app: Flask, tenant: Tenant, email: str, password: str = PASSWORD) -> None:
    """Join the tenant's account as an editor by invitation."""
    url = assert_ok(tenant.browser.post("/api/invitations", json={"email": email}), 201)["url"]
    assert_ok(
        ApiClient(app).post(url.removeprefix("http://localhost"), json={"name": "Ann", "password": password}), 201
    )


def log_in(app: Flask, email: str, password: str = PASSWORD, **fields: Any) -> Any:
    return ApiClient(app).post("/login", json={"email": email, "password": password, **fields})


def test_each_password_logs_in_to_its_account(app: Flask, both: tuple[Tenant, Tenant]) -> None:
    ann, eve = both
    first, second = assert_ok(log_in(app, ann.email)), assert_ok(log_in(app, ann.email.upper(), OTHER_PASSWORD))
    assert [first["user"]["id"], second["user"]["id"]] == [ann.account_id, eve.account_id]
    assert "accounts" not in first | second
    assert_error(log_in(app, ann.email, "neither of the two"), 401, "invalid_credentials")


def test_shared_password_logs_in_to_the_oldest_account_unless_account_id_is_given(
    app: Flask, tenant: Tenant, stranger: Tenant
) -> None:
    join(app, stranger, tenant.email)
    answer = assert_ok(log_in(app, tenant.email))
    assert answer["user"]["id"] == tenant.account_id
    assert answer["accounts"] == [
        {"id": tenant.account_id, "name": "Somebody", "role": "owner"},
        {"id": stranger.account_id, "name": "Somebody", "role": "editor"},
    ]
    named = assert_ok(log_in(app, tenant.email, account_id=stranger.account_id))
    assert (named["user"]["id"], named["user"]["name"]) == (stranger.account_id, "Ann")
    third = register_tenant(app, "cy@example.com")
    for account_id in (third.account_id, 2**63 - 1):
        assert_error(log_in(app, tenant.email, account_id=account_id), 401, "invalid_credentials")
    assert_error(log_in(app, tenant.email, account_id=0), 400, "validation_failed", field="account_id")


def test_login_page_asks_which_account_to_use(app: Flask, tenant: Tenant, stranger: Tenant) -> None:
    join(app, stranger, tenant.email)
    assert_ok(stranger.browser.put("/profile", json={"name": "Eve's shop"}))
    passer_by = Person(app)
    passer_by.go("/login?next=/profile/edit")
    passer_by.send("Log in", email=tenant.email, password=PASSWORD)
    assert "belongs to 2 accounts" in passer_by.page.text
    assert "session=" not in str(passer_by.response.headers.getlist("Set-Cookie"))
    passer_by.press("Eve's shop")
    assert passer_by.path == "/profile/edit"
    assert "Your role in this account: editor" in passer_by.page.text


def test_account_choice_is_invalidated_by_a_password_change(app: Flask, tenant: Tenant, stranger: Tenant) -> None:
    join(app, stranger, tenant.email)
    passer_by = Person(app)
    passer_by.go("/login")
    passer_by.send("Log in", email=tenant.email, password=PASSWORD)
    new = {"current_password": PASSWORD, "new_password": OTHER_PASSWORD}
    assert_ok(tenant.browser.put("/profile", json=new))
    form = passer_by.form("Somebody")
    offer = next(f.attributes["value"] for f in form.walk() if f.attributes.get("name") == "offer")
    chosen = {"offer": offer, "account_id": str(tenant.account_id)}
    assert passer_by.call("POST", "/login/account", data=chosen).status_code == 401
    assert passer_by.call("POST", "/login/account", data={**chosen, "offer": offer + "x"}).status_code == 401
    third = register_tenant(app, "cy@example.com")
    assert passer_by.call("POST", "/login/account", data={**chosen, "account_id": third.account_id}).status_code == 401
    chosen["account_id"] = str(stranger.account_id)
    assert passer_by.call("POST", "/login/account", data=chosen).status_code == 303


def test_email_of_another_user_cannot_be_registered_or_taken(app: Flask, both: tuple[Tenant, Tenant]) -> None:
    ann, eve = both
    third = register_tenant(app, "cy@example.com")
    for response in (
        ApiClient(app).post("/register", json={"name": "A", "email": ann.email, "password": PASSWORD}),
        third.browser.put("/profile", json={"email": ann.email, "current_password": PASSWORD}),
        third.private.put("/profile", json={"email": ann.email}),
        eve.browser.post("/api/invitations", json={"email": ann.email}),
    ):
        assert assert_error(response, 400, "validation_failed", field="email")["details"][0]["code"] == "taken"


def test_email_stays_reserved_when_one_of_its_accounts_is_deleted(app: Flask, both: tuple[Tenant, Tenant]) -> None:
    ann, eve = both
    assert_ok(ann.browser.delete("/profile", json={"password": PASSWORD}))
    assert_error(log_in(app, ann.email), 401, "invalid_credentials")
    assert assert_ok(log_in(app, ann.email, OTHER_PASSWORD))["user"]["id"] == eve.account_id
    body = {"name": "A", "email": ann.email, "password": PASSWORD}
    assert_error(ApiClient(app).post("/register", json=body), 400, "validation_failed", field="email")


def test_changing_a_shared_email_affects_only_that_account(app: Flask, both: tuple[Tenant, Tenant]) -> None:
    ann, eve = both
    client = app.test_client()
    body = {"email": ann.email, "password": OTHER_PASSWORD}
    token = client.post("/login", json=body).get_json()["csrf_token"]
    changes = {"email": "ann@work.example", "current_password": OTHER_PASSWORD}
    assert_ok(client.put("/profile", json=changes, headers={"X-CSRF-Token": token}))
    assert assert_ok(log_in(app, "ann@work.example", OTHER_PASSWORD))["user"]["id"] == eve.account_id
    assert_error(log_in(app, ann.email, OTHER_PASSWORD), 401, "invalid_credentials")
    assert assert_ok(log_in(app, ann.email))["user"]["id"] == ann.account_id


def test_operator_commands_require_an_account_id_for_a_shared_email(app: Flask, both: tuple[Tenant, Tenant]) -> None:
    ann, eve = both
    runner = app.test_cli_runner()
    result = runner.invoke(args=["account", "set-plan", ann.email, "business"])
    assert result.exit_code == 1
    assert f"specify one of their IDs: {ann.account_id} (Somebody), {eve.account_id} (Somebody)." in result.output
    assert runner.invoke(args=["account", "set-plan", str(eve.account_id), "business"]).exit_code == 0
    assert ann.browser.get("/profile/edit").get_json()["user"]["plan"] == "pro"
    assert eve.browser.get("/profile/edit").get_json()["user"]["plan"] == "business"
    result = runner.invoke(args=["account", "set-plan", "999", "business"])
    assert "No account has the ID 999." in result.output


def test_operator_password_reset_applies_to_all_accounts_of_the_email(app: Flask, both: tuple[Tenant, Tenant]) -> None:
    ann, _ = both
    new = "a password of the operator"
    result = app.test_cli_runner().invoke(args=["account", "reset-password", ann.email, "--password", new])
    assert result.exit_code == 0, result.output
    assert len(assert_ok(log_in(app, ann.email, new))["accounts"]) == 2


@pytest.fixture
def many(app: Flask, tenant: Tenant, stranger: Tenant) -> list[int]:
    """Return the IDs of Ann's 24 accounts, oldest first; each has a password that ends in its number."""
    part: Runtime = app.extensions["runtime"]
    with part.database.write() as session:
        for number in range(1, 24):
            account = Account(
                name=f"Account {number}", email="", email_key=f"other {number}", plan="pro", created_at=now()
            )
            session.add(account)
            session.flush()
            add_member(
                session,
                account,
                name="Ann",
                email=tenant.email,
                password_hash=hash_password(f"{OTHER_PASSWORD} {number}"),
                role=Role.OWNER,
            )
        return [member.account_id for member in find_members(session, tenant.email)]


def test_every_account_of_an_email_with_many_accounts_can_log_in(app: Flask, tenant: Tenant, many: list[int]) -> None:
    for number in (1, 9, 10, 23):
        password = f"{OTHER_PASSWORD} {number}"
        assert assert_ok(log_in(app, tenant.email, password))["user"]["id"] == many[number]
        named = log_in(app, tenant.email, password, account_id=many[number])
        assert assert_ok(named)["user"]["id"] == many[number]
        assert_error(log_in(app, tenant.email, password, account_id=many[0]), 401, "invalid_credentials")


def test_every_ten_accounts_count_as_one_login_attempt(
    app: Flask, tenant: Tenant, many: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Password checks are slow: inviting an email address to many accounts must not multiply an attack."""
    compared: list[object] = []
    monkeypatch.setattr("app.services.accounts.accounts.check_password", lambda who, _: compared.append(who))
    for number in range(100):
        fields = {} if number < 16 else {"account_id": many[3]}
        response = ApiClient(app).post(
            "/login",
            json={"email": tenant.email if number % 8 else f"{number}@example.com", "password": "wrong", **fields},
        )
        if response.status_code == 429:
            break
    assert len(compared) <= 500
    assert number < 50


def test_account_with_a_confirmed_email_precedes_unconfirmed_ones(app: Flask, tenant: Tenant, stranger: Tenant) -> None:
    join(app, stranger, tenant.email)
    part: Runtime = app.extensions["runtime"]
    with part.database.write() as session:
        _, joined = find_members(session, tenant.email)
        joined.email_confirmed = True
    answer = assert_ok(log_in(app, tenant.email))
    assert answer["user"]["id"] == stranger.account_id
    assert [account["id"] for account in answer["accounts"]] == [stranger.account_id, tenant.account_id]
