"""How many machines, how much memory, and how much disk an installation needs, and what runs out first.

    python -m benchmarks.capacity --sites 10000 --pages 500 --searches-per-day 200 [--changed-share 0.05] [--check]

First it measures on this machine what one search, one write, each page of it, and one open site cost: CPU time of the
workers, their memory, and bytes in SQL and in the index of the embedded engine. Then it multiplies. Without
``--sites``, it does so for 100, 10,000, and 1,000,000 sites.

``--check`` compares the prediction with two real loads of different sizes, each of some seconds with searches and
writes at a fixed rate: the CPU time that they take, and the memory and the disk that they use.

What it assumes: the busiest hour has ``--peak`` times the searches of an average hour, machines should be at most 60
percent busy then, visitors come at random times, and searches are stored for 400 days. The costs are those of sites of
``--pages`` pages; a search of a much larger site costs more (``benchmarks/growth.py``). What it leaves out: crawling,
which runs with low priority, and searches by meaning.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from backends.embedded.backend import OPEN_INDEXES
from backends.embedded.index.open_indexes import IDLE_SECONDS
from benchmarks.many_sites import Installation, Pages
from tests.server import running_server

WORKERS = 2
MEASURED_SITES, MEASURED_SEARCHES = 12, 1_500
BUSY = 0.6
"""Highest share of a machine's cores that should be busy in the busiest hour."""
RETENTION_DAYS = 400
SETTLE_SECONDS = 4
"""Seconds after which the searches that were answered are in SQL."""
CHECKS = ((4, 8), (16, 40))
"""Sites and searches a second of the loads that the prediction is compared with."""
CHECK_SECONDS = 30
QUIET_SECONDS = 10
SINGLE_WRITES = 60
"""Number of writes of one page of which the cost of a write is measured."""
COLD_ROUNDS = 6


@dataclass(frozen=True)
class Costs:
    """What one of each costs.

    Attributes:
        search, opening: CPU seconds of a search, and what it takes more if the site's index is closed.
        write, page: CPU seconds of a write without its pages, and of each of them.
        idle: CPU seconds a second of a worker without requests.
        worker, site: Bytes of memory of a worker, and of an open site in each worker.
        sql, index: Bytes of a page on disk.
        row: Bytes of a stored search in SQL.
    """

    search: float
    opening: float
    write: float
    page: float
    idle: float
    worker: float
    site: float
    sql: float
    index: float
    row: float


@dataclass(frozen=True)
class Load:
    """What an installation has to do.

    Attributes:
        searches, writes: Searches and writes a second.
        written: Pages of a write.
    """

    sites: int
    pages: int
    searches: float
    writes: float
    written: int

    def cpu(self, costs: Costs, workers: int) -> float:
        """CPU seconds a second."""
        writing = self.writes * (costs.write + self.written * costs.page)
        search = costs.search + (1 - self.open_share(workers)) * costs.opening
        return self.searches * search + writing + workers * costs.idle

    def open_share(self, workers: int) -> float:
        """Share of the sites whose index is open in a worker: those that it searched within the last seconds."""
        searched = 1 - math.exp(-IDLE_SECONDS * self.searches / self.sites / workers)
        return min(searched, OPEN_INDEXES / self.sites)

    def memory(self, costs: Costs, workers: int) -> float:
        """Bytes of memory of the workers of one machine."""
        return workers * (costs.worker + self.sites * self.open_share(workers) * costs.site)

    def disk(self, costs: Costs) -> float:
        """Bytes of pages on disk, without stored searches."""
        return self.sites * self.pages * (costs.sql + costs.index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int)
    parser.add_argument("--pages", type=int, default=500, help="of each site")
    parser.add_argument("--searches-per-day", type=float, default=200, help="of each site")
    parser.add_argument("--changed-share", type=float, default=0.05, help="of its pages that a site writes a day")
    parser.add_argument("--pages-a-write", type=int, default=10)
    parser.add_argument("--peak", type=float, default=5.0, help="searches of the busiest hour over the average")
    parser.add_argument("--documents", type=Path, help="JSON lines of pages, gzipped; made up if not given")
    parser.add_argument("--check", action="store_true")
    wishes = parser.parse_args()
    pages = Pages(wishes.documents)
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(Path(folder) / "measured", pages, wishes.pages)
        show_costs(costs)
        if wishes.check:
            for number, (sites, rate) in enumerate(CHECKS):
                load = Load(sites, wishes.pages, rate, rate / 40, wishes.pages_a_write)
                check(Path(folder) / f"check{number}", pages, load, costs)
    for sites in [wishes.sites] if wishes.sites else [100, 10_000, 1_000_000]:
        predict(sites, wishes, costs)


def measure(folder: Path, pages: Pages, size: int) -> Costs:
    """Measure unit costs in an installation with a few sites of ``size`` pages."""
    with running_server(folder, workers=WORKERS, default_plan="enterprise") as server:
        installation = Installation(server)
        installation.add_site(pages.take(size))
        search(installation, pages, MEASURED_SEARCHES // 3)
        idle = cpu_of(installation, lambda: time.sleep(QUIET_SECONDS)) / QUIET_SECONDS / WORKERS
        worker, disk = installation.holding().private, used(folder)

        def add_sites() -> None:
            for _ in range(MEASURED_SITES):
                installation.add_site(pages.take(size))

        def write_pages() -> None:
            for number in range(SINGLE_WRITES):
                installation.write(installation.sites[number % MEASURED_SITES], pages.take(1))

        written = MEASURED_SITES * size
        page = cpu_of(installation, add_sites) / written
        sql, index = ((after - before) / written for after, before in zip(used(folder), disk, strict=True))
        write = cpu_of(installation, write_pages) / SINGLE_WRITES - page
        search(installation, pages, MEASURED_SEARCHES // 3)
        site = (installation.holding().private - worker) / MEASURED_SITES
        cold = cpu_of(installation, lambda: search_cold(installation, pages)) / COLD_ROUNDS / len(installation.sites)
        # A stopped service has moved its journals to SQL, and the database's journal into the database.
        installation.restart()
        stored = stored_size(installation, folder)
        searching = cpu_of(installation, lambda: search(installation, pages, MEASURED_SEARCHES)) / MEASURED_SEARCHES
        row = (stored_size(installation, folder) - stored) / MEASURED_SEARCHES
        return Costs(
            searching,
            max(0.0, cold - searching),
            write,
            page,
            idle,
            worker * 1e6 / WORKERS,
            max(0.0, site) * 1e6 / WORKERS,
            sql,
            index,
            row,
        )


def cpu_of(installation: Installation, work: Callable[[], None]) -> float:
    """CPU seconds that the workers take for some work, and for what they do with it in the background."""
    before = installation.cpu()
    work()
    time.sleep(SETTLE_SECONDS)
    return installation.cpu() - before


def stored_size(installation: Installation, folder: Path) -> int:
    """Bytes of the database of a service that was stopped for that, and is running again."""
    installation.server.stop()
    size = used(folder)[0]
    installation.server.start()
    installation.connect()
    return size


def search(installation: Installation, pages: Pages, count: int) -> None:
    """Search all sites in turn, with queries that differ."""
    installation.connect()
    for number in range(count):
        site = installation.sites[number % len(installation.sites)]
        installation.search(site, pages.query(site.pages[number % len(site.pages)]))


def search_cold(installation: Installation, pages: Pages) -> None:
    """Search each site once after its index was closed, some times."""
    for _ in range(COLD_ROUNDS):
        time.sleep(IDLE_SECONDS + 1)
        search(installation, pages, len(installation.sites))


def used(folder: Path) -> tuple[int, int]:
    """Bytes on disk of the database with its journal, and of the indexes."""
    database = sum(file.stat().st_size for file in folder.glob("service.db*"))
    return database, sum(file.stat().st_size for file in (folder / "indexes").rglob("*") if file.is_file())


def check(folder: Path, pages: Pages, load: Load, costs: Costs) -> None:
    """Print what a real load takes, beside the prediction."""
    with running_server(folder, workers=WORKERS, default_plan="enterprise") as server:
        installation = Installation(server)
        for _ in range(load.sites):
            installation.add_site(pages.take(load.pages))
        search(installation, pages, 10 * load.sites * WORKERS)
        time.sleep(SETTLE_SECONDS)
        disk, cpu, started = sum(used(folder)), installation.cpu(), time.perf_counter()
        searches, writes = run(installation, pages, load)
        time.sleep(SETTLE_SECONDS)
        seconds = time.perf_counter() - started
        taken, memory = (installation.cpu() - cpu) / seconds, installation.holding().private * 1e6
    real = replace(load, searches=searches / seconds, writes=writes / seconds)
    print(f"check with {load.sites} sites, {real.searches:.0f} searches and {real.writes:.2f} writes a second:")
    for name, measured, predicted in (
        ("CPU", taken, real.cpu(costs, WORKERS)),
        ("memory", memory, real.memory(costs, WORKERS)),
        ("disk", disk, real.disk(costs)),
    ):
        print(
            f"  {name:7} measured {measured:14,.3f}   predicted {predicted:14,.3f}   ratio {predicted / measured:.2f}"
        )


def run(installation: Installation, pages: Pages, load: Load) -> tuple[int, int]:
    """Search and write at the load's rate for some seconds; the number of searches and of writes."""
    chance = random.Random(7)
    installation.connect()
    started, searches, writes = time.perf_counter(), 0, 0
    while (now := time.perf_counter() - started) < CHECK_SECONDS:
        if writes < now * load.writes:
            installation.write(chance.choice(installation.sites), pages.take(load.written))
            writes += 1
        if searches < now * load.searches:
            site = chance.choice(installation.sites)
            installation.search(site, pages.query(chance.choice(site.pages)))
            searches += 1
        else:
            time.sleep(1 / load.searches / 10)
    return searches, writes


def show_costs(costs: Costs) -> None:
    """Print the unit costs."""
    print(f"a search: {costs.search * 1e3:.2f} ms of CPU, {costs.row:.0f} bytes in SQL")
    print(f"opening a site's index for it: {costs.opening * 1e3:.2f} ms")
    print(f"a write: {costs.write * 1e3:.1f} ms of CPU, and {costs.page * 1e3:.2f} for each page")
    print(f"a page: {costs.sql:.0f} bytes in SQL, {costs.index:.0f} in the index")
    print(f"a worker: {costs.worker / 1e6:.0f} MB, {costs.idle:.1%} of a core when idle")
    print(f"an open site: {costs.site / 1e6:.2f} MB in each worker")


def predict(sites: int, wishes: argparse.Namespace, costs: Costs) -> None:
    """Print what an installation needs, and what of this machine runs out first."""
    cores, total_memory = os.cpu_count() or 1, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    a_day = sites * wishes.searches_per_day
    writes = sites * wishes.pages * wishes.changed_share / wishes.pages_a_write / 86_400
    load = Load(sites, wishes.pages, a_day * wishes.peak / 86_400, writes, wishes.pages_a_write)
    needed_cores = load.cpu(costs, cores) / BUSY
    memory, rows = load.memory(costs, cores), a_day * RETENTION_DAYS * costs.row
    disk = load.disk(costs) + rows
    shares = {
        "CPU": needed_cores / cores,
        "memory": memory / total_memory,
        "disk": disk / shutil.disk_usage(tempfile.gettempdir()).total,
    }
    first = max(shares, key=shares.__getitem__)
    print(
        f"{sites:,} sites: {load.searches:,.1f} searches a second in the busiest hour, {needed_cores:,.1f} cores, "
        f"{memory / 1e9:,.1f} GB of memory, {disk / 1e9:,.1f} GB on disk ({rows / 1e9:,.1f} of it stored searches); "
        f"machines like this one: {math.ceil(shares['CPU'])} by CPU; first runs out: {first} "
        f"({shares[first]:.0%} of this machine)"
    )


if __name__ == "__main__":
    main()
