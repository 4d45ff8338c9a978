"""Two-factor authentication: one-time codes are required at login, and stolen or guessed codes are rejected."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyotp
import pytest
import time_machine
from flask import Flask
from werkzeug.test import TestResponse

from app.application import create_app
from app.services.accounts.members import first_owner
from tests.callers import PASSWORD, ApiClient, Browser, Tenant, add_member, register_browser, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error, assert_ok
from tests.shared_servers import stored_bytes

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
STEP = 30
ANN = "ann@example.com"
NEW_PASSWORD = "another good password"


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


def begin(browser: Browser, password: str = PASSWORD) -> dict[str, Any]:
    return assert_ok(browser.post("/profile/totp", json={"current_password": password}))


def switch_on(browser: Browser, clock: time_machine.Traveller) -> tuple[pyotp.TOTP, list[str]]:
    """Enable codes and return the authenticator, with an unused current code, and the recovery codes."""
    app = pyotp.TOTP(begin(browser)["secret"])
    answer = assert_ok(browser.post("/profile/totp/confirm", json={"code": code_of(app)}))
    clock.shift(STEP)
    return app, answer["recovery_codes"]


def code_of(app: pyotp.TOTP, steps: int = 0) -> str:
    """Return the code of an authenticator whose clock is `steps` ahead."""
    return app.at(datetime.now(UTC), counter_offset=steps)


def log_in(app: Flask, code: str | None = None, email: str = ANN, password: str = PASSWORD) -> TestResponse:
    body = {"email": email, "password": password}
    return ApiClient(app).post("/login", json=body if code is None else {**body, "code": code})


def log_in_from(app: Flask, number: int, code: str, password: str = PASSWORD) -> TestResponse:
    """Log in from the IP address with this number."""
    body = {"email": ANN, "password": password, "code": code}
    return ApiClient(app).post("/login", json=body, environ_overrides={"REMOTE_ADDR": f"192.0.2.{number}"})


def rejected(response: TestResponse) -> bool:
    assert_error(response, 401, "invalid_credentials")
    return True


class TestSettingUp:
    def test_enrollment_requires_the_password_and_returns_the_secret(self, tenant: Tenant) -> None:
        answer = begin(tenant.browser)

        parsed = pyotp.parse_uri(answer["otpauth_url"])
        assert parsed.secret == answer["secret"]
        assert (parsed.name, parsed.issuer) == (ANN, "localhost")
        assert len(parsed.byte_secret()) == 20
        assert_error(tenant.browser.post("/profile/totp", json={}), 400, "validation_failed", field="current_password")
        wrong = tenant.browser.post("/profile/totp", json={"current_password": "not the password"})
        assert_error(wrong, 403, "password_incorrect")

    def test_codes_stay_disabled_until_the_first_code_is_confirmed(
        self, tenant: Tenant, clock: time_machine.Traveller
    ) -> None:
        begin(tenant.browser)
        assert_error(
            tenant.browser.post("/profile/totp/confirm", json={"code": "000000"}),
            400, "validation_failed", field="code",
        )  # fmt: skip

        assert assert_ok(tenant.browser.get("/profile/totp")) == {
            "enabled": False, "since": None, "recovery_codes_left": 0,
        }  # fmt: skip
        assert_ok(log_in(tenant.app))

    def test_unconfirmed_enrollment_expires(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        app = pyotp.TOTP(begin(tenant.browser)["secret"])
        clock.shift(3600)
        confirmed = tenant.browser.post("/profile/totp/confirm", json={"code": code_of(app)})
        assert_error(confirmed, 400, "validation_failed", field="code")

    def test_enrollment_returns_ten_recovery_codes_once(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        app, codes = switch_on(tenant.browser, clock)

        assert len(set(codes)) == 10
        state = assert_ok(tenant.browser.get("/profile/totp"))
        assert state == {"enabled": True, "since": "2031-05-14T12:00:00.000Z", "recovery_codes_left": 10}
        again = tenant.browser.post("/profile/totp/confirm", json={"code": code_of(app)})
        assert_error(again, 400, "validation_failed", field="code")

    def test_turning_codes_on_ends_the_other_sessions(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        older = Browser(tenant.app.test_client(), "")
        assert_ok(older.client.post("/login", json={"email": ANN, "password": PASSWORD}))

        switch_on(tenant.browser, clock)

        assert_ok(tenant.browser.get("/dashboard"))
        assert_error(older.get("/dashboard"), 401, "missing_api_key")

    def test_session_list_shows_how_each_session_was_opened(
        self, tenant: Tenant, clock: time_machine.Traveller
    ) -> None:
        app, recovery = switch_on(tenant.browser, clock)
        assert_ok(log_in(tenant.app, code_of(app)))
        assert_ok(log_in(tenant.app, recovery[0]))

        listed = assert_ok(tenant.browser.get("/profile/sessions"))["sessions"]
        assert sorted(session["opened_with"] for session in listed) == ["code", "password", "recovery_code"]

    def test_confirmation_attempts_are_limited(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        app = pyotp.TOTP(begin(tenant.browser)["secret"])
        for _ in range(10):
            tenant.browser.post("/profile/totp/confirm", json={"code": "000000"})
        limited = tenant.browser.post("/profile/totp/confirm", json={"code": code_of(app)})
        assert_error(limited, 429, "rate_limit_exceeded")

    def test_new_enrollment_replaces_the_old_secret_when_confirmed(
        self, tenant: Tenant, clock: time_machine.Traveller
    ) -> None:
        old, old_recovery = switch_on(tenant.browser, clock)
        begin(tenant.browser)
        assert_ok(log_in(tenant.app, code_of(old)))

        new, _ = switch_on(tenant.browser, clock)

        assert rejected(log_in(tenant.app, code_of(old)))
        assert rejected(log_in(tenant.app, old_recovery[0]))
        assert_ok(log_in(tenant.app, code_of(new)))

    def test_secret_and_recovery_codes_are_not_stored_in_plaintext(
        self, tenant: Tenant, clock: time_machine.Traveller
    ) -> None:
        app, recovery = switch_on(tenant.browser, clock)
        stored = stored_bytes(tenant.app)
        assert ANN.encode() in stored
        for secret in (app.secret, *recovery):
            assert secret.encode() not in stored
        assert app.byte_secret() not in stored


class TestLoggingIn:
    def test_missing_code_is_reported_only_after_the_right_password(
        self, tenant: Tenant, clock: time_machine.Traveller
    ) -> None:
        app, _ = switch_on(tenant.browser, clock)

        assert_error(log_in(tenant.app), 401, "code_required")
        assert rejected(log_in(tenant.app, password="not the password"))
        assert rejected(log_in(tenant.app, code_of(app), password="not the password"))
        assert_ok(log_in(tenant.app, code_of(app)))

    def test_login_without_enrollment_ignores_the_code(self, tenant: Tenant) -> None:
        assert_ok(log_in(tenant.app, "123456"))

    def test_code_is_accepted_once(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        app, _ = switch_on(tenant.browser, clock)
        code = code_of(app)

        assert_ok(log_in(tenant.app, f" {code[:3]} {code[3:]} "))

        assert rejected(log_in(tenant.app, code))
        clock.shift(STEP)
        assert rejected(log_in(tenant.app, code))

    def test_confirmation_code_cannot_be_used_to_log_in(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        app, _ = switch_on(tenant.browser, clock)
        assert rejected(log_in(tenant.app, code_of(app, -1)))

    def test_codes_older_than_the_last_used_code_are_rejected(
        self, tenant: Tenant, clock: time_machine.Traveller
    ) -> None:
        app, _ = switch_on(tenant.browser, clock)
        clock.shift(10 * STEP)
        assert_ok(log_in(tenant.app, code_of(app, 1)))
        assert rejected(log_in(tenant.app, code_of(app)))
        assert rejected(log_in(tenant.app, code_of(app, -1)))

    @pytest.mark.parametrize(("steps", "is_accepted"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
    def test_clock_may_differ_by_one_step(
        self, tenant: Tenant, clock: time_machine.Traveller, steps: int, is_accepted: bool
    ) -> None:
        app, _ = switch_on(tenant.browser, clock)
        clock.shift(10 * STEP)
        response = log_in(tenant.app, code_of(app, steps))
        assert_ok(response) if is_accepted else rejected(response)

    def test_codes_work_only_for_their_member(
        self, tenant: Tenant, stranger: Tenant, clock: time_machine.Traveller
    ) -> None:
        switch_on(tenant.browser, clock)
        hers, her_recovery = switch_on(stranger.browser, clock)
        assert rejected(log_in(tenant.app, code_of(hers)))
        assert rejected(log_in(tenant.app, her_recovery[0]))

    @pytest.mark.parametrize("code", ["000000", "12345", "1234567", "١٢٣٤٥٦", "-", "", "x" * 64])
    def test_malformed_code_is_rejected(self, tenant: Tenant, clock: time_machine.Traveller, code: str) -> None:
        switch_on(tenant.browser, clock)
        response = log_in(tenant.app, code)
        assert_error(response, 401, "code_required" if code.strip("-") == "" else "invalid_credentials")

    def test_ten_wrong_codes_from_one_ip_address_block_it_for_15_minutes(
        self, tenant: Tenant, clock: time_machine.Traveller
    ) -> None:
        app, _ = switch_on(tenant.browser, clock)
        for _ in range(10):
            assert rejected(log_in(tenant.app, "000000"))
        assert_error(log_in(tenant.app, code_of(app)), 429, "rate_limit_exceeded")
        clock.shift(900)
        assert_ok(log_in(tenant.app, code_of(app)))

    def test_thirty_wrong_codes_from_many_ip_addresses_block_codes_for_a_day(
        self, tenant: Tenant, clock: time_machine.Traveller
    ) -> None:
        app, _ = switch_on(tenant.browser, clock)

        def guess(number: int, code: str) -> TestResponse:
            return log_in_from(tenant.app, number, code)

        for number in range(30):
            assert rejected(guess(number, "000000"))
        assert_error(guess(99, code_of(app)), 429, "rate_limit_exceeded")
        assert_error(log_in(tenant.app), 401, "code_required")
        clock.shift(86_400)
        assert_ok(guess(99, code_of(app)))

    def test_login_without_a_code_uses_up_no_attempts(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        app, _ = switch_on(tenant.browser, clock)
        for _ in range(40):
            assert_error(log_in(tenant.app), 401, "code_required")
            assert_ok(log_in(tenant.app, code_of(app)))
            clock.shift(STEP)

    @pytest.mark.parametrize("is_one_address", [True, False])
    def test_member_with_the_same_email_in_another_account_cannot_lock_a_user_out(
        self, tenant: Tenant, stranger: Tenant, clock: time_machine.Traveller, is_one_address: bool
    ) -> None:
        """Eve invites Ann's email address to Eve's account, accepts the link herself, and guesses codes there."""
        app, recovery = switch_on(tenant.browser, clock)
        joined = add_member(stranger, ANN, "owner", NEW_PASSWORD)
        begun = assert_ok(joined.post("/profile/totp", json={"current_password": NEW_PASSWORD}))
        code = pyotp.TOTP(begun["secret"]).now()
        assert_ok(joined.post("/profile/totp/confirm", json={"code": code}))

        statuses = set()
        for number in range(120):
            address = 1 if is_one_address else number
            statuses.add(log_in_from(tenant.app, address, "000000", NEW_PASSWORD).status_code)

        assert statuses == {401, 429}
        assert_ok(log_in(tenant.app, code_of(app)))
        assert_ok(log_in_from(tenant.app, 200, recovery[0]))


class TestRecoveryCodes:
    def test_recovery_code_logs_in_once_in_any_format(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        app, recovery = switch_on(tenant.browser, clock)

        assert_ok(log_in(tenant.app, recovery[0]))
        assert rejected(log_in(tenant.app, recovery[0]))
        assert_ok(log_in(tenant.app, f" {recovery[1].replace('-', '').upper()} "))
        assert assert_ok(tenant.browser.get("/profile/totp"))["recovery_codes_left"] == 8
        assert_ok(log_in(tenant.app, code_of(app)))

    def test_audit_log_records_enabling_use_and_disabling_of_codes(
        self, tenant: Tenant, clock: time_machine.Traveller
    ) -> None:
        _, recovery = switch_on(tenant.browser, clock)
        assert_ok(log_in(tenant.app, recovery[0]))
        assert_ok(tenant.browser.delete("/profile/totp", json={"current_password": PASSWORD}))

        entries = assert_ok(tenant.browser.get("/api/audit-log?kind=member"))["entries"][:4]

        since = "2031-05-14T12:00:00.000Z"
        off, login, used, on = ((entry["action"], entry["changes"]) for entry in entries)
        assert on == (
            "changed",
            [{"field": "codes_since", "before": None, "after": since}, {"field": "recovery_codes"}],
        )
        assert used == ("changed", [{"field": "recovery_codes"}])
        assert login == ("logged_in", [])
        assert off == (
            "changed",
            [{"field": "codes_since", "before": since, "after": None}, {"field": "recovery_codes"}],
        )
        assert {entry["actor"]["name"] for entry in entries} == {ANN}


class TestSwitchingOff:
    def test_disabling_codes_requires_the_password(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        switch_on(tenant.browser, clock)
        off = tenant.browser.delete
        assert_error(off("/profile/totp", json={}), 400, "validation_failed", field="current_password")
        assert_error(off("/profile/totp", json={"current_password": "not this"}), 403, "password_incorrect")
        assert_error(log_in(tenant.app), 401, "code_required")

        assert_ok(off("/profile/totp", json={"current_password": PASSWORD}))

        assert_ok(log_in(tenant.app))
        assert assert_ok(tenant.browser.get("/profile/totp"))["enabled"] is False

    def test_password_change_leaves_codes_enabled(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        switch_on(tenant.browser, clock)
        change = {"current_password": PASSWORD, "new_password": NEW_PASSWORD}
        assert_ok(tenant.browser.put("/profile", json=change))
        assert_error(log_in(tenant.app, password=NEW_PASSWORD), 401, "code_required")

    def test_operator_can_disable_a_members_codes(self, tenant: Tenant, clock: time_machine.Traveller) -> None:
        switch_on(tenant.browser, clock)

        done = tenant.app.test_cli_runner().invoke(args=["account", "reset-codes", ANN.upper()])

        assert (done.exit_code, done.output) == (0, f"{ANN} logs in without one-time codes.\n")
        assert_ok(log_in(tenant.app))
        (entry,) = assert_ok(tenant.browser.get("/api/audit-log?kind=member"))["entries"][1:2]
        assert (entry["actor"]["kind"], entry["changes"][0]["field"]) == ("operator", "codes_since")
        unknown = tenant.app.test_cli_runner().invoke(args=["account", "reset-codes", "nobody@example.com"])
        assert unknown.exit_code == 1


def test_keys_cannot_set_up_or_remove_codes(tenant: Tenant, clock: time_machine.Traveller) -> None:
    switch_on(tenant.browser, clock)
    password = {"current_password": PASSWORD}
    for client in (tenant.private, tenant.search, tenant.public):
        for response in (
            client.get("/profile/totp"),
            client.post("/profile/totp", json=password),
            client.post("/profile/totp/confirm", json={"code": "123456"}),
            client.delete("/profile/totp", json=password),
        ):
            assert_error(response, 403, "insufficient_permission")
            assert response.get_json()["message"] == "Keys cannot do this; log in as a member."
    assert_error(log_in(tenant.app), 401, "code_required")


def test_concurrent_logins_with_one_code_succeed_once(tmp_path: Path, clock: time_machine.Traveller) -> None:
    """Use two applications with the same files, like two worker processes, for a code and a recovery code."""
    settings = make_settings(tmp_path)
    workers = [make_app(settings), create_app(settings, background=False)]
    tenant = register_tenant(workers[0], ANN)
    app, recovery = switch_on(tenant.browser, clock)
    with ThreadPoolExecutor(4) as threads:
        for code in (code_of(app), recovery[0]):
            answers = [threads.submit(log_in, workers[number % 2], code) for number in range(4)]
            assert sorted(answer.result().status_code for answer in answers) == [200, 401, 401, 401]
    for worker in workers:
        close_app(worker)


def test_codes_and_recovery_codes_survive_backup_and_restore(tmp_path: Path, clock: time_machine.Traveller) -> None:
    first = make_app(make_settings(tmp_path / "first"))
    browser, _ = register_browser(first, ANN)
    app, recovery = switch_on(browser, clock)
    file = str(tmp_path / "backup.zip")
    assert first.test_cli_runner().invoke(args=["backup", file]).exit_code == 0
    close_app(first)

    second = make_app(make_settings(tmp_path / "second"))
    done = second.test_cli_runner().invoke(args=["restore", file, "--force"])
    assert done.exit_code == 0, done.output

    assert_error(log_in(second), 401, "code_required")
    assert_ok(log_in(second, code_of(app)))
    assert_ok(log_in(second, recovery[0]))
    with second.extensions["runtime"].database.read() as session:
        assert len(first_owner(session, 1).recovery_hashes) == 9
    close_app(second)
