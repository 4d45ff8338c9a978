"""Unit costs of the service on this machine, for :mod:`benchmarks.capacity`."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.operations.capacity import Costs
from backends.embedded.index.open_indexes import IDLE_SECONDS
from benchmarks.connections import Connection
from benchmarks.crawl import Installation as CrawlInstallation
from benchmarks.crawl import installation as crawl_installation
from benchmarks.crawl import memory_of, serving
from benchmarks.installations import Installation, Pages, Target
from benchmarks.own_work import cpu_seconds
from benchmarks.typed_load import Box
from benchmarks.typed_queries import Typed, beginnings
from tests.server import processes, running_server

WORKERS = 2
MEASURED_SITES, MEASURED_SEARCHES = 12, 1_200
SETTLE_SECONDS = 4
"""Seconds after which completed searches are in SQL."""
QUIET_SECONDS = 10
SINGLE_WRITES = 60
"""Number of single-page writes from which the cost of a write is computed."""
COLD_ROUNDS = 6
CRAWLED_PAGES = 600
SAMPLE_SECONDS = 0.05
PAUSE_SECONDS = 0.005
"""Seconds between two measured searches, as on a machine that is busy half of the time. Without pauses, a search costs
a third less CPU time, because the processor's caches and the threads stay ready."""
SETTINGS: dict[str, Any] = {"default_plan": "enterprise", "trusted_proxies": 1}


@dataclass(frozen=True)
class Searching:
    """The API and the search box of all sites of an installation."""

    installation: Installation
    pages: Pages
    chance: random.Random

    @classmethod
    def of(cls, installation: Installation, pages: Pages) -> Searching:
        installation.connect()
        return cls(installation, pages, random.Random(7))

    def search(self, site: Target) -> None:
        """Search a site once through the API."""
        self.installation.search(site, self.query(site))

    def query(self, site: Target) -> str:
        """Return words of one of the site's pages."""
        return self.pages.query(self.chance.choice(site.pages))

    def search_all(self, count: int) -> None:
        """Search all sites in turn."""
        for number in range(count):
            self.search(self.installation.sites[number % len(self.installation.sites)])
            time.sleep(PAUSE_SECONDS)


class Boxes:
    """The search boxes of all sites of an installation, over a few connections."""

    def __init__(self, searching: Searching):
        self._searching = searching
        url = searching.installation.server.base_url
        self._boxes = {site.id: Box(url, site.key) for site in searching.installation.sites}
        self._connections = [Connection(url, {}) for _ in range(8)]
        self._visitor = 0

    def keystrokes(self, site: Target) -> list[Typed]:
        """Return the searches of the box while a new visitor types a query."""
        self._visitor += 1
        texts = beginnings(self._searching.query(site), self._searching.chance)
        return [Typed(site.id, self._visitor, text) for text in texts]

    def search(self, typed: Typed) -> None:
        """Send the search of a keystroke."""
        self._send(self._boxes[typed.site].search(typed))

    def suggest(self, typed: Typed) -> None:
        """Send the request for suggestions of a keystroke."""
        self._send(self._boxes[typed.site].suggest(typed))

    @staticmethod
    def send_all(send: Callable[[Typed], None], typed: list[Typed]) -> None:
        """Send a request of each keystroke, with short pauses."""
        for each in typed:
            send(each)
            time.sleep(PAUSE_SECONDS)

    def _send(self, message: bytes) -> None:
        self._searching.chance.choice(self._connections).send(message)


def measure(folder: Path, pages: Pages, size: int) -> Costs:
    """Measure unit costs in an installation with a few sites of ``size`` pages."""
    with running_server(folder / "service", workers=WORKERS, **SETTINGS) as server:
        installation = Installation(server)
        add_sites(installation, pages, 1, size)
        Searching.of(installation, pages).search_all(MEASURED_SEARCHES // 3)
        idle = cpu_of(installation, lambda: time.sleep(QUIET_SECONDS)) / (QUIET_SECONDS + SETTLE_SECONDS) / WORKERS
        worker, disk = installation.holding().private, used(server.folder)
        written = MEASURED_SITES * size
        page = cpu_of(installation, lambda: add_sites(installation, pages, MEASURED_SITES, size)) / written
        sql, index = ((after - before) / written for after, before in zip(used(server.folder), disk, strict=True))
        write = cpu_of(installation, lambda: write_pages(installation, pages)) / SINGLE_WRITES - page
        Searching.of(installation, pages).search_all(MEASURED_SEARCHES // 3)
        site = (installation.holding().private - worker) / MEASURED_SITES
        cold = cpu_of(installation, lambda: search_cold(installation, pages)) / COLD_ROUNDS / len(installation.sites)
        search, keystroke, suggestion, row = measure_searches(installation, pages)
    crawled, unchanged, crawler, crawled_sql = measure_crawl(folder, pages, CRAWLED_PAGES)
    return Costs(
        search=search,
        keystroke=keystroke,
        suggestion=suggestion,
        opening=max(0.0, cold - search),
        write=write,
        page=page,
        crawled=crawled,
        unchanged=unchanged,
        idle=idle,
        worker=worker * 2**20 / WORKERS,
        site=max(0.0, site) * 2**20 / WORKERS,
        crawler=crawler,
        sql=sql,
        crawled_sql=crawled_sql,
        index=index,
        row=row,
    )


def measure_searches(installation: Installation, pages: Pages) -> tuple[float, float, float, float]:
    """Return CPU seconds of a search, a keystroke, and suggestions, and bytes of a stored search in SQL."""
    # A stopped service has moved its journals to SQL, and the database's journal into the database.
    installation.restart()
    stored = stored_size(installation)
    searching = Searching.of(installation, pages)
    search = cpu_of(installation, lambda: searching.search_all(MEASURED_SEARCHES)) / MEASURED_SEARCHES
    row = (stored_size(installation) - stored) / MEASURED_SEARCHES
    searching = Searching.of(installation, pages)
    boxes = Boxes(searching)
    sites = installation.sites
    typed = [each for number in range(MEASURED_SEARCHES // 3) for each in boxes.keystrokes(sites[number % len(sites)])]
    keystroke, suggestion = (
        cpu_of(installation, lambda send=send: boxes.send_all(send, typed)) / len(typed)
        for send in (boxes.search, boxes.suggest)
    )
    return search, keystroke, suggestion, row


def measure_crawl(folder: Path, pages: Pages, count: int) -> tuple[float, float, float, float]:
    """Return CPU seconds of a new and of an unchanged page, bytes of the crawler's memory, and of a page in SQL."""
    folder.mkdir(exist_ok=True)
    write_website(folder / "website", pages, count)
    with serving([folder / "website"]) as sites, crawl_installation(sites, polite=False) as service:
        data, ids = service.part.settings.data_path, service.request()
        before = used(data)[0]
        new, memory = crawl(service, ids)
        unchanged, _ = crawl(service, service.request())
        start, _ = crawl(service, [])
        sql = (used(data)[0] - before) / count
        (run,) = service.load(ids)
        if run.status != "finished" or run.found < count:
            raise SystemExit(f"the crawl read {run.found} pages: {run.status} {run.error}")
    return (new - start) / count, max(0.0, unchanged - start) / count, memory, sql


def crawl(service: CrawlInstallation, ids: list[str]) -> tuple[float, float]:
    """Crawl until these runs have ended. Returns CPU seconds and bytes of memory of all processes of the crawler."""
    process = service.start_worker()
    spent: dict[int, float] = {}
    memory = 0
    while process.poll() is None:
        # The crawler leads a session, so its readers are in it, too.
        for pid, _ in processes():
            with suppress(OSError):  # The process has ended.
                if os.getsid(pid) == process.pid:
                    spent[pid] = cpu_seconds(pid)
        memory = max(memory, memory_of(process.pid))
        time.sleep(SAMPLE_SECONDS)
    return sum(spent.values()), memory * 1024


def write_website(folder: Path, pages: Pages, count: int) -> None:
    """Write HTML pages with the menu of a real website, and an index that links to them."""
    folder.mkdir()
    links = "".join(f'<li><a href="/{number}.html">Page number {number}</a></li>' for number in range(count))
    menu = links[: links.find("<li>", 6_000)]
    (folder / "index.html").write_text(f"<html><title>All</title><body><main><ul>{links}</ul></main></body></html>")
    for number, page in enumerate(pages.take(count)):
        words = page["content"].split()
        text = "".join(f"<p>{' '.join(words[at : at + 60])}.</p>" for at in range(0, len(words), 60))
        (folder / f"{number}.html").write_text(
            f"<!doctype html><html lang=en><head><title>{page['title']}</title><meta charset=utf-8></head><body>"
            f"<nav><ul>{menu}</ul></nav><main><h1>{page['title']}</h1>{text}</main><footer>Imprint</footer></body></html>"
        )


def add_sites(installation: Installation, pages: Pages, sites: int, size: int) -> None:
    """Add sites of ``size`` pages, written in batches of at most a thousand."""
    for _ in range(sites):
        batch = pages.take(size)
        installation.add_site(batch[:1000])
        for start in range(1000, size, 1000):
            installation.write(installation.sites[-1], batch[start : start + 1000])


def write_pages(installation: Installation, pages: Pages) -> None:
    """Write single pages."""
    for number in range(SINGLE_WRITES):
        installation.write(installation.sites[number % MEASURED_SITES], pages.take(1))


def search_cold(installation: Installation, pages: Pages) -> None:
    """Search each site once after its index was closed, repeatedly."""
    for _ in range(COLD_ROUNDS):
        time.sleep(IDLE_SECONDS + 1)
        Searching.of(installation, pages).search_all(len(installation.sites))


def cpu_of(installation: Installation, work: Callable[[], object]) -> float:
    """Return CPU seconds of the workers for some work and its consequences in the background."""
    before = installation.cpu()
    work()
    time.sleep(SETTLE_SECONDS)
    return installation.cpu() - before


def stored_size(installation: Installation) -> int:
    """Return the size of the database in bytes. Stops the service to measure it, and starts it again."""
    installation.server.stop()
    size = used(installation.server.folder)[0]
    installation.server.start()
    installation.connect()
    return size


def used(folder: Path) -> tuple[int, int]:
    """Return bytes on disk of the database, after its journal was merged into it, and of the indexes."""
    with closing(sqlite3.connect(folder / "service.db", timeout=60)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "service.db").stat().st_size, size_of(folder / "indexes")


def size_of(folder: Path) -> int:
    """Return bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
