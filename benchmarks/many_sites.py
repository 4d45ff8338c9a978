"""An installation with many sites, compared with an installation with a single site.

    python -m benchmarks.many_sites [--sites 1000] [--pages 200] [--installed 10000] [--documents PAGES.jsonl.gz]

Two services with their defaults (SQLite, the embedded engine, two gunicorn workers) in temporary folders are filled
over HTTP: one with a single site, the other with a thousand. Each site has its own search key and the same number of
pages. Pages consist of made-up words with the frequencies of a language, or come from a file of ``benchmarks.pages``.

* Latency: every search is sent to both services in turn, so that noise affects both alike, and with new words each
  time. The searches cover the thousand sites evenly, so their indexes are hardly ever open when needed; the index of
  the single site always is. "cold" is the first search with a key since the service started, which looks the key up in
  SQL; the single site has as many keys as there are sites. "warm" are later searches. The benchmark prints medians,
  99th percentiles, and CPU milliseconds of the workers per search, and the ratio of many sites to one site.
* Memory of a worker: resident memory, threads, file descriptors, and memory mappings after the start, after a search of
  every site, and after a while without searches; and the memory that one open index adds to a process, when it is
  opened and after a few searches.
* Start: the time from the start of gunicorn until both workers are running and /readyz returns 200, and then until the
  first search is answered, with 10 and with 10,000 sites. These sites are copies of one site with 20 pages: rows in
  SQL, and an index whose files are links to the first site's files.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select

from app.models import Base, Site, StoredDocument
from app.storage.database import Database
from backends.embedded.index.disk import DiskStore
from backends.embedded.index.open_indexes import IDLE_SECONDS
from backends.embedded.search import run_search
from backends.query import Highlight, SearchQuery
from benchmarks.installations import CONNECTIONS, Holding, Installation, Pages, Target
from benchmarks.search_speed import quantiles
from tests.server import running_server

WORKERS = 2
WRITTEN_SITES = 50
"""Number of sites written over HTTP; the others are copies of them, row by row and file by file."""

START_PAGES = 20
STARTS = 3
FEW_SITES = 10
WEIGHED_INDEXES = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=200, help="of each site")
    parser.add_argument("--rounds", type=int, default=2, help="warm searches of each site")
    parser.add_argument("--installed", type=int, default=10_000, help="sites of the large installation that is started")
    parser.add_argument("--documents", type=Path, help="JSON lines, gzipped")
    wishes = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare_searches(Path(folder), Pages(wishes.documents), wishes.sites, wishes.pages, wishes.rounds)
        compare_starts(Path(folder), Pages(wishes.documents), wishes.installed)


def compare_searches(folder: Path, pages: Pages, sites: int, size: int, rounds: int) -> None:
    """Measure latency over many sites and over one, and the memory of the workers."""
    with (
        running_server(folder / "one", workers=WORKERS, default_plan="enterprise") as alone,
        running_server(folder / "many", workers=WORKERS, default_plan="enterprise") as shared,
    ):
        one, many = Installation(alone), Installation(shared)
        started = time.perf_counter()
        batch = pages.take(size)
        one.add_site(batch)
        single = one.sites[0]._replace(pages=batch)
        one.server.stop()
        unused = one.make_search_keys([single] * sites)
        fill(many, pages, sites, size)
        print(f"{sites} sites of {size} pages filled in {time.perf_counter() - started:.0f} s")
        one.restart()
        many.restart()
        print(f"workers at the start   {many.holding()}")
        warm_up(one, many, pages)
        measure("cold", one, unused, many, many.sites, pages)
        for target in many.sites:
            for _ in range(WORKERS):
                many.search(target, pages.query(target.pages[0]))
        one.connect()
        measure("warm", one, [single] * sites * rounds, many, many.sites * rounds, pages)
        print(f"workers after searches {many.holding()}")
        print(f"one site, the same     {one.holding()}")
        time.sleep(IDLE_SECONDS + 2)
        print(f"workers when idle      {many.holding()}")
    weigh_open_indexes(folder / "many" / "indexes", pages)


def fill(installation: Installation, pages: Pages, sites: int, size: int) -> None:
    """Create some sites over HTTP, then copy them until there are ``sites``, each with its own key."""
    for _ in range(min(sites, WRITTEN_SITES)):
        installation.add_site(pages.take(size))
    written = list(installation.sites)
    installation.server.stop()
    for number, original in enumerate(written):
        multiply(installation, original, (sites - number - 1) // len(written), shutil.copy2)
    installation.sites = installation.make_search_keys(installation.sites)
    installation.server.start()


def warm_up(one: Installation, many: Installation, pages: Pages) -> None:
    """Warm up the workers of both services. Of the many sites, only the first is searched."""
    for installation in (one, many):
        for _ in range(25 * CONNECTIONS):
            installation.search(installation.sites[0], pages.query(one.sites[0].pages[0]))


def measure(
    name: str, one: Installation, singles: list[Target], many: Installation, targets: list[Target], pages: Pages
) -> None:
    """Search both services' targets in random order."""
    chance = random.Random(5)
    order = chance.sample(list(zip(singles, targets, strict=True)), len(targets))
    times: dict[str, list[float]] = {"one": [], "many": []}
    before = one.cpu(), many.cpu()
    for single, site in order:
        searches = [("one", one, single), ("many", many, site)]
        chance.shuffle(searches)
        for kind, installation, target in searches:
            query = pages.query(chance.choice(target.pages))
            started = time.perf_counter()
            installation.search(target, query)
            times[kind].append((time.perf_counter() - started) * 1000)
    cpu = [
        (taken - at_first) * 1000 / len(order) for taken, at_first in zip((one.cpu(), many.cpu()), before, strict=True)
    ]
    (median, high), (many_median, many_high) = quantiles(times["one"]), quantiles(times["many"])
    print(
        f"{name}: {len(order)} searches, one site p50 {median:.2f} p99 {high:.2f} CPU {cpu[0]:.2f} ms, many sites "
        f"p50 {many_median:.2f} p99 {many_high:.2f} CPU {cpu[1]:.2f} ms, "
        f"ratio p50 {many_median / median:.2f} p99 {many_high / high:.2f} CPU {cpu[1] / cpu[0]:.2f}"
    )


def weigh_open_indexes(folder: Path, pages: Pages) -> None:
    """Measure how much memory open indexes add to this process, and how long opening takes."""
    store = DiskStore(folder, 1, 1.0)
    first, *names = sorted(store.names())[: WEIGHED_INDEXES + 1]
    run_search(store.snapshot(first), SearchQuery(pages.words[50]))
    before, started, cpu = Holding.of(os.getpid()), time.perf_counter(), time.process_time()
    opened = [store.snapshot(name) for name in names]
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"opening an index: {seconds / len(opened) * 1000:.2f} ms, CPU {cpu / len(opened) * 1000:.2f} ms")
    weigh("an open index adds", before, len(opened))
    for snapshot in opened:
        for rank in (10, 100, 1000):
            run_search(snapshot, SearchQuery(pages.words[rank], limit=10, highlight=Highlight()))
    weigh("after 3 searches ", before, len(opened))
    cpu, started = time.process_time(), time.perf_counter()
    time.sleep(2)
    cpu = (time.process_time() - cpu) / (time.perf_counter() - started)
    print(f"an idle open index takes {cpu / len(opened) * 1000:.2f} ms of CPU a second")


def weigh(name: str, before: Holding, number: int) -> None:
    """Print by how much this process has grown per index."""
    after = Holding.of(os.getpid())
    share = [(getattr(after, f.name) - getattr(before, f.name)) / number for f in fields(Holding)]
    print(
        f"{name} {share[0] * 1024:.0f} KB, of it not files {share[1] * 1024:.0f} KB, {share[2]:.2f} threads, "
        f"{share[3]:.2f} descriptors, {share[4]:.1f} mappings"
    )


def compare_starts(folder: Path, pages: Pages, installed: int) -> None:
    """Measure the time until ready and until the first search, with few and with very many sites."""
    with (
        running_server(folder / "few", workers=WORKERS, default_plan="enterprise") as small,
        running_server(folder / "very_many", workers=WORKERS, default_plan="enterprise") as large,
    ):
        pair = {FEW_SITES: Installation(small), installed: Installation(large)}
        for sites, installation in pair.items():
            installation.add_site(pages.take(START_PAGES))
            installation.server.stop()
            multiply(installation, installation.sites[0], sites - 1, os.link)
            installation.server.start()
        ready: dict[int, list[float]] = {sites: [] for sites in pair}
        first: dict[int, list[float]] = {sites: [] for sites in pair}
        for turn in range(1, STARTS + 1):
            for sites, installation in pair.items():
                seconds = installation.restart()
                target = installation.sites[-turn]
                started = time.perf_counter()
                assert installation.search(target, target.pages[0]["title"]), "a copied site has its pages"
                ready[sites].append(seconds)
                first[sites].append(seconds + time.perf_counter() - started)
    for name, times in (("ready", ready), ("the first search", first)):
        few, very_many = (statistics.median(times[sites]) for sites in pair)
        print(
            f"start to {name}: {FEW_SITES} sites {few:.2f} s, {installed} sites {very_many:.2f} s, "
            f"ratio {very_many / few:.2f}"
        )


def multiply(
    installation: Installation, original: Target, copies: int, copy_file: Callable[[str, str], object]
) -> None:
    """Copy a site of a stopped service ``copies`` times: its rows in SQL, and its index file by file."""
    folder = installation.server.folder
    first = max(target.id for target in installation.sites) + 1
    numbers = range(first, first + copies)
    if not copies:
        return
    database = Database(f"sqlite:///{folder / 'service.db'}")
    with database.write() as session:
        site = row_of(session.get_one(Site, original.id))
        index = str(site["engine_index"])
        copied = {number: f"{index}_{number}" for number in numbers}
        session.execute(insert(Site), [{**site, "id": number, "engine_index": copied[number]} for number in numbers])
        documents = select(StoredDocument).where(StoredDocument.site_id == original.id)
        for document in map(row_of, session.scalars(documents).all()):
            session.execute(insert(StoredDocument), [{**document, "site_id": number} for number in numbers])
    database.dispose()
    for number in numbers:
        shutil.copytree(folder / "indexes" / index, folder / "indexes" / copied[number], copy_function=copy_file)
        installation.sites.append(original._replace(id=number, key=installation.private_key))


def row_of(record: Base) -> dict[str, Any]:
    """Return the columns of a loaded record."""
    return {column.key: getattr(record, column.key) for column in type(record).__mapper__.column_attrs}


if __name__ == "__main__":
    main()
