"""Response times of analytics over 90 days with ten million searches, and the cost of an event.

    python -m benchmarks.analytics [--events 10000000] [--queries 300000] [--database sqlite:////tmp/analytics.db]

Queries follow Zipf's law. A seventh of them have no results, and others have only partial results. For two thirds of
the queries with results, every third search leads to a click on one of eight documents. Two sites of one account share
the events 7:3. The days are loaded in bulk. Raw events are stored only to measure how they are moved, since analytics
never read them.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from app.clock import now
from app.models import Account, Base, ClickDay, QueryDay, Site
from app.models.events import SITE_KINDS
from app.services.analytics.clicks import make_click, make_query_id
from app.services.analytics.events import EventRecorder, SearchEvent
from app.services.analytics.query_reports import get_query_analytics
from app.services.analytics.reports import encode_csv, get_analytics
from app.services.analytics.rollups import Changes, apply_changes
from app.storage.database import Database

DAYS = 90
PERIODS = (7, 30, 90)
SHARES = {1: 0.7, 2: 0.3}
"""Share of the events, by site."""
EPOCH = date(1970, 1, 1)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Visitors:
    """Searches with realistic frequencies."""

    def __init__(self, queries: int):
        self._random = random.Random(1)
        texts: dict[str, None] = {}
        while len(texts) < queries:
            texts[self._words()] = None
        self.texts = list(texts)
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, queries + 1)))

    def _words(self) -> str:
        count = self._random.choice((1, 1, 2, 2, 3))
        return " ".join("".join(self._random.choices(LETTERS, k=self._random.randint(3, 9))) for _ in range(count))

    def searches(self, count: int) -> list[int]:
        """Return the query numbers of ``count`` searches."""
        return self._random.choices(range(len(self.texts)), cum_weights=self._weights, k=count)

    @staticmethod
    def results(number: int) -> int:
        """Return a query's number of hits. Every seventh query has none."""
        return 0 if number % 7 == 3 else 12

    def day(self, number: int, searches: int) -> dict[str, int]:
        """Return the counts of a query for a day with ``searches`` searches."""
        found = searches if self.results(number) else 0
        clicks = (found + 2) // 3 if number % 3 else 0
        return {
            "searches": searches,
            "zero_results": searches - found,
            "partial_results": found if number % 11 == 5 else 0,
            "clicks": clicks,
            "clicked_searches": clicks,
            "positioned_clicks": clicks,
            "click_positions": 2 * clicks,
            "visitors": (found + 1) // 2,
            "found_visitors": (found + 1) // 2,
            "missed_visitors": (searches - found + 1) // 2,
        }

    @staticmethod
    def clicked(clicks: int) -> dict[str, int]:
        """Return the clicked documents, and their numbers of clicks."""
        return {f"page-{place}": clicks // 8 + (place < clicks % 8) for place in range(min(8, clicks))}


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


def fill(database: Database, visitors: Visitors, events: int, today: int) -> int:
    """Fill the rollups of 90 days, and return the number of rows per day and query."""
    rows = 0
    for site_id, day in itertools.product(SHARES, range(today - DAYS + 1, today + 1)):
        counts = Counter(visitors.searches(round(events / DAYS * SHARES[site_id])))
        queries: list[dict[str, Any]] = [
            {
                "site_id": site_id,
                "day": day,
                "query": visitors.texts[number],
                **visitors.day(number, count),
            }
            for number, count in counts.items()
        ]
        queries.sort(key=lambda row: str(row["query"]))
        clicked: list[dict[str, object]] = [
            {
                "site_id": site_id,
                "day": day,
                "query": row["query"],
                "document_id": document_id,
                "clicks": clicks,
                "positioned_clicks": clicks,
                "click_positions": 2 * clicks,
            }
            for row in queries
            for document_id, clicks in visitors.clicked(int(row["clicks"])).items()
        ]
        totals = {kind: sum(int(row.get(kind, 0)) for row in queries) for kind in SITE_KINDS}
        totals |= {"responses": totals["searches"], "response_ms": 8 * totals["searches"]}
        with database.write() as session:
            session.execute(insert(QueryDay.__table__), queries)
            session.execute(insert(ClickDay.__table__), clicked)
            changes = Changes()
            changes.days[site_id, day] = list(totals.values())
            apply_changes(session, changes, today)
        rows += len(queries)
    return rows


def milliseconds(action: Callable[[], object], times: int = 15) -> str:
    """Return the median and the slowest of ``times`` runs, starting cold, and the median of CPU time."""
    taken, worked = [], []
    for _ in range(times):
        began, busy = time.perf_counter(), time.process_time()
        action()
        taken.append((time.perf_counter() - began) * 1000)
        worked.append((time.process_time() - busy) * 1000)
    return (
        f"first {taken[0]:7.2f}  median {statistics.median(taken):7.2f}  slowest {max(taken):7.2f} ms, "
        f"{statistics.median(worked):.2f} ms of CPU"
    )


def measure_answers(database: Database, today: date, title: str) -> None:
    """Measure every period of a site and of the account, without the service's one-minute cache of slow results."""
    print(title)
    for period in PERIODS:
        for name, site_id in (("site", 1), ("account", None)):

            def answer(period: int = period, site_id: int | None = site_id) -> None:
                with database.read() as session:
                    get_analytics(session, 1, period, site_id=site_id, today=today)

            print(f"  {period:2} days, {name:8} {milliseconds(answer)}")


def measure_lists(database: Database, visitors: Visitors, today: date) -> None:
    """Measure lists of 1,000 queries as CSV, and reports on one query."""

    def table() -> None:
        with database.read() as session:
            encode_csv(get_analytics(session, 1, 90, today=today, limit=1000))

    print(f"  CSV of 1,000, account  {milliseconds(table)}")
    for name, number in (("most searched query", 1), ("rare query", len(visitors.texts) - 2)):

        def answer(number: int = number) -> None:
            with database.read() as session:
                get_query_analytics(session, 1, 1, visitors.texts[number], 90, today)

        print(f"  {name:22} {milliseconds(answer)}")


def measure_events(database: Database, visitors: Visitors, count: int = 20_000) -> None:
    """Measure recording events, and moving them into full tables."""
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


def measure_clicks(database: Database, visitors: Visitors, count: int = 20_000) -> None:
    """Measure recording and moving clicks, each with the ID of its search."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = EventRecorder(Path(folder), database, background=False)
        moment, secret = now(), "s" * 40
        numbers = visitors.searches(count)
        cpu = time.process_time()
        ids = [make_query_id(secret, 1, visitors.texts[number], moment) for number in numbers]
        print(f"making a query id: {(time.process_time() - cpu) / count * 1e6:.1f} us of CPU")
        told = {"query": None, "session_id": None, "moment": moment}
        cpu = time.process_time()
        for index, query_id in enumerate(ids):
            click = make_click(secret, 1, f"page-{index % 8}", query_id=query_id, position=index % 8 + 1, **told)
            assert click is not None
            recorder.record(click)
        print(f"recording a click: {(time.process_time() - cpu) / count * 1e6:.1f} us of CPU")
        wall, cpu = time.perf_counter(), time.process_time()
        recorder.flush()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"moving: {count / wall:.0f} clicks/s, {cpu / count * 1e6:.0f} us of CPU per click in this process")
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
        began = time.perf_counter()
        today = now().date()
        day = (today - EPOCH).days
        rows = fill(database, visitors, options.events, day)
        print(f"{options.events} events, {len(set(visitors.texts))} queries, {rows} rows per day and query")
        print(f"made in {time.perf_counter() - began:.0f} s")
        if database.is_sqlite:
            print(f"database: {Path(str(database.url.database)).stat().st_size / 1e6:.0f} MB")
        measure_answers(database, today, "today")
        measure_lists(database, visitors, today)
        measure_events(database, visitors)
        measure_clicks(database, visitors)
        database.dispose()


if __name__ == "__main__":
    main()
