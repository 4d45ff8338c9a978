"""The inbox: a query is resolved in seconds, by mouse and by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.people import Person
from tests.browser.test_widget import Customer
from tests.callers import PASSWORD
from tests.server import Server

pytestmark = pytest.mark.browser


@pytest.fixture
def mo(server: Server, browser: Any, tmp_path: Path) -> Person:
    """An owner with visitors who search for beacons, zeppelins, and picnics without results; their inbox is open."""
    email = f"{tmp_path.name.strip('_')}@example.com"
    customer = Customer(server, email)
    for visitors, query in enumerate(["picnic", "zeppelin", "beacon"], 1):
        for visitor in range(visitors):
            customer.search(query, f"visitor-{visitor}")
    person = Person(browser, server.base_url)
    person.go("/login")
    person.fill(email=email, password=PASSWORD)
    person.press("Log in")
    person.sees("Dashboard")

    def inbox_knows() -> bool:
        person.go(f"/api/analytics/inbox?site_id={customer.site_id}")
        return queries(person) == ["beacon", "zeppelin", "picnic"]

    person.wait(inbox_knows, "the searches did not reach the inbox")
    return person


def queries(person: Person) -> list[str]:
    return person.texts(".inbox h2 a")


def test_inbox_queries_can_be_resolved_by_mouse(mo: Person) -> None:
    mo.press("Add a synonym", "a")
    mo.fill(synonyms="lighthouse")
    mo.press("Show the effect")
    mo.sees("Results for “beacon”")
    mo.press("Save")
    mo.sees("Synonym saved. “beacon” now finds 2 pages.")
    assert queries(mo) == ["zeppelin", "picnic"]

    mo.press("Pin a page", "a")
    mo.fill(find="opening")
    mo.press("Find")
    mo.sees("Opening hours")
    mo.press("Pin", "a")
    mo.sees("Results for “zeppelin”")
    mo.press("Save")
    mo.sees("Page pinned. “zeppelin” now finds 1 page.")
    assert queries(mo) == ["picnic"]

    mo.press("Ignore")
    mo.sees("“picnic” is ignored.")
    assert queries(mo) == []
    mo.press("Undo")
    mo.sees("“picnic” is no longer ignored.")
    assert queries(mo) == ["picnic"]


def test_inbox_queries_can_be_resolved_by_keyboard(mo: Person, browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def type_keys(*keys: str) -> None:
        ActionChains(browser).send_keys(*keys).perform()

    def is_at() -> str:
        focused = browser.switch_to.active_element
        return str(focused.get_attribute("aria-label") or focused.text)

    def go_to(name: str, most: int) -> None:
        for _ in range(most):
            type_keys(Keys.TAB)
            if is_at() == name:
                return
        raise AssertionError(f"{name!r} is more than {most} steps away; at {is_at()!r}")

    go_to("Ignore: beacon", 30)
    type_keys(Keys.ENTER)
    mo.sees("“beacon” is ignored.")
    go_to("Undo: beacon", 1)
    type_keys(Keys.ENTER)
    mo.sees("“beacon” is no longer ignored.")

    go_to("Add a synonym for beacon", 5)
    type_keys(Keys.ENTER)
    mo.sees("Add a synonym for “beacon”")
    type_keys("lighthouse", Keys.ENTER)
    mo.sees("Results for “beacon”")
    go_to("Save", 1)
    type_keys(Keys.ENTER)
    mo.sees("Synonym saved. “beacon” now finds 2 pages.")
    assert queries(mo) == ["zeppelin", "picnic"]

    go_to("Pin a page for zeppelin", 5)
    type_keys(Keys.ENTER)
    mo.sees("Pin a page for “zeppelin”")
    type_keys("opening", Keys.ENTER)
    mo.sees("Opening hours")
    go_to("Pin Opening hours", 25)
    type_keys(Keys.ENTER)
    mo.sees("Results for “zeppelin”")
    go_to("Save", 1)
    type_keys(Keys.ENTER)
    mo.sees("Page pinned. “zeppelin” now finds 1 page.")
    assert queries(mo) == ["picnic"]
