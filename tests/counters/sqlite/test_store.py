"""A counter file that is locked, full, damaged, foreign, or missing."""

from __future__ import annotations

import gc
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.metering import RaisedDays, day_of
from app.counters.sqlite import housekeeper, schema
from app.counters.sqlite.store import SqliteCounters
from app.counters.values import CountersDamaged, CountersUnavailable, UncountedSearch, UsageReservation, WindowRequest
from tests.counters.every_method import EVERY_METHOD, TODAY, call, until_it_is_back
from tests.noting_lock import NotingLock
from tests.patience import PATIENCE_SECONDS, eventually

NOW = 1_700_000_000.0
MINUTE = WindowRequest("minute", 1000, 60)
BUDGET_SECONDS, PATIENT_SECONDS = 0.2, 20.0
READING = {"usage_of_day", "usage_between"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "counters.db"


@pytest.fixture
def counters(path: Path) -> Iterator[CounterStore]:
    with closing(create_counters(f"sqlite://{path}", busy_seconds=PATIENT_SECONDS)) as store:
        store.consume([MINUTE], now=NOW)
        yield store


@pytest.fixture
def impatient(counters: CounterStore, path: Path) -> Iterator[CounterStore]:
    """Another store on the same file with a short timeout."""
    with closing(create_counters(f"sqlite://{path}", busy_seconds=BUDGET_SECONDS)) as store:
        until_it_is_back(lambda: store.peek([MINUTE], now=NOW))
        yield store


@contextmanager
def locked_by_another_process(path: Path) -> Iterator[None]:
    program = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        print("locked", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        try:
            yield
        finally:
            holder.kill()


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in EVERY_METHOD if name not in READING])
def test_every_write_fails_in_time_if_another_process_locks_the_file(
    impatient: CounterStore, path: Path, method: str
) -> None:
    with locked_by_another_process(path):
        began = time.monotonic()
        with pytest.raises(CountersUnavailable, match="locked by another process") as caught:
            call(impatient, method)
        assert BUDGET_SECONDS <= time.monotonic() - began < PATIENT_SECONDS
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert until_it_is_back(lambda: impatient.consume([MINUTE], now=NOW)).windows[0].hits == 2


@pytest.mark.parametrize("method", sorted(READING))
def test_usage_can_be_read_while_the_file_is_locked(impatient: CounterStore, path: Path, method: str) -> None:
    with locked_by_another_process(path):
        until_it_is_back(lambda: call(impatient, method))


def test_windows_can_be_read_while_the_file_is_locked(impatient: CounterStore, path: Path) -> None:
    with locked_by_another_process(path):
        (window,) = until_it_is_back(lambda: impatient.peek([MINUTE], usage_of=1, now=NOW)).windows

    assert window.hits == 1


@pytest.mark.slow
def test_repeated_writes_to_a_locked_file_do_not_each_wait_the_full_time(counters: CounterStore, path: Path) -> None:
    steps, budget_seconds = 60, 3.0
    with (
        locked_by_another_process(path),
        closing(create_counters(f"sqlite://{path}", busy_seconds=budget_seconds)) as store,
    ):
        with pytest.raises(CountersUnavailable):
            store.consume([MINUTE], now=NOW)
        began = time.monotonic()
        for _ in range(steps):
            store.usage_of_day(1, TODAY)
            with pytest.raises(CountersUnavailable):
                store.consume([MINUTE], now=NOW)
        assert time.monotonic() - began < steps * budget_seconds / 2


def test_waiting_step_uses_the_shorter_timeout_set_by_an_earlier_failure(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteCounters(path, RaisedDays(), busy_seconds=10 * PATIENCE_SECONDS)
    rejected = threading.Event()

    def wait() -> None:
        with pytest.raises(CountersUnavailable):
            store.consume([MINUTE], now=NOW)
        rejected.set()

    with closing(store):
        store.consume([MINUTE], now=NOW)
        lock = NotingLock()
        monkeypatch.setattr(store._file, "_lock", lock)
        waiting = threading.Thread(target=wait)
        with locked_by_another_process(path):
            with lock:
                waiting.start()
                assert lock.is_waited_for.wait(PATIENCE_SECONDS)
                monkeypatch.setattr(store._file, "_wait_seconds", 0.01)  # As after the failure of an earlier step.
            assert rejected.wait(PATIENCE_SECONDS)
        waiting.join()


def test_step_waits_for_a_lock_that_is_held_shorter_than_its_budget(path: Path) -> None:
    with closing(create_counters(f"sqlite://{path}", busy_seconds=20)) as counters:
        counters.consume([MINUTE], now=NOW)
        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
            other.execute("BEGIN IMMEDIATE")
            release = threading.Timer(0.05, other.execute, ["COMMIT"])
            release.start()
            assert counters.consume([MINUTE], now=NOW).windows[0].hits == 2
            release.join()


@pytest.mark.slow
def test_full_disk_fails_writes_until_space_is_available(path: Path) -> None:
    program = """
        import resource, signal, sys
        from app.counters.values import CountersUnavailable, UsageReservation, WindowRequest
        from app.counters import create_counters

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        counters = create_counters("sqlite://" + sys.argv[1])
        passed = 0
        counters.consume([WindowRequest("first", 5, 60)], now=1.7e9)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        try:
            for passed in range(100_000):
                window = WindowRequest(f"visitor {passed}", 5, 60)
                counters.consume([window], reserve=UsageReservation(passed, 5), now=1.7e9)
        except CountersUnavailable as error:
            print(type(error).__name__, type(error.__cause__).__name__)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(counters.consume([WindowRequest("first", 5, 60)], now=1.7e9).windows[0].hits)
        keys = [WindowRequest(f"visitor {number}", 5, 60) for number in range(passed)]
        print(all(counters.peek([key], now=1.7e9).windows[0].hits == 1 for key in keys) and len(keys) > 10)
        print(counters.peek([WindowRequest(f"visitor {passed}", 5, 60)], now=1.7e9).windows[0].hits)
        counters.close()
    """
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    answers = ["CountersUnavailable OperationalError", "2", "True", "0"]
    assert finished.stdout.splitlines() == answers, finished.stderr


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_every_method_reports_a_file_that_is_not_a_database(path: Path, method: str) -> None:
    path.write_bytes(b"This is no database. " * 500)
    with closing(create_counters(f"sqlite://{path}")) as counters:
        with pytest.raises(CountersDamaged, match=r"counters\.db is damaged or belongs to another program") as caught:
            call(counters, method)
        assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)
    assert path.read_bytes().startswith(b"This is no database. ")


def test_partly_damaged_file_raises_counters_damaged(path: Path) -> None:
    with closing(create_counters(f"sqlite://{path}")) as counters:
        for number in range(500):
            counters.consume([WindowRequest(f"visitor {number}", 5, 60)], now=NOW)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    windows = [WindowRequest(f"visitor {number}", 5, 60) for number in range(500)]
    with (
        closing(create_counters(f"sqlite://{path}")) as counters,
        pytest.raises(CountersDamaged, match=r"counters\.db is damaged"),
    ):
        counters.consume(windows, now=NOW)


def test_database_of_another_program_is_rejected_and_left_unchanged(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE accounts (id INTEGER)")
    with (
        closing(create_counters(f"sqlite://{path}")) as counters,
        pytest.raises(CountersDamaged, match="another program"),
    ):
        counters.check()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_schema").fetchall() == [("accounts",)]


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_every_method_fails_until_the_directory_exists(tmp_path: Path, method: str) -> None:
    with closing(create_counters(f"sqlite://{tmp_path}/missing/counters.db")) as counters:
        with pytest.raises(CountersUnavailable, match=r"missing/counters\.db cannot be used"):
            call(counters, method)
        (tmp_path / "missing").mkdir()
        call(counters, method)


def test_counter_files_are_accessible_only_to_their_owner(counters: CounterStore, path: Path) -> None:
    modes = [Path(f"{path}{suffix}").stat().st_mode & 0o777 for suffix in ("", "-wal", "-shm")]
    assert modes == [0o600] * 3


def test_expired_rows_are_swept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "_ROUND_SECONDS", 0.01)

    def rows() -> dict[str, int]:
        with closing(sqlite3.connect(path)) as other:
            return {
                table: other.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("windows", "days", "site_days", "reports")
            }

    with closing(create_counters(f"sqlite://{path}")) as counters:
        for number in range(350):
            counters.consume(
                [WindowRequest(f"visitor {number}", 5, 60)], reserve=UsageReservation(number, 5, 7), now=NOW
            )
        later = NOW + 71 * 86_400
        counters.consume([MINUTE], reserve=UsageReservation(1, 5, 7), now=later)
        eventually(lambda: rows() == {"windows": 1, "days": 1, "site_days": 1, "reports": 0})
        assert counters.consume([MINUTE], reserve=UsageReservation(1, 5, 7), now=later).used_today == 2


def test_sweep_ignores_times_from_before_a_clear(path: Path) -> None:
    store = SqliteCounters(path, RaisedDays(), busy_seconds=1.0)
    search = UncountedSearch(1, None, NOW)
    with closing(store):
        store.consume([MINUTE], now=NOW + 2 * 86_400)
        store.clear()
        store.settle(search, once="t", now=NOW)
        store._run(lambda execute: schema.sweep(store._latest, execute))
        store.settle(search, once="t", now=NOW)
        assert store.usage_of_day(1, day_of(NOW)).used == 1


def test_write_ahead_log_stays_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeper, "_ROUND_SECONDS", 0.01)
    monkeypatch.setattr(housekeeper, "_FRAMES_BEFORE_WAITING", 100)
    log = Path(f"{path}-wal")
    with closing(create_counters(f"sqlite://{path}")) as counters:

        def is_short() -> bool:
            for _ in range(100):
                counters.consume([MINUTE._replace(limit=None)], now=NOW)
            return log.stat().st_size < 100_000

        for _ in range(3):
            counters.consume([MINUTE._replace(limit=None)], now=NOW)
            eventually(is_short)


def test_store_can_be_closed_twice_and_used_again(counters: CounterStore) -> None:
    counters.close()
    counters.close()
    assert counters.consume([MINUTE], now=NOW).windows[0].hits == 2


@pytest.mark.slow
def test_unreferenced_store_ends_its_housekeeper_thread(path: Path) -> None:
    def housekeepers() -> int:
        return sum(thread.name == "counters-housekeeper" for thread in threading.enumerate())

    before = housekeepers()
    store = create_counters(f"sqlite://{path}")
    store.consume([MINUTE], now=NOW)
    assert housekeepers() == before + 1
    del store
    gc.collect()  # Its instrumented methods refer to it in a cycle.
    eventually(lambda: housekeepers() == before)


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (WindowRequest("length", 5, None), TypeError),
        (WindowRequest(object(), 5, 60), sqlite3.ProgrammingError),
        (WindowRequest("cost", None, 60, cost=2**64), OverflowError),
    ],
    ids=["length", "key", "cost"],
)
def test_invalid_window_raises_its_own_error_and_changes_nothing(
    counters: CounterStore, broken: WindowRequest, error: type[Exception]
) -> None:
    with pytest.raises(error):
        counters.consume([MINUTE, broken], now=NOW)
    assert counters.consume([MINUTE], now=NOW).windows[0].hits == 2
