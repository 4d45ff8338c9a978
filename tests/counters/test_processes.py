"""Counts are exact across processes and threads, and survive the death of any of them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from app.counters import create_counters
from app.counters.values import UsageReservation, WindowRequest
from tests.counters import hammer
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

PROCESSES = 4
THREADS = 8
NOW = hammer.NOW
TODAY = date(2023, 11, 14)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as workers:
        yield workers


def everywhere(pool: ProcessPoolExecutor, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Run the same work in every process at the same time."""
    return [waiting.result(PATIENCE_SECONDS) for waiting in [pool.submit(work, *arguments) for _ in range(PROCESSES)]]


def test_limit_is_exact_across_all_processes(shared_url: str, pool: ProcessPoolExecutor) -> None:
    windows = [WindowRequest("minute", 300, 60), WindowRequest("day", 1000, 86_400), WindowRequest("visitor", None, 60)]
    allowed = everywhere(pool, hammer.hit_windows, shared_url, THREADS, 20, windows, NOW)
    assert sum(allowed) == 300
    with closing(create_counters(shared_url)) as counters:
        assert [window.hits for window in counters.peek(windows, now=NOW).windows] == [300, 300, 300]


def test_window_renews_exactly_once_across_all_processes(shared_url: str, pool: ProcessPoolExecutor) -> None:
    windows = [WindowRequest("minute", 100, 60)]
    for moment, expected in ((NOW, 100), (NOW + 59, 0), (NOW + 60, 100), (NOW + 119, 0), (NOW + 120, 100)):
        assert sum(everywhere(pool, hammer.hit_windows, shared_url, THREADS, 10, windows, moment)) == expected


@pytest.mark.parametrize("site", [None, 7], ids=["search", "gateway"])
def test_quota_of_100_allows_exactly_100_searches(shared_url: str, pool: ProcessPoolExecutor, site: int | None) -> None:
    reserve = UsageReservation(1, 100, site)
    assert sum(everywhere(pool, hammer.search, shared_url, THREADS, 16, reserve, False)) == 100
    with closing(create_counters(shared_url)) as counters:
        assert counters.usage_of_day(1, TODAY).used == 100


@pytest.mark.parametrize("site", [None, 7], ids=["search", "gateway"])
def test_failed_searches_are_not_charged(shared_url: str, pool: ProcessPoolExecutor, site: int | None) -> None:
    reserve = UsageReservation(1, 1000, site)
    assert sum(everywhere(pool, hammer.search, shared_url, THREADS, 16, reserve, True)) == 512
    with closing(create_counters(shared_url)) as counters:
        assert counters.usage_of_day(1, TODAY).used == 0


def test_concurrent_gateway_searches_and_reports_are_charged_by_the_rule(
    shared_url: str, pool: ProcessPoolExecutor
) -> None:
    reserve = UsageReservation(1, None, 7)
    searching = [pool.submit(hammer.search, shared_url, THREADS, 12, reserve, False) for _ in range(2)]
    reporting = [pool.submit(hammer.report, shared_url, THREADS, 20, None) for _ in range(2)]
    assert sum(waiting.result(PATIENCE_SECONDS) for waiting in searching) == 192
    assert sum((waiting.result(PATIENCE_SECONDS) for waiting in reporting), Counter()) == {"recorded": 320}
    with closing(create_counters(shared_url)) as counters:
        assert counters.usage_of_day(1, TODAY).used == 320


def test_report_sent_many_times_concurrently_is_charged_once(shared_url: str, pool: ProcessPoolExecutor) -> None:
    statuses = sum(everywhere(pool, hammer.report, shared_url, THREADS, 5, "the same"), Counter())
    assert statuses == {"recorded": 1, "duplicate": PROCESSES * THREADS * 5 - 1}
    with closing(create_counters(shared_url)) as counters:
        assert counters.usage_of_day(1, TODAY).used == 1


def test_no_credential_change_is_lost(shared_url: str, pool: ProcessPoolExecutor) -> None:
    with closing(create_counters(shared_url)) as counters:
        before = counters.peek([], credentials_of=1, now=NOW).credential_version
        everywhere(pool, hammer.change_credentials, shared_url, THREADS, 10)
        after = counters.peek([], credentials_of=1, now=NOW).credential_version
    assert before is not None
    assert after is not None
    assert after.is_settled
    assert after.started - before.started == PROCESSES * THREADS * 10


def run_hammer(*arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.counters.hammer", *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_killed_processes_neither_lose_nor_double_count_successful_searches(shared_url: str, tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    run_hammer("kill", shared_url, str(answers))
    answered = answers.stat().st_size
    with closing(create_counters(shared_url)) as counters:
        counted = counters.usage_of_day(1, TODAY).used
        hits = counters.peek([WindowRequest("all", None, 86_400)], now=NOW).windows[0].hits
    assert answered > 100
    unanswered = 53 * 4  # each of the 53 killed processes had at most one step under way in each of its 4 threads
    assert answered <= counted <= answered + unanswered
    assert hits == counted
    if shared_url.startswith("sqlite"):
        with closing(sqlite3.connect(shared_url.removeprefix("sqlite://"))) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_store_in_use_can_be_forked(shared_url: str) -> None:
    made = int(run_hammer("fork", shared_url))
    with closing(create_counters(shared_url)) as counters:
        assert counters.peek([WindowRequest("all", None, 60)], now=NOW).windows[0].hits == made


def test_counts_survive_closing_and_reopening_the_store(shared_url: str) -> None:
    for expected in (1, 2, 3):
        with closing(create_counters(shared_url)) as counters:
            outcome = counters.consume([WindowRequest("day", 9, 86_400)], reserve=UsageReservation(1, 9), now=NOW)
        assert (outcome.windows[0].hits, outcome.used_today) == (expected, expected)
