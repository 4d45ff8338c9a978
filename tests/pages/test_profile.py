"""The profile forms."""

from __future__ import annotations

from flask import Flask

from tests.callers import PASSWORD, Tenant
from tests.pages.people import Person

NEW_PASSWORD = "another good password"


def test_name_can_be_changed_and_email_requires_the_password(person: Person, tenant: Tenant) -> None:
    person.go("/profile/edit")
    person.press("Save", name="Anna")
    assert person.notice == "Profile saved.", "the link must work without a password"
    assert person.send("Save", email="anna@example.com").status_code == 400
    problem = "Current password is required to change the email address or the password."
    assert person.problem_of("current_password") == problem
    assert person.page.one("input", name="email").attributes["value"] == "anna@example.com"
    person.press("Save", email="anna@example.com", current_password=PASSWORD)
    assert person.notice == "Profile saved."
    user = tenant.browser.get("/profile/edit").get_json()["user"]
    assert (user["name"], user["email"]) == ("Anna", "anna@example.com")


def test_invalid_value_is_reported_beside_its_field(person: Person, stranger: Tenant) -> None:
    person.go("/profile/edit")
    assert person.send("Save", email=stranger.email, current_password=PASSWORD).status_code == 400
    assert person.problem_of("email") == "Email is already in use."
    assert person.page.one("input", name="email").attributes["value"] == stranger.email


def test_url_of_failed_profile_form_redirects_to_profile(person: Person) -> None:
    assert person.call("GET", "/profile").headers["Location"] == "/profile/edit"
    assert person.client.get("/profile").status_code == 405


def test_password_change_ends_other_sessions(app: Flask, person: Person, tenant: Tenant) -> None:
    other = Person(app)
    other.go("/login")
    other.press("Log in", email=tenant.email, password=PASSWORD)
    person.go("/profile/edit")
    person.press("Change password", current_password=PASSWORD, new_password=NEW_PASSWORD)
    assert person.notice.startswith("Password changed.")
    assert other.call("GET", "/dashboard").status_code == 302
    other.go("/login")
    other.press("Log in", email=tenant.email, password=NEW_PASSWORD)
    assert other.path == "/dashboard"


def test_wrong_current_password_changes_nothing(person: Person) -> None:
    person.go("/profile/edit")
    response = person.send("Change password", current_password="not the password", new_password=NEW_PASSWORD)
    assert response.status_code == 403
    assert person.problem_of("current_password") == "Current password is incorrect."
    text = response.get_data(as_text=True)
    assert "not the password" not in text
    assert NEW_PASSWORD not in text
    assert person.send("Change password", current_password=PASSWORD, new_password="short").status_code == 400
    assert person.problem_of("new_password") == "New password must have at least 10 characters."


def test_account_deletion_requires_the_password_and_preserves_input_on_failure(person: Person, tenant: Tenant) -> None:
    person.go("/profile/edit")
    button = "Delete my account and all its data"
    response = person.send(button, password="not the password", reason="Too\nexpensive")
    assert response.status_code == 403
    assert person.problem_of("password") == "Password is incorrect."
    assert person.page.one("textarea", name="reason").raw_text == "\nToo\nexpensive"
    assert "open" in person.page.one("section", class_="danger").one("details").attributes
    assert tenant.private.get("/sites").status_code == 200

    person.press(button, password=PASSWORD)
    assert person.path == "/?notice=account-deleted"
    assert person.client.get_cookie("session") is None
    assert tenant.private.get("/sites").status_code == 401
    person.go("/login")
    assert person.send("Log in", email=tenant.email, password=PASSWORD).status_code == 401


def test_password_checks_are_rate_limited(person: Person) -> None:
    person.go("/profile/edit")
    button = "Delete my account and all its data"
    for _ in range(5):
        assert person.send(button, password="not the password").status_code == 403
    assert person.send(button, password=PASSWORD).status_code == 429
    assert "Too many wrong passwords" in person.alerts[0]
