"""The machines, memory, and disk space that an installation needs, and which of them runs out first.

    .venv/bin/python -m benchmarks.capacity [--sites 10000] [--pages 200] [--searches-per-day 200] [--keystrokes 4] \\
        [--changed-share 0.05] [--crawled-share 0.5] [--meilisearch PROGRAM] [--check]

The benchmark first measures unit costs on this machine: CPU time of a search, a keystroke in the search box, a write,
and a crawled page; memory of a worker and of an open site; bytes of a page in SQL and in each engine's index, and of a
stored search. Redis, PostgreSQL, and Typesense are measured if they are installed, and Meilisearch if PROGRAM is its
path. The needs of the installation are computed from these costs; without ``--sites``, for 100, 10,000, and 1,000,000
sites.

``--check`` compares the predicted CPU time, memory, and disk space with two real loads of different sizes. Each load
lasts some seconds, with visitors who type and writes at a fixed rate, followed by a crawl of twice as many pages as
were measured.

Assumptions: the busiest hour has ``--peak`` times the searches of an average hour, and machines should then be at most
60 percent busy. Visitors arrive at random times and type all searches in the search box (``--keystrokes 0`` disables
this). Searches are stored for 400 days. Some sites are crawled once a day, and the others are written to. The costs
apply to sites of ``--pages`` pages; a search of a much larger site costs more (``benchmarks/growth.py``). Semantic
search and pages that need a browser are not included.
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
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.operations.capacity import (
    BUSY,
    KEYSTROKE_SECONDS,
    Costs,
    EngineCosts,
    Load,
    ServerCosts,
    busiest_hour,
    compute_needs,
)
from benchmarks.installations import Installation, Pages
from benchmarks.server_costs import measure_databases, measure_engines
from benchmarks.unit_costs import (
    CRAWLED_PAGES,
    SETTINGS,
    SETTLE_SECONDS,
    WORKERS,
    Boxes,
    Searching,
    add_sites,
    measure,
    measure_crawl,
    used,
)
from tests.server import running_server

CHECKS = ((4, 1.5), (16, 6.0))
"""Sites and searches per second of the loads that the prediction is compared with."""
CHECK_SECONDS = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int)
    parser.add_argument("--pages", type=int, default=200, help="of each site")
    parser.add_argument("--searches-per-day", type=float, default=200, help="of each site")
    parser.add_argument("--keystrokes", type=int, default=4, help="that the search box sends for a search")
    parser.add_argument("--changed-share", type=float, default=0.05, help="of its pages that a site changes a day")
    parser.add_argument("--crawled-share", type=float, default=0.5, help="of the sites; the others are written to")
    parser.add_argument("--pages-a-write", type=int, default=10)
    parser.add_argument("--peak", type=float, default=5.0, help="searches of the busiest hour over the average")
    parser.add_argument("--documents", type=Path, help="JSON lines of pages, gzipped; made up if not given")
    parser.add_argument("--meilisearch", help="path of Meilisearch's program")
    parser.add_argument("--check", action="store_true")
    wishes = parser.parse_args()
    pages = Pages(wishes.documents)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        costs = measure(folder / "measured", pages, wishes.pages)
        show_costs(costs)
        servers = measure_databases(folder / "databases", pages, wishes.pages)
        engines = measure_engines(folder / "engines", pages, wishes.meilisearch)
        show_server_costs(servers, engines)
        deviations = check(folder, pages, wishes, costs) if wishes.check else []
    for sites in [wishes.sites] if wishes.sites else [100, 10_000, 1_000_000]:
        predict(make_load(sites, wishes), wishes.peak, costs, servers, engines)
    if deviations:
        print(f"How sure: the checked loads took {min(deviations):.2f} to {max(deviations):.2f} times the predictions.")
    else:
        print("How sure: not checked in this run (--check).")
    print(f"Nothing larger than {CHECKS[-1][0]} sites was loaded. All figures beyond that are computed.")


def make_load(sites: int, wishes: argparse.Namespace) -> Load:
    """Return the load of the busiest hour."""
    return busiest_hour(
        sites,
        pages=wishes.pages,
        searches_per_day=wishes.searches_per_day,
        keystrokes=wishes.keystrokes,
        changed_share=wishes.changed_share,
        crawled_share=wishes.crawled_share,
        pages_per_write=wishes.pages_a_write,
        peak=wishes.peak,
    )


def check(folder: Path, pages: Pages, wishes: argparse.Namespace, costs: Costs) -> list[float]:
    """Compare the predictions with real loads. Returns the measured values divided by the predicted ones."""
    deviations = []
    for number, (sites, rate) in enumerate(CHECKS):
        load = Load(sites, wishes.pages, rate, wishes.keystrokes, rate / 6, wishes.pages_a_write)
        deviations += check_load(folder / f"check{number}", pages, load, costs)
    crawled, unchanged, _memory, _sql = measure_crawl(folder / "check_crawl", pages, 2 * CRAWLED_PAGES)
    print(f"check with a crawl of {2 * CRAWLED_PAGES} pages:")
    deviations.append(compare("new pages, CPU ms each", crawled * 1e3, costs.crawled * 1e3))
    deviations.append(compare("unchanged, CPU ms each", unchanged * 1e3, costs.unchanged * 1e3))
    return deviations


def check_load(folder: Path, pages: Pages, load: Load, costs: Costs) -> list[float]:
    """Compare the prediction with a real load."""
    with running_server(folder, workers=WORKERS, **SETTINGS) as server:
        installation = Installation(server)
        add_sites(installation, pages, load.sites, load.pages)
        Searching.of(installation, pages).search_all(10 * load.sites * WORKERS)
        time.sleep(SETTLE_SECONDS)
        disk, cpu, started = sum(used(folder)), installation.cpu(), time.perf_counter()
        memory, requests = run(installation, pages, load)
        time.sleep(SETTLE_SECONDS)
        seconds = time.perf_counter() - started
        taken = (installation.cpu() - cpu) / seconds
    # On a busy machine, the load takes longer than planned.
    real = replace(load, searches=load.searches * CHECK_SECONDS / seconds, writes=load.writes * CHECK_SECONDS / seconds)
    print(f"check with {load.sites} sites, {requests / seconds:.0f} requests per second:")
    return [
        compare("CPU, cores", taken, real.cpu(costs, WORKERS)),
        compare("memory, MB", memory / 1e6, real.memory(costs, WORKERS) / 1e6),
        compare("disk, MB", disk / 1e6, real.disk(costs) / 1e6),
    ]


def run(installation: Installation, pages: Pages, load: Load) -> tuple[float, int]:
    """Send keystrokes and writes at the load's rate. Returns the workers' mean memory in bytes, and the requests."""
    searching = Searching.of(installation, pages)
    boxes, chance = Boxes(searching), random.Random(7)
    plan: list[tuple[float, int, Callable[[], object]]] = []
    for number in range(round(load.searches * CHECK_SECONDS)):
        site, begins = chance.choice(installation.sites), chance.random() * CHECK_SECONDS
        typed = chance.choices(boxes.keystrokes(site), k=load.keystrokes)
        for at, each in enumerate(typed):
            moment = begins + at * KEYSTROKE_SECONDS
            plan += [(moment, number, partial(boxes.search, each)), (moment, number, partial(boxes.suggest, each))]
        if not typed:
            plan.append((begins, number, partial(searching.search, site)))
    for number in range(round(load.writes * CHECK_SECONDS)):
        write = partial(installation.write, chance.choice(installation.sites), pages.take(load.written))
        plan.append((number / load.writes, number, write))
    started, memory = time.perf_counter(), []
    for moment, _, send in sorted(plan, key=lambda planned: planned[:2]):
        time.sleep(max(0.0, started + moment - time.perf_counter()))
        send()
        memory.append(installation.holding().private * 2**20)
    return sum(memory) / len(memory), len(plan)


def compare(name: str, measured: float, predicted: float) -> float:
    """Print a measured value beside its prediction, and return the first divided by the second."""
    print(f"  {name:23} measured {measured:10,.3f}   predicted {predicted:10,.3f}   ratio {measured / predicted:.2f}")
    return measured / predicted


def show_costs(costs: Costs) -> None:
    """Print the unit costs."""
    print(f"a search: {costs.search * 1e3:.2f} ms of CPU, {costs.row:.0f} bytes in SQL")
    print(f"a keystroke: {costs.keystroke * 1e3:.2f} ms of CPU, and {costs.suggestion * 1e3:.2f} for suggestions")
    print(f"opening a site's index for it: {costs.opening * 1e3:.2f} ms")
    print(f"a write: {costs.write * 1e3:.1f} ms of CPU, and {costs.page * 1e3:.2f} for each page")
    print(f"a crawled page: {costs.crawled * 1e3:.1f} ms of CPU if it is new, {costs.unchanged * 1e3:.1f} if unchanged")
    print(f"a page: {costs.sql:.0f} bytes in SQL ({costs.crawled_sql:.0f} if crawled), {costs.index:.0f} in the index")
    print(f"a worker: {costs.worker / 1e6:.0f} MB, {costs.idle:.1%} of a core when idle")
    print(f"an open site: {costs.site / 1e6:.2f} MB in each worker; a machine's crawler: {costs.crawler / 1e6:.0f} MB")


def show_server_costs(servers: ServerCosts | None, engines: dict[str, EngineCosts]) -> None:
    """Print the costs of the servers for a search and for a page."""
    if servers:
        print(f"Redis: {servers.redis * 1e6:.0f} µs of CPU a request, so {1 / servers.redis:,.0f} a second at most")
        print(
            f"PostgreSQL: {servers.search * 1e6:.0f} µs of CPU and {servers.row:.0f} bytes a search, "
            f"{servers.page * 1e6:.0f} µs and {servers.sql:.0f} bytes a page; "
            f"{1 / servers.search:,.0f} searches a second or {1 / servers.page:,.0f} pages a second on each core"
        )
    for name, engine in engines.items():
        print(f"{name}: {engine.memory:,.0f} bytes of memory and {engine.disk:,.0f} on disk a page")


def predict(
    load: Load, peak: float, costs: Costs, servers: ServerCosts | None, engines: dict[str, EngineCosts]
) -> None:
    """Print the needs of an installation, and which resource of this machine runs out first."""
    cores, total_memory = os.cpu_count() or 1, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needs = compute_needs(load, peak, cores, costs)
    disk = needs.pages + needs.searches
    shares = {
        "CPU": needs.cores / cores,
        "memory": needs.memory / total_memory,
        "disk": disk / shutil.disk_usage(tempfile.gettempdir()).total,
    }
    first = max(shares, key=shares.__getitem__)
    print(
        f"{load.sites:,} sites: {load.searches:,.1f} searches a second in the busiest hour, {needs.cores:,.1f} cores, "
        f"{needs.memory / 1e9:,.1f} GB of memory, {disk / 1e9:,.1f} GB on disk ({needs.searches / 1e9:,.1f} of it "
        f"stored searches); machines like this one: {math.ceil(shares['CPU'])} by CPU; first runs out: {first} "
        f"({shares[first]:.0%} of this machine)"
    )
    if servers:
        print(
            f"  as several machines: Redis uses {load.redis(servers):.0%} of its one core, PostgreSQL "
            f"{load.postgres(servers):,.1f} cores; the one Redis is full with "
            f"{load.sites * BUSY / load.redis(servers):,.0f} sites"
        )
    for name, engine in engines.items():
        total = load.sites * load.pages
        print(
            f"  with {name}: {total * engine.memory / 1e9:,.1f} GB of memory, {total * engine.disk / 1e9:,.1f} on disk"
        )


if __name__ == "__main__":
    main()
