"""The process of a machine that works on runs: started by the service when some wait, and never left behind by it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from app.storage.machine_process import MachineProcess

NICENESS = 15
"""Searches come first, but whatever the process holds locked it still gives back soon."""

STOP_SECONDS = 15.0
"""How long the service waits for the process to hand back its runs, before it kills it: they are continued when their
claims lapse."""


def create_worker_process(folder: Path) -> MachineProcess:
    """The process of the machine whose DATA_DIR this is."""
    command = (sys.executable, "-m", "flask", "--app", "wsgi", "worker", "--for-service")
    return MachineProcess(folder, "source-worker", command, stop_seconds=STOP_SECONDS)


def keep_claim(descriptor: int) -> None:
    """Keep the inherited lock from processes that are started here: it is to end with this one."""
    os.set_inheritable(descriptor, False)


def end_with_parent(stop: Callable[[], object]) -> None:
    """Give way to the service: have less priority, and call ``stop`` when the service ends."""
    with contextlib.suppress(PermissionError):
        os.nice(NICENESS)

    def wait() -> None:
        # Nothing is ever written to it.
        sys.stdin.buffer.read()
        stop()

    threading.Thread(target=wait, name="service", daemon=True).start()


def end_with_signals(stop: Callable[[], object]) -> None:
    """Call ``stop`` at SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop())
