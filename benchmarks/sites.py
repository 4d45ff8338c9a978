"""A customer's site in a measured service."""

from __future__ import annotations

import requests

from tests.server import Server


def make_site(server: Server) -> tuple[int, dict[str, str]]:
    """Create a site of a new account with unreachable limits. Returns its ID and its ``private`` and ``search`` key."""
    person = requests.Session()
    account = {"name": "Bench", "email": "bench@example.com", "password": "correct horse battery"}
    person.headers["X-CSRF-Token"] = person.post(f"{server.base_url}/register", json=account).json()["csrf_token"]
    server.set_plan(
        account["email"], "enterprise", requests_per_minute=10**8, requests_per_day=10**8, searches_per_day=10**8
    )
    site = person.post(f"{server.base_url}/sites", json={"name": "s", "url": "https://example.com"}).json()["site"]
    keys = f"{server.base_url}/api/sites/{site['id']}/keys"
    kinds = ("private", "search")
    return int(site["id"]), {
        kind: str(person.post(keys, json={"name": kind, "type": kind}).json()["api_key"]) for kind in kinds
    }
