"""Unit costs of Redis, PostgreSQL, Typesense, and Meilisearch, for :mod:`benchmarks.capacity`."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import requests

from app.operations.capacity import EngineCosts, ServerCosts
from benchmarks.installations import Holding, Installation, Pages
from benchmarks.own_work import cpu_seconds
from benchmarks.unit_costs import (
    MEASURED_SEARCHES,
    MEASURED_SITES,
    SETTINGS,
    SETTLE_SECONDS,
    WORKERS,
    Searching,
    add_sites,
    size_of,
)
from tests.backends.live_servers import KEY, typesense_binary, typesense_cluster
from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer
from tests.server import free_port, processes, running_server

ENGINE_PAGES = 4_000
START_SECONDS = 60
QUIET_ROUNDS = 3


def measure_databases(folder: Path, pages: Pages, size: int) -> ServerCosts | None:
    """Measure Redis and PostgreSQL below the service; ``None`` if one of them is not installed."""
    if shutil.which("redis-server") is None or not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        print("Redis and PostgreSQL: not measured: no server")
        return None
    folder.mkdir()
    redis, postgres = RedisServer(folder), PostgresServer()
    try:
        redis.start()
        postgres.start()
        urls = {"limits_url": redis.url, "database_url": postgres.create_database("capacity")}
        assert redis.process is not None
        assert postgres.process is not None
        pids = redis.process.pid, postgres.process.pid
        with running_server(folder / "service", workers=WORKERS, **SETTINGS, **urls) as server:
            return measure_installation(Installation(server), urls["database_url"], pids, pages, size)
    finally:
        redis.stop()
        postgres.remove()


def measure_installation(
    installation: Installation, database: str, pids: tuple[int, int], pages: Pages, size: int
) -> ServerCosts:
    """Measure the costs of pages and searches for the Redis and the PostgreSQL of an installation.

    Args:
        database: URL of the PostgreSQL database.
        pids: Process IDs of Redis and PostgreSQL.
    """
    add_sites(installation, pages, 1, size)

    def cost(work: Callable[[], object]) -> tuple[float, float, int]:
        """Return CPU seconds of Redis and of PostgreSQL, and bytes by which the database grows."""
        redis, postgres, stored = cpu_seconds(pids[0]), family_cpu(pids[1]), stored_bytes(database)
        work()
        time.sleep(SETTLE_SECONDS)
        return cpu_seconds(pids[0]) - redis, family_cpu(pids[1]) - postgres, stored_bytes(database) - stored

    written = MEASURED_SITES * size
    _, page, sql = cost(lambda: add_sites(installation, pages, MEASURED_SITES, size))
    searching = Searching.of(installation, pages)
    searching.search_all(MEASURED_SEARCHES // 3)
    redis, search, rows = cost(lambda: searching.search_all(MEASURED_SEARCHES))
    return ServerCosts(
        redis / MEASURED_SEARCHES,
        search / MEASURED_SEARCHES,
        page / written,
        sql / written,
        rows / MEASURED_SEARCHES,
    )


def family_cpu(pid: int) -> float:
    """Return CPU seconds of a process and its children, including the children that have ended."""
    ended = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15])) / 100
    return cpu_seconds(pid) + ended + sum(cpu_seconds(child) for child, parent in processes() if parent == pid)


def stored_bytes(database: str) -> int:
    """Return the size of a PostgreSQL database."""
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])


def measure_engines(folder: Path, pages: Pages, meilisearch: str | None) -> dict[str, EngineCosts]:
    """Measure the index of each search server that is installed.

    Args:
        meilisearch: Path of its program, or ``None``.
    """
    folder.mkdir()
    costs = {}
    if typesense_binary() is None:
        print("Typesense: not measured: no server")
    else:
        with typesense_cluster(folder, 1) as (node,):
            assert node.process is not None
            url = f"typesense://:{KEY}@{node.host}"
            costs["Typesense"] = measure_engine(folder / "with_typesense", url, node.process.pid, node.folder, pages)
    if meilisearch is None:
        print("Meilisearch: not measured: no server; name its program with --meilisearch")
    else:
        with meilisearch_server(meilisearch, folder / "meilisearch") as (url, pid):
            costs["Meilisearch"] = measure_engine(folder / "with_meilisearch", url, pid, folder / "meilisearch", pages)
    return costs


def measure_engine(folder: Path, url: str, pid: int, data: Path, pages: Pages) -> EngineCosts:
    """Measure by how much an engine's memory and data directory grow with the pages of a site."""
    with running_server(folder, workers=WORKERS, search_url=url, **SETTINGS) as server:
        installation = Installation(server)
        installation.add_site(pages.take(100))
        await_quiet(pid)
        memory, disk = Holding.of(pid).private, size_of(data)
        add_sites(installation, pages, 1, ENGINE_PAGES)
        await_quiet(pid)
        grown = (Holding.of(pid).private - memory) * 2**20
        return EngineCosts(grown / ENGINE_PAGES, (size_of(data) - disk) / ENGINE_PAGES)


def await_quiet(pid: int) -> None:
    """Return when a process has used hardly any CPU time for some seconds."""
    quiet = 0
    while quiet < QUIET_ROUNDS:
        before = cpu_seconds(pid)
        time.sleep(1)
        quiet = quiet + 1 if cpu_seconds(pid) - before < 0.1 else 0


@contextmanager
def meilisearch_server(program: str, folder: Path) -> Iterator[tuple[str, int]]:
    """Run a Meilisearch server on loopback; its URL for the service, and its process ID."""
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [program, "--http-addr", address, "--db-path", str(folder), "--master-key", KEY, "--no-analytics"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder.parent,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_healthy(address):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("Meilisearch did not start")
            time.sleep(0.1)
        yield f"meilisearch://:{KEY}@{address}", process.pid
    finally:
        process.terminate()
        process.wait(30)


def is_healthy(address: str) -> bool:
    """Whether a Meilisearch server answers."""
    try:
        return requests.get(f"http://{address}/health", timeout=1).status_code == 200
    except requests.RequestException:
        return False
