"""Health of the service: monitoring its dependencies, readiness, and problems to show on the dashboard."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import case, func, or_, select, text
from sqlalchemy.orm import Session

from app.clock import now
from app.counters.base import CounterStore
from app.counters.values import CountersUnavailable
from app.errors import ApiError, ErrorCode
from app.models import Site, Source, SourceRun
from app.services.engines import Engines, ask_available
from app.services.indexing.site_indexes import lagging_since, missing_indexes
from app.services.operator_reports import (
    EngineUsage,
    describe_missing_engine,
    list_engine_usage,
    missing_engine_remedy,
)
from app.services.sites import listed
from app.storage.database import Database, is_unavailable
from app.storage.migrate import TablesState, tables_state
from backends.errors import BackendError, BackendMisconfigured, BackendUnavailable, IndexNotFound

DATABASE, DISK, COUNTERS, ENGINE = "database", "disk", "counters", "engine"

INDEXES_SECONDS = 60.0
"""Seconds between two checks for missing indexes while no index is missing."""
_SCRAP = bytes(65_536)

log = logging.getLogger(__name__)


class ReadOnly(Exception):
    """The database responds but does not accept changes."""


_FAILURES = (BackendError, CountersUnavailable, OSError, ReadOnly)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of the last check of one dependency.

    Attributes:
        failing_since: Timezone-aware time of the first failed check; ``None`` if the dependency works.
        seconds: Duration of the check.
        free_share: Free share of an engine's disk or memory; ``None`` if it is unknown.
    """

    failing_since: datetime | None
    seconds: float
    free_share: float | None = None


def _label_engines(engines: Engines) -> dict[str, str]:
    """Map the identity of each engine to its name as a dependency: ``engine``, or ``engine:typesense:second``."""
    identities = [engine.identity for engine in engines.all()]
    return {identity: ENGINE if len(identities) == 1 else f"{ENGINE}:{identity}" for identity in identities}


def _check_engine(engines: Engines, identity: str) -> float | None:
    """Check an engine, and return its free share of disk or memory."""
    engine = engines.get_engine(identity)
    engine.check()
    # Only the choice of an engine for a new site needs it.
    return engine.free_share() if len(engines.all()) > 1 else None


class HealthMonitor:
    """Checks the dependencies of this process, and records when each of them began to fail.

    Args:
        folder: DATA_DIR.
    """

    def __init__(self, folder: Path, database: Database, counters: CounterStore, engines: Engines):
        self._database = database
        self._folder = folder
        self._engines = _label_engines(engines)
        self._probes: dict[str, Callable[[], float | None]] = {
            DATABASE: self._change_database,
            DISK: self._write_to_disk,
            COUNTERS: lambda: counters.check(),
            **{label: partial(_check_engine, engines, identity) for identity, label in self._engines.items()},
        }
        self._probe_results: dict[str, ProbeResult] = {}
        self._list_missing: Callable[[], list[int]] = lambda: missing_indexes(database, engines)
        self._missing: dict[int, datetime] = {}
        self._list_engines: Callable[[Session], list[EngineUsage]] = partial(list_engine_usage, engines=engines)
        self._missing_engines: dict[str, datetime] = {}
        self._indexes_due = 0.0

    @property
    def probe_results(self) -> Mapping[str, ProbeResult]:
        """Results of the last check, by dependency; empty before the first check."""
        return self._probe_results

    @property
    def missing_indexes(self) -> Mapping[int, datetime]:
        """IDs of sites whose index does not exist in the engine, with the timezone-aware time of discovery."""
        return self._missing

    def failing_since(self, dependency: str) -> datetime | None:
        """Return the time of a dependency's first failed check; ``None`` if it works or has not been checked yet."""
        result = self._probe_results.get(dependency)
        return None if result is None else result.failing_since

    def engine_failing_since(self, identity: str) -> datetime | None:
        """Return the time since which an engine fails, or since which SEARCH_URL is known not to have it.

        ``None`` if the engine works or has not been checked yet.
        """
        return self.failing_since(self._engines.get(identity, "")) or self._missing_engines.get(identity)

    def free_share(self, identity: str) -> float:
        """Return the free share of an engine's disk or memory at the last check; 1 if it is unknown."""
        result = self._probe_results.get(self._engines[identity])
        return 1.0 if result is None or result.free_share is None else result.free_share

    def check(self) -> None:
        """Check all dependencies once. Logs the beginning and end of each failure."""
        self._probe_results = {name: self._look(name, probe) for name, probe in self._probes.items()}
        engines_work = not all(self.failing_since(label) for label in self._engines.values())
        due = self._missing or self._missing_engines or time.monotonic() >= self._indexes_due
        if due and self.failing_since(DATABASE) is None:
            self._look_for_engines()
            if engines_work:
                self._look_for_indexes()

    def _look(self, name: str, probe: Callable[[], float | None]) -> ProbeResult:
        since = self.failing_since(name)
        began = time.perf_counter()
        try:
            free_share = probe()
        except Exception as error:
            if not (isinstance(error, _FAILURES) or is_unavailable(error)):
                raise
            if since is None:
                log.warning("the %s fails: %s", name, error)
            return ProbeResult(since or now(), time.perf_counter() - began)
        if since is not None:
            log.warning("the %s works again", name)
        return ProbeResult(None, time.perf_counter() - began, free_share)

    def _look_for_engines(self) -> None:
        try:
            with self._database.read() as session:
                usages = self._list_engines(session)
        except Exception as error:
            if not is_unavailable(error):
                raise
            log.warning("cannot check for missing engines: %s", error)
            return
        missing = [usage for usage in usages if not usage.is_configured]
        for usage in missing:
            if usage.identity not in self._missing_engines:
                log.error("%s %s", describe_missing_engine(usage), missing_engine_remedy(usage))
        self._missing_engines = {usage.identity: self._missing_engines.get(usage.identity, now()) for usage in missing}

    def _look_for_indexes(self) -> None:
        try:
            missing = self._list_missing()
        except Exception as error:
            if not (isinstance(error, BackendError) or is_unavailable(error)):
                raise
            log.warning("cannot check for missing indexes: %s", error)
            return
        self._missing = {site_id: self._missing.get(site_id, now()) for site_id in missing}
        self._indexes_due = time.monotonic() + INDEXES_SECONDS

    def _change_database(self) -> None:
        """Begin a write transaction, which fails if the database is locked or read-only."""
        with self._database.write() as session:
            if self._database.is_sqlite:
                session.execute(text("SELECT 1"))
            # After a failover, the service may still be connected to the former primary, which is read-only now.
            elif session.scalar(text("SHOW transaction_read_only")) == "on":
                raise ReadOnly("the database does not accept changes")

    def _write_to_disk(self) -> None:
        with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
            # Unbuffered: a full disk shows in a short write, which a buffer would delay until the file is closed.
            if file.write(_SCRAP) < len(_SCRAP):
                raise OSError(f"{self._folder} is full")


SAMPLE = 3
"""Number of largest sites whose index is compared with SQL: an engine that responds may still be loading documents."""


def check_readiness(database: Database, counters: CounterStore, engines: Engines) -> None:
    """Check that the database, the counters, and the search engine are ready.

    If there are several engines, one ready engine is enough, since an unavailable engine affects only its own sites.
    The same holds for an engine that SEARCH_URL does not have.

    Raises:
        ApiError: 503 if the database's tables belong to an older version.
        SQLAlchemyError: The database is not ready.
        CountersUnavailable: The counter store is not ready.
        BackendUnavailable: No engine is ready, one is still loading its documents, or SEARCH_URL has none of the sites'
            engines.
    """
    if tables_state(database) is TablesState.OLDER:
        log.error("the database's tables are missing or outdated: run `database upgrade`")
        raise ApiError(
            ErrorCode.DATABASE_UNAVAILABLE,
            "The database's tables are missing or outdated; they must be upgraded.",
            retry_after=5,
        )
    with database.read() as session:
        used = session.scalars(select(Site.engine).where(Site.document_count > 0).distinct()).all()
        largest = session.scalars(
            select(Site)
            .where(
                Site.engine.in_([engine.identity for engine in engines.all()]),
                Site.applied_revision == Site.revision,
                Site.document_count > 0,
            )
            .order_by(Site.document_count.desc())
            .limit(SAMPLE)
        ).all()
    if used and not any(engines.knows(identity) for identity in used):
        raise BackendMisconfigured("The sites' indexes are on engines that are not configured in SEARCH_URL.")
    counters.check()
    ready = ask_available(engines.all(), lambda engine: engine.check())
    for site in largest:
        holder = engines.get_engine(site.engine)
        if not holder.persistent or holder not in ready:
            continue
        try:
            count = holder.count(site.engine_index)
        except IndexNotFound:
            continue  # The next search rebuilds it from SQL.
        if count < site.document_count:
            raise BackendUnavailable("The search engine is still loading its documents.", retry_after=5)


LATE = timedelta(minutes=2)
"""Age at which a stored change that is not searchable yet is reported as late."""
STUCK = timedelta(minutes=10)
"""Time that a run waits for a worker before it is reported as stuck."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem, as the dashboard shows it.

    Attributes:
        kind: ``engine``, ``index``, ``indexing``, ``database``, ``disk``, ``counters``, or ``sources``.
        title: The problem, as a sentence.
        effect: The consequences, including whether searches still work, as sentences.
        since: Timezone-aware time at which it began or was noticed.
    """

    kind: str
    title: str
    effect: str
    since: datetime


def find_troubles(session: Session, health: HealthMonitor, account_id: int) -> list[Trouble]:
    """Return problems with the dependencies of an account, most severe first.

    Only the database is queried; for other dependencies, the last check applies.
    """
    sites = session.scalars(select(Site).where(listed(account_id)).order_by(Site.id)).all()
    return [
        *_search_troubles(health, sites),
        *_failed_change_troubles(health),
        *_late_change_troubles(session, health, sites),
        *_failed_run_troubles(session, account_id),
    ]


def _search_troubles(health: HealthMonitor, sites: Sequence[Site]) -> list[Trouble]:
    failing = {site.engine: since for site in sites if (since := health.engine_failing_since(site.engine))}
    if failing:
        away = [site for site in sites if site.engine in failing]
        return [
            Trouble(
                "engine",
                "The search engine does not respond.",
                f"Searches of {_site_names(away, sites)} fail. Pages that you send are stored and become searchable "
                "when it is back.",
                min(failing.values()),
            )
        ]
    missing = [site for site in sites if site.id in health.missing_indexes]
    if not missing:
        return []
    return [
        Trouble(
            "index",
            "An index is being rebuilt from the stored pages.",
            f"Searches of {_site_names(missing, sites)} fail until it is complete. No page is lost, and you don't need "
            "to send any again.",
            min(health.missing_indexes[site.id] for site in missing),
        )
    ]


_CHANGE_TROUBLES = (
    (
        DISK,
        "The service cannot store data.",
        "Searches work, but some may be missing from the analytics. New pages and other changes may be rejected; send "
        "them again later.",
    ),
    (
        DATABASE,
        "Changes are not possible.",
        "Searches work, and appear in the analytics later. New pages and changes to sites and keys are rejected; send "
        "them again later.",
    ),
    (
        COUNTERS,
        "Usage cannot be counted.",
        "Searches work and are not charged. New pages and changes to sites and keys are rejected; send them again "
        "later. The usage shown here may be too low.",
    ),
)
"""Kind, title, and effect of problems with dependencies that changes need."""


def _failed_change_troubles(health: HealthMonitor) -> list[Trouble]:
    return [
        Trouble(kind, title, effect, since)
        for kind, title, effect in _CHANGE_TROUBLES
        if (since := health.failing_since(kind))
    ]


def _late_change_troubles(session: Session, health: HealthMonitor, sites: Sequence[Site]) -> list[Trouble]:
    """Return a problem if stored changes are not in the index although the engine and the index are available."""
    late: dict[int, datetime] = {}
    for site in sites:
        is_reported = health.engine_failing_since(site.engine) is not None or site.id in health.missing_indexes
        if is_reported or site.applied_revision >= site.revision:
            continue
        since = lagging_since(session, site)
        if since is not None and since < now() - LATE:
            late[site.id] = since
    if not late:
        return []
    affected = _site_names([site for site in sites if site.id in late], sites)
    return [
        Trouble(
            "indexing",
            "Changes take longer than usual to become searchable.",
            f"Searches work. Some changes to {affected} are stored but cannot be found yet; you don't need to send "
            "them again.",
            min(late.values()),
        )
    ]


def _failed_run_troubles(session: Session, account_id: int) -> list[Trouble]:
    limit = now() - STUCK
    since = session.scalar(
        select(func.min(case((SourceRun.status == "running", SourceRun.lease_until), else_=SourceRun.waiting_since)))
        .join(Source, Source.id == SourceRun.source_id)
        .join(Site, Site.id == Source.site_id)
        .where(
            listed(account_id),
            or_(
                (SourceRun.status == "queued") & (SourceRun.waiting_since < limit),
                (SourceRun.status == "running") & (SourceRun.lease_until < limit),
            ),
        )
    )
    if since is None:
        return []
    effect = "Searches work. Pages of sources are not updated until crawling resumes, which happens automatically."
    return [Trouble("sources", "Sources are waiting to be crawled.", effect, since)]


def _site_names(sites: Sequence[Site], of: Sequence[Site]) -> str:
    if len(sites) == len(of):
        return "your site" if len(of) == 1 else "your sites"
    return ", ".join(site.name for site in sites)
