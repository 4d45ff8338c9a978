"""Background work of a worker process. Every process may run it; locks ensure that each job runs once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import select

from app.bounded_process import release_free_memory
from app.clock import Backoff, Pauses, now
from app.counters.values import CountersUnavailable
from app.crawl.run.worker_process import create_worker_process
from app.crawl.sources.runs import count_waiting
from app.crawl.sources.schedule import count_due, queue_due
from app.models import Site
from app.operations.digests import queue_due_digests
from app.operations.learning import learn_due
from app.operations.sites import purge_deleted
from app.runtime import Runtime
from app.services.access import sessions
from app.services.accounts import emails
from app.services.accounts.invitations import delete_expired_invitations
from app.services.audit_log.entries import delete_old_entries, delete_surplus_entries
from app.services.emails.notices import warn_owners
from app.services.embedding.embedder import EmbedderUnavailable
from app.services.engines import run_due_tasks
from app.services.indexing.site_indexes import RebuildUnderWay, lagging_sites, missing_indexes, outdated_indexes
from app.services.usage.daily_usage import delete_old_copies
from app.services.usage.month_usage import close_months
from app.storage.database import is_unavailable
from backends.errors import BackendError

SITES_AT_ONCE = 100
"""Maximum number of sites to update before releasing the lock, so that another process can continue."""

# Outages rather than bugs, so they are logged as warnings without a traceback.
_AWAY = (CountersUnavailable, BackendError, EmbedderUnavailable, RebuildUnderWay)
"""Errors that postpone a job to its next run."""

log = logging.getLogger(__name__)

RESTORE_PAUSES = Pauses(1.0, 300.0)
"""Backoff between attempts to restore missing indexes, in seconds."""


@dataclass
class Job:
    """A task that runs periodically.

    Attributes:
        apart: Whether it runs in its own thread, so that it does not delay other jobs.
    """

    name: str
    every_seconds: float
    run: Callable[[], object]
    apart: bool = False
    due_at: float = 0.0


class Jobs:
    """The background jobs of one process. Start them after ``fork``."""

    def __init__(self, runtime: Runtime, *, background: bool = True):
        self._runtime = runtime
        self._background = background
        self._threads: list[threading.Thread] = []
        self._start_lock = threading.Lock()
        self._stopping = threading.Event()
        self._lagging_sites = _LaggingSites(runtime)
        self._worker = create_worker_process(runtime.settings.data_path)
        self.jobs = [
            self._alone("engine-tasks", 1.0, partial(_run_engine_tasks, runtime)),
            self._alone("lagging-sites", 2.0, self._lagging_sites.apply),
            Job("failing-sites", 2.0, self._lagging_sites.retry, apart=True),
            Job("keys-last-used", 30.0, runtime.keys_last_used.flush),
            Job("key-exposures", 30.0, runtime.key_exposures.flush),
            Job("engine-maintenance", 10.0, runtime.engines.run_maintenance),
            Job("late-charges", 2.0, runtime.late_charges.settle, apart=True),
            Job("usage-copies", 30.0, runtime.usage_copies.flush),
            Job("credential-versions", 60.0, partial(_heal_versions, runtime)),
            Job("abandoned-rebuilds", 60.0, partial(_end_abandoned_rebuilds, runtime)),
            Job("source-runs", 2.0, self._start_source_runs, apart=True),
            Job("memory", 10.0, release_free_memory),
            Job("file-copies", 600.0, runtime.file_copies.delete_old),
            Job("health", 10.0, runtime.health.check, apart=True),
            self._alone("syncs", 30.0, partial(_end_syncs, runtime), apart=True),
            Job("sessions", 3600.0, partial(_delete_expired_rows, runtime)),
            self._alone("deleted-sites", 3600.0, partial(purge_deleted, runtime), apart=True),
            self._alone("click-lessons", 1800.0, partial(learn_due, runtime, self._stopping.is_set), apart=True),
            Job("mail", 2.0, partial(runtime.email_sender.send_due, self._stopping.is_set), apart=True),
            Job("webhooks", 1.0, runtime.deliverer.send_due, apart=True),
            self._alone("quota-warnings", 60.0, partial(_warn_owners, runtime)),
            self._alone("usage-months", 600.0, partial(close_months, runtime.database, runtime.counters)),
        ]
        if runtime.settings.sends_email:
            queue = partial(queue_due_digests, runtime, self._stopping.is_set)
            self.jobs.append(self._alone("digests", 600.0, queue, apart=True))
        if runtime.vectorizer is not None:
            self.jobs.append(Job("vectors", 5.0, partial(runtime.vectorizer.run, self._stopping.is_set), apart=True))

    def _alone(self, name: str, every_seconds: float, work: Callable[[], object], *, apart: bool = False) -> Job:
        """Return a job that holds the lock with its name, so that only one process at a time runs it."""

        def run() -> None:
            with self._runtime.locks.try_hold(name) as is_held:
                if is_held:
                    work()

        return Job(name, every_seconds, run, apart)

    def forgo(self) -> None:
        """Keep this process, which runs a command, from starting background threads, even if it serves requests."""
        self._background = False

    def start(self) -> None:
        """Start the job threads and the thread that moves search events, unless they are already running."""
        with self._start_lock:
            if self._threads or not self._background:
                return
            # Quick jobs share a thread. Jobs that are slow or wait for other services must not delay them.
            together = [job for job in self.jobs if not job.apart]
            for name, jobs in [("jobs", together), *((job.name, [job]) for job in self.jobs if job.apart)]:
                thread = threading.Thread(target=self._loop, args=(jobs,), name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
            restorer = threading.Thread(target=self._keep_restoring, name="missing-indexes", daemon=True)
            self._threads.append(restorer)
            restorer.start()
            self._runtime.events.start()

    def stop(self) -> None:
        """Stop the threads and flush data that is only in memory."""
        self._stopping.set()
        for thread in self._threads:
            # Bounded, because gunicorn kills a worker that takes too long to stop, and the writes below would be lost.
            thread.join(timeout=10)
        self._worker.stop()
        _attempt("webhooks", self._runtime.deliverer.stop)
        _attempt("keys-last-used", self._runtime.keys_last_used.flush)
        _attempt("key-exposures", self._runtime.key_exposures.flush)
        _attempt("late-charges", self._runtime.late_charges.settle)
        self._runtime.late_charges.close()
        # Must come after the late charges, which change the usage to copy.
        _attempt("usage-copies", self._runtime.usage_copies.finish)
        self._runtime.events.stop()

    def run_all(self) -> None:
        """Run every job once in this thread, for tests and commands."""
        for job in self.jobs:
            job.run()

    def restore_indexes(self) -> int | None:
        """Build missing indexes, and rebuild indexes that an earlier release created.

        Indexes can be missing if the service starts with different folders, hosts, or packages. Only one process at a
        time restores indexes. Sites without an index come before sites with an outdated one.

        Returns:
            Number of sites to restore; ``None`` if another process is restoring indexes.
        """
        runtime = self._runtime
        with runtime.locks.try_hold("missing-indexes") as is_held:
            if not is_held:
                return None
            missing = missing_indexes(runtime.database, runtime.engines)
            outdated = outdated_indexes(runtime.database, runtime.engines)
            if missing or outdated:
                log.info("building %d missing and %d outdated indexes", len(missing), len(outdated))
            builds: list[tuple[Callable[[int], object], list[int]]] = [
                (runtime.indexer.restore, missing), (runtime.rebuilder.rebuild, outdated),
            ]  # fmt: skip
            for build, sites in builds:
                for site_id in sites:
                    if not self._stopping.is_set():
                        _attempt(f"missing-index {site_id}", partial(build, site_id))
            return len(missing) + len(outdated)

    def _keep_restoring(self) -> None:
        """Restore indexes, with retries, until no index is missing or outdated."""
        remaining: int | None = None

        def restore() -> None:
            nonlocal remaining
            remaining = self.restore_indexes()

        tries = 0
        while remaining != 0 and not self._stopping.is_set():
            _attempt("missing-indexes", restore)
            if remaining != 0:
                tries += 1
                self._stopping.wait(RESTORE_PAUSES.after(tries))

    def _loop(self, jobs: Sequence[Job]) -> None:
        # Half a second is the resolution of all intervals and the maximum delay when stopping.
        while not self._stopping.wait(0.5):
            for job in jobs:
                if time.monotonic() >= job.due_at:
                    _attempt(job.name, job.run)
                    # The interval starts when the job ends, so that a slow job does not run without a pause.
                    job.due_at = time.monotonic() + job.every_seconds

    def _start_source_runs(self) -> None:
        """Queue scheduled runs that are due, and start the worker if runs are waiting."""
        runtime = self._runtime
        with runtime.database.read() as session:
            # Check without a lock first: every process checks every two seconds, and usually there is nothing to do.
            due, waiting = count_due(session, now()), count_waiting(session)
        if due:
            with runtime.locks.try_hold("source-schedule") as is_held:
                if is_held:
                    with runtime.database.write() as session:
                        waiting += queue_due(session, now())
        # Tests and commands have no background threads, and execute runs themselves.
        if waiting and self._background and runtime.settings.crawl_runs:
            self._worker.start()


class _LaggingSites:
    """Sites whose index lacks changes that are in SQL, because a process was killed or the engine was unavailable."""

    def __init__(self, runtime: Runtime):
        self._runtime = runtime
        self._failing = Backoff()
        self._away: set[str] = set()
        """Identities of the engines that did not respond at the last look."""

    def apply(self) -> None:
        """Update the indexes of lagging sites, except those that failed before."""
        lagging = self._lagging()
        # Sites that failed are retried in a separate thread, so that slow failures do not delay others.
        for site_id in [site_id for site_id in lagging if site_id not in self._failing][:SITES_AT_ONCE]:
            self._update(site_id, lagging[site_id])

    def retry(self) -> None:
        """Retry sites whose index could not be updated, in a separate thread.

        Pauses grow with each failure, and end when an engine works again.
        """
        runtime = self._runtime
        away = {
            engine.identity for engine in runtime.engines.all() if runtime.health.engine_failing_since(engine.identity)
        }
        if self._away - away:
            self._failing.end_pauses()
        self._away = away
        due = self._failing.due()
        if not due:
            return
        with runtime.locks.try_hold("failing-sites") as is_held:
            if not is_held:
                return
            lagging = self._lagging()
            for site_id in [site_id for site_id in due if site_id in lagging][:SITES_AT_ONCE]:
                self._update(site_id, lagging[site_id])

    def _lagging(self) -> dict[int, int]:
        with self._runtime.database.read() as session:
            lagging = dict(lagging_sites(session))
        self._failing.forget_all_but(lagging.keys())
        return lagging

    def _update(self, site_id: int, revision: int) -> None:
        # A problem with one site must not delay other sites.
        if not _attempt(f"lagging-site {site_id}", partial(self._runtime.indexer.apply, site_id, revision)):
            self._failing.record_failure(site_id)


def _attempt(name: str, work: Callable[[], object]) -> bool:
    """Do a piece of work and return whether it succeeded. Failures are logged."""
    try:
        work()
    except Exception as error:
        if is_unavailable(error) or isinstance(error, _AWAY):
            log.warning("job %s is postponed: %s", name, error)
        else:
            log.exception("job %s failed", name)
        return False
    return True


def _run_engine_tasks(runtime: Runtime) -> None:
    run_due_tasks(runtime.database, runtime.engines, runtime.counters, runtime.task_handlers)


def _heal_versions(runtime: Runtime) -> None:
    # No change takes a minute, so the process that made an older unfinished change must have died.
    runtime.counters.heal_credential_epochs(60, now=now().timestamp())


def _end_abandoned_rebuilds(runtime: Runtime) -> None:
    with runtime.database.read() as session:
        rebuilding = session.scalars(select(Site.id).where(Site.rebuilding)).all()
    for site_id in rebuilding:
        runtime.rebuilder.end_if_abandoned(site_id)


def _end_syncs(runtime: Runtime) -> None:
    """End lapsed syncs and resume interrupted sweeps. A separate job, since an unavailable engine delays it."""
    runtime.syncs.lapse()
    for sweep in runtime.syncs.interrupted():
        _attempt(f"sync {sweep.sync_id}", partial(runtime.syncs.resume, sweep))


def _warn_owners(runtime: Runtime) -> None:
    warn_owners(runtime.database, runtime.counters, runtime.plans, runtime.settings)


def _delete_expired_rows(runtime: Runtime) -> None:
    with runtime.database.write() as session:
        sessions.delete_expired_sessions(session)
        delete_expired_invitations(session)
        delete_old_entries(session)
        emails.delete_expired_resets(session)
        emails.delete_expired_changes(session)
        delete_old_copies(session)
    delete_surplus_entries(runtime.database)
