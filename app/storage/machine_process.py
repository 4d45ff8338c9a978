"""A process that a machine has once: started by whichever process of the service needs it first, and never left behind
by it."""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.storage.locks import FileLocks

log = logging.getLogger(__name__)


class MachineProcess:
    """Starts the process and ends it with the service. Threads may share it.

    Its input is a pipe that only the service holds: however the service ends, the pipe does too, and so the process.

    Args:
        folder: DATA_DIR. Of the service's processes on one machine, one starts one.
        lock: Name of the lock that the process holds until it has ended.
        command: Program and arguments; the descriptor of the lock, which it inherits, comes behind.
        stop_seconds: How long it may take to end before it is killed.
        failure_pause_seconds: How long it is not started again after it ended with an exit status above 0.
        cwd: Its working directory; that of the service if not given.
        env: Its environment; that of the service if not given.
    """

    def __init__(
        self,
        folder: Path,
        lock: str,
        command: Sequence[str],
        *,
        stop_seconds: float,
        failure_pause_seconds: float = 0.0,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ):
        self._locks = FileLocks(folder / "locks")
        self._lock_name = lock
        self._command = tuple(command)
        self._stop_seconds = stop_seconds
        self._failure_pause_seconds = failure_pause_seconds
        self._cwd = cwd
        self._env = env
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._paused_until = 0.0
        self._has_stopped = False

    def start(self) -> bool:
        """Start the process unless the machine has one.

        The process inherits the lock that says so, and so holds it until it has ended, however it ends.

        Returns:
            Whether the machine has one; not if it has just failed, or is stopped here.
        """
        with self._guard:
            if self._runs():
                return True
            if self._has_stopped or time.monotonic() < self._paused_until:
                return False
            with self._locks.try_inherit(self._lock_name) as claim:
                if claim is not None:
                    self._process = subprocess.Popen(  # noqa: S603 - our own command.
                        (*self._command, str(claim)),
                        stdin=subprocess.PIPE,
                        pass_fds=(claim,),
                        cwd=self._cwd,
                        env=self._env,
                    )
        return True

    def stop(self) -> None:
        """End the process if it was started here, and start none any more."""
        with self._guard:
            self._has_stopped = True
            process, self._process = self._process, None
            if process is None or process.stdin is None:
                return
            process.stdin.close()
            try:
                process.wait(timeout=self._stop_seconds)
            except subprocess.TimeoutExpired:
                log.warning("the process of %s did not end in time and is killed", self._lock_name)
                process.kill()
                process.wait()

    def _runs(self) -> bool:
        """Tell whether one that was started here runs; what is left of one that does not is put away."""
        process = self._process
        if process is None:
            return False
        status = process.poll()
        if status is None:
            return True
        if status > 0:
            self._paused_until = time.monotonic() + self._failure_pause_seconds
            log.error("the process of %s ended with exit status %d", self._lock_name, status)
        if process.stdin is not None:
            process.stdin.close()
        self._process = None
        return False
