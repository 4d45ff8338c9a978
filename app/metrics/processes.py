"""Metrics of processes: requests and other counts, including the summed counts of ended processes."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from flask import Flask, Response, g, request
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.mmap_dict import MmapedDict

from app.counters.registry import COUNTER_STORE_FAILURES, COUNTER_STORE_SECONDS
from app.crawl.sources.runs import ENDED_RUNS
from app.plans import QUOTA_REFUSALS
from app.services.analytics.events import LOST_EVENTS
from app.services.embedding.embedder import EMBEDDER_FAILURES, EMBEDDER_SECONDS
from app.services.engines import ENGINE_FAILURES, ENGINE_SECONDS
from app.services.search.ordering import MIXED_SEARCHES

REQUESTS = Counter("http_requests_total", "Requests answered.", ["method", "endpoint", "status"])
DURATION = Histogram(
    "http_request_duration_seconds",
    "Time from the first hook to the answer.",
    ["endpoint"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def register(app: Flask) -> None:
    """Count every request to ``app``."""
    app.after_request(_observe)


def _observe(response: Response) -> Response:
    endpoint = request.endpoint or "unknown"
    method = request.method if request.method in _METHODS else "other"
    requests, duration = _metrics_of(method, endpoint, response.status_code)
    requests.inc()
    started = g.get("started")
    if started is not None:
        duration.observe(time.perf_counter() - started)
    return response


@lru_cache(maxsize=1024)
def _metrics_of(method: str, endpoint: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, endpoint, str(status)), DURATION.labels(endpoint)


DISTRIBUTION = "site-search-service"
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
COUNTED = (
    REQUESTS, DURATION, ENGINE_SECONDS, ENGINE_FAILURES, COUNTER_STORE_SECONDS, COUNTER_STORE_FAILURES, QUOTA_REFUSALS,
    LOST_EVENTS, ENDED_RUNS, EMBEDDER_SECONDS, EMBEDDER_FAILURES, MIXED_SEARCHES,
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
    except PermissionError:
        pass
    return True
