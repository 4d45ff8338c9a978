"""The journey of an owner who puts one search box over two sites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests

from tests.browser.people import Person
from tests.browser.test_widget import Visitor
from tests.browser.test_widget_results import Searcher
from tests.callers import page
from tests.server import Server

pytestmark = pytest.mark.browser


def texts(visitor: Visitor, css: str) -> list[str]:
    return [str(found.text) for found in visitor.inside(css)]


def add_site(ann: Person, name: str, url: str, *documents: dict[str, Any]) -> str:
    """Add a site with documents. Returns its ID."""
    ann.go("/sites/create")
    ann.fill(name=name, url=url)
    ann.press("Add site")
    ann.sees("Add your content")
    site = str(ann.driver.current_url).removeprefix(ann.base_url).partition("/sources")[0]
    token = ann.make_key(site, "Web server", "private")
    sent = requests.post(
        f"{ann.base_url}/api/v1/index/bulk",
        json={"documents": list(documents)},
        headers={"Authorization": f"Bearer {token}"},
        timeout=30,
    )
    assert sent.json()["indexed"] == len(documents)
    return site.rpartition("/")[2]


def test_owner_puts_one_box_over_two_sites_and_sees_the_analytics_of_each(
    server: Server, browser: Any, other_origin: tuple[str, Path], tmp_path: Path
) -> None:
    ann = Person(browser, server.base_url)
    ann.register("ann@example.com")
    opening, prices = page(1, title="Lighthouse tickets"), page(2, title="Lighthouse tours")
    museum = add_site(ann, "Museum", "https://museum.example.com/", opening, prices)
    repair, lamp = page(3, title="Repair a lighthouse"), page(4, title="Lamp of a lighthouse")
    manual = add_site(ann, "Handbook", "https://manual.example.com/", repair, lamp)

    ann.go("/dashboard")
    ann.press("Collections", "a")
    ann.press("Create a collection", "a")
    ann.fill(name="Everything")
    for site in (museum, manual):
        ann.find(f"#site-{site}").click()
    ann.find(f"#site-{manual}-label").send_keys("Manual")
    ann.press("Create collection")
    ann.sees("Collection created")
    collection = str(browser.current_url).partition("?")[0].rpartition("/")[2]
    code = next(text for text in ann.texts("code") if "widget.js" in text)

    origin, folder = other_origin
    grouped = code.replace(" async", ' data-group="site" async')
    for name, lines in (("index.html", code), ("grouped.html", grouped)):
        (folder / name).write_text(f'<!doctype html><html lang="en"><title>Museum</title><body>{lines}</body></html>')
    visitor = Visitor(browser, origin, tmp_path)
    visitor.go("/")
    visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")
    visitor.type("lighthouse")
    visitor.wait(lambda: len(visitor.inside(".hit [part=site]")) == 4, "the labels did not appear")
    assert sorted(texts(visitor, ".hit [part=site]")) == ["Manual", "Manual", "Museum", "Museum"]
    (link,) = [found for found in visitor.inside("a.hit") if found.text.startswith("Repair a lighthouse")]
    browser.execute_script("arguments[0].addEventListener('click', (event) => event.preventDefault())", link)
    link.click()

    visitor.go("/grouped.html")
    visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")
    visitor.type("lighthouse")
    visitor.wait(lambda: len(visitor.inside("#results .heading")) == 2, "the groups did not appear")
    assert sorted(texts(visitor, "#results .heading")) == ["Manual", "Museum"]
    assert not any(found.is_displayed() for found in visitor.inside("#results [part=site]"))

    searcher = Searcher(browser, origin, folder)
    searcher.go("/index.html?q=lighthouse")
    searcher.finds("4 results")
    assert searcher.values() == {"Site": {"Manual": 2, "Museum": 2}}
    searcher.choose("Manual")
    searcher.finds("2 results")
    assert sorted(hit.split("\n")[0].removesuffix(" Manual") for hit in searcher.hits()) == [
        "Lamp of a lighthouse", "Repair a lighthouse",
    ]  # fmt: skip

    def analytics_of(site: str, *, clicks: bool) -> bool:
        ann.go(f"/api/analytics?site_id={site}")
        return "lighthouse" in ann.text and ("Clicked pages" in ann.text) == clicks

    for site, clicks in ((collection, True), (manual, True), (museum, False)):
        ann.wait(lambda site=site, clicks=clicks: analytics_of(site, clicks=clicks), "analytics lack the search")
    ann.go(f"/api/analytics?site_id={collection}")
    assert "Repair a lighthouse" in ann.texts("section[aria-labelledby=clicked-title] th")
