"""The three counter stores, and a Redis server for the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.counters import create_counters
from app.counters.base import CounterStore
from tests.server import free_port

STORES = ("memory", "sqlite", "redis")
SHARED_STORES = ("sqlite", "redis")


@dataclass
class RedisServer:
    """A Redis server with its own port and directory."""

    directory: Path
    port: int = 0
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.port = self.port or free_port()
        self.process = subprocess.Popen(
            [
                redis_program(),
                *("--bind", "127.0.0.1", "--port", str(self.port)),
                *("--dir", str(self.directory), "--save", ""),
                *self.options,
            ],
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(100).startswith(b"+PONG"):
                        return
            except OSError:
                time.sleep(0.01)
        raise AssertionError("Redis did not start.")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def redis_program() -> str:
    """Path of redis-server. Without one, the test is skipped, or fails in CI."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is missing; CI must have it.")
        pytest.skip("redis-server is not installed.")
    return program


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


def url_of(store: str, request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty store of this kind."""
    if store == "redis":
        url = str(request.getfixturevalue("redis_server").url)
        emptied = create_counters(url)
        emptied.clear()
        emptied.close()
        return url
    if store == "sqlite":
        return f"sqlite://{request.getfixturevalue('tmp_path')}/counters.db"
    return "memory://"


@pytest.fixture(params=STORES)
def counters_url(request: pytest.FixtureRequest) -> str:
    """URL of an empty store, each kind in turn."""
    return url_of(request.param, request)


@pytest.fixture(params=SHARED_STORES)
def shared_url(request: pytest.FixtureRequest) -> str:
    """URL of an empty store that several processes share, each kind in turn."""
    return url_of(request.param, request)


@pytest.fixture
def counters(counters_url: str) -> Iterator[CounterStore]:
    """An empty store, each kind in turn."""
    store = create_counters(counters_url)
    yield store
    store.close()
