"""What a visitor sees while typing: the search box beside DocSearch, in a real browser, over the same service.

    python -m benchmarks.typing [--rounds 5]

A page of another origin has our box, and another one has ``@docsearch/js`` 5, from npm, which searches through the
Algolia-compatible API. Both search the project's documentation. Words are typed at 90, 180, and 260 ms a key, without
and with 100 ms of added latency. The benchmark prints milliseconds from the first key to the first row, from the last
key to the rows of the whole word, and the number of search requests, as medians. It then types over a line of the
browser's profile for slow 3G, and prints how many requests were ever under way at once, and the shortest time between
the starts of two. Needs Chromium, its driver, and npm.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.browser.conftest import FLAGS
from tests.browser.test_docsearch import SNIPPET
from tests.browser.test_widget import Customer
from tests.packages import install_packages
from tests.server import running_server

PROJECT = Path(__file__).parents[1]
WORDS = ("webhook", "synonyms", "migrations", "analytics", "typesense")
PACES = (90, 180, 260)
LATENCIES = (0, 100)
SLOW_LINE = {"latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
"""Chromium's profile for slow 3G: milliseconds, and bytes per second."""

HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,"><title>Page</title>'
OURS = """<div id="site-search"></div><script src="%(base)s/widget.js" data-key="%(key)s"></script>"""
DOCSEARCH = """<link rel="stylesheet" href="node_modules/@docsearch/css/dist/style.css"><div id="docsearch"></div>
<script src="node_modules/@docsearch/js/dist/umd/index.js"></script>
<script>const BASE = "%(base)s", PUBLIC_KEY = "%(key)s"; %(code)s</script>"""
WATCH = """
window.seen = { first: 0, last: 0, row: 0, settled: 0, requests: [], ended: [] };
const { seen } = window, [word, find] = arguments;
const fetched = window.fetch;
window.fetch = async (address, options) => {
  const isSearch = /search|queries/.test(String(address));
  if (isSearch) seen.requests.push(performance.now());
  try { return await fetched(address, options); } finally { if (isSearch) seen.ended.push(performance.now()); }
};
addEventListener("keydown", () => { seen.first ||= performance.now(); seen.last = performance.now(); }, true);
const rows = new Function(`return ${find}`);
(function look() {
  const text = rows().join();
  if (!seen.row && text) seen.row = performance.now();
  if (text && text !== seen.text) { seen.text = text; seen.settled = performance.now(); }
  requestAnimationFrame(look);
})();
"""
ROWS = {
    "ours": "[...document.querySelector('#site-search').shadowRoot.querySelectorAll('.hit')].filter((row) => row.getClientRects().length).map((row) => row.innerHTML)",  # noqa: E501
    "DocSearch": "[...document.querySelectorAll('.DocSearch-Hit')].map((row) => row.innerHTML)",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory() as name,
        running_server(Path(name) / "service", default_plan="business") as server,
    ):
        folder = Path(name) / "pages"
        folder.mkdir()
        install_packages(PROJECT / "tests" / "browser" / "package.json", folder)
        customer = Customer(server, "typing@example.com")
        send_documentation(customer)
        (code,) = SNIPPET.findall((PROJECT / "docs" / "migrating.md").read_text())
        values = {"base": server.base_url, "key": customer.public_key, "code": code}
        (folder / "ours.html").write_text(HEAD + OURS % values)
        (folder / "docsearch.html").write_text(HEAD + DOCSEARCH % values)
        with served(folder) as address, browser(Path(name) / "profile") as chrome:
            for latency in LATENCIES:
                for pace in PACES:
                    for system in ROWS:
                        measured = [
                            type_word(chrome, address, system, WORDS[turn % len(WORDS)], pace, {"latency": latency})
                            for turn in range(rounds)
                        ]
                        show(f"{system}, {pace} ms a key, {latency} ms of latency", measured)
            slow = type_word(chrome, address, "ours", "migrations", 180, SLOW_LINE)
            starts, ends = slow["requests"], slow["ended"]
            together = max(
                sum(other <= start for other in starts) - sum(end <= start for end in ends) for start in starts
            )
            gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
            print(
                f"slow 3G: {len(starts)} requests, at most {together} at once, at least "
                f"{min(gaps, default=0):.0f} ms apart; first row after {slow['row'] - slow['first']:.0f} ms"
            )


def send_documentation(customer: Customer) -> None:
    """Index the project's documentation."""
    documents = [
        {"id": file.stem, "title": title.strip("# "), "content": f"{title}\n{text}", "url": f"/docs/{file.stem}"}
        for file in sorted((PROJECT / "docs").glob("*.md"))
        for title, _, text in [file.read_text().partition("\n")]
    ]
    sent = requests.post(
        f"{customer.base_url}/api/v1/index/bulk?format=markdown",
        json={"documents": documents},
        headers={"Authorization": f"Bearer {customer.private_key}"},
        timeout=60,
    )
    sent.raise_for_status()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder from another origin."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Do not log requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def type_word(chrome: Any, address: str, system: str, word: str, pace: int, line: dict[str, int]) -> dict[str, Any]:
    """Type a word on a fresh page. Returns times in milliseconds, as the page saw them."""
    network = {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1, **line}
    chrome.execute_cdp_cmd("Network.enable", {})
    chrome.execute_cdp_cmd("Network.emulateNetworkConditions", {**network, "latency": 0})
    chrome.get(f"{address}/{'ours' if system == 'ours' else 'docsearch'}.html")
    time.sleep(1.0)
    chrome.execute_cdp_cmd("Network.emulateNetworkConditions", network)
    chrome.execute_script(WATCH, word, ROWS[system])
    if system == "ours":
        chrome.execute_script("document.querySelector('#site-search').shadowRoot.querySelector('input').focus()")
    else:
        chrome.execute_script("document.querySelector('.DocSearch-Button').click()")
    time.sleep(1.0)
    next_key = time.perf_counter()
    for letter in word:
        time.sleep(max(0.0, next_key - time.perf_counter()))
        for kind in ("keyDown", "keyUp"):
            text = {"text": letter} if kind == "keyDown" else {}
            chrome.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": letter, **text})
        next_key += pace / 1000
    time.sleep(2.0 if line["latency"] < 200 else 6.0)
    seen: dict[str, Any] = chrome.execute_script("return window.seen")
    assert seen["row"], (system, word, "no row")
    return seen


def show(title: str, measured: list[dict[str, Any]]) -> None:
    """Print the medians of several words."""
    first = statistics.median(seen["row"] - seen["first"] for seen in measured)
    most = max(seen["row"] - seen["first"] for seen in measured)
    last = statistics.median(seen["settled"] - seen["last"] for seen in measured)
    count = statistics.median(len(seen["requests"]) for seen in measured)
    print(
        f"{title}: first row after {first:.0f} ms (at most {most:.0f}), last change {last:.0f} ms after the last key, "
        f"{count:.0f} requests"
    )


if __name__ == "__main__":
    main()
