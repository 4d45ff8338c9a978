"""Predictions of the needs of an installation from unit costs, for :mod:`benchmarks.capacity`."""

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
        """Return the mean number of workers that get a request of the same search."""
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
