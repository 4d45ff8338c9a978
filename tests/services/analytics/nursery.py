"""Forks recording workers on demand, as gunicorn does. test_event_journal runs it as a separate process.

Each line ``NAME`` on standard input starts a worker that records the queries ``NAME-0``, ``NAME-1``, … every
millisecond in two threads, and writes each to standard output after ``record`` returned. Its process ID is written
first, as ``pid NAME ID``.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from pathlib import Path

from app.clock import now
from app.services.analytics.events import EventRecorder, SearchEvent
from app.storage.database import Database


def work(recorder: EventRecorder, name: str) -> None:
    numbers = itertools.count()

    def run() -> None:
        for number in numbers:
            query = f"{name}-{number}"
            recorder.record(SearchEvent(1, query, 1, now(), None, 1))
            os.write(1, f"{query}\n".encode())
            time.sleep(0.001)

    threading.Thread(target=run).start()
    run()


def main(url: str, directory: str) -> None:
    database = Database(url)
    recorder = EventRecorder(Path(directory), database)
    recorder.record(SearchEvent(1, "of the parent", 1, now()))
    for line in sys.stdin:
        worker = os.fork()
        if worker == 0:
            database.dispose(close=False)
            work(recorder, line.strip())
        os.write(1, f"pid {line.strip()} {worker}\n".encode())
    recorder.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
