"""Concurrent starts, stops without losses, and unusable data directories."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.postgres import PostgresServer
from tests.server import Server, running_server
from tests.service.clients import Answer, NoAnswer, crowd, eventually, page, register, together
from tests.service.conftest import COMMON, PATIENT
from tests.service.stored import counted_queries, rows

pytestmark = pytest.mark.service

UNAVAILABLE = ("database_unavailable", "search_engine_unavailable", "counters_unavailable")


def start_at_once(stack: ExitStack, folders: list[Path], **settings: str) -> list[Server]:
    def start(folder: Path) -> Server:
        return stack.enter_context(
            running_server(folder, workers=1, own_process=True, **{**COMMON, **PATIENT, **settings})
        )

    with ThreadPoolExecutor(len(folders)) as pool:
        return list(pool.map(start, folders))


def check_that_they_are_one_installation(servers: list[Server]) -> None:
    customer = register(servers, "ann@example.com")
    for number in range(4):
        assert customer.private.index(page(number)).status == 200
        assert customer.search.search("page").body["results"]["estimatedTotalHits"] == number + 1
    assert customer.used_today() == 4


def test_services_started_concurrently_in_an_empty_directory_are_one_installation(tmp_path: Path) -> None:
    """The services agree on the tables, the generated secret, and the counters."""
    with ExitStack() as stack:
        servers = start_at_once(stack, [tmp_path / "data"] * 3, secret_key="")
        check_that_they_are_one_installation(servers)
        assert len((tmp_path / "data" / "secret_key").read_text()) >= 32
        assert {path.stat().st_mode & 0o077 for path in (tmp_path / "data").glob("*.db")} == {0}


def test_machines_started_concurrently_on_an_empty_postgresql_are_one_installation(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    shared = {
        "database_url": postgres.create_database("started_at_once"),
        "limits_url": f"sqlite://{tmp_path}/counters.db",
        "search_url": f"tantivy://{tmp_path}/indexes",
    }
    with ExitStack() as stack:
        check_that_they_are_one_installation(start_at_once(stack, [tmp_path / "a", tmp_path / "b"], **shared))


def test_number_of_workers_follows_web_concurrency(tmp_path: Path) -> None:
    with running_server(tmp_path, workers=3) as server:
        assert len(server.worker_pids()) == 3


def test_stopped_service_finishes_running_writes(machine: Server) -> None:
    """Four writes are running and waiting for a lock when the service is stopped."""
    customer = register([machine], "ann@example.com")
    assert customer.private.index(page(0)).status == 200
    sent: list[Answer] = []

    def write(number: int) -> None:
        sent.append(customer.private.index(page(number)))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(1, 5)]
    with (machine.folder / "locks" / f"site_{customer.site_id}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for writer in writers:
            writer.start()

        def are_in_the_database() -> None:
            assert len(rows(machine, "SELECT id FROM documents")) == 5

        eventually(are_in_the_database)
        ending = threading.Thread(target=machine.stop)
        ending.start()
        time.sleep(0.5)
        assert not sent
    ending.join()
    for writer in writers:
        writer.join()

    assert [answer.status for answer in sent] == [200] * 4
    assert machine.process is not None
    assert machine.process.returncode == 0
    assert rows(machine, "SELECT revision = applied_revision FROM sites") == [(1,)]


def test_stop_under_load_loses_no_search_events(machine: Server) -> None:
    customer = register([machine], "ann@example.com")
    machine.set_plan(customer.email, "business", requests_per_minute="unlimited")

    with crowd(8, lambda number: customer.search.search(f"before the end {number}")) as searches:
        searches.wait_for(100)
        machine.stop()

    assert {answer.status for _, answer in searches.answers} == {200}
    asked = {f"before the end {number}" for number, _ in searches.answers}
    stored = counted_queries(machine)
    assert asked <= stored.keys()
    assert set(stored.values()) == {1}
    assert not list((machine.folder / "events").glob("*.journal"))
    assert rows(machine, "SELECT count(*) FROM keys WHERE type = 'search' AND last_used_at IS NOT NULL") == [(1,)]


def test_replacing_all_workers_under_load_fails_no_request(machine: Server) -> None:
    """SIGHUP starts new workers on the same sockets."""
    customer = register([machine], "ann@example.com")
    machine.set_plan(customer.email, "business", requests_per_minute="unlimited")
    old = set(machine.worker_pids())

    with crowd(8, lambda number: customer.search.search("page"), pause_seconds=0.01) as searches:
        searches.wait_for(50)
        os.kill(machine.pid, 1)

        def all_are_new() -> None:
            now = set(machine.worker_pids())
            assert len(now) == 4
            assert not now & old

        eventually(all_are_new)
        searches.wait_for(50)

    assert not searches.unanswered
    assert {answer.status for _, answer in searches.answers} == {200}


def test_unusable_data_directory_is_reported_at_startup(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")

    with pytest.raises(RuntimeError, match=rf"DATA_DIR {file}/data must be a folder that the service can write to"):
        _rejected(file / "data", tmp_path)


def _rejected(folder: Path, cwd: Path) -> None:
    with running_server(cwd / "good", workers=1, own_process=True, data_dir=str(folder)):
        pass


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("a file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(file: Path) -> None:
    """Fill the disk."""
    with file.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(4096))


def test_full_disk_returns_503_and_loses_nothing_acknowledged(small_disk: Path) -> None:
    with running_server(small_disk, workers=2, **COMMON) as server:
        customer = register([server], "ann@example.com")
        server.set_plan(customer.email, "business", requests_per_minute="unlimited")
        taken: list[str] = []
        rejected: Answer | None = None
        for number in itertools.count():
            answer = customer.private.index(page(number, content=os.urandom(150_000).hex()))
            if answer.status != 200:
                rejected = answer
                break
            taken.append(f"page-{number}")
        assert rejected is not None
        assert rejected.status == 503, rejected.body
        assert rejected.error in UNAVAILABLE
        assert int(rejected.headers["Retry-After"]) >= 1
        assert len(taken) > 3
        filler = small_disk / "filler"
        fill(filler)

        meanwhile = together(4, 40, lambda number: customer.search.search("page"))
        assert {answer.status for answer in meanwhile} <= {200, 503}
        assert not [answer for answer in meanwhile if answer.status == 503 and "Retry-After" not in answer.headers]
        for answer in together(4, 8, lambda number: customer.private.index(page("small"))):
            assert answer.status == 200 or (answer.status, answer.error in UNAVAILABLE) == (503, True)

        filler.unlink()
        subprocess.run(["mount", "-o", "remount,size=96m", str(small_disk)], check=True)

        def works_again() -> None:
            assert customer.private.index(page("after")).status == 200

        eventually(works_again)
        found = {
            hit["id"]
            for offset in range(0, len(taken) + 100, 100)
            for hit in customer.private.must("GET", f"/v1/search?q=*&limit=100&offset={offset}")["results"]["hits"]
        }
        assert {*taken, "page-after"} <= found
        server.kill()
        server.start()
        assert customer.search.found_ids("after") == {"page-after"}


def test_stopped_service_accepts_no_connections(machine: Server) -> None:
    customer = register([machine], "ann@example.com")
    machine.stop()
    with pytest.raises(NoAnswer):
        customer.search.search("page")
