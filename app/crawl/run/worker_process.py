"""A machine's worker process for runs. The service starts it when runs are waiting, and it ends with the service."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from app.clock import Pauses
from app.storage.machine_process import MachineProcess

NICENESS = 15
"""Niceness of the process: lower priority than searches, but high enough not to hold locks for long."""

STOP_SECONDS = 15.0
"""Seconds that the process has to hand back its runs. Then it is killed, and its claims have to expire."""

FAILURE_PAUSES = Pauses(10.0, 600.0)
"""Pauses before a process that failed is started again. A start takes 2 seconds of CPU even if it fails."""


def create_worker_process(folder: Path) -> MachineProcess:
    """Return the worker process of this machine.

    Args:
        folder: DATA_DIR.
    """
    command = (sys.executable, "-m", "flask", "--app", "wsgi", "worker", "--for-service")
    return MachineProcess(folder, "source-worker", command, stop_seconds=STOP_SECONDS, failure_pauses=FAILURE_PAUSES)


def keep_claim(descriptor: int) -> None:
    """Keep child processes from inheriting the lock, so that it is released when this process ends."""
    os.set_inheritable(descriptor, False)


def end_with_parent(stop: Callable[[], object]) -> None:
    """Lower this process's priority, and call ``stop`` when the service ends."""
    with contextlib.suppress(PermissionError):
        os.nice(NICENESS)

    def wait() -> None:
        # The service holds the other end of the pipe and never writes to it, so this returns when the service ends.
        sys.stdin.buffer.read()
        stop()

    threading.Thread(target=wait, name="service", daemon=True).start()


def end_with_signals(stop: Callable[[], object]) -> None:
    """Call ``stop`` at SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop())
