"""Registration, login, and logout, and the pages that they redirect to."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from tests.callers import PASSWORD, Tenant
from tests.conftest import close_app, make_app, make_settings
from tests.pages.people import BROWSER_ACCEPT, Person, register_person

HOSTILE = [
    "//evil.example",
    "///evil.example",
    "https://evil.example/",
    "HTTPS://evil.example",
    "javascript:alert(1)",
    "evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n//evil.example",
    "\t//evil.example",
    " //evil.example",
    "/ /evil.example",
    "/\x00/evil.example",
    "/\x7f/evil.example",
    "/\u0085/evil.example",
    "",
    "/" + "x" * 3000,
]


def test_browser_without_session_is_redirected_to_login_and_back(app: Flask, tenant: Tenant) -> None:
    visitor = Person(app)
    response = visitor.call("GET", "/api/analytics?period=7d")
    assert (response.status_code, response.headers["Location"]) == (302, "/login?next=/api/analytics%3Fperiod%3D7d")
    visitor.go("/api/analytics?period=7d")
    assert visitor.page.one("h1").text == "Log in"
    visitor.press("Log in", email=tenant.email, password=PASSWORD)
    assert visitor.path == "/api/analytics?period=7d"
    assert visitor.page.one("h1").text == "Analytics"


def test_form_after_session_end_redirects_to_login(app: Flask) -> None:
    visitor = Person(app)
    assert visitor.call("POST", "/sites", data={"name": "x"}).headers["Location"] == "/login?next=/sites"
    assert visitor.call("POST", "/profile", data={"_method": "PUT"}).status_code == 405
    visitor.client.set_cookie("session", "x" * 43)
    assert visitor.call("POST", "/profile", data={"_method": "PUT"}).headers["Location"] == "/login"


def test_program_without_key_gets_401(app: Flask) -> None:
    response = app.test_client().get("/dashboard")
    assert (response.status_code, response.get_json()["error"]) == (401, "missing_api_key")
    response = app.test_client().get(
        "/dashboard", headers={"Accept": BROWSER_ACCEPT, "Authorization": "Bearer svc_prv_wrong"}
    )
    assert (response.status_code, response.mimetype) == (401, "text/html")


@pytest.mark.parametrize("target", HOSTILE)
def test_next_parameter_never_redirects_to_another_host(shared_app: Flask, ann: Tenant, target: str) -> None:
    visitor = Person(shared_app)
    visitor.call("GET", "/login", query_string={"next": target})
    assert visitor.page.one("input", name="next").attributes["value"] == "/dashboard"
    response = visitor.send("Log in", email=ann.email, password=PASSWORD, next=target)
    assert (response.status_code, response.headers["Location"]) == (303, "/dashboard")
    response = visitor.call("GET", "/login", query_string={"next": target})
    assert (response.status_code, response.headers["Location"]) == (303, "/dashboard")


@pytest.mark.parametrize("target", ["/sites", "/sites/1/try?q=a%20b&page=2", "/docs#limits", "/a:b@c"])
def test_next_parameter_redirects_to_any_local_page(shared_app: Flask, ann: Tenant, target: str) -> None:
    visitor = Person(shared_app)
    visitor.call("GET", "/login", query_string={"next": target})
    response = visitor.send("Log in", email=ann.email, password=PASSWORD)
    assert (response.status_code, response.headers["Location"]) == (303, target)


def test_registration_logs_the_user_in(app: Flask) -> None:
    ann = Person(app)
    ann.go("/register")
    response = ann.send("Create account", name="Ann", email="ann@example.com", password=PASSWORD)
    assert (response.status_code, response.headers["Location"]) == (303, "/dashboard")
    cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    ann.go("/dashboard")
    assert "Make your first site searchable" in ann.page.text


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("name", "  ", "Name must not be empty."),
        ("email", "nobody", "Email must be an email address."),
        ("password", "short", "Password must have at least 10 characters."),
        (
            "password",
            "1234567890",
            "Password is too easy to guess. This is a top-100 common password. Add another word or two.",
        ),
        ("email", "", "Email must not be empty."),
    ],
)
def test_invalid_registration_shows_form_with_input(passer_by: Person, field: str, value: str, problem: str) -> None:
    passer_by.go("/register?next=/sites")
    values = {"name": "Ann", "email": "ann@example.com", "password": PASSWORD, field: value}
    response = passer_by.send("Create account", **values)
    assert response.status_code == 400
    assert passer_by.problem_of(field) == problem
    assert problem in passer_by.alerts[0]
    assert values["password"] not in response.get_data(as_text=True)
    for name in {"name", "email"}:
        assert passer_by.page.one("input", name=name).attributes["value"] == values[name]
    assert passer_by.page.one("input", name="next").attributes["value"] == "/sites"


def test_taken_email_is_reported_beside_its_field(app: Flask, tenant: Tenant) -> None:
    visitor = Person(app)
    visitor.go("/register")
    response = visitor.send("Create account", name="Eve", email=tenant.email.upper(), password=PASSWORD)
    assert response.status_code == 400
    assert visitor.problem_of("email") == "Email is already in use."


def test_failed_login_does_not_reveal_which_field_is_wrong(app: Flask, tenant: Tenant) -> None:
    answers = []
    for email in (tenant.email, "nobody@example.com"):
        visitor = Person(app)
        visitor.go("/login")
        response = visitor.send("Log in", email=email, password="a wrong password")
        assert response.status_code == 401
        assert visitor.alerts == ["The email or password is incorrect."]
        assert "a wrong password" not in response.get_data(as_text=True)
        assert visitor.page.one("input", name="email").attributes["value"] == email
        answers.append(response.get_data(as_text=True).replace(email, ""))
    assert answers[0] == answers[1]


def test_too_many_failed_logins_get_429_with_form(app: Flask, tenant: Tenant) -> None:
    visitor = Person(app)
    visitor.go("/login")
    for _ in range(10):
        assert visitor.send("Log in", email=tenant.email, password="a wrong password").status_code == 401
    response = visitor.send("Log in", email=tenant.email, password=PASSWORD)
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) > 0
    assert "Too many failed logins" in visitor.alerts[0]


def test_logout_ends_the_session(person: Person) -> None:
    person.go("/dashboard")
    cookie = person.client.get_cookie("session")
    assert cookie is not None
    person.press("Log out")
    assert person.notice == "You’re logged out."
    person.client.set_cookie("session", cookie.value)
    assert person.call("GET", "/dashboard").headers["Location"] == "/login?next=/dashboard"


def test_login_page_redirects_logged_in_users(person: Person) -> None:
    response = person.call("GET", "/login?next=/sites")
    assert (response.status_code, response.headers["Location"]) == (303, "/sites")


@pytest.mark.parametrize("path", ["/login", "/register"])
def test_cross_site_form_cannot_log_in(app: Flask, tenant: Tenant, path: str) -> None:
    visitor = Person(app)
    values = {"name": "Eve", "email": tenant.email if path == "/login" else "eve@example.com", "password": PASSWORD}
    response = visitor.call("POST", path, data=values, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 403
    assert visitor.client.get_cookie("session") is None
    assert visitor.call("POST", path, data=values, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303


FOREIGN = (
    "https://evil.example", "null", "", "http://localhost:8000", "http://localhost.evil.example", "http://a@localhost",
    "http://localhost/", "https://localhost:80", "localhost",
)  # fmt: skip


@pytest.mark.parametrize("path", ["/login", "/register"])
@pytest.mark.parametrize("origin", FOREIGN)
def test_form_from_another_origin_cannot_log_in_or_register(app: Flask, tenant: Tenant, path: str, origin: str) -> None:
    visitor = Person(app)
    values = {"email": tenant.email if path == "/login" else "eve@example.com", "password": PASSWORD}
    values |= {} if path == "/login" else {"name": "Eve"}

    for sent in ({"data": values}, {"json": values}):
        assert visitor.call("POST", path, headers={"Origin": origin}, **sent).status_code == 403
        assert visitor.client.get_cookie("session") is None

    own = visitor.client.post(path, json=values, headers={"Origin": "http://localhost"})
    assert own.status_code in (200, 201)


@pytest.mark.parametrize(
    ("public_url", "host", "origin", "status"),
    [
        ("", "pages.example:8000", "http://pages.example:8000", 200),
        ("", "pages.example", "https://pages.example", 200),
        ("", "pages.example", "https://pages.example.evil.example", 403),
        ("", "[::1]:8000", "http://[::1]:8000", 200),
        ("https://Search.example:443/base", "10.0.0.1", "https://search.example", 200),
        ("https://search.example", "10.0.0.1", "http://10.0.0.1", 200),
        ("https://search.example", "10.0.0.1", "http://search.example", 403),
    ],
)
def test_login_accepts_the_origins_of_the_public_url_and_the_request_host(
    tmp_path: Path, public_url: str, host: str, origin: str, status: int
) -> None:
    app = make_app(make_settings(tmp_path, public_url=public_url))
    try:
        register_person(app, "ann@example.com")
        headers = {"Origin": origin, "Host": host}
        answer = app.test_client().post(
            "/login", json={"email": "ann@example.com", "password": PASSWORD}, headers=headers
        )
        assert answer.status_code == status
    finally:
        close_app(app)


def test_closed_registration_is_shown_and_enforced(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, registration=False))
    try:
        visitor = Person(app)
        visitor.go("/register")
        assert "Registration is closed" in visitor.page.text
        assert visitor.page.all("form") == []
        values = {"name": "Ann", "email": "ann@example.com", "password": PASSWORD}
        assert visitor.call("POST", "/register", data=values).status_code == 403
        visitor.go("/")
        assert "Create an account" not in visitor.page.text
    finally:
        close_app(app)


def test_new_account_sees_only_its_own_data(app: Flask, tenant: Tenant) -> None:
    bo = register_person(app, "bo@example.com")
    bo.go("/sites")
    assert tenant.site["name"] not in bo.page.text
    assert "No sites yet" in bo.page.text
