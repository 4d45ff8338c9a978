"""Helpers to log in through the provider."""

from __future__ import annotations

from flask import Flask

from tests.identity_provider import IdentityProvider
from tests.pages.people import Person


def begin(person: Person, path: str = "/login/oidc") -> str:
    """Begin a login, and return the provider's URL."""
    response = person.call("GET", path)
    assert response.status_code == 303, response.get_data(as_text=True)
    return response.headers["Location"]


def come(app: Flask, provider: IdentityProvider, path: str = "/login/oidc") -> Person:
    """Complete a login through the provider in a new browser."""
    person = Person(app)
    person.call("GET", provider.log_in(begin(person, path)))
    return person


def is_logged_in(person: Person) -> bool:
    """Whether the browser has a session, so that it can open the dashboard."""
    return person.call("GET", "/dashboard").status_code == 200
