"""Speed of ``/v1/search``, compared with direct calls of Typesense and Meilisearch, and FTS5 behind a Flask view.

    python -m benchmarks.search_speed PAGES.jsonl.gz \\
        --typesense http://127.0.0.1:8108 --typesense-key KEY --meilisearch http://127.0.0.1:7700 --clients 16 64

The first part uses one client with one kept-alive connection to each system. All systems have the same documents and
queries, and run each query in turn, so that noise affects all alike. The service returns 20 hits with content and
highlights, checks the key, counts both request limits and the quota, and writes the event to disk. Typesense returns 20
hits with highlights on POST /multi_search. Meilisearch returns 20 hits with highlights and cropped content. FTS5
returns 20 hits with content and a highlighted snippet, under the same gunicorn. Indexes that merge their segments after
writing are measured after the merge. The benchmark prints medians and 99th percentiles in milliseconds, and the ratio
of each system's time to the service's (above 1, the service is faster); then the ratio for only those queries for which
both return equally many hits.

``--clients`` adds a part with concurrent clients, again system by system. It prints responses per second, and the
median and the 99th percentile of the time to a response. A client sends its next request as soon as it has a response,
so times grow with the number of clients. In the last part, one of twenty requests is long: the most frequent words, 100
hits, a filter, a sort, and facets.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.connections import Load, ask_at_once
from benchmarks.queries import Query, make_long_queries, make_queries, read
from benchmarks.search_systems import SERVICE, System, fts5, meilisearch, service, typesense

FEWEST_ALIKE = 30
"""Minimum number of queries for a meaningful median."""
SHORT_FOR_A_LONG = 19


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=150, help="of each kind")
    parser.add_argument("--typesense", help="address of a Typesense server without data")
    parser.add_argument("--typesense-key", default="")
    parser.add_argument("--meilisearch", help="address of a Meilisearch server without data")
    parser.add_argument("--meilisearch-key", default="")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--clients", type=int, nargs="*", default=[], help="how many ask at once; several numbers")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a round of clients that ask at once")
    parser.add_argument("--rounds", type=int, default=3, help="of those")
    wishes = parser.parse_args()
    documents = list(itertools.islice(read(wishes.pages), wishes.documents))
    queries = make_queries(documents, wishes.queries)
    size = sum(len(document["content"]) for document in documents) / 1e6
    print(f"{len(documents)} documents, {size:.0f} MB of text, {wishes.workers} workers")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ours, server = stack.enter_context(service(Path(folder) / "service", documents, wishes.workers))
        systems = [ours]
        if wishes.typesense:
            systems.append(typesense(wishes.typesense, wishes.typesense_key, documents))
        if wishes.meilisearch:
            systems.append(meilisearch(wishes.meilisearch, wishes.meilisearch_key, documents))
        systems.append(stack.enter_context(fts5(Path(folder), documents, wishes.workers)))
        measure(systems, queries)
        # FTS5 answers some searches of many words from all of its table, and takes a second.
        at_once = [system for system in systems if not system.name.startswith("FTS5")]
        for clients in wishes.clients:
            measure_clients(at_once, queries, [], clients, wishes.rounds, wishes.seconds)
        long = make_long_queries(documents, 50)
        for clients in wishes.clients:
            measure_clients(at_once, queries, long, clients, wishes.rounds, wishes.seconds)
        if wishes.clients:
            print("private memory of the workers, MB: " + ", ".join(str(private_mb(p)) for p in server.worker_pids()))


@dataclass(frozen=True)
class Measured:
    """Milliseconds and number of hits of a query, by system."""

    query: Query
    times: dict[str, float]
    hits: dict[str, int]


def measure(systems: Sequence[System], queries: Sequence[Query]) -> None:
    """Measure the systems with one client."""
    for query in queries[:: max(1, len(queries) // 50)]:
        for system in systems:
            system.search(query)
    order = list(systems)
    measured: list[Measured] = []
    for query in queries:
        random.shuffle(order)
        one = Measured(query, {}, {})
        for system in order:
            started = time.perf_counter()
            answer = system.search(query)
            one.times[system.name] = (time.perf_counter() - started) * 1000
            one.hits[system.name] = system.count_hits(json.loads(answer))
        measured.append(one)
    show([system.name for system in systems], measured)


def show(systems: list[str], measured: list[Measured]) -> None:
    """Print the table."""
    print(
        f"{'':22}" + "".join(f"{name + ' p50/p99 ms, hits':>30}" for name in systems) + "   others / service (p50, p99)"
    )
    others = [name for name in systems if name != SERVICE]
    alike: list[str] = []
    for kind in dict.fromkeys(one.query.kind for one in measured):
        rows = [one for one in measured if one.query.kind == kind]
        line = f"{kind:22}"
        for name in systems:
            median, high = quantiles([one.times[name] for one in rows])
            line += f"{median:16.2f} /{high:7.2f}{statistics.mean(one.hits[name] for one in rows):5.1f}"
        print(line + "   " + "; ".join(f"{name} {ratios(rows, name)}" for name in others))
        for name in others:
            same = [one for one in rows if one.hits[name] == one.hits[SERVICE]]
            if FEWEST_ALIKE <= len(same) < len(rows):
                alike.append(f"{kind}, {name}: {ratios(same, name)} ({len(same)} of {len(rows)} queries)")
    print("(the third number: hits of an answer on average; the fewer, the less there is to read and to mark)")
    if alike:
        print("\n".join(["only queries for which both answer as many hits:", *alike]))


def ratios(rows: list[Measured], name: str) -> str:
    """Return the time of another system divided by the service's, of the medians and the 99th percentiles."""
    ours, theirs = (quantiles([one.times[system] for one in rows]) for system in (SERVICE, name))
    return f"{theirs[0] / ours[0]:.2f}, {theirs[1] / ours[1]:.2f}"


def quantiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def measure_clients(
    systems: Sequence[System],
    queries: Sequence[Query],
    long: Sequence[Query],
    clients: int,
    rounds: int,
    seconds: float,
) -> None:
    """Measure the systems with concurrent clients."""
    shuffled = list(queries)
    random.Random(3).shuffle(shuffled)
    asked = [("short", query) for query in shuffled]
    for at, query in enumerate(long):
        asked.insert(at * (SHORT_FOR_A_LONG + 1) % len(asked), ("long", query))
    loads: dict[str, list[Load]] = defaultdict(list)
    for _ in range(rounds):
        for system in systems:
            messages = [(name, system.message(query)) for name, query in asked]
            loads[system.name].append(ask_at_once(system.connection.url, messages, clients, seconds))
    print(f"{clients} clients at once{', one of twenty requests is long' if long else ''}")
    rate = {name: statistics.median(load.requests_per_second for load in found) for name, found in loads.items()}
    for name, found in loads.items():
        line = f"  {name:14}{rate[name]:8.0f} answers/s"
        for kind in ("short", "long") if long else ("short",):
            median, high = quantiles([one for load in found for one in load.times[kind]])
            line += f"   {kind} p50/p99 ms {median:8.1f} /{high:8.1f} ({high / median:.1f} times)"
        print(line + ("" if name == SERVICE else f"   service / {name}: {rate[SERVICE] / rate[name]:.2f}"))


def private_mb(pid: int) -> int:
    """Return the private memory of a process that no file backs."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line for line in rollup.splitlines() if line.startswith("Private_Dirty")).split()[1]) // 1024


if __name__ == "__main__":
    main()
