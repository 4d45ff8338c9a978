"""The wheel in a separate environment and an empty folder: complete, without the project's files."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from app.documentation import documentation_files
from tests.server import PROJECT, START_SECONDS, STOP_SECONDS, free_port
from tests.service.clients import eventually
from tests.wheel import build_wheel

pytestmark = pytest.mark.service

INSTALL_SECONDS = 600


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``site-search`` in an environment with only the wheel and the dependencies of the lock file."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = build_wheel(folder)
    shutil.rmtree(folder / "project")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=INSTALL_SECONDS)
    binaries = folder / "venv" / "bin"
    subprocess.run(
        [binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint",
         PROJECT / "requirements.lock", wheel],
        check=True, timeout=INSTALL_SECONDS,
    )  # fmt: skip
    return binaries / "site-search"


@contextmanager
def serving(command: Path, folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Run ``site-search NAME`` in a folder until it is ready. Returns its URL and the file with its output."""
    port = free_port()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    printed = folder.with_suffix(".log")
    with printed.open("wb") as log:
        process = subprocess.Popen(
            [command, name], cwd=folder, env={**kept, "PORT": str(port), "WEB_CONCURRENCY": "2"},
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    base_url = f"http://127.0.0.1:{port}"

    def is_ready() -> None:
        try:
            assert requests.get(f"{base_url}/readyz", timeout=5).ok
        except requests.ConnectionError:
            raise AssertionError(printed.read_text()) from None

    try:
        eventually(is_ready, seconds=START_SECONDS)
        yield base_url, printed
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0


def test_wheel_serves_all_pages_from_an_empty_folder(command: Path, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()

    with serving(command, folder, "serve") as (base_url, _):
        paths = ["/", "/docs", "/docs/reference", "/openapi.json", "/widget.js", "/static/style.css"]
        paths += [f"/docs/{name}" for name in documentation_files()]
        paths += [f"/docs/images/{image.name}" for image in (PROJECT / "docs" / "images").iterdir()]
        statuses = {path: requests.get(base_url + path, timeout=30).status_code for path in paths}
        metrics = requests.get(f"{base_url}/metrics", timeout=30).text

    assert set(statuses.values()) == {200}, statuses
    assert 'worker="' not in metrics  # Summed over all processes: gunicorn uses the shipped settings.
    assert [path.name for path in folder.iterdir()] == ["var"]


def test_wheel_demo_is_searchable_with_the_printed_command(command: Path, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()

    with serving(command, folder, "demo") as (base_url, printed):
        (address,) = re.findall(r"curl '([^']+)'", printed.read_text())
        (key,) = set(re.findall(r"svc_srch_\w+", printed.read_text()))
        answer = requests.get(address, headers={"Authorization": f"Bearer {key}"}, timeout=30).json()

    assert address.startswith(base_url)
    assert [hit["url"].startswith(f"{base_url}/docs/") for hit in answer["results"]["hits"]] == [True] * 3
