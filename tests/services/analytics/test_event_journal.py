"""Recorded events are counted exactly once, despite failures of processes, disk, and database."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError

from app.models import EventJournal, QueryDay, SearchClick, SearchEvent
from app.services.analytics import events
from app.services.analytics.event_journal import Journal
from app.services.analytics.event_lines import encode
from app.services.analytics.events import GATHER_SECONDS, EventJournalUnavailable, EventRecorder
from app.services.analytics.reports import get_analytics
from app.storage.database import Database
from tests.patience import PATIENCE_SECONDS

from .conftest import MOMENT, TODAY, Recorded, click, delete_site, search

ROOT = Path(__file__).parents[3]
MakeRecorder = Callable[[], EventRecorder]


def stored_queries(database: Database) -> list[str]:
    """Return the queries of all stored events, in order of storing."""
    with database.read() as session:
        return list(session.scalars(select(SearchEvent.query).order_by(SearchEvent.id)))


def eventually(condition: Callable[[], bool], *, seconds: float = 120) -> None:
    """Wait for an event in another thread or process."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        threading.Event().wait(0.01)


# Recording and moving


def test_recorded_event_is_in_analytics_after_a_flush(database: Database, recorder: EventRecorder) -> None:
    recorder.record(search(" How  TO ", results=0, response_ms=12))
    assert recorder.flush() == 1
    with database.read() as session:
        found = get_analytics(session, 1, 7, today=TODAY)
    assert (found.total_searches, found.totals.avg_response_time_ms) == (1, 12)
    assert [(item.query, item.count) for item in found.zero_result_queries] == [("how to", 1)]


def test_recorded_event_is_in_analytics_shortly_after_without_an_explicit_flush(
    database: Database, recorded: Recorded
) -> None:
    recorder = EventRecorder(recorded.directory, database)
    try:
        assert GATHER_SECONDS <= 1, "of the promised two seconds, one must remain for the transaction"
        recorder.record(search())
        eventually(lambda: stored_queries(database) == ["docs"])
    finally:
        recorder.stop()


def test_stopping_moves_all_events_and_removes_the_journals(
    database: Database, recorder: EventRecorder, recorded: Recorded
) -> None:
    for number in range(3000):
        recorder.record(search(f"q{number}"))
    recorder.stop()
    assert stored_queries(database) == [f"q{number}" for number in range(3000)]
    assert recorded.journals == []


def test_recorder_can_record_again_after_a_stop(database: Database, recorder: EventRecorder) -> None:
    recorder.record(search("a"))
    recorder.stop()
    recorder.record(search("b"))
    recorder.flush()
    assert stored_queries(database) == ["a", "b"]


def test_full_journal_is_rotated_and_removed_after_its_events_are_moved(
    database: Database, recorder: EventRecorder, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "ROTATION_BYTES", 1000)
    for number in range(50):
        recorder.record(search(f"q{number}"))
        if number % 10 == 9:
            recorder.flush()
    assert len(stored_queries(database)) == 50
    recorder.stop()
    assert recorded.journals == []
    with database.read() as session:
        assert session.scalars(select(EventJournal.id)).all() == []


@pytest.mark.parametrize(
    "event",
    [
        search(""),
        search("  "),
        search("a\x00b"),
        search("\ud800"),
        search(session_id="\x00"),
        search(session_id="s" * 65),
        search(results=-1),
        search(results=2**63),
        search(response_ms=-1),
        search(site_id=0),
        search("a" * 100_000),
        events.SearchEvent(1, "a", 1, datetime(2026, 3, 10)),  # noqa: DTZ001 - without a zone on purpose
        click(""),
        click("a\x00b"),
        click("\ud800"),
        click(document_id=""),
        click(document_id="\x00"),
        click(document_id="\ud800"),
        click(document_id="d" * 513),
        click(anchor=""),
        click(anchor="a\x00b"),
        click(anchor="a" * 201),
        click(position=0),
        click(position=2**63),
        click(site_id=0),
        click(search_key=-1),
        click(search_key=2**63),
    ],
)
def test_event_that_could_never_be_stored_raises_value_error_on_recording(
    database: Database, recorder: EventRecorder, event: events.SearchEvent | events.Click
) -> None:
    with pytest.raises(ValueError, match=r"event"):
        recorder.record(event)
    recorder.record(search("good", results=2**63 - 1, session_id="s" * 64))
    recorder.record(click("good", "d" * 512, search_key=2**63 - 1, position=None, anchor="a" * 200))
    assert recorder.flush() == 2


def test_unusual_query_text_is_stored_with_normalized_whitespace(database: Database, recorder: EventRecorder) -> None:
    texts = ['"quoted" \\ back', "new\nline\r", "日本語 \U0001f600", "\x01\x1f\x7f", "%s :rows {x} ?", "é" * 256]
    for query in texts:
        recorder.record(search(query, session_id=query[:9]))
    recorder.flush()
    assert stored_queries(database) == [" ".join(query.split()) for query in texts]


def test_journal_entry_of_an_older_version_is_moved(
    database: Database, recorder: EventRecorder, recorded: Recorded
) -> None:
    recorded.directory.mkdir()
    payload = b'[1,1773144000000000,1773144000000000,0,12,"s","docs"]'
    left = recorded.directory / f"{'0' * 32}.journal"
    left.write_bytes(b"%08x %b\n" % (zlib.crc32(payload), payload))

    assert recorder.flush() == 1
    with database.read() as session:
        event = session.scalars(select(SearchEvent)).one()
    assert (event.query, event.session_id, event.results_count, event.response_ms) == ("docs", "s", 0, 12)
    assert event.matched is None
    assert event.mixed is False


def test_searches_and_clicks_of_one_journal_are_moved_unchanged(database: Database, recorder: EventRecorder) -> None:
    recorder.record(click("Docs", "page-2", search_key=7, position=3))
    recorder.record(search("Docs", matched="some"))
    recorder.record(click("日本", "é", search_key=8, position=None))
    assert recorder.flush() == 3
    with database.read() as session:
        clicks = session.scalars(select(SearchClick).order_by(SearchClick.id)).all()
        assert session.scalars(select(SearchEvent.matched)).one() == "some"
    assert [(one.search_key, one.query, one.document_id, one.position) for one in clicks] == [
        (7, "docs", "page-2", 3),
        (8, "日本", "é", None),
    ]
    assert {one.occurred_at for one in clicks} == {MOMENT}


# Processes


@pytest.mark.slow
def test_killed_workers_neither_lose_nor_duplicate_acknowledged_events(database: Database, recorded: Recorded) -> None:
    """Fifty workers, two at a time, each killed at a random moment while it records and moves."""
    chance = random.Random(7)
    url = database.url.render_as_string(hide_password=False)
    nursery = subprocess.Popen(
        [sys.executable, "-m", "tests.services.analytics.nursery", url, str(recorded.directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    workers: dict[str, int] = {}
    acknowledged: set[str] = set()

    def read() -> None:
        assert nursery.stdout is not None
        for line in nursery.stdout:
            if line.startswith(b"pid "):
                workers[line.split()[1].decode()] = int(line.split()[2])
            elif line.endswith(b"\n"):
                acknowledged.add(line.decode().strip())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for pair in range(25):
            names = [f"w{pair}a", f"w{pair}b"]
            nursery.stdin.write("".join(f"{name}\n" for name in names).encode())
            eventually(lambda names=names: workers.keys() >= set(names))
            eventually(lambda names=names: acknowledged >= {f"{name}-0" for name in names})
            for name in names:
                threading.Event().wait(chance.uniform(0, 0.35))
                os.kill(workers[name], signal.SIGKILL)
    finally:
        nursery.stdin.close()
        nursery.wait(PATIENCE_SECONDS)
        reader.join(PATIENCE_SECONDS)
        nursery.stdout.close()
    last = EventRecorder(recorded.directory, database, background=False)
    last.flush()
    last.stop()
    stored = stored_queries(database)
    assert len(acknowledged) > 500
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored))
    assert stored.count("of the parent") == 1
    with database.read() as session:
        assert session.scalar(select(func.sum(QueryDay.searches))) == len(stored)
        assert get_analytics(session, 1, 7).total_searches == len(stored)
        assert get_analytics(session, 1, 7).unique_queries == len(stored)
    assert recorded.journals == []


def test_journal_of_a_live_process_is_not_moved_by_another_recorder(
    database: Database, make_recorder: MakeRecorder, recorded: Recorded
) -> None:
    first, second = make_recorder(), make_recorder()
    first.record(search("of the first"))
    assert second.flush() == 0
    assert first.flush() == 1


@pytest.mark.slow
def test_concurrent_processes_recording_and_moving_count_each_event_once(
    database: Database, recorded: Recorded
) -> None:
    context = multiprocessing.get_context("fork")
    url = database.url.render_as_string(hide_password=False)
    database.dispose()
    workers = [context.Process(target=record_and_move, args=(url, recorded.directory, name)) for name in "abcd"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE_SECONDS)
    assert [worker.exitcode for worker in workers] == [0] * 4
    with database.read() as session:
        found = get_analytics(session, 1, 7, site_id=1, today=TODAY)
        assert session.scalar(select(func.count()).select_from(SearchEvent)) == 4 * 400
    assert found.total_searches == 4 * 300 + 25
    assert (found.top_queries[0].query, found.top_queries[0].count) == ("same", 4 * 200)


def record_and_move(url: str, directory: Path, name: str) -> None:
    """Record 400 events: 200 equal ones, 100 of this process, 100 in sessions shared by all processes."""
    database = Database(url, busy_timeout_seconds=30)
    recorder = EventRecorder(directory, database, background=False)
    for number in range(100):
        recorder.record(search("same"))
        recorder.record(search("same", site_id=1))
        recorder.record(search(f"{name}{number}"))
        recorder.record(search("shared", session_id=f"s{number % 25}", seconds=number // 25))
        if number % 10 == 0:
            recorder.flush()
    recorder.stop()
    database.dispose()


# The file


def test_truncated_record_at_the_end_of_a_journal_is_skipped_and_logged(
    database: Database, recorder: EventRecorder, recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    left = leave_journal(recorded, ["a", "b"])
    with left.open("ab") as file:
        file.write(encode(search("torn"), 1)[:-5])
    assert recorder.flush() == 2
    assert stored_queries(database) == ["a", "b"]
    assert recorded.journals == []
    assert "1 damaged lines" in caplog.text


@pytest.mark.parametrize("place", [0, 4, 8, 9, 20, -2])
def test_damaged_record_is_skipped_and_the_other_records_are_moved(
    database: Database, recorder: EventRecorder, recorded: Recorded, place: int
) -> None:
    left = leave_journal(recorded, ["a", "b", "c"])
    lines = left.read_bytes().split(b"\n")
    damaged = bytearray(lines[1])
    damaged[place] ^= 1
    lines[1] = bytes(damaged)
    left.write_bytes(b"\n".join(lines))
    assert recorder.flush() == 2
    assert stored_queries(database) == ["a", "c"]


def test_journal_containing_only_a_truncated_record_is_removed(recorder: EventRecorder, recorded: Recorded) -> None:
    leave_journal(recorded, []).write_bytes(b"0")
    assert recorder.flush() == 0
    assert recorded.journals == []


def leave_journal(recorded: Recorded, queries: list[str]) -> Path:
    """Create a journal without an owner, as a dead process leaves it."""
    journal = Journal.create(recorded.directory)
    for query in queries:
        journal.append(encode(search(query), 1))
    journal.close()
    return journal.path


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """Simulate a full disk: no file of this process grows beyond ``size`` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 40])
def test_full_disk_raises_event_journal_unavailable_and_loses_no_other_event(
    database: Database, recorder: EventRecorder, recorded: Recorded, room: int
) -> None:
    recorder.record(search("before"))
    with files_end_at(recorded.journals[0].stat().st_size + room):
        for _ in range(3):
            with pytest.raises(EventJournalUnavailable, match="cannot write"):
                recorder.record(search("too much"))
    recorder.record(search("after"))
    assert recorder.flush() == 2
    assert stored_queries(database) == ["before", "after"]


def test_journal_whose_truncated_record_cannot_be_removed_is_replaced_by_a_new_journal(
    database: Database, recorder: EventRecorder, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.record(search("before"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", refuse)
        with files_end_at(recorded.journals[0].stat().st_size + 20), pytest.raises(EventJournalUnavailable):
            recorder.record(search("torn"))
    recorder.record(search("after"))
    assert len(recorded.journals) == 2
    recorder.flush()
    assert sorted(stored_queries(database)) == ["after", "before"]


def refuse(*_arguments: object) -> None:
    raise OSError(5, "Input/output error")


def test_unwritable_folder_raises_event_journal_unavailable(database: Database, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    recorder = EventRecorder(tmp_path / "file" / "events", database, background=False)
    with pytest.raises(EventJournalUnavailable, match="cannot create a journal"):
        recorder.record(search())


# The database


class Away:
    """Makes the database unavailable."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch):
        self._database = database
        self._monkeypatch = monkeypatch
        self._write = database.write

    def before_the_transaction(self) -> None:
        self._monkeypatch.setattr(self._database, "write", refuse_to_begin)

    def before_the_commit(self) -> None:
        @contextmanager
        def write() -> Iterator[object]:
            with self._write() as session:
                yield session
                refuse_to_begin()

        self._monkeypatch.setattr(self._database, "write", write)

    def after_the_commit(self) -> None:
        @contextmanager
        def write() -> Iterator[object]:
            with self._write() as session:
                yield session
            refuse_to_begin()

        self._monkeypatch.setattr(self._database, "write", write)

    def no_longer(self) -> None:
        self._monkeypatch.setattr(self._database, "write", self._write)


def refuse_to_begin() -> None:
    raise OperationalError("BEGIN", {}, Exception("the server closed the connection"))


@pytest.mark.parametrize("moment", ["before_the_transaction", "before_the_commit", "after_the_commit"])
def test_database_failure_at_any_step_neither_loses_nor_duplicates_events(
    database: Database, recorder: EventRecorder, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    away = Away(database, monkeypatch)
    recorder.record(search("a"))
    getattr(away, moment)()
    with pytest.raises(OperationalError):
        recorder.flush()
    recorder.record(search("b"))
    away.no_longer()
    recorder.flush()
    assert stored_queries(database) == ["a", "b"]


@pytest.mark.slow
def test_locked_database_delays_events_and_is_logged_once(
    database: Database, recorded: Recorded, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING)
    impatient = Database(database.url.render_as_string(hide_password=False), busy_timeout_seconds=0.05)
    recorder = EventRecorder(recorded.directory, impatient)
    attempts: list[bool] = []
    move = recorder._flush_or_log
    monkeypatch.setattr(recorder, "_flush_or_log", lambda **how: attempts.append(True) or move(**how))
    try:
        with database.write() as session:
            tables = "event_journals, search_events"
            session.execute(text("SELECT 1" if database.is_sqlite else f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE"))
            recorder.record(search("a"))
            eventually(lambda: "stay on disk" in caplog.text)
            recorder.record(search("b"))
            failed = len(attempts)
            eventually(lambda: len(attempts) >= failed + 2)
        eventually(lambda: len(stored_queries(database)) == 2)
        eventually(lambda: "moved to the database again" in caplog.text)
        assert caplog.text.count("stay on disk") == 1
    finally:
        recorder.stop()
        impatient.dispose()


def test_events_left_by_a_stop_during_an_outage_are_moved_by_the_next_recorder(
    database: Database, make_recorder: MakeRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(database, monkeypatch)
    recorder = make_recorder()
    recorder.record(search("a"))
    away.before_the_transaction()
    recorder.stop()
    away.no_longer()
    assert make_recorder().flush() == 1
    assert stored_queries(database) == ["a"]


def test_events_of_a_deleted_site_are_dropped_and_other_sites_events_are_stored(
    database: Database, recorder: EventRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    recorder.record(search("a", site_id=1))
    recorder.record(search("b", site_id=2))
    delete_site(database, 1)
    recorder.flush()
    assert stored_queries(database) == ["b"]
    assert "dropped 1 of deleted sites or erased visitors" in caplog.text


def test_search_events_table_has_no_column_for_ip_addresses(database: Database) -> None:
    with database.read() as session:
        columns = {column.name for column in SearchEvent.__table__.columns}
        assert session.scalar(select(func.count()).select_from(SearchEvent)) == 0
    assert columns == {
        "id",
        "site_id",
        "session_id",
        "query",
        "results_count",
        "response_ms",
        "occurred_at",
        "recorded_at",
        "counted",
        "matched",
        "mixed",
        "visitor",
        "channel",
        "page",
    }


def test_event_times_are_stored_in_utc(database: Database, recorder: EventRecorder) -> None:
    recorder.record(search())
    recorder.flush()
    with database.read() as session:
        assert session.scalars(select(SearchEvent.occurred_at)).one() == datetime(2026, 3, 10, 12, tzinfo=UTC)
