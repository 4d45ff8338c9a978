"""A real browser before a real server. Where chromium is missing, the tests are skipped; with CI set they fail."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

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
    """Starts a browser with a folder of its own."""
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


@pytest.fixture
def browser(start_browser: Callable[[Path], Any], tmp_path: Path) -> Iterator[Any]:
    """A fresh browser; afterwards, no page may have logged an error (a blocked script or style is one)."""
    driver = start_browser(tmp_path / "profile")
    try:
        yield driver
        severe = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        assert [message for message in severe if "Failed to load resource" not in message] == []
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The service with two worker processes; the websites of its customers are on this machine."""
    folder = tmp_path_factory.mktemp("service")
    with running_server(folder, default_plan="pro", crawl_private_addresses="true") as running:
        yield running


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Tests print nothing."""


@pytest.fixture
def other_origin(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A customer's own web server: its address, and the folder it serves."""
    folder = tmp_path / "customer"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", folder
        httpd.shutdown()
        thread.join()
