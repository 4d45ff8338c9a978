"""Crawls of a running service: in a separate process, which never outlives the service."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from app.application import create_app
from app.config import load_settings
from app.crawl.run.worker_process import NICENESS
from app.crawl.sources import runs
from app.crawl.sources.sources import create_source
from app.models import SourceRun
from app.runtime import Runtime
from app.services import sites
from app.services.access.credentials import credential_change
from app.services.accounts import accounts
from schemas.sources import SourceCreateSchema
from tests.crawl.run.websites import Website, html, serving
from tests.patience import PATIENCE_SECONDS
from tests.server import Server, processes, running_server

pytestmark = pytest.mark.service


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def crawling_pids(server: Server) -> list[int]:
    """Return the processes that crawl for a service, without their children, which briefly have the same command
    line."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                environment = (entry / "environ").read_bytes() if b"--for-service" in command else b""
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if f"DATA_DIR={server.folder}".encode() in environment.split(b"\0"):
                found.add(int(entry.name))
    return [pid for pid, parent in processes() if pid in found and parent not in found]


@pytest.fixture
def website() -> Iterator[Website]:
    with serving() as site:
        site.pages = {f"/{n}": html(f"Page {n}") for n in range(60)}
        site.pages["/"] = html("Home", links=[f"/{n}" for n in range(60)])
        yield site


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running_server(tmp_path, CRAWL_PRIVATE_ADDRESSES="true") as running:
        yield running


@pytest.fixture
def part(server: Server) -> Iterator[Runtime]:
    app = create_app(load_settings(server.environment), background=False)
    part: Runtime = app.extensions["runtime"]
    yield part
    part.engines.close()
    part.database.dispose()


@pytest.fixture
def run_id(part: Runtime, website: Website) -> str:
    """A queued run."""
    with part.database.write() as session:
        account = accounts.create_account(session, name="A", email="a@example.com", password_hash="x", plan="pro")
    with credential_change(part.database, part.counters, account.id) as session:
        site = sites.create_site(
            session, account.id, part.plans["pro"], part.engines.default.identity, name="S", url=website.url
        )
        fields = SourceCreateSchema().load({"kind": "website", "url": website.address("/"), "schedule": "none"})
        _, run = create_source(session, account.id, site.id, fields, private_addresses=True)
    return run.id


def priorities(server: Server) -> list[int]:
    """Return the niceness of the processes that crawl for a service."""
    found = []
    for pid in crawling_pids(server):
        with contextlib.suppress(ProcessLookupError):
            found.append(os.getpriority(os.PRIO_PROCESS, pid))
    return found


def load(part: Runtime, run_id: str) -> SourceRun:
    with part.database.read() as session:
        return session.get_one(SourceRun, run_id)


def test_metrics_of_the_crawl_process_remain_after_it_has_ended(
    server: Server, part: Runtime, website: Website, run_id: str
) -> None:
    until(lambda: load(part, run_id).status == "finished", "the run was not done")
    until(lambda: not crawling_pids(server), "the process did not end")

    told = requests.get(f"{server.base_url}/metrics", timeout=PATIENCE_SECONDS).text

    assert 'search_source_runs_total{status="finished"} 1.0\n' in told
    written = re.search(r'^search_engine_seconds_count\{operation="upsert"\} (\S+)$', told, re.MULTILINE)
    assert written is not None
    assert float(written[1]) > 0


def test_queued_run_is_done_by_one_low_priority_process_that_ends_afterwards(
    server: Server, part: Runtime, website: Website, run_id: str
) -> None:
    until(lambda: priorities(server) == [NICENESS], "one process of low priority works")
    until(lambda: load(part, run_id).status == "finished", "the run finishes")
    until(lambda: not crawling_pids(server), "the process ends")

    assert load(part, run_id).indexed == 61


def test_only_one_worker_of_the_service_starts_a_crawl_process(
    server: Server, part: Runtime, website: Website, run_id: str
) -> None:
    seen: set[int] = set()

    def is_finished() -> bool:
        seen.update(crawling_pids(server))
        return load(part, run_id).status == "finished"

    until(is_finished, "the run finishes")
    assert len(seen) == 1


def test_killed_crawl_process_is_replaced_by_one_that_finishes_the_run(
    server: Server, part: Runtime, website: Website, run_id: str
) -> None:
    until(lambda: len(website.asked) > 10, "pages are read")
    (killed,) = crawling_pids(server)
    os.kill(killed, signal.SIGKILL)
    with part.database.write() as session:
        run = session.get_one(SourceRun, run_id)
        assert run.lease_until is not None
        run.lease_until -= runs.LEASE
    seen: set[int] = set()

    def is_finished() -> bool:
        seen.update(crawling_pids(server))
        return load(part, run_id).status == "finished"

    until(is_finished, "the run finishes")
    assert len(seen - {killed}) == 1
    assert load(part, run_id).indexed == 61


def test_crawl_process_ends_with_its_worker_and_another_one_finishes_the_run(
    server: Server, part: Runtime, website: Website, run_id: str
) -> None:
    until(lambda: len(website.asked) > 10, "pages are read")
    (crawling,) = crawling_pids(server)
    (starter,) = [parent for pid, parent in processes() if pid == crawling]
    os.kill(starter, signal.SIGKILL)
    until(lambda: crawling not in crawling_pids(server), "the process ends with its worker")
    most = 0

    def is_finished() -> bool:
        nonlocal most
        most = max(most, len(crawling_pids(server)))
        return load(part, run_id).status == "finished"

    until(is_finished, "the run finishes")
    assert most == 1
    assert load(part, run_id).indexed == 61
    asked = [path for path, _ in website.asked if path != "/sitemap.xml"]
    assert len(asked) - len(set(asked)) <= 10


def test_stopping_the_service_releases_the_run_and_the_next_start_continues_it(
    server: Server, part: Runtime, website: Website, run_id: str
) -> None:
    until(lambda: len(website.asked) > 10, "pages are read")
    server.stop()
    assert crawling_pids(server) == []
    run = load(part, run_id)
    assert (run.status, run.lease) == ("running", None)
    done = run.indexed
    server.start()

    until(lambda: load(part, run_id).status == "finished", "the run finishes")
    assert done > 0
    assert load(part, run_id).indexed == 61
    asked = [path for path, _ in website.asked if path != "/sitemap.xml"]
    assert len(asked) - len(set(asked)) <= 4


def test_run_of_a_killed_service_continues_when_its_lease_expires(
    server: Server, part: Runtime, website: Website, run_id: str
) -> None:
    until(lambda: load(part, run_id).indexed > 0, "pages are done")
    server.kill()
    until(lambda: not crawling_pids(server), "the process ends with the service")
    with part.database.write() as session:
        run = session.get_one(SourceRun, run_id)
        assert run.lease_until is not None
        run.lease_until -= runs.LEASE
    server.start()

    until(lambda: load(part, run_id).status == "finished", "the run finishes")
    assert load(part, run_id).indexed == 61


def test_crawl_command_crawls_a_source_in_the_foreground_and_reports(
    server: Server, part: Runtime, website: Website, run_id: str
) -> None:
    until(lambda: load(part, run_id).status == "finished", "the run finishes")
    del website.pages["/7"]

    report = json.loads(server.flask("crawl", "--site", "1", "--json", website.address("/")))

    assert report["id"] != run_id
    assert (report["status"], report["error"]) == ("finished", None)
    assert (report["unchanged"], report["removed"], report["reasons"]) == (60, 1, {"http_404": 1})
