"""Logging in with an identity provider: new, known, and invited people, and the effects of a verified address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyotp
import pytest
from flask import Flask
from sqlalchemy import select

from app.models import Identity, Member
from app.operations import operator as account_operations
from app.runtime import Runtime
from tests.callers import PASSWORD, ApiClient, add_member, register_browser, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.identity_provider import IdentityProvider
from tests.pages.oidc.visitors import begin, come, is_logged_in
from tests.pages.people import Person, person_of
from tests.responses import assert_error, assert_ok
from tests.waiting import recorded_pool

ANN = "ann@example.com"


def account_of(person: Person) -> int:
    """Return the ID of the account that the browser is logged in to."""
    return int(person.client.get("/profile/edit").get_json()["user"]["id"])


def log_in(app: Flask, email: str = ANN, password: str = PASSWORD) -> Any:
    return ApiClient(app).post("/login", json={"email": email, "password": password})


def test_new_person_gets_a_confirmed_account(app: Flask, provider: IdentityProvider) -> None:
    person = Person(app)
    person.go("/login?next=/sites")
    link = person.page.first("a", "Log in with Example").attributes["href"]
    person.call("GET", provider.log_in(begin(person, link)))
    assert (person.response.status_code, person.response.headers["Location"]) == (303, "/sites")
    user = person.client.get("/profile/edit").get_json()["user"]
    assert (user["name"], user["email"], user["plan"]) == ("Ann Example", ANN, "pro")
    part: Runtime = app.extensions["runtime"]
    with part.database.read() as session:
        identity = session.scalars(select(Identity)).one()
        assert (identity.issuer, identity.subject) == (provider.issuer, "248289761001")
        assert identity.member.email_confirmed
    assert_error(log_in(app), 401, "invalid_credentials")


def test_people_are_recognized_by_issuer_and_subject_after_the_first_login(
    app: Flask, provider: IdentityProvider
) -> None:
    first = account_of(come(app, provider))
    provider.person |= {"email": "ann@other.example"}
    assert account_of(come(app, provider)) == first
    provider.person |= {"email": ANN, "sub": "somebody else"}
    person = come(app, provider)
    assert person.response.status_code == 403
    assert f"{ANN} already belongs to another person's account here" in person.alerts[0]


def test_email_from_the_userinfo_is_used_only_if_verified(app: Flask, provider: IdentityProvider) -> None:
    provider.userinfo, provider.person = provider.person, {"sub": provider.person["sub"]}
    assert is_logged_in(come(app, provider))
    provider.userinfo = {**provider.userinfo, "email_verified": False}
    assert come(app, provider).response.status_code == 401


def test_confirmed_member_is_recognized_by_email_and_keeps_sessions_and_keys(
    app: Flask, provider: IdentityProvider
) -> None:
    part: Runtime = app.extensions["runtime"]
    tenant = register_tenant(app, ANN.upper())
    with part.database.write() as session:
        session.scalars(select(Member)).one().email_confirmed = True
    assert account_of(come(app, provider)) == tenant.account_id
    assert_ok(log_in(app))
    assert_ok(tenant.browser.get("/dashboard"))
    assert_ok(tenant.search.get("/v1/search?q=x"))


def test_operator_created_account_is_recognized_and_keeps_its_password(app: Flask, provider: IdentityProvider) -> None:
    part: Runtime = app.extensions["runtime"]
    made = account_operations.create_account(part, name="Ann", email=ANN, password=PASSWORD, plan="pro")
    assert account_of(come(app, provider)) == made.id
    assert_ok(log_in(app))


class TestAnAddressTakenInAdvance:
    """The provider's verification overrides an earlier registration of the same email address."""

    def test_unconfirmed_accounts_password_sessions_and_keys_become_invalid(
        self, app: Flask, provider: IdentityProvider
    ) -> None:
        attacker = register_tenant(app, ANN)
        victim = come(app, provider)
        assert account_of(victim) == attacker.account_id
        assert_error(log_in(app), 401, "invalid_credentials")
        assert_error(attacker.browser.get("/dashboard"), 401, "missing_api_key")
        for kind in ("public", "search", "private"):
            assert_error(attacker.client(kind).get("/v1/client-info"), 401, "key_disabled")

    def test_members_whom_the_attacker_invited_are_removed(self, app: Flask, provider: IdentityProvider) -> None:
        attacker = register_tenant(app, ANN)
        accomplice = add_member(attacker, "eve@example.com", "owner")
        body = {"email": "mallory@example.com", "role": "owner"}
        url = assert_ok(attacker.browser.post("/api/invitations", json=body), 201)["url"]
        victim = come(app, provider)
        assert is_logged_in(victim)
        assert_error(accomplice.get("/dashboard"), 401, "missing_api_key")
        assert_error(log_in(app, "eve@example.com"), 401, "invalid_credentials")
        path = url.removeprefix("http://localhost")
        assert_error(ApiClient(app).post(path, json={"name": "M", "password": PASSWORD}), 404, "invitation_not_found")
        entries = victim.client.get("/api/audit-log").get_json()["entries"]
        found = {(entry["action"], entry["object"]["kind"], entry["object"]["name"]) for entry in entries}
        assert {
            ("deleted", "member", "eve@example.com"),
            ("deleted", "invitation", "mallory@example.com"),
            ("created", "identity", ANN),
            ("changed", "member", ANN),
            ("logged_in", "member", ANN),
        } <= found

    def test_account_that_adopted_the_email_address_later_loses_sessions_and_keys(
        self, app: Flask, provider: IdentityProvider
    ) -> None:
        attacker = register_tenant(app, "eve@example.com")
        part: Runtime = app.extensions["runtime"]
        with part.database.write() as session:
            session.scalars(select(Member)).one().email_confirmed = True
        assert_ok(attacker.browser.put("/profile", json={"email": ANN, "current_password": PASSWORD}))
        come(app, provider)
        assert_error(attacker.browser.get("/dashboard"), 401, "missing_api_key")
        assert_error(attacker.search.get("/v1/search?q=x"), 401, "key_disabled")

    def test_unconfirmed_members_password_and_session_end_but_not_the_accounts_keys(
        self, app: Flask, provider: IdentityProvider
    ) -> None:
        owner = register_tenant(app, "owner@example.com")
        somebody = add_member(owner, ANN, "editor")
        person = come(app, provider)
        assert "belongs to 1 account" in person.page.text, "the preview must show the redirect's target"
        person.press("Somebody")
        assert account_of(person) == owner.account_id
        assert account_of(come(app, provider)) == owner.account_id
        assert_error(somebody.get("/dashboard"), 401, "missing_api_key")
        assert_error(log_in(app), 401, "invalid_credentials")
        assert_ok(owner.browser.get("/dashboard"))
        assert_ok(owner.search.get("/v1/search?q=x"))


def test_email_address_set_with_a_leaked_key_does_not_grant_the_account(app: Flask, provider: IdentityProvider) -> None:
    """The finder of a leaked key sets their own email address, which the provider has verified."""
    tenant = register_tenant(app, "owner@example.com")
    assert_ok(tenant.private.put("/profile", json={"email": ANN}))
    thief = come(app, provider)
    assert thief.response.status_code == 403
    assert not is_logged_in(thief)
    assert_ok(tenant.browser.get("/dashboard"))


class TestConnecting:
    """A logged-in member connects their identity at the provider."""

    def test_connecting_a_provider_keeps_password_and_keys(self, app: Flask, provider: IdentityProvider) -> None:
        tenant = register_tenant(app, ANN)
        person = person_of(tenant)
        person.go("/profile/edit")
        person.send("Connect")
        person.call("GET", provider.log_in(person.page.first("a", "Continue to Example").attributes["href"]))
        assert person.response.headers["Location"] == "/profile/edit"
        assert_ok(log_in(app))
        assert_ok(tenant.search.get("/v1/search?q=x"))
        assert account_of(come(app, provider)) == tenant.account_id
        assert "Connect" not in person.go("/profile/edit").text

    def test_connection_started_by_an_attacker_does_not_apply_to_the_victim(
        self, app: Flask, provider: IdentityProvider
    ) -> None:
        """An attacker's login attempt in the victim's browser does not connect the victim's identity."""
        tenant = register_tenant(app, ANN)
        attacker = person_of(tenant)
        attacker.go("/profile/edit")
        attacker.send("Connect")
        path = provider.log_in(attacker.page.first("a", "Continue to Example").attributes["href"])
        cookie = attacker.client.get_cookie("login_attempt", path="/login/oidc")
        assert cookie is not None
        victim = Person(app)
        victim.client.set_cookie("login_attempt", cookie.value, path="/login/oidc")
        victim.call("GET", path)
        assert is_logged_in(victim)
        assert_error(tenant.browser.get("/dashboard"), 401, "missing_api_key")


def test_person_with_several_accounts_chooses_one(app: Flask, provider: IdentityProvider) -> None:
    first = account_of(come(app, provider))
    other = register_tenant(app, "owner@example.com")
    assert_ok(other.browser.put("/profile", json={"name": "The other"}))
    add_member(other, ANN, "viewer")
    person = come(app, provider, "/login/oidc?next=/profile/edit")
    assert person.response.status_code == 200
    assert "belongs to 2 accounts" in person.page.text
    person.press("The other")
    assert account_of(person) == other.account_id != first


@pytest.mark.parametrize(
    ("email", "comes"),
    [
        ("ann@example.com", True),
        ("ann@EXAMPLE.com", True),
        ("ann@sub.example.com", False),
        ("ann@example.com.evil", False),
    ],
)
def test_only_email_addresses_of_allowed_domains_can_log_in(
    tmp_path: Path, provider: IdentityProvider, email: str, comes: bool
) -> None:
    app = make_app(make_settings(tmp_path, **provider.settings(oidc_allowed_domains="Example.com, other.example")))
    provider.person |= {"email": email}
    person = come(app, provider)
    assert is_logged_in(person) == comes
    close_app(app)


def test_closed_registration_admits_only_existing_and_invited_people(
    tmp_path: Path, provider: IdentityProvider
) -> None:
    app = make_app(make_settings(tmp_path, **provider.settings(registration=False)))
    part: Runtime = app.extensions["runtime"]
    account_operations.create_account(part, name="O", email="owner@example.com", password=PASSWORD, plan="pro")
    assert "ask for an invitation" in come(app, provider).alerts[0]
    client = app.test_client()
    token = client.post("/login", json={"email": "owner@example.com", "password": PASSWORD}).get_json()["csrf_token"]
    invited = client.post(
        "/api/invitations", json={"email": ANN, "role": "viewer"}, headers={"X-CSRF-Token": token}
    ).get_json()
    person = Person(app)
    person.go(invited["url"].removeprefix("http://localhost"))
    link = person.page.first("a", "Join with Example").attributes["href"]

    provider.person |= {"email": "eve@example.com", "sub": "eve"}
    assert "for a different email address" in come(app, provider, link).alerts[0]
    provider.person |= {"email": ANN, "sub": "ann"}
    person.call("GET", provider.log_in(begin(person, link)))
    assert is_logged_in(person)
    assert is_logged_in(come(app, provider))
    close_app(app)


class TestWithoutPasswords:
    """``PASSWORD_LOGIN=false`` allows only the provider."""

    @pytest.fixture
    def app(self, tmp_path: Path, provider: IdentityProvider) -> Any:
        made = make_app(make_settings(tmp_path, **provider.settings(password_login=False)))
        yield made
        close_app(made)

    def test_password_endpoints_return_403_without_password_login(self, app: Flask, provider: IdentityProvider) -> None:
        part: Runtime = app.extensions["runtime"]
        account_operations.create_account(part, name="Ann", email=ANN, password=PASSWORD, plan="pro")
        body = {"email": "new@example.com", "name": "N", "password": PASSWORD}
        rejected = [
            log_in(app),
            ApiClient(app).post("/register", json=body),
            ApiClient(app).post("/invitations/svc_inv_" + "x" * 43, json={"name": "N", "password": PASSWORD}),
        ]
        for response in rejected:
            assert_error(response, 403, "insufficient_permission")
        person = Person(app)
        for path, form in (
            ("/password/forgot", {"email": ANN}),
            ("/password/reset", {"token": "x" * 43, "new_password": PASSWORD}),
        ):
            assert person.call("POST", path, data=form).status_code == 403
        assert is_logged_in(come(app, provider))

    def test_login_pages_show_only_the_provider(self, app: Flask) -> None:
        person = Person(app)
        page = person.go("/register")
        assert person.path == "/login"
        assert page.first("a", "Log in with Example")
        assert not [field for field in page.all("input") if field.attributes.get("type") == "password"]
        assert app.test_client().get("/login").get_json() == {
            "form": {"method": "GET", "action": "/login/oidc", "fields": []}
        }


def test_oidc_routes_return_404_without_a_provider(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path))
    register_browser(app, ANN)
    assert "Log in with" not in Person(app).go("/login").text
    for path in ("/login/oidc", "/login/oidc/callback"):
        assert_error(ApiClient(app).get(path), 404, "not_found")
    close_app(app)


def test_provider_login_requires_no_one_time_code(app: Flask, provider: IdentityProvider) -> None:
    """The provider is responsible for a second factor; password logins still require the code."""
    tenant = register_tenant(app, ANN)
    secret = assert_ok(tenant.browser.post("/profile/totp", json={"current_password": PASSWORD}))["secret"]
    assert_ok(tenant.browser.post("/profile/totp/confirm", json={"code": pyotp.TOTP(secret).now()}))
    person = person_of(tenant)
    person.go("/profile/edit")
    person.send("Connect")
    person.call("GET", provider.log_in(person.page.first("a", "Continue to Example").attributes["href"]))
    assert account_of(come(app, provider)) == tenant.account_id
    assert_error(log_in(app), 401, "code_required")


def test_provider_login_removes_codes_of_an_unconfirmed_account(app: Flask, provider: IdentityProvider) -> None:
    attacker = register_tenant(app, ANN)
    secret = assert_ok(attacker.browser.post("/profile/totp", json={"current_password": PASSWORD}))["secret"]
    assert_ok(attacker.browser.post("/profile/totp/confirm", json={"code": pyotp.TOTP(secret).now()}))
    come(app, provider)
    part: Runtime = app.extensions["runtime"]
    with part.database.read() as session:
        assert session.scalars(select(Member)).one().codes_since is None


def test_waiting_for_the_provider_lets_other_requests_work(app: Flask) -> None:
    with recorded_pool() as worker_pool:
        app.extensions["runtime"].provider.endpoints()
    assert (worker_pool.waits, worker_pool.is_waiting) == (1, False)
