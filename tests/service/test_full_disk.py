"""What is left of the service when its disk is full, and afterwards."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests.crawl.run.websites import html, serving
from tests.patience import PATIENCE_SECONDS
from tests.server import Server, running_server
from tests.service.clients import Customer, eventually, page, register
from tests.service.stored import rows

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
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # A process that crawled may still be ending.


@pytest.fixture
def server(disk: Path) -> Iterator[Server]:
    settings = {"default_plan": "business", "crawl_private_addresses": "true"}
    with running_server(disk / "data", workers=2, **settings) as running:
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
    lines = requests.get(f"{server.base_url}/metrics", timeout=PATIENCE_SECONDS).text.splitlines()
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


def test_a_backup_that_does_not_fit_leaves_nothing_and_an_upload_is_taken_later(
    server: Server, disk: Path, customer: Customer
) -> None:
    file = disk / "backup.zip"
    lines = b"".join(b'{"id": "u%d", "title": "Up", "content": "load", "url": "/u"}\n' % n for n in range(3))
    filler = fill(disk)

    with pytest.raises(RuntimeError, match="No space left on device"):
        server.flask("backup", str(file))
    assert [path.name for path in disk.iterdir() if "backup" in path.name] == []
    refused = upload(customer, lines)
    assert refused.status_code == 503, refused.text
    assert int(refused.headers["Retry-After"]) >= 1

    filler.unlink()
    assert upload(customer, lines).status_code == 200
    server.flask("backup", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert customer.search.found_ids("load") == {"u0", "u1", "u2"}


def upload(customer: Customer, lines: bytes) -> requests.Response:
    return requests.post(
        f"{customer.private.servers[0].base_url}/api/sites/{customer.site_id}/import?format=jsonl",
        data=lines,
        headers={**customer.private.headers, "Content-Type": "application/x-ndjson"},
        timeout=60,
    )


def test_a_crawl_goes_on_when_there_is_room_again(server: Server, disk: Path, customer: Customer) -> None:
    """Its pages are asked for again where they could not be kept; none is lost, and the run does not fail."""
    with serving() as website:
        website.pages = {f"/{n}": html(f"Page {n}") for n in range(40)}
        website.pages["/"] = html("Home", links=[f"/{n}" for n in range(40)])
        site = customer.session.must("POST", "/sites", {"name": "Crawled", "url": website.url})["site"]["id"]
        source = {"kind": "website", "url": website.address("/"), "schedule": "none"}
        customer.session.must("POST", f"/api/sites/{site}/sources", source)
        eventually(lambda: _at_least(len(website.asked), 5))
        filler = fill(disk)

        for _ in range(40):
            assert customer.search.search("page").status == 200
        assert len(website.asked) < 30, "no page is read that cannot be kept"
        filler.unlink()

        def is_finished() -> None:
            assert [tuple(row) for row in rows(server, "SELECT status, indexed FROM source_runs")] == [("finished", 41)]

        eventually(is_finished, seconds=120)
    found = customer.private.call("GET", f"/v1/search?q=page&limit=100&site_id={site}").body["results"]
    assert found["estimatedTotalHits"] == 40


def _at_least(found: int, wanted: int) -> None:
    assert found >= wanted
