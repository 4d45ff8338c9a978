"""A counter file that is replaced by an older copy, or deleted, while processes use it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.counters import create_counters
from app.counters.base import CounterStore
from app.counters.values import CredentialVersion, UsageReservation
from tests.counters.every_method import NOW, TODAY


@contextmanager
def process(path: Path) -> Iterator[CounterStore]:
    with closing(create_counters(f"sqlite://{path}", timeout_seconds=20)) as store:
        yield store


def version(store: CounterStore) -> CredentialVersion:
    found = store.consume([], credentials_of=1, now=NOW).credential_version
    assert found is not None
    assert found.is_settled
    return found


def change(store: CounterStore) -> None:
    store.begin_credential_change(1, now=NOW)
    store.end_credential_change(1, now=NOW)


def copied(path: Path) -> Path:
    copy = path.with_name("copy.db")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def replaced(path: Path, forget: Callable[[], None]) -> None:
    copy = copied(path)
    forget()
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    copy.rename(path)


def removed(path: Path, forget: Callable[[], None]) -> None:
    forget()
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@pytest.mark.parametrize("goes_back", [replaced, removed])
def test_cached_version_is_invalid_after_the_file_is_replaced_or_removed(
    tmp_path: Path, goes_back: Callable[[Path, Callable[[], None]], None]
) -> None:
    path = tmp_path / "counters.db"
    with process(path) as changing, process(path) as caching:
        cached = version(caching)
        goes_back(path, lambda: change(changing))

        assert version(caching) != cached


@pytest.mark.parametrize("goes_back", [replaced, removed])
def test_processes_keep_counting_together_after_the_file_is_replaced_or_removed(
    tmp_path: Path, goes_back: Callable[[Path, Callable[[], None]], None]
) -> None:
    path = tmp_path / "counters.db"
    with process(path) as one, process(path) as other:
        for store in (one, other):
            store.consume([], reserve=UsageReservation(1, 9), now=NOW)
        goes_back(path, lambda: None)
        before = one.usage_of_day(1, TODAY).used
        for store in (one, other):
            store.consume([], reserve=UsageReservation(1, 9), now=NOW)

        assert one.usage_of_day(1, TODAY).used == other.usage_of_day(1, TODAY).used == before + 2


def test_reopening_the_file_starts_a_new_incarnation(tmp_path: Path) -> None:
    with process(tmp_path / "counters.db") as store:
        before = version(store)
        store.close()
        assert version(store).incarnation != before.incarnation
