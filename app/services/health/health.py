"""Dependencies of the service, looked at every few seconds: what fails, and since when.

Whoever wants to know reads what the last look found, and never waits for a server that hangs.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import text

from app.clock import now
from app.counters.base import CounterStore, CountersUnavailable
from app.services.engines import Engines
from app.services.indexing.indexer import Indexer
from app.storage.database import Database, is_unavailable
from backends.errors import BackendError

DATABASE, DISK, COUNTERS, ENGINE, NEXT_ENGINE = "database", "disk", "counters", "engine", "next_engine"

INDEXES_SECONDS = 60.0
"""How often missing indexes are looked for while none is missing."""
_SCRAP = bytes(65_536)

log = logging.getLogger(__name__)


class ReadOnly(Exception):
    """The database answers, but takes no changes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the last look at one dependency.

    Attributes:
        failing_since: When it was first found failing, aware; ``None``: it works.
        seconds: How long the look took.
    """

    failing_since: datetime | None
    seconds: float


class HealthMonitor:
    """Looks at the dependencies of this process, and remembers since when which of them fails.

    Args:
        folder: DATA_DIR.
    """

    def __init__(self, folder: Path, database: Database, counters: CounterStore, engines: Engines, indexer: Indexer):
        self._database = database
        self._folder = folder
        self._indexer = indexer
        self._probes: dict[str, Callable[[], None]] = {
            DATABASE: self._change_database,
            DISK: self._write_to_disk,
            COUNTERS: lambda: counters.check(),
            ENGINE: lambda: engines.current.check(),
        }
        self._engines = {engines.current.identity: ENGINE}
        upcoming = engines.upcoming
        if upcoming is not None:
            self._probes[NEXT_ENGINE] = lambda: upcoming.check()
            self._engines[upcoming.identity] = NEXT_ENGINE
        self._findings: dict[str, Finding] = {}
        self._missing: dict[int, datetime] = {}
        self._indexes_due = 0.0

    @property
    def findings(self) -> Mapping[str, Finding]:
        """Results of the last look, by dependency; empty before the first one."""
        return self._findings

    @property
    def missing_indexes(self) -> Mapping[int, datetime]:
        """Sites whose index the engine does not have, and when that was found, aware."""
        return self._missing

    def failing_since(self, dependency: str) -> datetime | None:
        """The time since which a dependency fails; ``None`` if it works, or nobody looked yet."""
        finding = self._findings.get(dependency)
        return None if finding is None else finding.failing_since

    def engine_failing_since(self, identity: str) -> datetime | None:
        """The same for the engine that holds a site's index."""
        return self.failing_since(self._engines.get(identity, ""))

    def check(self) -> None:
        """Look at everything once. What fails is logged when it begins and when it ends."""
        self._findings = {name: self._look(name, probe) for name, probe in self._probes.items()}
        engines_work = not any(self.failing_since(name) for name in self._engines.values())
        due = self._missing or time.monotonic() >= self._indexes_due
        if due and engines_work and self.failing_since(DATABASE) is None:
            self._look_for_indexes()

    def _look(self, name: str, probe: Callable[[], None]) -> Finding:
        since = self.failing_since(name)
        began = time.perf_counter()
        try:
            probe()
        except (BackendError, CountersUnavailable, OSError, ReadOnly) as error:
            return self._failed(name, since, began, error)
        except Exception as error:
            if not is_unavailable(error):
                raise
            return self._failed(name, since, began, error)
        if since is not None:
            log.warning("the %s works again", name)
        return Finding(None, time.perf_counter() - began)

    @staticmethod
    def _failed(name: str, since: datetime | None, began: float, error: Exception) -> Finding:
        if since is None:
            log.warning("the %s fails: %s", name, error)
        return Finding(since or now(), time.perf_counter() - began)

    def _look_for_indexes(self) -> None:
        try:
            missing = self._indexer.missing_indexes()
        except Exception as error:
            if not (isinstance(error, BackendError) or is_unavailable(error)):
                raise
            log.warning("missing indexes could not be looked for: %s", error)
            return
        self._missing = {site_id: self._missing.get(site_id, now()) for site_id in missing}
        self._indexes_due = time.monotonic() + INDEXES_SECONDS

    def _change_database(self) -> None:
        """Begin a change, as every write does: one that is locked, or may only be read, refuses that."""
        with self._database.write() as session:
            if self._database.is_sqlite:
                session.execute(text("SELECT 1"))
            elif session.scalar(text("SHOW transaction_read_only")) == "on":
                raise ReadOnly("the database takes no changes")

    def _write_to_disk(self) -> None:
        with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
            if file.write(_SCRAP) < len(_SCRAP):
                raise OSError(f"{self._folder} is full")
