"""Callers of the API in tests: browsers with a session, and programs with a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.test import TestResponse

from app.models import QueuedEmail
from app.services.sites import get_site
from tests.backends.contract.case import settle

PASSWORD = "correct horse battery"


class ApiClient:
    """Calls the API with or without a key."""

    def __init__(self, app: Flask, token: str | None = None):
        self._client = app.test_client(use_cookies=False)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def call(self, method: str, path: str, **kwargs: Any) -> TestResponse:
        headers = {**self._headers, **kwargs.pop("headers", {})}
        return self._client.open(path, method=method, headers=headers, **kwargs)

    def get(self, path: str, **kwargs: Any) -> TestResponse:
        return self.call("GET", path, **kwargs)

    def post(self, path: str, **kwargs: Any) -> TestResponse:
        return self.call("POST", path, **kwargs)

    def put(self, path: str, **kwargs: Any) -> TestResponse:
        return self.call("PUT", path, **kwargs)

    def delete(self, path: str, **kwargs: Any) -> TestResponse:
        return self.call("DELETE", path, **kwargs)


class Browser:
    """Calls the API with a session cookie and its CSRF token."""

    def __init__(self, client: FlaskClient, csrf_token: str):
        self.client = client
        self.csrf_token = csrf_token

    def call(self, method: str, path: str, **kwargs: Any) -> TestResponse:
        headers = {"X-CSRF-Token": self.csrf_token, **kwargs.pop("headers", {})}
        return self.client.open(path, method=method, headers=headers, **kwargs)

    def get(self, path: str, **kwargs: Any) -> TestResponse:
        return self.call("GET", path, **kwargs)

    def post(self, path: str, **kwargs: Any) -> TestResponse:
        return self.call("POST", path, **kwargs)

    def put(self, path: str, **kwargs: Any) -> TestResponse:
        return self.call("PUT", path, **kwargs)

    def delete(self, path: str, **kwargs: Any) -> TestResponse:
        return self.call("DELETE", path, **kwargs)


@dataclass
class Tenant:
    """A customer with a site and a key of every type."""

    app: Flask
    email: str
    account_id: int
    browser: Browser
    site: dict[str, Any]
    tokens: dict[str, str] = field(default_factory=dict)
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def site_id(self) -> int:
        return int(self.site["id"])

    def client(self, kind: str) -> ApiClient:
        """Return a program with the key of this type."""
        return ApiClient(self.app, self.tokens[kind])

    @property
    def private(self) -> ApiClient:
        return self.client("private")

    @property
    def search(self) -> ApiClient:
        return self.client("search")

    @property
    def public(self) -> ApiClient:
        return self.client("public")

    def set_plan(self, plan: str, **limits: int | str) -> None:
        """Set the account's plan and custom limits, as an operator does."""
        options = [text for name, value in limits.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        result = self.app.test_cli_runner().invoke(args=["account", "set-plan", self.email, plan, *options])
        assert result.exit_code == 0, result.output

    def index(self, *documents: dict[str, Any]) -> dict[str, Any]:
        """Index documents and return the response; fail if it is not a success."""
        response = self.private.post("/api/v1/index/bulk", json={"documents": list(documents)})
        assert response.status_code == 200, response.get_json()
        answer: dict[str, Any] = response.get_json()
        return answer

    def settle(self) -> None:
        """Wait until the engine has applied the site's settings."""
        runtime = self.app.extensions["runtime"]
        with runtime.database.read() as session:
            site = get_site(session, self.account_id, self.site_id)
        settle(runtime.engines.get_engine(site.engine), site.engine_index)

    def find(self, q: str, **parameters: Any) -> dict[str, Any]:
        """Search and return ``results``; fail if the response is not a success."""
        response = self.search.get("/v1/search", query_string={"q": q, **parameters})
        assert response.status_code == 200, response.get_json()
        results: dict[str, Any] = response.get_json()["results"]
        return results

    def equals(self, field: str, value: str) -> str:
        """Return a filter in the syntax of the engine under test."""
        engine = self.app.extensions["runtime"].engines.default
        return f"{field}:={value}" if engine.name == "typesense" else f"{field} = {value}"

    def found_ids(self, q: str, **parameters: Any) -> list[str]:
        """Return the IDs of the hits, the best first."""
        return [hit["id"] for hit in self.find(q, **parameters)["hits"]]


def register_browser(app: Flask, email: str, *, name: str = "Somebody") -> tuple[Browser, int]:
    """Register, and return the browser and the account ID."""
    client = app.test_client()
    response = client.post("/register", json={"name": name, "email": email, "password": PASSWORD})
    assert response.status_code == 201, response.get_json()
    answer = response.get_json()
    return Browser(client, answer["csrf_token"]), int(answer["user"]["id"])


def register_tenant(app: Flask, email: str) -> Tenant:
    """Register a customer with a site and a key of every type."""
    browser, account_id = register_browser(app, email)
    response = browser.post("/sites", json={"name": "Pages", "url": "https://www.example.com/"})
    assert response.status_code == 201, response.get_json()
    tenant = Tenant(app, email, account_id, browser, response.get_json()["site"])
    for kind in ("public", "search", "private"):
        response = browser.post(f"/api/sites/{tenant.site_id}/keys", json={"name": kind, "type": kind})
        assert response.status_code == 201, response.get_json()
        tenant.tokens[kind] = response.get_json()["api_key"]
        tenant.keys[kind] = response.get_json()["key"]
    return tenant


def add_member(tenant: Tenant, email: str, role: str, password: str = PASSWORD) -> Browser:
    """Invite a member, accept the invitation, and return the member's browser."""
    invited = tenant.browser.post("/api/invitations", json={"email": email, "role": role})
    assert invited.status_code == 201, invited.get_json()
    return accept_invitation(
        tenant.app, invited.get_json().get("url") or mailed_link(tenant.app, email), password=password
    )


def mailed_link(app: Flask, email: str) -> str:
    """Return the link in the last unsent invitation to an email address."""
    of_address = select(QueuedEmail.text).where(QueuedEmail.kind == "invitation", QueuedEmail.recipient == email)
    with app.extensions["runtime"].database.read() as session:
        text = session.scalars(of_address.order_by(QueuedEmail.id.desc())).first()
    assert text is not None
    return next(line for line in text.splitlines() if "/invitations/" in line)


def accept_invitation(app: Flask, url: str, name: str = "Somebody else", password: str = PASSWORD) -> Browser:
    """Follow an invitation's link, become a member, and return the browser."""
    client = app.test_client()
    response = client.post(urlsplit(url).path, json={"name": name, "password": password})
    assert response.status_code == 201, response.get_json()
    return Browser(client, response.get_json()["csrf_token"])


def member_id(tenant: Tenant, email: str) -> int:
    """Return the ID of the account's member with this email address."""
    members = tenant.browser.get("/api/members").get_json()["members"]
    return int(next(member["id"] for member in members if member["email"] == email))


def page(number: int | str = 1, **fields: Any) -> dict[str, Any]:
    """Return a valid document."""
    return {
        "id": f"page-{number}",
        "title": f"Page {number}",
        "content": f"The content of page {number}.",
        "url": f"/pages/{number}",
        **fields,
    }
