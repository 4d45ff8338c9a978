"""What is left of the service when its disk is full, and afterwards."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests.server import Server, running_server
from tests.service.clients import Customer, page, register

pytestmark = pytest.mark.service

DISK_BYTES = 64 * 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of 64 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode and not os.environ.get("CI"):
        pytest.skip("only root may mount a disk")
    assert mounted.returncode == 0, mounted.stderr
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def server(disk: Path) -> Iterator[Server]:
    with running_server(disk / "data", workers=2, default_plan="business") as running:
        yield running


@pytest.fixture
def customer(server: Server) -> Customer:
    made = register([server], "ann@example.com")
    assert made.private.index(page("1"), page("2")).status == 200
    return made


def fill(disk: Path) -> Path:
    """Leave not a byte on the disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
    return filler


def lost_events(server: Server) -> float:
    lines = requests.get(f"{server.base_url}/metrics", timeout=10).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("search_events_lost_total"))


def test_searches_go_on_and_writes_wait(server: Server, disk: Path, customer: Customer) -> None:
    filler = fill(disk)

    for _ in range(40):
        answer = customer.search.search("page")
        assert answer.status == 200, answer.body
        assert answer.body["results"]["estimatedTotalHits"] == 2
    refused = customer.private.index(page("3"))
    assert refused.status == 503, refused.body
    assert "Retry-After" in refused.headers
    assert lost_events(server) > 0
    assert "could not be kept" in server.log

    filler.unlink()
    assert customer.private.index(page("3")).status == 200
    assert customer.search.search("page").body["results"]["estimatedTotalHits"] == 3
