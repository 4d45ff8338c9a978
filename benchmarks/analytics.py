"""Analytics over 90 days of ten million events: how long an answer takes, and what an event costs.

    python -m benchmarks.analytics [--events 10000000] [--queries 300000] [--database sqlite:////tmp/analytics.db]

Queries follow Zipf's law; a seventh of them find nothing; two sites of one account share the events 7:3. The
roll-ups are filled by the function that moves live events, in larger portions. Raw events are not stored for the
90 days (analytics never read them), only for the measurement of moving.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

from sqlalchemy import insert

from app.clock import now
from app.database import Database
from app.models import Account, Base, Site
from app.services.analytics import get_analytics
from app.services.events import EventRecorder, SearchEvent
from app.services.rollups import PERIODS, Changes, age_windows, apply_changes, lock_accounts

DAYS = 90
PORTION = 5000
EPOCH = date(1970, 1, 1)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Visitors:
    """Searches with realistic frequencies."""

    def __init__(self, queries: int):
        self._random = random.Random(1)
        self.texts = [self._words() for _ in range(queries)]
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, queries + 1)))

    def _words(self) -> str:
        count = self._random.choice((1, 1, 2, 2, 3))
        return " ".join("".join(self._random.choices(LETTERS, k=self._random.randint(3, 9))) for _ in range(count))

    def searches(self, count: int) -> list[int]:
        """Numbers of the queries of ``count`` searches."""
        return self._random.choices(range(len(self.texts)), cum_weights=self._weights, k=count)

    @staticmethod
    def results(number: int) -> int:
        """How many hits a query has: every seventh none."""
        return 0 if number % 7 == 3 else 12


def prepare(database: Database) -> None:
    """Empty tables, one account, two sites."""
    Base.metadata.drop_all(database.engine)
    Base.metadata.create_all(database.engine)
    with database.write() as session:
        session.execute(
            insert(Account).values(
                id=1,
                name="A",
                email="a",
                email_key="a",
                password_hash="",
                plan="pro",
                limit_overrides={},
                created_at=now(),
            )
        )
        for site_id in (1, 2):
            session.execute(
                insert(Site).values(
                    id=site_id,
                    account_id=1,
                    name="S",
                    url="https://example.org",
                    domain="example.org",
                    engine="",
                    field_kinds={},
                    search_settings={},
                    created_at=now(),
                    updated_at=now(),
                )
            )


def fill(database: Database, visitors: Visitors, events: int, today: int) -> tuple[int, float]:
    """Fill the roll-ups of 90 days; gives the rows per day and query, and the seconds spent in the database."""
    rows, seconds = 0, 0.0
    for day in range(today - DAYS + 1, today + 1):
        for site_id, share in ((1, 0.7), (2, 0.3)):
            counts = Counter(visitors.searches(round(events / DAYS * share)))
            for portion in batched(sorted(counts.items()), PORTION):
                changes = Changes()
                for number, count in portion:
                    results = visitors.results(number)
                    changes.add(site_id, day, visitors.texts[number], results, 8, sign=count)
                began = time.perf_counter()
                with database.write() as session:
                    lock_accounts(session, [1])
                    apply_changes(session, {1: 1, 2: 1}, changes, today)
                seconds += time.perf_counter() - began
                rows += len(portion)
    return rows, seconds


def batched(items: list[tuple[int, int]], size: int) -> Iterator[list[tuple[int, int]]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def milliseconds(action: Callable[[], object], times: int = 15) -> str:
    """Median and slowest of ``times`` runs; the first is the coldest."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        taken.append((time.perf_counter() - began) * 1000)
    return f"first {taken[0]:7.2f}  median {statistics.median(taken):7.2f}  slowest {max(taken):7.2f} ms"


def measure_answers(database: Database, today: date, title: str) -> None:
    """Every window of a site and of the account."""
    print(title)
    for period in PERIODS:
        for name, site_id in (("site", 1), ("account", None)):

            def answer(period: int = period, site_id: int | None = site_id) -> None:
                with database.read() as session:
                    get_analytics(session, 1, period, site_id=site_id, today=today)

            print(f"  {period:2} days, {name:8} {milliseconds(answer)}")


def measure_ageing(database: Database, today: int) -> None:
    """Moving all windows on by a day, in steps."""
    steps = []
    while True:
        began = time.perf_counter()
        more = age_windows(database, today)
        steps.append((time.perf_counter() - began) * 1000)
        if not more:
            break
    print(f"moving the windows on: {len(steps)} steps, {sum(steps) / 1000:.2f} s, slowest step {max(steps):.0f} ms")


def measure_events(database: Database, visitors: Visitors, count: int = 20_000) -> None:
    """Recording, and moving what was recorded into the full tables."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = EventRecorder(Path(folder), database, background=False)
        moment = now()
        found = [
            SearchEvent(1, visitors.texts[number], visitors.results(number), moment, f"s{index // 4}", 8)
            for index, number in enumerate(visitors.searches(count))
        ]
        wall, cpu = time.perf_counter(), time.process_time()
        for event in found:
            recorder.record(event)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"recording: {wall / count * 1e6:.1f} us per event, {cpu / count * 1e6:.1f} us of CPU")
        wall, cpu = time.perf_counter(), time.process_time()
        recorder.flush()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"moving: {count / wall:.0f} events/s, {cpu / count * 1e6:.0f} us of CPU per event in this process")
        recorder.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--queries", type=int, default=300_000)
    parser.add_argument("--database", default="", help="an empty database; a temporary SQLite file if not given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = Database(options.database or f"sqlite:///{folder}/analytics.db")
        prepare(database)
        visitors = Visitors(options.queries)
        today = now().date()
        day = (today - EPOCH).days
        rows, seconds = fill(database, visitors, options.events, day)
        print(f"{options.events} events, {len(set(visitors.texts))} queries, {rows} rows per day and query")
        print(f"adding them up took {seconds:.0f} s, {seconds / rows * 1e6:.0f} us per row")
        if database.is_sqlite:
            print(f"database: {Path(str(database.url.database)).stat().st_size / 1e6:.0f} MB")
        measure_answers(database, today, "today")
        measure_events(database, visitors)
        measure_answers(database, today + timedelta(days=1), "just after midnight, windows not moved on yet")
        measure_ageing(database, day + 1)
        measure_answers(database, today + timedelta(days=1), "after that")
        database.dispose()


if __name__ == "__main__":
    main()
