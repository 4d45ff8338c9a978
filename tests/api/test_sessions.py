"""Sessions of a member: listing them, and ending them immediately in every process."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine
from flask import Flask

from app.application import create_app
from app.services.access import sessions
from tests.callers import PASSWORD, Browser, Tenant, add_member, register_browser
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error, assert_ok

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)
ANN = "ann@example.com"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0"


def log_in(app: Flask, email: str = ANN, **sent: Any) -> Browser:
    client = app.test_client()
    answer = assert_ok(client.post("/login", json={"email": email, "password": PASSWORD}, **sent))
    return Browser(client, answer["csrf_token"])


def sessions_of(browser: Browser) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = assert_ok(browser.get("/profile/sessions"))["sessions"]
    return found


def is_logged_in(browser: Browser) -> bool:
    return browser.get("/dashboard").status_code == 200


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[tuple[Flask, Flask]]:
    """Yield two applications that use the same files, like two worker processes."""
    settings = make_settings(tmp_path)
    first, second = make_app(settings), create_app(settings, background=False)
    yield first, second
    close_app(second)
    close_app(first)


def test_session_list_shows_time_browser_and_truncated_ip_address(app: Flask) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        here, _ = register_browser(app, ANN)
        clock.shift(60)
        there = log_in(app, headers={"User-Agent": FIREFOX}, environ_overrides={"REMOTE_ADDR": "192.0.2.77"})
        clock.shift(600)
        assert is_logged_in(there)

        answer = assert_ok(here.get("/profile/sessions"))

    newest, oldest = answer["sessions"]
    assert {name: answer[name] for name in ("total", "limit", "offset")} == {"total": 2, "limit": 20, "offset": 0}
    assert newest == {
        "id": newest["id"],
        "created_at": "2031-05-14T12:01:00.000Z",
        "last_used_at": "2031-05-14T12:11:00.000Z",
        "browser": "Firefox on Linux",
        "address": "192.0.2.0/24",
        "opened_with": "password",
        "current": False,
    }
    assert (oldest["current"], oldest["address"]) == (True, "127.0.0.0/24")
    cookie = there.client.get_cookie("session")
    assert cookie is not None
    assert cookie.value not in str(answer)


def test_session_list_truncates_ipv6_addresses_to_their_network(app: Flask) -> None:
    register_browser(app, ANN)
    browser = log_in(app, environ_overrides={"REMOTE_ADDR": "2001:db8:1:2:3::4"})
    assert sessions_of(browser)[0]["address"] == "2001:db8:1:2::/64"


def test_ended_session_is_rejected_by_every_worker(workers: tuple[Flask, Flask]) -> None:
    first, second = workers
    here, _ = register_browser(first, ANN)
    there = log_in(second)
    assert is_logged_in(there)
    (other,) = [found["id"] for found in sessions_of(here) if not found["current"]]

    assert_ok(here.delete(f"/profile/sessions/{other}"))

    assert_error(there.get("/dashboard"), 401, "missing_api_key")
    assert is_logged_in(here)
    assert_error(here.delete(f"/profile/sessions/{other}"), 404, "session_not_found")


def test_ending_other_sessions_keeps_the_current_one(workers: tuple[Flask, Flask]) -> None:
    here, _ = register_browser(workers[0], ANN)
    others = [log_in(worker) for worker in workers]

    assert_ok(here.delete("/profile/sessions"))

    assert [is_logged_in(browser) for browser in (here, *others)] == [True, False, False]
    assert len(sessions_of(here)) == 1


def test_ending_the_current_session_logs_out(app: Flask) -> None:
    browser, _ = register_browser(app, ANN)
    (own,) = sessions_of(browser)
    assert_ok(browser.delete(f"/profile/sessions/{own['id']}"))
    assert not is_logged_in(browser)


def test_expired_sessions_are_not_listed(app: Flask) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        register_browser(app, ANN)
        clock.shift(15 * 86_400)
        assert len(sessions_of(log_in(app))) == 1


def test_sessions_of_other_users_cannot_be_listed_or_ended(tenant: Tenant, stranger: Tenant) -> None:
    """An owner cannot touch sessions of strangers or of other members, even with the right session IDs."""
    bo = add_member(tenant, "bo@example.com", "viewer")
    for other in (stranger.browser, bo):
        (theirs,) = sessions_of(other)
        assert theirs["id"] not in str(sessions_of(tenant.browser))
        for name in (theirs["id"], "ses_", "", "ses_" + "0" * 20):
            if name:
                assert_error(tenant.browser.delete(f"/profile/sessions/{name}"), 404, "session_not_found")
        assert is_logged_in(other)
    assert_ok(tenant.browser.delete("/profile/sessions"))
    assert is_logged_in(bo)
    assert is_logged_in(stranger.browser)


def test_keys_cannot_list_or_end_sessions(tenant: Tenant) -> None:
    (own,) = sessions_of(tenant.browser)
    for client in (tenant.private, tenant.search, tenant.public):
        for response in (
            client.get("/profile/sessions"),
            client.delete("/profile/sessions"),
            client.delete(f"/profile/sessions/{own['id']}"),
        ):
            assert_error(response, 403, "insufficient_permission")
    assert is_logged_in(tenant.browser)


def test_login_above_the_session_limit_ends_the_least_recently_used_session(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    with time_machine.travel(NOON, tick=False) as clock:
        first, _ = register_browser(app, ANN)
        clock.shift(600)
        second = log_in(app)
        clock.shift(600)
        assert is_logged_in(first)
        others = [log_in(app) for _ in range(2)]

        assert [is_logged_in(one) for one in (first, second, *others)] == [True, False, True, True]
