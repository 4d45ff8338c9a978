"""DocSearch's unmodified front end, with the code of docs/migrating.md, searches here and links to sections."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.browser.test_widget import Customer
from tests.packages import install_packages
from tests.server import Server

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><title>Manual</title>
<link rel="stylesheet" href="node_modules/@docsearch/css/dist/style.css">
<div id="docsearch"></div>
<script src="node_modules/@docsearch/js/dist/umd/index.js"></script>
<script src="start.js"></script>"""
SNIPPET = re.compile(
    r'import docsearch from "@docsearch/js";\n\nconst BASE = "https://search.example.com", '
    r'PUBLIC_KEY = "svc_pub_…";\n(.+?)```',
    re.DOTALL,
)
"""The documentation's code; the page loads DocSearch with a script element instead of the import."""
MANUAL = {
    "id": "install",
    "title": "Installing",
    "content": "How it begins.\nOn Debian\nInstall the package with apt.",
    "url": "https://manual.example/install",
    "section": "Manual",
    "sections": [{"anchor": "debian", "title": "On Debian", "level": 2, "start": 15}],
}


def test_docsearch_shows_sections_below_their_page(
    browser: Any, server: Server, other_origin: tuple[str, Path]
) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    address, folder = other_origin
    install_packages(Path(__file__).with_name("package.json"), folder)
    customer = Customer(server, "docsearch@example.com")
    sent = requests.post(
        f"{server.base_url}/api/v1/index/bulk",
        json={"documents": [MANUAL]},
        headers={"Authorization": f"Bearer {customer.private_key}"},
        timeout=30,
    )
    assert sent.status_code == 200, sent.text
    (folder / "index.html").write_text(PAGE)
    (code,) = SNIPPET.findall((Path(__file__).parents[2] / "docs" / "migrating.md").read_text())
    values = f"const BASE = {json.dumps(server.base_url)}, PUBLIC_KEY = {json.dumps(customer.public_key)};"
    (folder / "start.js").write_text(values + code)
    wait = WebDriverWait(browser, 20)

    browser.get(f"{address}/index.html")
    wait.until(lambda page: page.find_element(By.CSS_SELECTOR, ".DocSearch-Button")).click()
    wait.until(lambda page: page.find_element(By.CSS_SELECTOR, ".DocSearch-Input")).send_keys("debian apt")
    hits = wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, ".DocSearch-Hit a"))

    assert [hit.get_attribute("href") for hit in hits] == ["https://manual.example/install#debian"]
    assert [mark.text for mark in hits[0].find_elements(By.TAG_NAME, "mark")] == ["Debian"]
    assert browser.find_element(By.CSS_SELECTOR, ".DocSearch-Hit-source").text == "Manual"
    assert "Installing" in hits[0].text
