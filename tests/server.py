"""The service as operators run it: gunicorn with worker processes, on a free local port."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import requests

from app.application import create_app
from app.config import load_settings

PROJECT = Path(__file__).resolve().parent.parent
START_SECONDS = 120.0
STOP_SECONDS = 40.0
SECRET = "a secret of the tests that is long enough"
_given_ports: set[int] = set()
_random = random.SystemRandom()  # Test processes choose different ports, even if a test sets the seed.


@dataclass
class Server:
    """A running service.

    Attributes:
        base_url: The URL of the service, without a trailing slash.
        folder: The data directory, which outlives the server.
        environment: The server's environment variables, also used by :meth:`flask`.
        application: The application that gunicorn serves; tests with a fake clock replace ``wsgi:app``.
        checkout: Folder of the code that gunicorn runs; benchmarks compare two.
    """

    base_url: str
    folder: Path
    environment: dict[str, str]
    application: str = "wsgi:app"
    checkout: Path = PROJECT
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        """The process ID of the gunicorn master."""
        assert self.process is not None, "the server was not started"
        return self.process.pid

    @property
    def log(self) -> str:
        """Everything that the server has written to its standard output and error."""
        path = self.folder / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self, *, ready: bool = True) -> None:
        """Start gunicorn and return when the service is ready and has all its workers.

        Args:
            ready: Whether to wait until the service is ready; otherwise it may never be ready.

        Raises:
            RuntimeError: The server exited or was not ready within two minutes; contains the end of its log.
        """
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", self.application],
                cwd=self.checkout, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while ready and time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"gunicorn ended with {self.process.returncode}:\n{self.log[-4000:]}")
            if self._is_ready():
                return
            time.sleep(0.05)
        if not ready:
            return
        self.kill()
        raise RuntimeError(f"the service was not ready within {START_SECONDS:.0f} s:\n{self.log[-4000:]}")

    def _is_ready(self) -> bool:
        try:
            ready = requests.get(f"{self.base_url}/readyz", timeout=5).status_code == 200
        except requests.RequestException:
            return False
        return ready and len(self.worker_pids()) == int(self.environment["WEB_CONCURRENCY"])

    def stop(self) -> int:
        """Stop the server as an operator does (SIGTERM), and return its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"gunicorn did not end within {STOP_SECONDS:.0f} s:\n{self.log[-4000:]}") from None

    def kill(self) -> None:
        """Kill the master and all workers (SIGKILL), as a power failure would."""
        assert self.process is not None
        with suppress(ProcessLookupError):  # The master leads its own process group.
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def worker_pids(self) -> list[int]:
        """Return the process IDs of the workers in ascending order."""
        assert self.process is not None
        return sorted(pid for pid, parent in processes() if parent == self.process.pid)

    def flask(self, *arguments: str) -> str:
        """Run ``flask --app wsgi …`` on the same installation and return its output.

        Raises:
            RuntimeError: The command failed; the message is its output.
        """
        done = subprocess.run(
            [sys.executable, "-m", "flask", "--app", "wsgi", *arguments],
            cwd=PROJECT, env=self.environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"flask {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def run_here(self, *arguments: str) -> str:
        """Run a command as :meth:`flask` does, but in this process, because a new process takes two seconds to start.

        This method is not thread-safe.

        Raises:
            RuntimeError: The command failed; the message is its output.
        """
        app = create_app(load_settings(self.environment), background=False)
        try:
            done = app.test_cli_runner().invoke(args=arguments)
        finally:
            part = app.extensions["runtime"]
            part.engines.close()
            part.counters.close()
            part.database.dispose()
        if done.exit_code:
            raise RuntimeError(
                f"flask {' '.join(arguments)} ended with {done.exit_code}:\n{done.output}{done.exception}"
            )
        return done.stdout

    def set_plan(self, email: str, plan: str, **limits: int | str) -> None:
        """Set an account's plan and custom limits."""
        options = [text for name, value in limits.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        orjson.loads(self.run_here("account", "set-plan", email, plan, *options, "--json"))


def free_port() -> int:
    """Return a free loopback port below the range of client ports, so that no client can take it meanwhile.

    A process never gets the same port twice, because the first server may not have started yet.
    """
    while True:
        port = _random.randrange(10_000, 32_768)
        if port in _given_ports:
            continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _given_ports.add(port)
            return port


def processes() -> Iterator[tuple[int, int]]:
    """Yield the IDs of every process and its parent, from /proc or, without it, from ``ps``."""
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        yield from ((int(pid), int(parent)) for pid, parent in (line.split() for line in listed.splitlines()))
        return
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # The process has ended.
            yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def running_server(
    folder: Path,
    *,
    workers: int = 2,
    application: str = "wsgi:app",
    own_process: bool = False,
    started: bool = True,
    **settings: str | int,
) -> Iterator[Server]:
    """Run the service on a free port of 127.0.0.1, and stop it at the end.

    Args:
        folder: The data directory; created if missing, and kept afterward.
        workers: The number of worker processes.
        application: The application that gunicorn serves.
        own_process: Whether a separate process creates the tables, as in production.
        started: Whether to create the tables and start the service; otherwise the caller must.
        settings: Additional settings by lowercase name, such as ``default_plan="pro"``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    server = _prepare(folder, workers, settings)
    server.application = application
    try:
        if started:
            (server.flask if own_process else server.run_here)("database", "upgrade")
            server.start()
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.stop()


def _prepare(folder: Path, workers: int, settings: dict[str, str | int]) -> Server:
    port = free_port()
    inherited = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "COVERAGE_PROCESS_START")
    environment = {name: os.environ[name] for name in inherited if name in os.environ}
    environment.update(
        HOST="127.0.0.1",
        PORT=str(port),
        DATA_DIR=str(folder),
        SECRET_KEY=SECRET,
        WEB_CONCURRENCY=str(workers),
        LOG_LEVEL="WARNING",
    )
    environment.update({name.upper(): str(value) for name, value in settings.items()})
    return Server(f"http://127.0.0.1:{port}", folder, environment)
