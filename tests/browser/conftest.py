"""A real browser with a real server. Without chromium the tests are skipped; with CI set they fail."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.server import Server, running_server

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--window-size=1200,1400",
)


def _missing(what: str) -> Any:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and CI is set")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="session")
def start_browser() -> Callable[[Path], Any]:
    """Start a browser with its own profile folder."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        _missing("chromium or its driver")
    try:
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        _missing("the package selenium")

    def start(folder: Path) -> Any:
        options = ChromeOptions()
        options.binary_location = chromium
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        return Chrome(options=options, service=Service(driver))

    return start


@pytest.fixture(scope="module")
def chromium(start_browser: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests of a module, since starting it takes a second."""
    driver = start_browser(tmp_path_factory.mktemp("profile"))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def devtools(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Send commands to the browser itself, beyond the driver's commands for a window."""
    from websocket import create_connection

    address = chromium.capabilities["goog:chromeOptions"]["debuggerAddress"]
    url = requests.get(f"http://{address}/json/version", timeout=30).json()["webSocketDebuggerUrl"]
    numbers = count(1)
    with closing(create_connection(url, suppress_origin=True, timeout=60)) as socket:

        def ask(method: str, **parameters: object) -> Any:
            socket.send(json.dumps({"id": next(numbers), "method": method, "params": parameters}))
            return json.loads(socket.recv())["result"]

        yield ask


@pytest.fixture
def browser(chromium: Any, devtools: Callable[..., Any]) -> Iterator[Any]:
    """A window with its own cookies, storage, and cache.

    After the test, assert that no page logged an error, such as a blocked script or style.
    """
    first = chromium.current_window_handle
    context = devtools("Target.createBrowserContext")
    place = {"url": "about:blank", "newWindow": True, "width": 1200, "height": 1400, **context}
    chromium.switch_to.window(devtools("Target.createTarget", **place)["targetId"])
    chromium.get_log("browser")
    try:
        yield chromium
        severe = [entry["message"] for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"]
        assert [message for message in severe if "Failed to load resource" not in message] == []
    finally:
        devtools("Target.disposeBrowserContext", **context)
        chromium.switch_to.window(first)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service with two worker processes; the websites of its tenants are on this machine."""
    folder = tmp_path_factory.mktemp("service")
    with running_server(folder, default_plan="pro", crawl_private_addresses="true") as running:
        yield running


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


@pytest.fixture
def other_origin(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A tenant's own web server: its URL, and the folder it serves."""
    folder = tmp_path / "customer"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", folder
        httpd.shutdown()
        thread.join()
