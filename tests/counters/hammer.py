"""Work for worker processes in the tests: many threads on one store, and processes that are killed."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.values import IdempotencyKey, UsageReservation, WindowRequest

NOW = 1_700_000_000.0
PATIENT_SECONDS = 30.0


def in_threads(url: str, threads: int, work: Callable[[CounterStore], Any]) -> Counter[Any]:
    """Run ``work`` in this many threads on one store. Returns counts of its results."""
    store = create_counters(url, timeout_seconds=PATIENT_SECONDS)
    try:
        with ThreadPoolExecutor(threads) as pool:
            return Counter(pool.map(lambda _: work(store), range(threads)))
    finally:
        store.close()


def hit_windows(url: str, threads: int, hits: int, windows: list[WindowRequest], now: float) -> int:
    """Hit windows from every thread. Returns the number of allowed hits."""

    def work(store: CounterStore) -> int:
        return sum(store.consume(windows, now=now).allowed for _ in range(hits))

    return sum(allowed * times for allowed, times in in_threads(url, threads, work).items())


def search(url: str, threads: int, searches: int, reserve: UsageReservation, failing: bool) -> int:
    """Reserve searches from every thread, and refund them if searches fail. Returns the number of charged searches."""

    def work(store: CounterStore) -> int:
        charged = 0
        for _ in range(searches):
            reservation = store.consume([WindowRequest("all", None, 60)], reserve=reserve, now=NOW).reservation
            charged += reservation is not None
            if failing and reservation is not None:
                store.refund(reservation=reservation, now=NOW)
        return charged

    return sum(charged * times for charged, times in in_threads(url, threads, work).items())


def report(url: str, threads: int, reports: int, key: str | None) -> Counter[str]:
    """Report one search many times from every thread. Returns counts of the outcomes."""

    def work(store: CounterStore) -> tuple[tuple[str, int], ...]:
        idempotency = None if key is None else IdempotencyKey(key, "body")
        statuses = Counter(
            store.report_usage(1, 7, "search", 1, capped=False, idempotency=idempotency, now=NOW).status.value
            for _ in range(reports)
        )
        return tuple(statuses.items())

    total: Counter[str] = Counter()
    for statuses, times in in_threads(url, threads, work).items():
        for status, count in statuses:
            total[status] += count * times
    return total


def change_credentials(url: str, threads: int, changes: int) -> None:
    """Begin and end credential changes from every thread."""

    def work(store: CounterStore) -> None:
        for _ in range(changes):
            store.begin_credential_change(1, now=NOW)
            store.end_credential_change(1, now=NOW)

    in_threads(url, threads, work)


def answer_searches(url: str, answers: Path, threads: int) -> None:
    """Charge searches until killed, and write one byte for each charged search."""
    store = create_counters(url, timeout_seconds=PATIENT_SECONDS)
    written = os.open(answers, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def work() -> None:
        while True:
            outcome = store.consume([WindowRequest("all", None, 86_400)], reserve=UsageReservation(1, None), now=NOW)
            if outcome.reservation is not None:
                os.write(written, b".")

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def kill_workers(url: str, answers: Path, workers: int, threads: int, kills: int) -> None:
    """Keep workers searching while killing and replacing one at random moments, ``kills`` times; then kill all."""
    store = create_counters(url, timeout_seconds=PATIENT_SECONDS)
    store.consume([], now=NOW)  # use the store before the fork; children must still work

    def start() -> int:
        worker = os.fork()
        if worker == 0:
            try:
                answer_searches(url, answers, threads)
            finally:
                os._exit(1)
        return worker

    running = [start() for _ in range(workers)]
    for _ in range(kills):
        time.sleep(random.uniform(0.005, 0.03))
        store.consume([], now=NOW)
        victim = running.pop(random.randrange(workers))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        running.append(start())
    for victim in running:
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)


def fork_under_load(url: str, children: int, hits: int) -> int:
    """Fork while the parent's threads hit, and continue in the children with the same object. Returns the number of
    hits."""
    store = create_counters(url, timeout_seconds=PATIENT_SECONDS)
    stop = threading.Event()
    made: list[int] = []

    def work() -> None:
        count = 0
        while not stop.is_set():
            count += store.consume([WindowRequest("all", None, 60)], now=NOW).allowed
        made.append(count)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(children):
        child = os.fork()
        if child == 0:
            allowed = sum(store.consume([WindowRequest("all", None, 60)], now=NOW).allowed for _ in range(hits))
            os._exit(0 if allowed == hits else 1)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    for thread in threads:
        thread.join()
    store.close()
    return sum(made) + children * hits


if __name__ == "__main__":
    command, url, *rest = sys.argv[1:]
    if command == "kill":
        kill_workers(url, Path(rest[0]), workers=3, threads=4, kills=50)
    else:
        sys.stdout.write(str(fork_under_load(url, children=20, hits=50)))
