"""A process that runs once per machine."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.clock import Pauses
from app.storage import machine_process
from app.storage.machine_process import MachineProcess
from tests.patience import PATIENCE_SECONDS, eventually

PATIENT = "os.read(0, 1)"
DEAF = "signal.pause()"
NO_RESTART = Pauses(1000.0, 1000.0)


@pytest.fixture
def create(tmp_path: Path) -> Iterator[Callable[..., MachineProcess]]:
    """Create processes that record their IDs, follow commands, and are stopped."""
    made = []

    def create_one(
        action: str = PATIENT, stop_seconds: float = PATIENCE_SECONDS, pauses: Pauses = NO_RESTART
    ) -> MachineProcess:
        program = (
            "import os, pathlib, signal, sys;"
            "f = pathlib.Path('ids').open('a'); f.write(f'{os.getpid()}\\n'); f.close();"
            f"{action}"
        )
        command = (sys.executable, "-S", "-c", program)
        made.append(
            MachineProcess(tmp_path, "test", command, stop_seconds=stop_seconds, failure_pauses=pauses, cwd=tmp_path)
        )
        return made[-1]

    yield create_one
    for each in made:
        each.stop()


def ids(folder: Path) -> list[int]:
    file = folder / "ids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def runs(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_only_one_process_runs_per_machine(create: Callable[..., MachineProcess], tmp_path: Path) -> None:
    first, second = create(), create()

    assert first.start()
    assert second.start()
    assert first.start()
    eventually(lambda: ids(tmp_path))
    first.stop()
    assert second.start()
    eventually(lambda: len(ids(tmp_path)) == 2)

    assert [runs(each) for each in ids(tmp_path)] == [False, True]
    assert not first.start()


def test_killed_process_is_restarted(create: Callable[..., MachineProcess], tmp_path: Path) -> None:
    process = create()
    process.start()
    eventually(lambda: ids(tmp_path))
    os.kill(ids(tmp_path)[0], signal.SIGKILL)

    eventually(lambda: process.start() and len(ids(tmp_path)) == 2)


def test_failed_process_is_not_restarted_at_once(create: Callable[..., MachineProcess], tmp_path: Path) -> None:
    process = create("sys.exit(3)")

    assert process.start()
    eventually(lambda: not process.start())

    assert len(ids(tmp_path)) == 1


@pytest.mark.parametrize(
    ("statuses", "pauses"),
    [
        pytest.param([3, 3, 3, 3], [11.0, 21.0, 31.0], id="pauses grow to a maximum"),
        pytest.param([3, 3, 0, 3, 3], [11.0, 21.0, 1.0, 11.0], id="success resets the pause"),
    ],
)
def test_pauses_before_restarts_grow_with_consecutive_failures(
    create: Callable[..., MachineProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statuses: list[int],
    pauses: list[float],
) -> None:
    seconds = 0.0
    monkeypatch.setattr(machine_process, "time", SimpleNamespace(monotonic=lambda: seconds))
    process = create(f"sys.exit({statuses}[open('ids').read().count('\\n') - 1])", pauses=Pauses(10, 30, lambda: 1.0))
    starts: list[float] = []

    while len(starts) < len(statuses):
        if process.start():
            starts.append(seconds)
            eventually(lambda: len(ids(tmp_path)) == len(starts))
            os.waitid(os.P_PID, ids(tmp_path)[-1], os.WEXITED | os.WNOWAIT)
        seconds += 1.0

    assert [after - before for before, after in pairwise(starts)] == pauses


def test_process_that_ignores_the_stop_request_is_killed(create: Callable[..., MachineProcess], tmp_path: Path) -> None:
    process = create(DEAF, stop_seconds=0.05)
    process.start()
    eventually(lambda: ids(tmp_path))

    process.stop()

    assert not runs(ids(tmp_path)[0])
