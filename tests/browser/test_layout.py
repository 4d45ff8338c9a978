"""Pages fit a phone, and navigation does not move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.people import Person
from tests.browser.test_accessibility import MINE, OPEN
from tests.browser.test_widget import Customer
from tests.callers import PASSWORD, page
from tests.server import Server

pytestmark = pytest.mark.browser

PHONE = (360, 740)
SCREEN = (1280, 800)
FURTHER = [
    "/sites/{site}/documents?id=page-3",
    "/api/members",
    "/api/audit-log",
    "/api/analytics?site_id={site}&list=top_queries",
]
ONE_WORD = "Donaudampfschifffahrtsgesellschaftskapitaenswitwenrente"
LIMIT_BELOW_LONG_NAME = PHONE[1] * 0.4
LONG = (
    "donaudampfschifffahrtsgesellschaftskapitaen",
    "https://museum.example.com/visit/opening-hours/winter.html",
    "opening hours in winter for groups of more than twenty people",
)

CUT = """
const cut = [];
for (const part of document.querySelectorAll("main *, header *, footer *")) {
  if (part.matches("pre, input, select, textarea") || part.closest(".hidden, svg, .prose .scroll")) continue;
  const hides = getComputedStyle(part).overflowX !== "visible";
  if (hides && part.clientWidth && part.scrollWidth > part.clientWidth + 1)
    cut.push(`${part.tagName}.${part.className}: ${part.scrollWidth} px in ${part.clientWidth}`);
}
return cut;
"""
"""Finds elements with overflowing text. Code and tables of the documentation may scroll in their boxes."""

PLACES = """
return [...document.querySelectorAll(arguments[0])].map(part => {
  const box = part.getBoundingClientRect();
  return [part.textContent, box.x, box.y, box.width, box.height];
});
"""


def resize(browser: Any, size: tuple[int, int]) -> None:
    values = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", values)


def log_in(ann: Person, email: str) -> None:
    ann.go("/login")
    ann.fill(email=email, password=PASSWORD)
    ann.press("Log in")
    ann.sees("Usage")


@pytest.fixture
def customer(server: Server, tmp_path: Path) -> Customer:
    return Customer(server, f"{tmp_path.name.strip('_')}@example.com")


@pytest.fixture
def ann(server: Server, browser: Any, customer: Customer, tmp_path: Path) -> Person:
    """The tenant's owner, logged in."""
    person = Person(browser, server.base_url)
    log_in(person, f"{tmp_path.name.strip('_')}@example.com")
    return person


def wrong_of(browser: Any, limit: float = PHONE[1] / 3) -> list[str]:
    """Return the overflows on a phone, with all details closed and open.

    Args:
        limit: Pixels above the main heading.
    """
    top = browser.execute_script("return document.querySelector('main h1').getBoundingClientRect().top + scrollY")
    wrong = [f"begins after {top:.0f} px"] if top > limit else []
    for unfolded in (False, True):
        browser.execute_script(
            "for (const one of document.querySelectorAll('details')) one.open = arguments[0]", unfolded
        )
        across = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
        wrong += [f"{across} px wider than the window"] if across > 0 else []
        wrong += browser.execute_script(CUT)
    return wrong


def test_every_page_fits_a_phone(server: Server, browser: Any, customer: Customer, tmp_path: Path) -> None:
    source = customer.make_source("https://museum.example.com/")
    for method, changed, body in (
        ("PATCH", f"/sites/{customer.site_id}", {}),
        ("PUT", "/profile", {}),
        ("POST", f"/api/sites/{customer.site_id}/keys", {"type": "search"}),
    ):
        customer.call(method, changed, {"name": ONE_WORD, **body})
    customer.send(page(3, title=ONE_WORD, author=ONE_WORD, section=ONE_WORD, content=ONE_WORD, url=f"/{ONE_WORD}"))
    for query in ("lighthouse", "zeppelin", *LONG):
        customer.search(query, "visitor")
    resize(browser, PHONE)
    ann = Person(browser, server.base_url)
    ann.wait(lambda: set(LONG) <= set(customer.searched()), "the searches did not reach analytics")
    # While the first crawl runs, each page of the site begins with its progress.
    path_of_source = f"/api/sites/{customer.site_id}/sources/{source['id']}"
    ann.wait(
        lambda: customer.call("GET", path_of_source, {})["source"]["status"] not in ("queued", "running"),
        "the crawl did not end",
    )
    wrong: dict[str, list[str]] = {}
    for path in OPEN:
        ann.go(path)
        wrong[path] = wrong_of(browser)
    log_in(ann, f"{tmp_path.name.strip('_')}@example.com")
    collection = customer.make_collection()
    for template in [*MINE, *FURTHER]:
        path = template.format(
            site=customer.site_id, source=source["id"], run=source["last_run"]["id"], collection=collection
        )
        ann.go(path)
        wrong[f"{path}, logged in"] = wrong_of(browser, LIMIT_BELOW_LONG_NAME)

    assert {path: found for path, found in wrong.items() if found} == {}


@pytest.mark.parametrize("width", [360, 768, 1440])
@pytest.mark.parametrize("path", ["/", "/plans"])
def test_pages_that_sell_fit_every_window(server: Server, browser: Any, path: str, width: int) -> None:
    resize(browser, (width, 900))
    browser.get(f"{server.base_url}{path}")
    assert wrong_of(browser, limit=400) == []
    rows: dict[float, set[float]] = {}
    for _, _, y, *_, height in browser.execute_script(PLACES, ".plan"):
        rows.setdefault(y, set()).add(height)

    assert all(len(heights) == 1 for heights in rows.values()), "cards in a row must have the same height"
    assert len(rows) == {360: 5, 768: 2, 1440: 1}[width]
    for part in ("price", "ticks"):
        tops = {round(y) for _, _, y, *_ in browser.execute_script(PLACES, f".plan > .{part}")}
        assert len(tops) == len(rows), f"{part} begins at one height in each row"


def test_tables_of_the_documentation_do_not_break_names(server: Server, browser: Any) -> None:
    resize(browser, SCREEN)
    browser.get(f"{server.base_url}/docs/operations")

    broken = browser.execute_script(
        "return [...document.querySelectorAll('td:first-child code')]"
        ".filter(name => !/[\\s/]/.test(name.textContent) && name.getClientRects().length > 1)"
        ".map(name => name.textContent)"
    )

    assert broken == []


@pytest.mark.parametrize(("start", "count"), [("/sites/{site}", 5), ("/profile/edit", 4)], ids=["site", "account"])
def test_tabs_do_not_move_when_one_is_selected(
    browser: Any, ann: Person, customer: Customer, start: str, count: int
) -> None:
    resize(browser, SCREEN)
    ann.go(start.format(site=customer.site_id))
    tabs = [".tabs:not(.under) a", "header a"]
    before = [browser.execute_script(PLACES, css) for css in tabs]
    assert len(before[0]) == count
    assert len({y for _, _, y, *_ in before[0]}) == 1, "they must be in one row"

    for name in ann.texts(".tabs:not(.under) a"):
        ann.press(name, "nav[contains(@class, 'tabs')]//a")
        ann.wait(lambda name=name: ann.texts(".tabs:not(.under) [aria-current]") == [name], f"{name} is not chosen")
        assert [browser.execute_script(PLACES, css) for css in tabs] == before, name


FIELDS = ["/sites/{site}/documents", "/api/analytics?site_id={site}", "/api/audit-log"]


@pytest.mark.parametrize("path", FIELDS)
def test_filter_fields_of_a_list_are_in_one_line(browser: Any, ann: Person, customer: Customer, path: str) -> None:
    resize(browser, SCREEN)
    ann.go(path.format(site=customer.site_id))
    fields = ":is(input:not([type=hidden]), select, button)"
    shown = browser.execute_script(PLACES, f".filters:not(details *) {fields}")
    unfolded = browser.execute_script(PLACES, f"details .filters {fields}")

    assert len(shown) >= 3
    for places in (shown, unfolded):
        assert len({(y, height) for _, _, y, _, height in places}) <= 1


def test_navigation_unfolds_without_scripts(browser: Any, ann: Person, customer: Customer) -> None:
    resize(browser, PHONE)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    ann.go(f"/sites/{customer.site_id}")

    assert not ann.find(".tabs ul").is_displayed()
    ann.find(".tabs summary").click()
    ann.press("Search box", "nav[contains(@class, 'tabs')]//a")
    ann.sees("Paste this code")
    ann.find("header summary").click()
    ann.press("Sites", "header//a")
    ann.sees("Add a site")


def test_key_form_shows_and_sends_only_the_fields_of_the_chosen_type(
    browser: Any, ann: Person, customer: Customer
) -> None:
    from selenium.webdriver.support.ui import Select

    fields = {"scopes": "private", "site_only": "private", "allowed_origins": "public"}
    ann.go(f"/api/sites/{customer.site_id}/keys")
    for kind in ("search", "private", "public", "private"):
        Select(ann.find("#type")).select_by_value(kind)
        for field, only in fields.items():
            boxes = browser.find_elements("css selector", f"[name^={field}]:not([type=hidden])")
            assert boxes
            assert {box.is_displayed() for box in boxes} == {only == kind}, (kind, field)
    ann.find("#site_only").click()
    Select(ann.find("#type")).select_by_value("search")
    ann.fill(name="Changed my mind")
    ann.press("Create key")

    ann.sees("Copy the key “Changed my mind” now")
