"""A browser at an address that dies, hangs, or sends junk: its pages fail without blame, and it is reached again."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import requests

from app.crawl.fetch import browser as browser_module
from app.crawl.fetch.browser import Browser
from app.crawl.fetch.page_rendering import BrowserError, BrowserFailed
from app.crawl.fetch.values import Fetched
from tests.browser.rendering.test_hostile_pages import WRITE, Recorder, page
from tests.patience import eventually
from tests.server import free_port

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "about:blank",
)  # fmt: skip


@contextmanager
def listening(serve: Callable[[socket.socket], object]) -> Iterator[str]:
    """Serve each connection with a function; yield the URL."""
    server = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

    def work(connection: socket.socket) -> None:
        with suppress(OSError):
            serve(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                connections.append(connection)
                threading.Thread(target=work, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"ws://127.0.0.1:{server.getsockname()[1]}/"
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    for connection in connections:
        connection.close()


def silent(connection: socket.socket) -> None:
    pass


def junk(connection: socket.socket) -> None:
    connection.recv(65_536)
    connection.sendall(bytes(range(256)) * 100)


def answer_wrongly(text: bytes) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        request = connection.recv(65_536)
        lines = (line.partition(b":") for line in request.split(b"\r\n"))
        key = next(value.strip() for name, _, value in lines if name.lower() == b"sec-websocket-key")
        accepted = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n"
        )
        for number in range(20):
            message = text.replace(b"NUMBER", str(number).encode())
            connection.sendall(bytes([0x81, len(message)]) + message)

    return serve


@pytest.mark.parametrize(
    "serve",
    [
        silent,
        junk,
        answer_wrongly(b"not JSON"),
        answer_wrongly(b'{"id": NUMBER, "result": 7}'),
        answer_wrongly(b'{"method": "Target.attachedToTarget", "params": {}}'),
    ],
    ids=["silent", "garbage", "not JSON", "wrong results", "wrong events"],
)
def test_address_that_hangs_or_sends_junk_is_to_blame_and_the_driver_recovers(
    chromium_path: str, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, serve: Callable[[socket.socket], None]
) -> None:
    monkeypatch.setattr(browser_module, "_START_SECONDS", 3.0)
    with listening(serve) as url, closing(Browser(url, "bot")) as browser:
        for _ in range(2):
            with pytest.raises(BrowserFailed, match="cannot be started"):
                browser.render(page(WRITE), recorder)
        monkeypatch.setattr(browser_module, "_START_SECONDS", 60.0)
        browser._location = chromium_path
        assert "</script>rendered" in browser.render(page(WRITE), recorder).html


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


class Remote:
    """A Chromium that speaks the DevTools protocol on a port."""

    def __init__(self, path: str, folder: Path):
        self._command = (path, *ARGUMENTS, f"--user-data-dir={folder}")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = (*self._command, f"--remote-debugging-port={self.port}")
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        eventually(self._is_ready)

    def _is_ready(self) -> bool:
        with suppress(requests.ConnectionError):
            return requests.get(f"{self.url}/json/version", timeout=5).ok
        return False

    def pages(self) -> list[str]:
        """Return the URLs of the open pages."""
        targets = requests.get(f"{self.url}/json/list", timeout=5).json()
        return [target["url"] for target in targets if target["type"] == "page"]

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def remote(chromium_path: str, tmp_path: Path) -> Iterator[Remote]:
    made = Remote(chromium_path, tmp_path)
    yield made
    made.kill()


def test_page_is_rendered_once_more_after_the_browser_at_an_address_restarted(remote: Remote) -> None:
    attempts: list[str] = []

    def fetch(url: str, deadline: float) -> Fetched:
        attempts.append(url)
        if len(attempts) == 1:
            remote.kill()
            remote.start()
        return Fetched(url, 200, {"content-type": "text/javascript"}, WRITE.encode())

    target = page("document.head.append(Object.assign(document.createElement('script'), {src: '/app.js'}))")
    with closing(Browser(remote.url, "bot")) as browser:
        assert "</script>rendered" in browser.render(target, fetch).html
        assert len(attempts) == 2


def test_page_that_hangs_does_not_stay_in_the_browser_at_an_address(remote: Remote, recorder: Recorder) -> None:
    with closing(Browser(remote.url, "bot", max_seconds=5.0)) as browser:
        with pytest.raises(BrowserError, match="too long"):
            browser.render(page("while (true);"), recorder)
        eventually(lambda: remote.pages() == ["about:blank"])
