"""A client that openapi-python-client makes of the API document indexes, searches and deletes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.clients.conftest import HERE, Customer


def test_it_indexes_searches_and_deletes(
    document: Path, tmp_path: Path, tool: Callable[[str], str], make_customer: Callable[[str], Customer]
) -> None:
    generator = tool("openapi-python-client")
    package = tmp_path / "site_search_client"
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

    # It knows no lines of JSON and no CSV; they are sent as they are.
    as_bytes = ("application/x-ndjson", "text/csv", "application/xml", "text/xml", "text/plain")
    kinds = dict.fromkeys(as_bytes, "application/octet-stream")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"content_type_overrides": kinds}))

    made = subprocess.run(
        [generator, "generate", "--path", str(document), "--meta", "none", "--output-path", str(package),
         "--fail-on-warning", "--config", str(config)],
        capture_output=True, text=True, timeout=180, check=False, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert made.returncode == 0, f"an operation could not be generated:\n{made.stdout}{made.stderr}"

    customer = make_customer("python@example.com")
    interpreter = Path(generator).with_name("python")
    done = subprocess.run(
        [str(interpreter), str(HERE / "python_client.py"), customer.server.base_url, customer.tokens["private"],
         customer.tokens["search"]],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "done"
