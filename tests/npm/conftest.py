"""The npm packages in a temporary folder, and a running service for them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.packages import install_packages
from tests.server import Server, running_server

HERE = Path(__file__).parent
RUN_SECONDS = 60
PASSWORD = "correct horse battery"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests in this folder with ``npm``."""
    for item in items:
        if item.nodeid.startswith("tests/npm/"):
            item.add_marker(pytest.mark.npm)


@dataclass
class Packages:
    """A folder with the scripts of this folder and their unmodified npm packages."""

    folder: Path

    def run(self, script: str, wish: dict[str, Any]) -> Any:
        """Run a script and return its JSON output."""
        done = subprocess.run(
            ["node", script], cwd=self.folder, input=json.dumps(wish), capture_output=True, text=True,
            timeout=RUN_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{script} ended with {done.returncode}:\n{done.stderr[-4000:]}"
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Install the packages once. Without node, tests are skipped, or fail in CI."""
    folder = tmp_path_factory.mktemp("npm")
    for file in HERE.glob("*.mjs"):
        shutil.copy(file, folder)
    install_packages(HERE / "package.json", folder)
    return Packages(folder)


@dataclass
class Customer:
    """A customer with a site on the running service."""

    server: Server
    browser: requests.Session
    site: dict[str, Any]
    tokens: dict[str, str]

    def call(self, kind: str, method: str, path: str, **kwargs: Any) -> dict[str, Any]:
        """Call the API with a key and return the response, which must succeed."""
        headers = {"Authorization": f"Bearer {self.tokens[kind]}"}
        response = requests.request(method, self.server.base_url + path, headers=headers, timeout=30, **kwargs)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    @property
    def info(self) -> dict[str, Any]:
        """The client-info response for the public key."""
        return self.call("public", "GET", "/v1/client-info")

    @property
    def used_today(self) -> int:
        return int(self.info["limits"]["used_today"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service with two workers and a new data directory."""
    with running_server(tmp_path_factory.mktemp("service"), workers=2, default_plan="pro") as running:
        yield running


def register(server: Server, email: str) -> Customer:
    """Register a customer with a site, a public key, and a private key."""
    browser = requests.Session()
    credentials = {"name": "Ann", "email": email, "password": PASSWORD}
    registered = browser.post(f"{server.base_url}/register", json=credentials, timeout=30)
    assert registered.status_code == 201, registered.text
    browser.headers["X-CSRF-Token"] = registered.json()["csrf_token"]
    made = browser.post(f"{server.base_url}/sites", json={"name": "Pages", "url": "https://example.com"}, timeout=30)
    assert made.status_code == 201, made.text
    found = Customer(server, browser, made.json()["site"], {})
    for kind in ("public", "private"):
        path = f"{server.base_url}/api/sites/{found.site['id']}/keys"
        key = browser.post(path, json={"name": kind, "type": kind}, timeout=30)
        assert key.status_code == 201, key.text
        found.tokens[kind] = key.json()["api_key"]
    return found


@pytest.fixture(scope="module")
def customer(server: Server) -> Customer:
    """A customer with 25 documents."""
    found = register(server, "ann@example.com")
    found.call("private", "POST", "/api/v1/index/bulk", json={"documents": [document(at) for at in range(25)]})
    return found


def document(number: int) -> dict[str, Any]:
    """Create a document: odd numbers are about installing, even numbers about upgrading."""
    subject = "Install guide" if number % 2 else "Upgrade <b>guide</b>"
    return {
        "id": f"p{number}",
        "title": f"{subject} {number}",
        "content": "How to run the widget on a small machine. " * 8,
        "url": f"/pages/{number}",
        "author": ("Ann", "Bob Annan", "Čeněk")[number % 3],
        "price": number,
        "date": f"2024-01-{number + 1:02d}",
    }
