"""A PostgreSQL server for the tests, started from the installed programs."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.server import free_port, processes

START_SECONDS = 60.0


@dataclass
class PostgresServer:
    """A PostgreSQL server on a loopback port, with a new temporary directory.

    PostgreSQL does not run as root; if the tests do, it runs as the user ``postgres`` or ``nobody``.
    """

    port: int = 0
    directory: Path | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The URL of the server's default database, with a password that no log may contain."""
        return f"postgresql://tests:postgres-password@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server, with a new cluster the first time, and return when it accepts connections."""
        if self.directory is None:
            self.directory = _new_cluster()
        self.port = self.port or free_port()
        command = [_program("postgres"), "-D", str(self.directory / "cluster"), "-p", str(self.port)]
        options = {
            "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "300",
            "shared_buffers": "64MB", "fsync": "off", "full_page_writes": "off", "jit": "off",
        }  # fmt: skip
        command += [text for name, value in options.items() for text in ("-c", f"{name}={value}")]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory, **_as_user())
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{(self.directory / 'log').read_text()[-4000:]}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        asked = subprocess.run(
            [_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False, timeout=10
        )
        return asked.returncode == 0

    def stop(self) -> None:
        """Stop the server without waiting for its clients; :meth:`start` restarts it with the same data."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)
            self.process = None

    def kill(self) -> None:
        """Kill the server and all its processes (SIGKILL); :meth:`start` recovers committed data."""
        if self.process is not None:
            self.process.send_signal(signal.SIGSTOP)  # A stopped server starts no new processes.
            for pid in [pid for pid, parent in processes() if parent == self.process.pid]:
                with suppress(ProcessLookupError):  # The process has ended.
                    os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
            self.process = None

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        if self.directory is not None:
            shutil.rmtree(self.directory)
            self.directory = None

    def create_database(self, name: str, template: str = "template1") -> str:
        """Create a database and return its URL."""
        self._run_sql(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url.removesuffix("/postgres") + f"/{name}"

    def _run_sql(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)  # not user input


def _program(name: str) -> str:
    """Return the path of a PostgreSQL program; without it, skip the test, or fail it in CI."""
    found = shutil.which(name)
    if found is None:
        versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
        found = str(versions[-1]) if versions else None
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("PostgreSQL is missing; CI must have it.")
        pytest.skip("PostgreSQL is not installed.")
    return found


def _as_user() -> dict[str, int]:
    if os.getuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid}


def _new_cluster() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    as_user = _as_user()
    if as_user:
        os.chown(directory, as_user["user"], as_user["group"])
    password = directory / "password"
    password.write_text("postgres-password")
    password.chmod(0o644)
    subprocess.run(
        [_program("initdb"), "-D", str(directory / "cluster"), "-U", "tests", "--auth=scram-sha-256",
         f"--pwfile={password}", "--no-sync", "--encoding=UTF8", "--locale=C"],
        check=True, stdout=subprocess.DEVNULL, cwd=directory, timeout=PATIENCE_SECONDS, **as_user,
    )  # fmt: skip
    return directory
