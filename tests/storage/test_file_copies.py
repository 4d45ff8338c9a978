"""Cached texts are created once per state, less often if creation is slow, and deleted later."""

from __future__ import annotations

import errno
import gzip
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from app.storage import files
from app.storage.files import PAUSE_FACTOR, FileCopies
from tests.patience import PATIENCE_SECONDS

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


class Source:
    """A text that takes the given number of CPU seconds to create."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0):
        self.seconds = seconds
        self.made: list[str] = []
        self._spent = 0.0
        monkeypatch.setattr(files.time, "thread_time", lambda: self._spent)

    def get(self, copies: FileCopies, state: str, name: str = "text") -> str:
        def make() -> Iterator[bytes]:
            self.made.append(state)
            self._spent += self.seconds
            yield f"the text of {state}".encode()

        return b"".join(copies.get(name, state, make).text()).decode()


@pytest.fixture
def copies(tmp_path: Path) -> FileCopies:
    return FileCopies(tmp_path / "copies")


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


def set_age(copies: FileCopies, age: timedelta) -> None:
    moment = (datetime.now(UTC) - age).timestamp()
    for path in copies._folder.glob("*.copy"):
        os.utime(path, (moment, moment))


def test_text_is_created_once_per_state(copies: FileCopies, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(monkeypatch)

    assert [source.get(copies, state) for state in "aabbb"] == [f"the text of {state}" for state in "aabbb"]
    assert source.made == ["a", "b"]
    assert source.get(FileCopies(copies._folder), "b") == "the text of b", "another process shares it"
    assert source.made == ["a", "b"]


def test_expensive_text_uses_one_percent_of_a_core(
    copies: FileCopies, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    source = Source(monkeypatch, seconds=0.75)
    source.get(copies, "a")
    set_age(copies, timedelta(0))

    assert source.get(copies, "b") == "the text of a"
    clock.shift(0.75 * PAUSE_FACTOR - 1)
    assert source.get(copies, "c") == "the text of a"
    clock.shift(1)
    assert source.get(copies, "d") == "the text of d"
    assert source.made == ["a", "d"]


@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(hours=-1)])
def test_clock_jump_does_not_prevent_recreating_a_text(
    copies: FileCopies, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller, jump: timedelta
) -> None:
    source = Source(monkeypatch, seconds=0.75)
    source.get(copies, "a")
    set_age(copies, timedelta(0))
    clock.shift(jump)

    assert source.get(copies, "b") == "the text of b"


def test_concurrent_requests_create_a_text_once(copies: FileCopies) -> None:
    made, everybody = [], threading.Barrier(4, timeout=PATIENCE_SECONDS)

    def make() -> Iterator[bytes]:
        made.append(1)
        yield b"the text"

    def get(_: int) -> bytes:
        everybody.wait()
        return gzip.decompress(copies.get("text", "a", make).gzipped)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(get, range(4))) == [b"the text"] * 4
    assert made == [1]


def test_text_is_returned_even_if_the_disk_is_full(copies: FileCopies, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(monkeypatch)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        assert source.get(copies, "a") == "the text of a"
    assert [path.name for path in copies._folder.iterdir()] == ["making.lock"]
    assert source.get(copies, "a") == "the text of a"


def test_text_is_returned_even_without_a_usable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "copies").write_text("a file where a folder should be")

    assert Source(monkeypatch).get(FileCopies(tmp_path / "copies"), "a") == "the text of a"


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b'{"state":"a"}\n', b"[]\n"])
def test_damaged_copy_is_recreated(copies: FileCopies, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    source = Source(monkeypatch)
    source.get(copies, "a")
    (copies._folder / "text.copy").write_bytes(content)

    assert source.get(copies, "a") == "the text of a"
    assert source.made == ["a", "a"]


def test_old_copies_and_copies_above_the_size_limit_are_deleted(
    copies: FileCopies, monkeypatch: pytest.MonkeyPatch, clock: time_machine.Traveller
) -> None:
    source = Source(monkeypatch)
    copies.delete_old()
    for name, age in (("old", 3601), ("older than others", 600), ("new", 10)):
        source.get(copies, "a", name)
        os.utime(copies._folder / f"{name}.copy", (NOON.timestamp() - age,) * 2)

    copies.delete_old()
    assert sorted(path.stem for path in copies._folder.glob("*.copy")) == ["new", "older than others"]
    monkeypatch.setattr(files, "MAX_BYTES", (copies._folder / "new.copy").stat().st_size)
    copies.delete_old()
    assert [path.stem for path in copies._folder.glob("*.copy")] == ["new"]
