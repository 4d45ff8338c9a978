"""The machines, memory, and disk space that an installation needs, computed from unit costs.

The busiest hour has several times the searches of an average hour, and machines are then at most 60 percent busy.
Visitors arrive at random times and type their searches in the search box. Searches are stored for 400 days. Some sites
are crawled once a day, and the others are written to. Semantic search and pages that need a browser are not included,
and a search of a much larger site costs more than assumed here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from backends.embedded.backend import OPEN_INDEXES
from backends.embedded.index.open_indexes import IDLE_SECONDS

BUSY = 0.6
"""Highest share of its cores that a machine should use in the busiest hour."""
KEYSTROKE_SECONDS = 0.48
"""Seconds between two requests of the search box, which follow about half of the letters."""
DAY = 86_400
RETENTION_DAYS = 400


@dataclass(frozen=True)
class Costs:
    """Unit costs with SQLite and the embedded engine.

    Attributes:
        search, keystroke, suggestion: CPU seconds of an API search, and of the search and the suggestions that the
            search box requests after a keystroke.
        opening: Additional CPU seconds of a search if the site's index is closed.
        write, page: CPU seconds of a write without its pages, and of each page.
        crawled, unchanged: CPU seconds of a crawled page that is new, and of one that has not changed.
        idle: CPU seconds per second of a worker without requests.
        worker, site, crawler: Bytes of memory of a worker, of an open site in each worker, and of a machine's crawler.
        sql, crawled_sql, index: Bytes on disk of a page in SQL, of a crawled page in SQL, and of a page in the index.
        row: Bytes of a stored search in SQL.
    """

    search: float
    keystroke: float
    suggestion: float
    opening: float
    write: float
    page: float
    crawled: float
    unchanged: float
    idle: float
    worker: float
    site: float
    crawler: float
    sql: float
    crawled_sql: float
    index: float
    row: float


@dataclass(frozen=True)
class ServerCosts:
    """CPU seconds of the servers that all machines share.

    Attributes:
        redis: CPU seconds of Redis per request.
        search, page: CPU seconds of PostgreSQL per search, and per written page.
        sql, row: Bytes of a page and of a stored search in PostgreSQL.
    """

    redis: float
    search: float
    page: float
    sql: float
    row: float


@dataclass(frozen=True)
class EngineCosts:
    """Bytes of memory and on disk that a search server needs for a page."""

    memory: float
    disk: float


COSTS = Costs(
    search=0.0048,
    keystroke=0.0051,
    suggestion=0.0024,
    opening=0.0064,
    write=0.019,
    page=0.0005,
    crawled=0.012,
    unchanged=0.004,
    idle=0.005,
    worker=106e6,
    site=1e6,
    crawler=320e6,
    sql=2600,
    crawled_sql=3900,
    index=2900,
    row=109,
)
"""Costs measured on a machine with two cores by ``benchmarks/capacity.py``, which measures them on other machines."""
SERVER_COSTS = ServerCosts(redis=0.00018, search=0.0003, page=0.00013, sql=1800, row=500)
ENGINE_COSTS = {"Typesense": EngineCosts(21_000, 8_000), "Meilisearch": EngineCosts(26_000, 81_000)}


@dataclass(frozen=True)
class Load:
    """The work of an installation.

    Attributes:
        pages: Pages of each site.
        searches: Searches per second. All searches while a visitor types one query count once.
        keystrokes: Requests that the search box sends for a search, each with one for suggestions; 0 for API searches.
        writes: Writes per second.
        written: Pages of a write.
        crawled, unchanged: Crawled pages per second that are new or changed, and pages that are not.
        crawled_share: Share of the sites that are crawled instead of written to.
    """

    sites: int
    pages: int
    searches: float
    keystrokes: int
    writes: float
    written: int
    crawled: float = 0.0
    unchanged: float = 0.0
    crawled_share: float = 0.0

    @property
    def requests(self) -> float:
        """Requests per second."""
        return self.searches * max(1, 2 * self.keystrokes) + self.writes

    def cpu(self, costs: Costs, workers: int) -> float:
        """Return CPU seconds per second of all processes."""
        search = self.keystrokes * (costs.keystroke + costs.suggestion) if self.keystrokes else costs.search
        closed = (1 - self.open_share(workers)) * self._workers_of_a_search(workers)
        writing = self.writes * (costs.write + self.written * costs.page)
        crawling = self.crawled * costs.crawled + self.unchanged * costs.unchanged
        return self.searches * (search + closed * costs.opening) + writing + crawling + workers * costs.idle

    def open_share(self, workers: int) -> float:
        """Return the share of the sites whose index is open in a worker, because it searched them a moment ago."""
        a_worker = self.searches / self.sites * self._workers_of_a_search(workers) / workers
        searched = 1 - math.exp(-a_worker * (IDLE_SECONDS + self.keystrokes * KEYSTROKE_SECONDS))
        return min(searched, OPEN_INDEXES / self.sites)

    def _workers_of_a_search(self, workers: int) -> float:
        """Return the mean number of workers that get at least one of a search's requests."""
        return workers * (1 - (1 - 1 / workers) ** max(1, 2 * self.keystrokes))

    def memory(self, costs: Costs, workers: int) -> float:
        """Return bytes of memory of one machine."""
        crawler = costs.crawler if self.crawled + self.unchanged else 0.0
        return workers * (costs.worker + self.sites * self.open_share(workers) * costs.site) + crawler

    def disk(self, costs: Costs) -> float:
        """Return bytes of pages on disk, without stored searches."""
        sql = costs.sql + self.crawled_share * (costs.crawled_sql - costs.sql)
        return self.sites * self.pages * (sql + costs.index)

    def redis(self, costs: ServerCosts) -> float:
        """Return the cores that Redis needs. It uses one."""
        return self.requests * costs.redis

    def postgres(self, costs: ServerCosts) -> float:
        """Return the cores that PostgreSQL needs."""
        return self.searches * costs.search + (self.writes * self.written + self.crawled) * costs.page


def busiest_hour(
    sites: int,
    *,
    pages: int,
    searches_per_day: float,
    keystrokes: int,
    changed_share: float,
    crawled_share: float,
    pages_per_write: int,
    peak: float,
) -> Load:
    """Return the load of an installation in its busiest hour.

    Args:
        pages, searches_per_day: Of each site.
        keystrokes: Requests that the search box sends for a search; 0 if all searches come through the API.
        changed_share: Share of a site's pages that change each day.
        crawled_share: Share of the sites that are crawled daily; the others are written to.
        peak: Number of searches in the busiest hour, divided by the number in an average hour.
    """
    pages_per_second = sites * pages / DAY
    return Load(
        sites,
        pages,
        sites * searches_per_day * peak / DAY,
        keystrokes,
        pages_per_second * changed_share * (1 - crawled_share) / pages_per_write,
        pages_per_write,
        pages_per_second * crawled_share * changed_share,
        pages_per_second * crawled_share * (1 - changed_share),
        crawled_share,
    )


@dataclass(frozen=True)
class Needs:
    """The needs of an installation on one machine, or on machines like it.

    Attributes:
        cores: Processor cores of all machines together.
        memory: Bytes on each machine.
        pages, searches: Bytes on disk of all pages with their indexes, and of all stored searches.
    """

    cores: float
    memory: float
    pages: float
    searches: float


def compute_needs(load: Load, peak: float, cores: int, costs: Costs = COSTS) -> Needs:
    """Return what ``load`` needs on machines with this number of cores."""
    return Needs(
        load.cpu(costs, cores) / BUSY,
        load.memory(costs, cores),
        load.disk(costs),
        load.searches / peak * DAY * RETENTION_DAYS * costs.row,
    )
