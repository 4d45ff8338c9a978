"""The process of a machine that works on runs: started by the service when some wait, and never left behind by it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
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
        command: What is started, with the descriptor of the lock that it inherits behind.
    """

    def __init__(self, folder: Path, command: tuple[str, ...] = ()):
        self._locks = FileLocks(folder / "locks")
        self._command = command or (sys.executable, "-m", "flask", "--app", "wsgi", "worker", "--for-service")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process unless the machine has one.

        The process inherits the lock that says so, and so holds it until it has ended, however it ends.
        """
        if self._process is not None and self._process.poll() is None:
            return
        with self._locks.try_inherit(_LOCK) as claim:
            if claim is not None:
                self._process = subprocess.Popen(  # noqa: S603 - our own command.
                    (*self._command, str(claim)), stdin=subprocess.PIPE, pass_fds=(claim,)
                )

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
