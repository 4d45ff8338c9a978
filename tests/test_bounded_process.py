"""Untrusted input is parsed within time and memory limits, and the calling process survives."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO

import pytest

from app.bounded_process import MAX_MEMORY_BYTES, Bound, BoundedProcess, BoundExceeded, Source, _serve


def length(body: bytes) -> int:
    return len(body)


def spin() -> None:
    while True:
        pass


def fill() -> int:
    return len(bytearray(2 * MAX_MEMORY_BYTES))


def fail() -> None:
    raise RuntimeError("a fault of ours")


def die() -> None:
    os.kill(os.getpid(), 9)


def pieces(source: Source) -> Iterator[int]:
    while piece := source.read(3):
        yield len(piece)


def spin_after_one(source: Source) -> Iterator[int]:
    yield len(source.read(1))
    spin()


@pytest.fixture(scope="module")
def process() -> Iterator[BoundedProcess]:
    with closing(BoundedProcess()) as process:
        yield process


def test_task_runs_in_another_process(process: BoundedProcess) -> None:
    assert process.call(length, b"abc") == 3
    assert process.call(os.getpid) != os.getpid()


def test_stream_yields_every_piece_and_leaves_the_process_usable(process: BoundedProcess) -> None:
    assert list(process.stream(pieces, BytesIO(b"abcdefgh"))) == [3, 3, 2]
    assert list(process.stream(pieces, BytesIO())) == []
    assert process.call(length, b"ab") == 2


@pytest.mark.parametrize(("task", "bound"), [(fill, Bound.MEMORY), (fail, Bound.BROKEN), (die, Bound.CRASHED)])
def test_failed_task_reports_its_bound_and_the_next_task_runs(
    process: BoundedProcess, task: object, bound: Bound
) -> None:
    with pytest.raises(BoundExceeded) as rejection:
        process.call(task)  # One of the tasks returns nothing.

    assert rejection.value.bound is bound
    assert process.call(length, b"abc") == 3


@pytest.mark.slow
def test_task_over_its_cpu_time_is_stopped_and_the_next_task_runs() -> None:
    with closing(BoundedProcess(cpu_seconds=0)) as process:
        with pytest.raises(BoundExceeded) as rejection:
            process.call(spin)
        assert rejection.value.bound is Bound.TIME
        with pytest.raises(BoundExceeded):
            list(process.stream(spin_after_one, BytesIO(b"a")))
        assert process.call(length, b"abc") == 3


def test_closing_a_stream_early_ends_its_process(process: BoundedProcess) -> None:
    stream = process.stream(pieces, BytesIO(b"abcdefgh"))
    next(stream)
    before = set(multiprocessing.active_children())

    stream.close()  # Generators have this method.

    assert len(set(multiprocessing.active_children())) == len(before) - 1
    assert process.call(length, b"abc") == 3


def test_process_exits_cleanly_when_its_caller_disconnects() -> None:
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, 10))
    process.start()
    theirs.close()
    ours.send((pieces, (), True))
    assert ours.poll(30), "the process must request a chunk"

    ours.close()  # With unread data, so that the other side sees a reset connection, not its end.

    process.join(30)
    assert process.exitcode == 0
