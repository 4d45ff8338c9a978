"""Counts of the processes: all those of a machine's service together, or one alone.

Where ``PROMETHEUS_MULTIPROC_DIR`` names a folder (see gunicorn.conf.py), every process keeps its numbers in files
there, and any of them can answer for all. What a process counted stays counted when it has ended: its files are added
to one that is no process's, since processes that crawl come and go for as long as the service runs.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from prometheus_client import CollectorRegistry, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.mmap_dict import MmapedDict

from app.counters.registry import COUNTER_STORE_FAILURES, COUNTER_STORE_SECONDS
from app.crawl.sources.runs import ENDED_RUNS
from app.metrics.requests import DURATION, REQUESTS
from app.plans import QUOTA_REFUSALS
from app.services.analytics.events import LOST_EVENTS
from app.services.embedding.guarded import EMBEDDER_FAILURES, EMBEDDER_SECONDS
from app.services.engines import ENGINE_FAILURES, ENGINE_SECONDS
from app.services.search.mixed_order import MIXED_SEARCHES

DISTRIBUTION = "site-search-service"
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
COUNTED = (
    REQUESTS, DURATION, ENGINE_SECONDS, ENGINE_FAILURES, COUNTER_STORE_SECONDS, COUNTER_STORE_FAILURES, QUOTA_REFUSALS,
    LOST_EVENTS, ENDED_RUNS, EMBEDDER_SECONDS, EMBEDDER_FAILURES, MIXED_SEARCHES,
)  # fmt: skip
"""All that processes count. None is labelled with anything that names a customer."""
_ENDED = "ended"


def show_processes() -> bytes:
    """Counts of the processes, and the version they run, in Prometheus' text format."""
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
    """The version of the service, as a gauge that is always 1."""

    def collect(self) -> Iterator[Metric]:
        """Give the gauge."""
        gauge = GaugeMetricFamily("search_build_info", "Version of the service.", labels=["version", "python"])
        gauge.add_metric([version(DISTRIBUTION), python_version()], 1)
        yield gauge


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from reading the files while some are added up."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def add_up_ended(folder: Path) -> None:
    """Add the numbers of processes that have ended to those of all that ended before, and remove their files."""
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
