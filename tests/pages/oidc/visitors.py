"""Ways in which somebody comes by the provider."""

from __future__ import annotations

from flask import Flask

from tests.identity_provider import IdentityProvider
from tests.pages.people import Person


def begin(person: Person, path: str = "/login/oidc") -> str:
    """Begin a login; gives the provider's address."""
    response = person.call("GET", path)
    assert response.status_code == 303, response.get_data(as_text=True)
    return response.headers["Location"]


def come(app: Flask, provider: IdentityProvider, path: str = "/login/oidc") -> Person:
    """A new browser that begins a login, and comes back from the provider."""
    person = Person(app)
    person.call("GET", provider.log_in(begin(person, path)))
    return person


def is_logged_in(person: Person) -> bool:
    """Tell whether the browser has a session, which its dashboard shows."""
    return person.call("GET", "/dashboard").status_code == 200
