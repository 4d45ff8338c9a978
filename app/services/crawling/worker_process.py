"""The process of a machine that works on runs: started by the service when some wait, and never left behind by it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.storage.locks import FileLocks

NICENESS = 15
"""Searches come first, but whatever the process holds locked it still gives back soon."""

STOP_SECONDS = 15.0
"""How long the service waits for the process to hand back its runs, before it kills it."""

_LOCK = "source-worker"

log = logging.getLogger(__name__)


class WorkerProcess:
    """Starts the process and ends it with the service.

    Its input is a pipe that only the service holds: however the service ends, the pipe does too, and so the process.

    Args:
        folder: DATA_DIR. Of the service's processes on one machine, one starts one.
        command: What is started.
    """

    def __init__(self, folder: Path, command: tuple[str, ...] = ()):
        self._locks = FileLocks(folder / "locks")
        self._command = command or (sys.executable, "-m", "flask", "--app", "wsgi", "worker", "--for-service")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process unless the machine has one."""
        if self._process is not None and self._process.poll() is None:
            return
        with self._locks.try_hold(_LOCK) as free:
            if not free:
                return
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE)  # noqa: S603 - our own command.

    def stop(self) -> None:
        """End the process if it was started here; its runs are handed back."""
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            # Its runs are continued when their claims lapse.
            log.warning("the process that crawls did not end in time and is killed")
            process.kill()
            process.wait()


@contextmanager
def only_worker(folder: Path) -> Iterator[bool]:
    """Be the machine's process for the service; gives whether there is no other."""
    with FileLocks(folder / "locks").try_hold(_LOCK) as held:
        yield held


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
