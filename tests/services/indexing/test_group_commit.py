"""Writers that share a transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.counters import create_counters
from app.counters.base import CounterStore
from app.models import Base, DepartureReason
from app.models.base import from_microseconds
from app.services.indexing.group_commit import GroupCommit, Written
from app.storage.database import Database
from tests.patience import PATIENCE_SECONDS

NOW = from_microseconds(1_700_000_000_000_000)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path / 'test.db'}", busy_timeout_seconds=0.2)
    Base.metadata.create_all(made.engine)
    yield made
    made.dispose()


@pytest.fixture
def counters() -> CounterStore:
    return create_counters("memory://")


def reasons(database: Database) -> list[str]:
    with database.read() as session:
        return sorted(session.scalars(select(DepartureReason.reason)))


def call_together(group: GroupCommit, calls: list) -> list:
    """Hold the first writer until all others are waiting, so that they share the next transaction."""
    gate, entered = threading.Event(), threading.Event()
    outcomes: list = [None] * len(calls)

    def hold(session: Session) -> Written[None]:
        entered.set()
        assert gate.wait(PATIENCE_SECONDS)
        return Written(None)

    def run(place: int) -> None:
        try:
            outcomes[place] = calls[place]()
        except Exception as error:  # noqa: BLE001 - returned to the test.
            outcomes[place] = error

    first = threading.Thread(target=group.run, args=(1, hold))
    first.start()
    assert entered.wait(PATIENCE_SECONDS)
    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    while len(group._queue) < len(calls):
        pass
    gate.set()
    for thread in [first, *threads]:
        thread.join(PATIENCE_SECONDS)
    return outcomes


def run_together(group: GroupCommit, works: list) -> list:
    """Return the outcomes of works that share the next transaction."""
    return call_together(group, [partial(group.run, 1, work) for work in works])


def run_requests(group: GroupCommit, requests: list, work) -> tuple[list, list]:
    """Run (key, request) pairs in one transaction. Returns the outcomes, and the requests of each call of ``work``."""
    calls: list = []

    def noted(session: Session, members):
        calls.append(sorted(members))
        return work(session, members)

    return call_together(group, [partial(group.run_together, 1, *request, noted) for request in requests]), calls


def write(reason: str):
    def work(session: Session) -> Written[str]:
        session.add(DepartureReason(reason=reason, created_at=NOW))
        session.flush()
        return Written(reason.upper())

    return work


def test_each_writer_of_a_group_gets_its_own_result(database: Database, counters: CounterStore) -> None:
    outcomes = run_together(GroupCommit(database, counters), [write("a"), write("b"), write("c")])

    assert sorted(outcomes) == ["A", "B", "C"]
    assert reasons(database) == ["a", "b", "c"]


def test_waiting_writers_share_one_commit(database: Database, counters: CounterStore) -> None:
    commits = []
    event.listen(database.engine, "commit", lambda connection: commits.append(1))

    run_together(GroupCommit(database, counters), [write(str(number)) for number in range(10)])

    assert len(commits) == 1, "the first request, which was blocked, must not have written anything"


def test_failed_writer_is_rolled_back_alone(database: Database, counters: CounterStore) -> None:
    def fail(session: Session) -> Written[None]:
        session.add(DepartureReason(reason="half done", created_at=NOW))
        session.flush()
        raise ValueError("no")

    outcomes = run_together(GroupCommit(database, counters), [write("a"), fail, write("b")])

    assert [str(outcome) for outcome in outcomes] == ["A", "no", "B"]
    assert isinstance(outcomes[1], ValueError)
    assert reasons(database) == ["a", "b"]


def test_failed_commit_raises_and_later_writes_succeed(database: Database, counters: CounterStore) -> None:
    group = GroupCommit(database, counters)
    other = database.engine.execution_options(writes=True).connect()
    other.begin()
    try:
        with pytest.raises(OperationalError):
            group.run(1, write("locked out"))
    finally:
        other.rollback()
        other.close()

    assert group.run(1, write("later")) == "LATER"
    assert reasons(database) == ["later"]


def test_credential_change_is_announced_before_and_after_the_commit(database: Database, counters: CounterStore) -> None:
    before = counters.peek([], credentials_of=7, now=NOW.timestamp()).credential_version

    GroupCommit(database, counters).run(7, lambda session: Written(None, changed_account=7))

    after = counters.peek([], credentials_of=7, now=NOW.timestamp()).credential_version
    assert before is not None
    assert after is not None
    assert after.is_settled
    assert after != before


def write_all(session: Session, requests):
    for reason in requests:
        session.add(DepartureReason(reason=reason, created_at=NOW))
    session.flush()
    return Written([reason.upper() for reason in requests])


def test_requests_with_the_same_key_are_processed_in_one_call(database: Database, counters: CounterStore) -> None:
    requests = [("x", "a"), ("y", "b"), ("x", "c")]

    outcomes, calls = run_requests(GroupCommit(database, counters), requests, write_all)

    assert outcomes == ["A", "B", "C"]
    assert sorted(calls) == [["a", "c"], ["b"]]
    assert reasons(database) == ["a", "b", "c"]


def test_one_of_several_requests_processed_together_can_be_rejected(database: Database, counters: CounterStore) -> None:
    def refuse_one(session: Session, requests):
        written = write_all(session, [reason for reason in requests if reason != "no"])
        assert len(written.result) == len(requests) - 1
        return Written([ValueError("refused") if reason == "no" else reason for reason in requests])

    requests = [("x", "a"), ("x", "no"), ("x", "c")]
    outcomes, _ = run_requests(GroupCommit(database, counters), requests, refuse_one)

    assert [str(outcome) for outcome in outcomes] == ["a", "refused", "c"]
    assert isinstance(outcomes[1], ValueError)
    assert reasons(database) == ["a", "c"]


def test_requests_processed_together_fail_together_without_affecting_others(
    database: Database, counters: CounterStore
) -> None:
    def fail(session: Session, requests):
        written = write_all(session, requests)
        if "a" in requests:
            raise ValueError("no")
        return written

    requests = [("x", "a"), ("y", "b"), ("x", "c")]
    outcomes, _ = run_requests(GroupCommit(database, counters), requests, fail)

    assert [str(outcome) for outcome in outcomes] == ["no", "B", "no"]
    assert reasons(database) == ["b"]
