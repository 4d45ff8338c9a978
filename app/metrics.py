"""Metrics for Prometheus: counts of a machine's processes, and gauges of the installation, computed on request."""

from __future__ import annotations

import fcntl
import hmac
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from flask import Flask, Request, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.mmap_dict import MmapedDict
from sqlalchemy import func, select
from werkzeug.exceptions import HTTPException, NotFound, Unauthorized

from app.clock import now
from app.counters import COUNTER_STORE_FAILURES, COUNTER_STORE_SECONDS
from app.counters.values import CountersUnavailable
from app.crawl.fetch.unexpected import UNEXPECTED_ERRORS
from app.crawl.sources.runs import ENDED_RUNS, count_waiting
from app.models import Account, Site
from app.operations.asks import ASKS
from app.plans import QUOTA_REJECTIONS
from app.runtime import Runtime, runtime
from app.services.analytics.events import LOST_EVENTS
from app.services.asks.model import MODEL_FAILURES, MODEL_SECONDS
from app.services.embedding.embedder import EMBEDDER_FAILURES, EMBEDDER_SECONDS
from app.services.engines import ENGINE_FAILURES, ENGINE_NOT_ASKED, ENGINE_SECONDS
from app.services.health import DATABASE
from app.services.indexing.site_indexes import find_lagging
from app.services.operator_reports import EngineUsage, list_engine_usage
from app.services.search.mixed_order import MIXED_SEARCHES
from app.storage.database import is_unavailable
from app.web.auth import ANYONE, bearer_token, invalid_key, missing_key
from app.web.entrance import DURATION, REQUESTS
from app.web.hosts import is_forwarded, is_loopback
from app.web.policy import OperationPolicy, set_policy
from backends.base import SearchBackend
from backends.errors import BackendError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

DISTRIBUTION = "site-search-service"
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
COUNTED = (
    REQUESTS, DURATION, ENGINE_SECONDS, ENGINE_FAILURES, ENGINE_NOT_ASKED, COUNTER_STORE_SECONDS,
    COUNTER_STORE_FAILURES, QUOTA_REJECTIONS, LOST_EVENTS, ENDED_RUNS, UNEXPECTED_ERRORS, EMBEDDER_SECONDS,
    EMBEDDER_FAILURES, MIXED_SEARCHES, ASKS, MODEL_SECONDS, MODEL_FAILURES,
)  # fmt: skip
"""All counts of processes. No label identifies a customer."""
_ENDED = "ended"


def show_processes() -> bytes:
    """Return the counts of all processes and the service's version in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(BuildInfo())
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        for metric in COUNTED:
            registry.register(metric)
        return generate_latest(registry)
    with _alone(Path(folder)):
        add_up_ended(Path(folder))
        multiprocess.MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]  # It has no types.
        return generate_latest(registry)


class BuildInfo:
    """Version of the service, as a gauge that is always 1."""

    def collect(self) -> Iterator[Metric]:
        """Yield the gauge."""
        gauge = GaugeMetricFamily("search_build_info", "Version of the service.", labels=["version", "python"])
        gauge.add_metric([version(DISTRIBUTION), python_version()], 1)
        yield gauge


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from reading the metrics files while some of the files are added up."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def add_up_ended(folder: Path) -> None:
    """Add the counts of ended processes to the accumulated counts, and delete the files of these processes."""
    for file in sorted(folder.glob("*.db")):
        kind, _, process = file.stem.rpartition("_")
        if process == _ENDED or _runs(int(process)):
            continue
        sums = MmapedDict(str(folder / f"{kind}_{_ENDED}.db"))  # type: ignore[no-untyped-call]
        try:
            for key, value, _, _ in MmapedDict.read_all_values_from_file(str(file)):  # type: ignore[no-untyped-call]
                sums.write_value(key, sums.read_value(key)[0] + value, 0.0)  # type: ignore[no-untyped-call]
        finally:
            sums.close()  # type: ignore[no-untyped-call]
        file.unlink()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # The process exists, but belongs to another user.
    except PermissionError:
        pass
    return True


PATIENCE_SECONDS = 3.0
"""Maximum seconds that a response waits for slow values. Prometheus waits 10 seconds by default."""

T = TypeVar("T")

log = logging.getLogger(__name__)


_STORED = {
    "search_documents": "Documents of all sites.",
    "search_sites_deleted": "Deleted sites that are kept until they can no longer be restored.",
    "search_accounts_suspended": "Suspended accounts.",
    "search_indexes_behind": "Sites whose index lacks stored changes.",
    "search_indexes_failing": "Sites whose index lacks stored changes because its last update failed.",
    "search_indexes_behind_seconds": "Age of the oldest stored change that is missing from an index, in seconds.",
    "search_source_runs_waiting": "Source runs that are waiting for a worker.",
}
"""Gauges that are read from the database, and their descriptions."""


class InstallationMetrics:
    """Gauges of an installation and of the responding machine."""

    def __init__(self, runtime: Runtime):
        self._runtime = runtime
        self._stored = _SlowValue("database", self._read_database)
        self._events = _SlowValue("events", self._count_events)
        self._index_bytes = {
            engine.identity: _SlowValue(f"indexes of {engine.identity}", partial(_index_bytes, engine))
            for engine in runtime.engines.all()
        }

    def show(self) -> bytes:
        """Return the gauges in Prometheus's text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges that are available in time."""
        slow_values: tuple[_SlowValue[Any], ...] = (self._stored, self._events, *self._index_bytes.values())
        deadline = time.monotonic() + PATIENCE_SECONDS
        for slow_value in slow_values:
            slow_value.start()
        success = GaugeMetricFamily(
            "search_scrape_success",
            "Whether the gauges of this source could be read for this scrape.",
            labels=["source"],
        )
        stored, events = self._stored.wait(deadline, success), self._events.wait(deadline, success)
        if stored is not None:
            yield from self._stored_gauges(*stored)
        if events is not None:
            on_disk = "Searches and clicks on this machine's disk that are not in the database yet."
            yield GaugeMetricFamily("search_events_waiting", on_disk, events)
        sizes = GaugeMetricFamily(
            "search_index_bytes",
            "Size of all indexes in bytes, or of all data on the search server.",
            labels=["engine"],
        )
        for name, index_bytes in self._index_bytes.items():
            size = index_bytes.wait(deadline, success)
            if size is not None:
                sizes.add_metric([name], size)
        yield sizes
        yield success
        yield from self._disk()
        yield from self._dependencies()
        clock = "Unix time of this machine, which Prometheus compares with its own."
        yield GaugeMetricFamily("search_clock_seconds", clock, now().timestamp())

    def _disk(self) -> Iterator[Metric]:
        usage = shutil.disk_usage(self._runtime.settings.data_path)
        yield GaugeMetricFamily("search_disk_bytes", "Size of the disk that contains DATA_DIR, in bytes.", usage.total)
        yield GaugeMetricFamily("search_disk_free_bytes", "Free bytes on the disk that contains DATA_DIR.", usage.free)

    def _dependencies(self) -> Iterator[Metric]:
        works = GaugeMetricFamily(
            "search_dependency_up", "Whether the dependency passed its last check.", labels=["dependency"]
        )
        seconds = GaugeMetricFamily(
            "search_dependency_check_seconds",
            "Seconds that the last check of the dependency took.",
            labels=["dependency"],
        )
        for name, result in self._runtime.health.probe_results.items():
            works.add_metric([name], result.failing_since is None)
            seconds.add_metric([name], result.seconds)
        yield works
        yield seconds

    def _stored_gauges(self, values: dict[str, float], usages: Iterable[EngineUsage]) -> Iterator[Metric]:
        for name, value in values.items():
            yield GaugeMetricFamily(name, _STORED[name], value)
        sites = GaugeMetricFamily("search_engine_sites", "Sites whose index is on the engine.", labels=["engine"])
        documents = GaugeMetricFamily("search_engine_documents", "Documents of these sites.", labels=["engine"])
        configured = GaugeMetricFamily(
            "search_engine_configured",
            "Whether SEARCH_URL has the engine; otherwise, all searches of its sites fail.",
            labels=["engine"],
        )
        for usage in usages:
            sites.add_metric([usage.identity], usage.sites)
            documents.add_metric([usage.identity], usage.documents)
            configured.add_metric([usage.identity], usage.is_configured)
        yield from (sites, documents, configured)

    def _read_database(self) -> tuple[dict[str, float], list[EngineUsage]]:
        with self._runtime.database.read() as session:
            behind = find_lagging(session)
            since = min((site.since for site in behind if site.since is not None), default=None)
            usages = list_engine_usage(session, self._runtime.engines)
            values = {
                "search_documents": sum(usage.documents for usage in usages),
                "search_sites_deleted": session.scalar(select(func.count(Site.deleted_at))) or 0,
                "search_accounts_suspended": session.scalar(select(func.count(Account.suspended_at))) or 0,
                "search_indexes_behind": len(behind),
                "search_indexes_failing": sum(site.error is not None for site in behind),
                "search_indexes_behind_seconds": 0.0 if since is None else max(0.0, (now() - since).total_seconds()),
                "search_source_runs_waiting": count_waiting(session),
            }
            return values, usages

    def _count_events(self) -> int:
        return self._runtime.waiting_events.count(
            database_away=self._runtime.health.failing_since(DATABASE) is not None
        )


def _index_bytes(engine: SearchBackend) -> int | None:
    return engine.index_bytes()


class _SlowValue(Generic[T]):
    """A value that may be slow to read. It is read in a separate thread, never twice simultaneously."""

    def __init__(self, source: str, read: Callable[[], T]):
        self._source = source
        self._read = read
        self._reading: Future[T] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start reading, unless the last reading is still in progress."""
        with self._lock:
            if self._reading is None or self._reading.done():
                self._reading = Future()
                thread = threading.Thread(target=self._work, args=(self._reading,), name="metrics", daemon=True)
                thread.start()

    def _work(self, reading: Future[T]) -> None:
        try:
            reading.set_result(self._read())
        except Exception as error:  # noqa: BLE001 - the future raises it in the reader.
            reading.set_exception(error)

    def wait(self, deadline: float, success: GaugeMetricFamily) -> T | None:
        """Return the value, or ``None`` if reading failed or is late. Logs failures and reports them in ``success``."""
        assert self._reading is not None
        try:
            value = self._reading.result(max(0.0, deadline - time.monotonic()))
        except Exception as error:
            if not (isinstance(error, BackendError | CountersUnavailable | OSError) or is_unavailable(error)):
                log.exception("metrics: %s could not be read", self._source)
            else:
                log.warning("metrics: cannot read %s: %s", self._source, error or "no value in time")
            success.add_metric([self._source], 0)
            return None
        success.add_metric([self._source], 1)
        return value


def register(app: Flask, current_runtime: Runtime) -> None:
    """Serve ``/metrics``."""
    installation = InstallationMetrics(current_runtime)

    def show() -> Response:
        """Return the metrics, to direct callers on loopback and to others with METRICS_TOKEN."""
        if not _may_see(request, runtime().settings.metrics_token):
            raise missing_key(request) if bearer_token(request) is None else invalid_key()
        return Response(show_processes() + installation.show(), content_type=CONTENT_TYPE_LATEST)

    app.add_url_rule("/metrics", "metrics", show, methods=["GET"])
    set_policy(app, "metrics", OperationPolicy(ANYONE, uncounted=True))


def _may_see(asking: Request, token: str) -> bool:
    if is_loopback(asking) and not is_forwarded(asking):
        return True
    sent_token = bearer_token(asking)
    # Compared in constant time, so that response times reveal nothing about the token.
    return bool(token) and sent_token is not None and hmac.compare_digest(sent_token.encode(), token.encode())


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)


def serve_processes(host: str, port: int, token: str) -> WSGIServer:
    """Serve ``/metrics`` for this process only, in a thread that ends with the process.

    Args:
        host: Address to listen on.
        port: 0 for any free port.
        token: Bearer token for callers from other machines; if empty, they are rejected.

    Returns:
        The running server.

    Raises:
        OSError: The port is not available.
    """

    def show(asking: Request) -> Response:
        if asking.path != "/metrics":
            raise NotFound
        if not _may_see(asking, token):
            raise Unauthorized
        return Response(show_processes(), content_type=CONTENT_TYPE_LATEST)

    def respond(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        asking = Request(environ)
        try:
            response: Response | HTTPException = show(asking)
        except HTTPException as error:
            response = error
        return response(environ, start_response)

    server = make_server(host, port, respond, server_class=_Server, handler_class=_Handler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
