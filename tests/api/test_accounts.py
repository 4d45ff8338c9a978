"""Registration, login, sessions."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Literal, NoReturn

import pytest
import time_machine
from argon2 import PasswordHasher
from flask import Flask
from sqlalchemy.exc import OperationalError
from werkzeug.test import TestResponse

from app.models import Account, Member
from app.operations.attempts import PASSWORD_HASHES
from app.services.accounts import accounts, passwords
from app.storage.database import Database
from tests.callers import PASSWORD, ApiClient, Browser, Tenant, register_browser
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error, assert_ok
from tests.shared_servers import stored_bytes

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
NEW = {"name": "Ann", "email": "new@example.com", "password": PASSWORD}


def register(app: Flask, address: str = "10.0.0.1", **fields: Any) -> TestResponse:
    return ApiClient(app).post("/register", json={**NEW, **fields}, environ_overrides={"REMOTE_ADDR": address})


def log_in(app: Flask, email: str, password: str = PASSWORD, address: str = "10.0.0.1") -> TestResponse:
    body = {"email": email, "password": password}
    return ApiClient(app).post("/login", json=body, environ_overrides={"REMOTE_ADDR": address})


def cookie_of(response: TestResponse) -> Any:
    return SimpleCookie(response.headers["Set-Cookie"])["session"]


class TestRegistration:
    """POST /register."""

    def test_registration_logs_the_user_in(self, app: Flask) -> None:
        client = app.test_client()
        response = client.post("/register", json={**NEW, "name": "  Ann ", "email": " Ann@Example.com "})

        answer = assert_ok(response, 201)
        user = answer["user"]
        assert answer == {"success": True, "user": user, "csrf_token": answer["csrf_token"]}
        assert set(user) == {"id", "name", "email", "plan", "created_at"}
        assert (user["name"], user["email"], user["plan"]) == ("Ann", "Ann@Example.com", "pro")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", user["created_at"])
        assert response.headers["Cache-Control"] == "no-store"
        assert_ok(Browser(client, answer["csrf_token"]).put("/profile", json={"name": "Anna"}))

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"name": None}, "name"),
            ({"name": " "}, "name"),
            ({"name": "x" * 101}, "name"),
            ({"name": 5}, "name"),
            ({"email": None}, "email"),
            ({"email": ""}, "email"),
            ({"email": "ann"}, "email"),
            ({"email": "@x.example"}, "email"),
            ({"email": "ann@"}, "email"),
            ({"email": "ann@x"}, "email"),
            ({"email": "a b@x.example"}, "email"),
            ({"email": "a@x..example"}, "email"),
            ({"email": "a@-x.example"}, "email"),
            ({"email": ".a@x.example"}, "email"),
            ({"email": "a@b@x.example"}, "email"),
            ({"email": "x" * 65 + "@x.example"}, "email"),
            ({"email": "a@" + "x." * 130 + "example"}, "email"),
            ({"email": "a@x.example\n"}, None),
            ({"email": "a\n@x.example"}, "email"),
            ({"password": None}, "password"),
            ({"password": "nine char"}, "password"),
            ({"password": "x" * 1025}, "password"),
            ({"password": 1234567890}, "password"),
            ({"plan": "business"}, "plan"),
        ],
    )
    def test_registration_with_invalid_fields_returns_400(
        self, shared_app: Flask, fields: dict[str, Any], field: str | None
    ) -> None:
        if field is None:
            assert_ok(register(shared_app, **fields), 201)  # Surrounding whitespace is stripped.
        else:
            assert_error(register(shared_app, **fields), 400, "validation_failed", field=field)

    @pytest.mark.parametrize("password", ["kettle 4x9", PASSWORD + "p" * (1024 - len(PASSWORD))])
    def test_registration_and_login_accept_passwords_of_minimum_and_maximum_length(
        self, shared_app: Flask, password: str
    ) -> None:
        email = f"length-{len(password)}@example.com"

        assert_ok(register(shared_app, email=email, password=password), 201)
        assert_ok(log_in(shared_app, email, password))
        assert_error(log_in(shared_app, email, password[:-1]), 401, "invalid_credentials")

    @pytest.mark.parametrize(
        ("password", "reason"),
        [
            ("1234567890", "This is a top-100 common password."),
            ("aaaaaaaaaa", 'Repeats like "aaa" are easy to guess.'),
            ("p" * 1024, 'Repeats like "aaa" are easy to guess.'),
            ("Passw0rd123!", "This is similar to a commonly used password."),
            ("1q2w3e4r5t", "This is a very common password."),
            ("10.10.2010", "Dates are often easy to guess."),
            ("Joan Harbor 1", "It resembles the name or the email address."),
            ("joan.harbor", "It resembles the name or the email address."),
            ("keeper@lighthouse.example", "It resembles the name or the email address."),
        ],
    )
    def test_easily_guessed_password_is_rejected_with_the_reason(
        self, shared_app: Flask, password: str, reason: str
    ) -> None:
        person = {"name": "Joan Harbor", "email": "keeper@lighthouse.example"}

        response = register(shared_app, "10.0.0.77", **person, password=password)

        (detail,) = assert_error(response, 400, "validation_failed", field="password")["details"]
        message = f"password is too easy to guess. {reason} Add another word or two"
        assert (detail["code"], detail["message"]) == ("too_weak", message)
        assert_error(log_in(shared_app, person["email"], password), 401, "invalid_credentials")

    def test_a_hostile_password_is_checked_quickly(self) -> None:
        """Each character has several readings as a letter, so the time grows exponentially without a limit."""
        start = time.thread_time()

        passwords.reject_weak_password("password", "4@8({[<69!1|1+7%205$xX" * 46)

        assert time.thread_time() - start < 1

    @pytest.mark.parametrize("email", ["taken@example.com", "TAKEN@EXAMPLE.COM", "  Taken@Example.Com "])
    def test_registering_a_taken_email_is_rejected_in_upper_and_lower_case(self, shared_app: Flask, email: str) -> None:
        register(shared_app, email="taken@example.com")

        body = assert_error(register(shared_app, email=email), 400, "validation_failed", field="email")
        assert body["details"][0]["code"] == "taken"

    def test_registrations_are_limited_to_30_per_hour_per_ip_address(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            assert_error(register(app, email="nonsense"), 400, "validation_failed")
            for number in range(30):
                assert register(app, email=f"n{number % 3}@example.com").status_code in (201, 400)
            body = assert_error(register(app, email="late@example.com"), 429, "rate_limit_exceeded")
            assert body["retry_after"] == 3600
            assert_ok(register(app, "10.0.0.2", email="late@example.com"), 201)
            clock.shift(3600)
            assert_ok(register(app, email="later@example.com"), 201)

    def test_registration_returns_403_when_disabled_in_settings(self, tmp_path: Path) -> None:
        app = make_app(make_settings(tmp_path, registration=False))

        assert_error(register(app), 403, "insufficient_permission")
        close_app(app)


def away() -> NoReturn:
    raise OperationalError("BEGIN IMMEDIATE", {}, sqlite3.OperationalError("database is locked"))


class TestLogin:
    """POST /login."""

    def test_login_starts_a_separate_session_and_keeps_existing_ones(self, shared_app: Flask) -> None:
        browser, account_id = register_browser(shared_app, "twice@example.com")
        client = shared_app.test_client()
        answer = assert_ok(client.post("/login", json={"email": "Twice@Example.com", "password": PASSWORD}))

        assert answer["user"]["id"] == account_id
        assert answer["csrf_token"] != browser.csrf_token
        assert_ok(Browser(client, answer["csrf_token"]).get("/dashboard"))
        assert_ok(browser.get("/dashboard"))

    @pytest.mark.parametrize("path", ["/login", "/register", "/password/forgot", "/login/account"])
    def test_public_forms_reject_bodies_above_the_small_size_limit(self, shared_app: Flask, path: str) -> None:
        for kind in ("application/json", "application/x-www-form-urlencoded"):
            answer = ApiClient(shared_app).post(path, data=b"a=b&" * 16_385, content_type=kind)
            assert answer.status_code == 413

    def test_login_attempts_per_ip_address_are_limited_even_with_the_right_password(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            register_browser(app, "ann@example.com")
            for _ in range(PASSWORD_HASHES):
                assert_ok(log_in(app, "ann@example.com"))

            body = assert_error(log_in(app, "ann@example.com"), 429, "rate_limit_exceeded")
            assert body["retry_after"] == 900
            assert_ok(log_in(app, "ann@example.com", address="10.0.2.1"))
            clock.shift(900)
            assert_ok(log_in(app, "ann@example.com"))

    def test_unknown_email_and_wrong_password_get_identical_responses(self, shared_app: Flask) -> None:
        register_browser(shared_app, "known@example.com")

        wrong = log_in(shared_app, "known@example.com", "not the password")
        unknown = log_in(shared_app, "unknown@example.com", "not the password")

        for response in (wrong, unknown):
            assert_error(response, 401, "invalid_credentials")
            assert "Set-Cookie" not in response.headers
        assert wrong.get_json() == unknown.get_json()
        assert set(dict(wrong.headers)) == set(dict(unknown.headers))

    def test_unknown_email_costs_the_same_password_hash_as_a_wrong_password(
        self, shared_app: Flask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Response times do not reveal registered emails: both cases verify one password hash at the same cost."""
        register_browser(shared_app, "timed@example.com")
        compared: list[tuple[str, ...]] = []

        class Watched(PasswordHasher):
            def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
                compared.append(tuple(str(hash).split("$")[:4]))
                return super().verify(hash, password)

        monkeypatch.setattr(accounts, "_hasher", Watched())
        for email in ("timed@example.com", "untimed@example.com"):
            assert_error(log_in(shared_app, email, "not the password"), 401, "invalid_credentials")

        known, unknown = compared
        assert known == unknown

    def test_login_replaces_a_planted_session_cookie(self, shared_app: Flask) -> None:
        register_browser(shared_app, "fixed@example.com")
        stranger, _ = register_browser(shared_app, "stranger@example.com")
        strangers = stranger.client.get_cookie("session")
        assert strangers is not None
        for planted in ("chosen-by-a-stranger", strangers.value):
            client = shared_app.test_client()
            client.set_cookie("session", planted)

            response = client.post("/login", json={"email": "fixed@example.com", "password": PASSWORD})

            assert_ok(response)
            assert cookie_of(response).value != planted

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "email"),
            ({"email": "a@b.example"}, "password"),
            ({"email": 5, "password": "x"}, "email"),
            ({"email": "a@b.example", "password": ""}, "password"),
            ({"email": "a@b.example", "password": "x", "remember": True}, "remember"),
        ],
    )
    def test_login_with_an_invalid_body_returns_400(self, shared_app: Flask, body: dict[str, Any], field: str) -> None:
        assert_error(ApiClient(shared_app).post("/login", json=body), 400, "validation_failed", field=field)

    def test_ten_failed_logins_per_account_and_ip_address_block_for_15_minutes(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            register(app, email="ann@example.com")
            for _ in range(10):
                assert_error(log_in(app, "ann@example.com", "wrong password"), 401, "invalid_credentials")

            assert_error(log_in(app, "ann@example.com", "wrong password"), 429, "rate_limit_exceeded")
            body = assert_error(log_in(app, "ANN@example.com"), 429, "rate_limit_exceeded")
            assert body["retry_after"] == 900
            assert_ok(log_in(app, "ann@example.com", address="10.0.0.2"))
            clock.shift(900)
            assert_ok(log_in(app, "ann@example.com"))

    def test_database_outage_does_not_count_as_a_failed_login(self, app: Flask) -> None:
        database: Database = app.extensions["runtime"].database
        with time_machine.travel(NOON, tick=False):
            register(app, email="ann@example.com")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(database, "write", away)
                for _ in range(11):
                    assert_error(log_in(app, "ann@example.com"), 503, "database_unavailable")

            assert_ok(log_in(app, "ann@example.com"))

    def test_fifty_failed_logins_from_one_ip_address_block_its_logins(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False):
            register(app, email="ann@example.com")
            for number in range(50):
                assert_error(log_in(app, f"nobody{number}@example.com", "x"), 401, "invalid_credentials")

            assert_error(log_in(app, "ann@example.com"), 429, "rate_limit_exceeded")
            assert_ok(log_in(app, "ann@example.com", address="10.0.0.2"))

    def test_hundred_failed_logins_block_the_account_for_an_hour_from_every_ip_address(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            register(app, email="ann@example.com")
            for number in range(100):
                response = log_in(app, "ann@example.com", "wrong password", f"10.0.1.{number // 5}")
                assert_error(response, 401, "invalid_credentials")

            assert_error(log_in(app, "ann@example.com", address="10.0.2.1"), 429, "rate_limit_exceeded")
            clock.shift(3600)
            assert_ok(log_in(app, "ann@example.com", address="10.0.2.1"))

    def test_concurrent_password_guesses_are_all_counted(self, app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
        """A guess that arrives while others are still being verified must not slip past the limit."""
        check, compared = accounts.check_password, 0

        def check_while_another_guesses(member: Member | None, password: str) -> bool:
            nonlocal compared
            compared += 1
            assert log_in(app, "ann@example.com", "another guess").status_code in (401, 429)
            return check(member, password)

        with time_machine.travel(NOON, tick=False):
            register(app, email="ann@example.com")
            monkeypatch.setattr(accounts, "check_password", check_while_another_guesses)

            log_in(app, "ann@example.com", "a guess")

        assert compared == 10

    def test_successful_logins_do_not_count_as_failures(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False):
            register(app, email="ann@example.com")
            for _ in range(60):
                assert_ok(log_in(app, "ann@example.com"))

    def test_login_fails_if_the_account_is_deleted_during_the_password_check(
        self, app: Flask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        browser, _ = register_browser(app, "ann@example.com")
        meanwhile(monkeypatch, lambda: assert_ok(browser.delete("/profile", json={"password": PASSWORD})))

        assert_error(log_in(app, "ann@example.com"), 401, "invalid_credentials")
        assert_error(log_in(app, "ann@example.com"), 401, "invalid_credentials")
        register_browser(app, "ann@example.com")

    def test_login_with_old_password_fails_if_it_changes_during_the_password_check(
        self, app: Flask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        browser, _ = register_browser(app, "ann@example.com")
        change = {"name": "Anna", "current_password": PASSWORD, "new_password": "another battery"}
        meanwhile(monkeypatch, lambda: assert_ok(browser.put("/profile", json=change)))

        assert_error(log_in(app, "ann@example.com"), 401, "invalid_credentials")
        assert_error(log_in(app, "ann@example.com"), 401, "invalid_credentials")
        assert assert_ok(log_in(app, "ann@example.com", "another battery"))["user"]["name"] == "Anna"


def meanwhile(monkeypatch: pytest.MonkeyPatch, happening: Callable[[], object]) -> None:
    """Call `happening` once, after the next password check and before its result is used."""
    check = accounts.check_password

    def check_slowly(account: Account | None, password: str) -> bool:
        answer = check(account, password)
        monkeypatch.setattr(accounts, "check_password", check)
        happening()
        return answer

    monkeypatch.setattr(accounts, "check_password", check_slowly)


class TestSessions:
    """Expiry, cookie attributes, and storage of sessions."""

    def test_session_expires_after_14_idle_days(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            browser, _ = register_browser(app, "ann@example.com")
            for _ in range(3):
                clock.shift(timedelta(days=13, hours=23))
                assert_ok(browser.get("/dashboard"))
            clock.shift(timedelta(days=14))
            assert_error(browser.get("/dashboard"), 401, "missing_api_key")

    def test_session_expires_after_90_days_even_if_used(self, app: Flask) -> None:
        with time_machine.travel(NOON, tick=False) as clock:
            browser, _ = register_browser(app, "ann@example.com")
            for _ in range(9):
                clock.shift(timedelta(days=9, hours=23))
                assert_ok(browser.get("/dashboard"))
            clock.move_to(NOON + timedelta(days=89, hours=23, minutes=59))
            assert_ok(browser.get("/dashboard"))
            clock.move_to(NOON + timedelta(days=90))
            assert_error(browser.get("/dashboard"), 401, "missing_api_key")

    def test_expired_sessions_are_deleted_by_jobs(self, app: Flask) -> None:
        from app.models import Session

        with time_machine.travel(NOON, tick=False) as clock:
            register_browser(app, "ann@example.com")
            clock.shift(timedelta(days=15))
            app.extensions["jobs"].run_all()
            with app.extensions["runtime"].database.read() as session:
                assert session.query(Session).count() == 0

    def test_session_cookie_is_http_only_lax_and_host_only(self, app: Flask) -> None:
        cookie = cookie_of(register(app, "127.0.0.1"))

        assert cookie["httponly"] is True
        assert cookie["samesite"] == "Lax"
        assert cookie["path"] == "/"
        assert cookie["domain"] == ""
        assert int(cookie["max-age"]) == 90 * 86_400
        assert len(cookie.value) >= 40

    @pytest.mark.parametrize(
        ("public_url", "address", "headers", "secure"),
        [
            ("https://search.example", "127.0.0.1", {}, True),
            ("http://search.example", "10.0.0.1", {}, False),
            ("", "127.0.0.1", {}, False),
            ("", "::1", {}, False),
            ("", "10.0.0.1", {}, True),
            ("", "127.0.0.1", {"X-Forwarded-For": "10.0.0.1"}, True),
            ("", "127.0.0.1", {"X-Forwarded-Proto": "http"}, True),
            ("", "127.0.0.1", {"Via": "1.1 proxy"}, True),
        ],
    )
    def test_session_cookie_is_secure_except_over_plain_or_local_http(
        self, tmp_path: Path, public_url: str, address: str, headers: dict[str, str], secure: bool
    ) -> None:
        app = make_app(make_settings(tmp_path, public_url=public_url))
        overrides = {"REMOTE_ADDR": address}
        response = ApiClient(app).post("/register", json=NEW, headers=headers, environ_overrides=overrides)

        assert bool(cookie_of(response)["secure"]) is secure
        close_app(app)

    def test_session_token_is_not_stored_in_plaintext(self, app: Flask) -> None:
        value = cookie_of(register(app)).value

        assert value.encode() not in stored_bytes(app)


def test_passwords_are_stored_as_argon2id_hashes(app: Flask, tenant: Tenant) -> None:
    content = stored_bytes(app)

    assert b"$argon2id$" in content
    assert PASSWORD.encode() not in content
