"""Waiting events of every process are counted, at any position of a journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from app.models import EventJournal
from app.services.analytics.event_ingestion import WaitingEvents
from app.services.analytics.event_journal import Journal, Portion
from app.services.analytics.event_lines import encode
from app.services.analytics.events import EventRecorder, SearchEvent
from app.storage.database import Database
from tests.services.analytics.conftest import MOMENT


def search(query: str = "harbour") -> SearchEvent:
    return SearchEvent(1, query, 3, MOMENT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "events"


@pytest.fixture
def recorder(folder: Path, database: Database) -> Iterator[EventRecorder]:
    recorder = EventRecorder(folder, database, background=False)
    yield recorder
    recorder.stop()


@pytest.fixture
def waiting(folder: Path, database: Database) -> WaitingEvents:
    return WaitingEvents(folder, database)


def test_waiting_count_is_zero_without_a_folder(waiting: WaitingEvents) -> None:
    assert waiting.count() == 0


def test_recorded_events_are_counted_as_waiting_until_they_are_moved(
    recorder: EventRecorder, waiting: WaitingEvents
) -> None:
    counts = []
    for _ in range(3):
        recorder.record(search())
        counts.append(waiting.count())
    recorder.flush()
    counts.append(waiting.count())
    recorder.record(search())
    counts.append(waiting.count())

    assert counts == [1, 2, 3, 0, 1]


def test_events_in_journals_of_other_processes_are_counted_as_waiting(
    recorder: EventRecorder, waiting: WaitingEvents, folder: Path
) -> None:
    recorder.record(search())
    other = Journal.create(folder)
    other.append(encode(search(), 1))
    other.append(encode(search(), 2))

    assert waiting.count() == 3
    other.close()


def test_incomplete_journal_line_is_not_counted_as_waiting(waiting: WaitingEvents, folder: Path) -> None:
    journal = Journal.create(folder)
    line = encode(search(), 1)
    counts = []
    with journal.path.open("ab", buffering=0) as file:
        for piece in (line[:20], line[20:], line):
            file.write(piece)
            counts.append(waiting.count())
    journal.close()

    assert counts == [0, 1, 2]


def test_waiting_count_during_a_database_outage_excludes_events_moved_before(
    recorder: EventRecorder, waiting: WaitingEvents, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    recorder.record(search())
    recorder.flush()
    recorder.record(search())
    assert waiting.count() == 1
    monkeypatch.setattr(database, "read", None)

    for _ in range(3):
        recorder.record(search())

    assert waiting.count(database_away=True) == 4


def test_already_counted_journal_content_is_not_read_again(
    recorder: EventRecorder, waiting: WaitingEvents, folder: Path, database: Database
) -> None:
    for _ in range(3):
        recorder.record(search())
    assert waiting.count() == 3
    (path,) = folder.glob("*.journal")
    content = path.read_bytes()
    path.write_bytes(b"x" * len(content))  # Without a newline, so that reading it again finds no event.
    recorder.record(search())

    assert waiting.count() == 4
    path.write_bytes(content)
    with database.write() as session:
        session.add(EventJournal(id=path.name.removesuffix(".journal"), directory_id="x", position=0))
    with database.write() as session:
        session.execute(update(EventJournal).values(position=content.index(b"\n") + 1))
    assert waiting.count() == 2


def test_events_arriving_during_a_flush_wait_for_the_next_flush(
    recorder: EventRecorder, waiting: WaitingEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a busy journal would be moved continuously, with a transaction for every event or two."""
    read = Journal.read

    def read_and_record(journal: Journal, *place: int, ended: bool) -> Portion:
        portion = read(journal, *place, ended=ended)
        if arriving:
            recorder.record(arriving.pop())
        return portion

    monkeypatch.setattr(Journal, "read", read_and_record)
    arriving = [search() for _ in range(5)]
    recorder.record(search())
    moved = [recorder.flush() for _ in range(3)]

    assert moved == [1, 1, 1]
    assert waiting.count() == 1
