"""schemathesis with each kind of caller finds no 5xx and no undocumented responses."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.clients.conftest import HERE, Customer

PROJECT = HERE.parent.parent
CHECKS = (
    "not_a_lasting_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance"
)
SEED = 20240514
MAX_EXAMPLES = 12
LONGEST_SECONDS = 900


def headers_of(customer: Customer, kind: str) -> dict[str, str]:
    if kind == "nobody":
        return {}
    if kind == "session":
        return {"Cookie": f"session={customer.browser.cookies['session']}", "X-CSRF-Token": customer.csrf_token}
    if kind == "engine":
        info = customer.call("public", "GET", "/v1/client-info").json()
        return {"Authorization": f"Bearer {info['engine_public_key']}"}
    return {"Authorization": f"Bearer {customer.tokens[kind]}"}


@contextmanager
def unlimited_requests(folder: Path) -> Iterator[None]:
    """Reset request counters continuously, because 429 responses would hide all others."""
    done = Event()

    def forget() -> None:
        with closing(sqlite3.connect(folder / "counters.db", timeout=30, isolation_level=None)) as counters:
            while not done.wait(1):
                counters.execute("DELETE FROM windows")

    forgetting = Thread(target=forget)
    forgetting.start()
    try:
        yield
    finally:
        done.set()
        forgetting.join()


@pytest.mark.usefixtures("neighbors")
@pytest.mark.parametrize("kind", ["private", "session", "search", "public", "engine", "nobody"])
def test_every_response_is_documented(
    kind: str,
    document: Path,
    tmp_path: Path,
    tool: Callable[[str], str],
    make_customer: Callable[[str], Customer],
) -> None:
    schemathesis = tool("st")
    customer = make_customer(f"{kind}@example.com")
    index = f"site_{customer.site_id}"
    documents = [{"id": "a", "title": "Page", "content": "Text", "url": "/a", "author": "Ann", "n": 5}]
    assert customer.call("private", "POST", "/api/v1/index/bulk", json={"documents": documents}).status_code == 200
    own = {
        "path": {"site_id": customer.spare_site_id, "key_id": customer.spare_key_id, "uid": index},
        "site_id": customer.site_id,
        "sites": [str(customer.site_id), str(customer.spare_site_id)],
        "index": index,
    }
    options = ["--header", "Accept: application/json"]
    for name, value in headers_of(customer, kind).items():
        options += ["--header", f"{name}: {value}"]
    if kind == "session":
        options += ["--exclude-operation-id", "logout", "--exclude-operation-id", "endSession"]

    with unlimited_requests(customer.server.folder):
        done = subprocess.run(
            [
                schemathesis, "run", str(document), "--url", customer.server.base_url, "--checks", CHECKS,
                "--seed", str(SEED), "--generation-deterministic", "--max-examples", str(MAX_EXAMPLES), "--no-shrink",
                "--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all", "--warnings", "off",
                "--continue-on-failure", "--no-color", *options,
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False,
            env={
                **os.environ, "OWN_THINGS": json.dumps(own), "SCHEMATHESIS_HOOKS": "tests.clients.hooks",
                "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1",
            },
        )  # fmt: skip

    log = customer.server.log.splitlines()
    errors = [at for at, line in enumerate(log) if "Traceback" in line and "unavailable" not in line]
    assert [line[:300] + line[300:][-1_500:] for at in errors[:3] for line in log[max(0, at - 1) : at + 30]] == []
    # pytest shows the start of a long text only in a list, and CI keeps the end of the output.
    said = [line[:400] for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    failures = next((at for at, line in enumerate(said) if " FAILURES " in line), 0)
    assert done.returncode == 0, "\n".join(said[failures:][:25])
    if kind not in ("engine", "nobody"):
        path = "/dashboard" if kind == "session" else "/v1/client-info"
        answer = customer.call(kind, "GET", path)
        assert answer.status_code == 200, f"the account was deleted during the run: {answer.text}"
