"""A running service with customers, and tools that generate clients from its API document."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.server import Server, running_server

HERE = Path(__file__).parent
PASSWORD = "correct horse battery"
KINDS = ("public", "search", "private")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests in this folder with ``clients``."""
    for item in items:
        if item.nodeid.startswith("tests/clients/"):
            item.add_marker(pytest.mark.clients)


def missing(what: str) -> None:
    """Skip the test because a tool is missing, or fail it in CI."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """Return a function that finds a command's path, in this virtual environment first."""

    def find(name: str) -> str:
        beside = Path(sys.executable).with_name(name)
        found = str(beside) if beside.exists() else shutil.which(name)
        if found is None:
            missing(name)
        return str(found)

    return find


@pytest.fixture(scope="session")
def needs_package() -> Callable[[str], None]:
    """Return a function that skips the test, or fails it in CI, if a Python package is missing."""

    def check(name: str) -> None:
        if find_spec(name) is None:
            missing(name)

    return check


@dataclass
class Customer:
    """A customer with two sites: one for the keys, and a spare one for changes."""

    server: Server
    browser: requests.Session
    site_id: int
    spare_site_id: int
    tokens: dict[str, str] = field(default_factory=dict)
    spare_key_id: str = ""

    @property
    def csrf_token(self) -> str:
        return str(self.browser.headers["X-CSRF-Token"])

    def call(self, kind: str, method: str, path: str, **kwargs: Any) -> requests.Response:
        """Call the API with a key or with the session."""
        if kind == "session":
            return self.browser.request(method, self.server.base_url + path, timeout=30, **kwargs)
        headers = {"Authorization": f"Bearer {self.tokens[kind]}"}
        return requests.request(method, self.server.base_url + path, headers=headers, timeout=30, **kwargs)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run the service with two workers and one trusted proxy, so that tests can choose IP addresses."""
    settings: dict[str, str | int] = {"default_plan": "enterprise", "trusted_proxies": 1}
    with running_server(tmp_path_factory.mktemp("service"), workers=2, **settings) as running:
        yield running


@pytest.fixture(scope="session")
def make_customer(server: Server) -> Callable[[str], Customer]:
    """Return a function that registers customers. An IP address is limited to 30 registrations an hour."""

    def make(email: str) -> Customer:
        browser = requests.Session()
        registered = _post(browser, server, "/register", {"name": "Ann", "email": email, "password": PASSWORD})
        browser.headers["X-CSRF-Token"] = registered["csrf_token"]
        sites = [
            _post(browser, server, "/sites", {"name": name, "url": "https://example.com"})["site"]["id"]
            for name in ("Pages", "Spare")
        ]
        customer = Customer(server, browser, *sites)
        for kind in KINDS:
            made = _post(browser, server, f"/api/sites/{sites[0]}/keys", {"name": kind, "type": kind})
            customer.tokens[kind] = made["api_key"]
        spare = _post(browser, server, f"/api/sites/{sites[1]}/keys", {"name": "Spare"})
        customer.spare_key_id = spare["key"]["id"]
        return customer

    return make


@pytest.fixture(scope="session")
def neighbors(make_customer: Callable[[str], Customer]) -> None:
    """Register other customers first: generated requests mostly use the smallest site IDs."""
    for number in range(3):
        make_customer(f"neighbor{number}@example.com")


def _post(browser: requests.Session, server: Server, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = browser.post(server.base_url + path, json=body, timeout=30)
    assert response.status_code == 201, response.text
    answer: dict[str, Any] = response.json()
    return answer


def run(folder: Path, *command: str, **environment: str) -> str:
    """Run a command, which must succeed, and return its output."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=400, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(command[:3])} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def npm_folder(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    """Install the npm packages in a folder and return it."""
    folder = tmp_path_factory.mktemp("npm")
    shutil.copy(HERE / "package.json", folder)
    run(folder, tool("npm"), "install", "--no-audit", "--no-fund", "--no-package-lock")
    return folder


@pytest.fixture
def document(server: Server, tmp_path: Path) -> Path:
    """Save the service's API document and return the file's path."""
    file = tmp_path / "openapi.json"
    file.write_bytes(requests.get(f"{server.base_url}/openapi.json", timeout=30).content)
    return file
