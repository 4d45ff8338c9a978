"""Runs sources with a browser, and the npm packages of websites that need one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.crawl.fetch.browser import Browser
from app.crawl.fetch.network import Network
from tests.crawl.run.conftest import FreeTurns, Runner
from tests.crawl.run.conftest import runner as runner_without_browser  # noqa: F401  A fixture.
from tests.crawl.run.websites import Website, serving
from tests.packages import fail_or_skip, install_packages

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def chromium_path() -> str:
    path = shutil.which("chromium")
    if path is None:
        fail_or_skip("chromium is missing")
    return path


@pytest.fixture(scope="session")
def patient_browser(chromium_path: str) -> Iterator[Browser]:
    """One browser for all tests, since starting it takes seconds. It has time, since other tests run beside these."""
    with closing(Browser(chromium_path, "SiteSearchBot/1.0", max_seconds=90.0)) as browser:
        yield browser


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the installed npm packages."""
    folder = tmp_path_factory.mktemp("npm")
    install_packages(HERE / "package.json", folder)
    return folder / "node_modules"


@pytest.fixture
def website() -> Iterator[Website]:
    with serving() as site:
        yield site


@pytest.fixture
def turns() -> FreeTurns:
    return FreeTurns()


@pytest.fixture
def runner(runner_without_browser: Runner, patient_browser: Browser) -> Iterator[Runner]:  # noqa: F811
    with closing(Network(private_addresses=False)) as public_network:
        parts = replace(runner_without_browser.parts, browser=patient_browser, public_network=public_network)
        yield replace(runner_without_browser, parts=parts)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests in this folder with ``browser``."""
    for item in items:
        if item.nodeid.startswith("tests/browser/rendering/"):
            item.add_marker(pytest.mark.browser)
