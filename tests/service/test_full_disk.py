"""The service while its disk is full, and afterwards."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests.crawl.run.websites import html, serving
from tests.patience import PATIENCE_SECONDS
from tests.server import Server, running_server
from tests.service.clients import PASSWORD, Answer, Caller, Customer, eventually, page, register
from tests.service.stored import rows

pytestmark = pytest.mark.service

DISK_BYTES = 64 * 1024 * 1024
REJECTIONS = {(503, f"{what}_unavailable") for what in ("database", "counters", "search_engine")}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A separate disk of 64 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode and not os.environ.get("CI"):
        pytest.skip("only root may mount a disk")
    assert mounted.returncode == 0, mounted.stderr
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # A crawl process may still be ending.


@pytest.fixture
def server(disk: Path) -> Iterator[Server]:
    settings = {"default_plan": "business", "crawl_private_addresses": "true"}
    with running_server(disk / "data", workers=2, **settings) as running:
        yield running


@pytest.fixture
def customer(server: Server) -> Customer:
    made = register([server], "ann@example.com", ("search", "private", "public"))
    assert made.private.index(page("1"), page("2")).status == 200
    return made


def fill(disk: Path, spared_bytes: int = 0) -> Path:
    """Fill the disk, except for ``spared_bytes``."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
        file.truncate(file.tell() - spared_bytes)
    return filler


def lost_events(server: Server) -> float:
    lines = requests.get(f"{server.base_url}/metrics", timeout=PATIENCE_SECONDS).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("search_events_lost_total"))


def test_full_disk_rejects_writes_while_searches_continue(server: Server, disk: Path, customer: Customer) -> None:
    filler = fill(disk)

    for _ in range(40):
        answer = customer.search.search("page")
        assert answer.status == 200, answer.body
        assert answer.body["results"]["estimatedTotalHits"] == 2
    rejected = customer.private.index(page("3"))
    assert rejected.status == 503, rejected.body
    assert "Retry-After" in rejected.headers
    assert lost_events(server) > 0
    assert "could not be recorded" in server.log

    filler.unlink()
    assert customer.private.index(page("3")).status == 200
    assert customer.search.search("page").body["results"]["estimatedTotalHits"] == 3


def test_full_disk_rejects_every_write_with_503_and_accepts_it_afterwards(
    server: Server, disk: Path, customer: Customer
) -> None:
    public = customer.with_key("public")
    site, search = f"/sites/{customer.site_id}", f"/engine/indexes/site_{customer.site_id}/search"
    engine = Caller([server], public.must("GET", "/v1/client-info")["engine_key"])
    other = customer.session.must("POST", "/sites", {"name": "Other", "url": "https://www.example.org/"})["site"]["id"]
    numbers = itertools.count()
    writes: dict[str, Callable[[], Answer]] = {
        "registration": lambda: Caller([server]).call(
            "POST", "/register", {"name": "Bo", "email": f"bo{next(numbers)}@example.com", "password": PASSWORD}
        ),
        "login": lambda: Caller([server]).call("POST", "/login", {"email": customer.email, "password": PASSWORD}),
        "site": lambda: customer.session.call("POST", "/sites", {"name": "New", "url": "https://www.example.net/"}),
        "key": lambda: customer.session.call("POST", f"/api{site}/keys", {"name": "New", "type": "search"}),
        "settings": lambda: customer.private.call("PUT", f"{site}/search-settings", {"distinct": f"f{next(numbers)}"}),
        "documents": lambda: customer.private.index(page(f"w{next(numbers)}")),
        "change": lambda: customer.private.call("PATCH", "/api/v1/documents", {"documents": [page("1")]}),
        "removal": lambda: customer.private.call("POST", "/api/v1/documents/delete", {"ids": ["page-2"]}),
        "sync": lambda: customer.private.call("POST", "/api/v1/sync", {"source": "blog", "replace": True}),
        "source": lambda: customer.private.call(
            "POST", f"/api{site}/sources", {"kind": "sitemap", "url": f"https://www.example.com/{next(numbers)}"}
        ),
        "webhook": lambda: customer.session.call(
            "POST", "/api/webhooks", {"url": f"{server.base_url}/{next(numbers)}", "events": ["run.finished"]}
        ),
        "invitation": lambda: customer.session.call(
            "POST", "/api/invitations", {"email": f"cy{next(numbers)}@example.com", "role": "viewer"}
        ),
        "log": lambda: public.call("POST", "/api/v1/search-log", {"query": "page", "results_count": 1}),
        "report": lambda: customer.private.call(
            "POST", "/v1/report-usage", {"operation": "indexing", "count": 1, "index": f"site_{customer.site_id}"}
        ),
        "profile": lambda: customer.session.call("PUT", "/profile", {"name": f"Ann {next(numbers)}"}),
        "codes": lambda: customer.session.call("POST", "/profile/totp", {"current_password": PASSWORD}),
        "deletion": lambda: customer.session.call("DELETE", f"/sites/{other}"),
    }
    filler = fill(disk)

    rejected = set()
    for name, write in writes.items():
        answer = write()
        if answer.status >= 400:  # SQLite's log accepts a little more while its file has room.
            assert (answer.status, answer.error) in REJECTIONS, (name, answer.status, answer.body)
            assert 1 <= int(answer.headers["Retry-After"]) <= 60, name
            rejected.add(name)
    assert rejected >= writes.keys() - {"log", "report"}
    assert engine.call("POST", search, {"q": "page"}).status == 200
    assert customer.session.call("GET", "/dashboard").status == 200
    assert "unexpected error" not in server.log

    filler.unlink()
    for name, write in writes.items():
        answer = write()
        assert answer.status in (200, 201), (name, answer.status, answer.body)
    assert customer.search.found_ids("page") >= {"page-1"}


def test_documents_acknowledged_on_a_disk_that_fills_up_are_stored(
    server: Server, disk: Path, customer: Customer
) -> None:
    filler = fill(disk, 400_000)
    answers = {f"page-w{number}": customer.private.index(page(f"w{number}")) for number in range(60)}
    acknowledged = {name for name, answer in answers.items() if answer.status == 200}
    rejected = {(answer.status, answer.error) for answer in answers.values() if answer.status != 200}
    assert acknowledged
    assert rejected
    assert rejected <= REJECTIONS

    server.kill()
    filler.unlink()
    server.start()

    def all_are_found() -> None:
        assert acknowledged <= customer.search.found_ids("page")

    eventually(all_are_found)
    assert customer.private.index(page("last")).status == 200


def test_full_disk_leaves_no_partial_backup_and_uploads_succeed_afterwards(
    server: Server, disk: Path, customer: Customer
) -> None:
    file = disk / "backup.zip"
    lines = b"".join(b'{"id": "u%d", "title": "Up", "content": "load", "url": "/u"}\n' % n for n in range(3))
    filler = fill(disk)

    with pytest.raises(RuntimeError, match="No space left on device"):
        server.flask("backup", str(file))
    assert [path.name for path in disk.iterdir() if "backup" in path.name] == []
    rejected = upload(customer, lines)
    assert rejected.status_code == 503, rejected.text
    assert int(rejected.headers["Retry-After"]) >= 1

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


def test_crawl_pauses_on_a_full_disk_and_finishes_afterwards(server: Server, disk: Path, customer: Customer) -> None:
    """Pages that could not be stored are fetched again; none is lost, and the run does not fail."""
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
        assert len(website.asked) < 30, "pages that cannot be stored must not be fetched"
        filler.unlink()

        def is_finished() -> None:
            assert [tuple(row) for row in rows(server, "SELECT status, indexed FROM source_runs")] == [("finished", 41)]

        eventually(is_finished, seconds=120)
    found = customer.private.call("GET", f"/v1/search?q=page&limit=100&site_id={site}").body["results"]
    assert found["estimatedTotalHits"] == 40


def _at_least(found: int, wanted: int) -> None:
    assert found >= wanted
