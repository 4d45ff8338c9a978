"""A person whose browser runs no JavaScript: they read pages, follow links, and submit forms."""

from __future__ import annotations

from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.callers import PASSWORD, Browser, Tenant
from tests.pages.markup import Element, read_html

BROWSER_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


class Person:
    """A person who uses a browser.

    Attributes:
        page: The current page.
        response: The last response.
        path: The current path.
    """

    page: Element
    response: TestResponse
    path: str

    def __init__(self, app: Flask, client: FlaskClient | None = None):
        self.client = app.test_client() if client is None else client

    def call(self, method: str, path: str, **kwargs: Any) -> TestResponse:
        """Send one request without following redirects."""
        headers = {"Accept": BROWSER_ACCEPT, **kwargs.pop("headers", {})}
        self.response = self.client.open(path, method=method, headers=headers, **kwargs)
        self.path = path
        if self.response.mimetype == "text/html" and self.response.data and self.response.status_code not in (302, 303):
            self.page = read_html(self.response.get_data(as_text=True))
        return self.response

    def go(self, path: str) -> Element:
        """Open a page, and follow redirects."""
        self.call("GET", path)
        return self._arrive()

    def _arrive(self) -> Element:
        for _ in range(5):
            if self.response.status_code not in (302, 303):
                return self.page
            self.call("GET", self.response.headers["Location"])
        raise AssertionError(f"redirected for ever, at last to {self.path}")

    def form(self, button: str) -> Element:
        """Return the form with this button."""
        for form in self.page.all("form"):
            if any(found.text == button for found in form.all("button")):
                return form
        raise AssertionError(f"no button says {button!r}: {[found.text for found in self.page.all('button')]}")

    def send(self, button: str, **values: str) -> TestResponse:
        """Submit a form with its button, and return the response without following redirects."""
        form = self.form(button)
        pressed = next(found.attributes for found in form.all("button") if found.text == button)
        sent = filled(form) | values
        unknown = set(values) - {found.attributes.get("name") for found in form.walk()}
        assert not unknown, f"the form has no {unknown}"
        if "name" in pressed:
            sent[pressed["name"]] = pressed["value"]
        action = pressed.get("formaction") or form.attributes.get("action") or self.path
        if form.attributes.get("method", "get") == "get":
            return self.call("GET", action, query_string=sent)
        return self.call(form.attributes["method"].upper(), action, data=sent)

    def press(self, button: str, **values: str) -> Element:
        """Submit a form with its button, and follow redirects."""
        self.send(button, **values)
        return self._arrive()

    def follow(self, link: str) -> Element:
        """Follow a link."""
        return self.go(self.page.first("a", link).attributes["href"])

    @property
    def alerts(self) -> list[str]:
        """The texts of the page's alerts."""
        return [found.text for found in self.page.walk() if found.attributes.get("role") == "alert"]

    @property
    def notice(self) -> str:
        """The page's notice."""
        return " ".join(found.text for found in self.page.all("p", class_="notice"))

    def problem_of(self, name: str) -> str:
        """Return the error message of a field, which must be linked to it for screen readers."""
        named = [
            f for f in self.page.walk() if f.attributes.get("name") == name and f.attributes.get("type") != "hidden"
        ]
        (shown,) = [f for f in named if len(named) == 1 or f.attributes.get("aria-invalid") == "true"]
        ids = shown.attributes.get("aria-describedby", "").split()
        assert shown.attributes.get("aria-invalid") == "true" or shown.tag != "input"
        return " ".join(
            f.text for f in self.page.walk() if f.attributes.get("id") in ids and "problem" in f.attributes["class"]
        )


def filled(form: Element) -> dict[str, str]:
    """Return the values that a browser would submit for the unchanged form."""
    values: dict[str, str] = {}
    for found in form.walk():
        name = found.attributes.get("name")
        if not name:
            continue
        if found.tag == "input":
            if found.attributes.get("type") == "checkbox" and "checked" not in found.attributes:
                continue
            values[name] = found.attributes.get("value", "")
        elif found.tag == "textarea":
            values[name] = found.raw_text.removeprefix("\n")
        elif found.tag == "select":
            options = found.all("option")
            chosen = [option for option in options if "selected" in option.attributes] or options[:1]
            values[name] = chosen[0].attributes["value"]
    return values


def person_of(tenant: Tenant | Browser) -> Person:
    """Return a registered customer as a person with a browser."""
    browser = tenant.browser if isinstance(tenant, Tenant) else tenant
    return Person(browser.client.application, browser.client)


def register_person(app: Flask, email: str) -> Person:
    """Register a person through the form."""
    person = Person(app)
    person.go("/register")
    person.press("Create account", name="Ann", email=email, password=PASSWORD)
    return person
