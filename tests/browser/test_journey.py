"""A tenant's journey through the pages, with a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests

from tests.browser.people import Person
from tests.callers import PASSWORD, page
from tests.server import Server

pytestmark = pytest.mark.browser


def test_owner_can_register_index_search_read_analytics_pause_and_delete_the_account(
    server: Server, browser: Any
) -> None:
    ann = Person(browser, server.base_url)
    ann.register("ann@example.com")
    site = ann.add_site("Harbour museum", "https://museum.example.com/")

    token = ann.make_key(site, "Web server", "private")
    ann.go(f"/api{site}/keys")
    assert token not in browser.page_source
    sent = requests.post(
        f"{server.base_url}/api/v1/index/bulk",
        json={"documents": [page(1, title="Opening hours", content="The lighthouse opens at nine."), page(2)]},
        headers={"Authorization": f"Bearer {token}"},
        timeout=30,
    )
    assert sent.json()["indexed"] == 2

    ann.go(f"{site}/try")
    ann.fill(q="lighthose")
    ann.press("Search")
    ann.sees("1 result")
    assert ann.texts(".hits h2") == ["Opening hours"]
    assert ann.texts(".hits mark") == ["lighthouse"]
    ann.fill(q="zeppelin")
    ann.press("Search")
    ann.sees("No results for “zeppelin”")

    for query in ("lighthose", "zeppelin"):
        found = requests.get(
            f"{server.base_url}/v1/search", {"q": query}, headers={"Authorization": f"Bearer {token}"}, timeout=30
        )
        assert found.status_code == 200

    def analytics_know() -> bool:
        ann.go(f"/api/analytics?site_id={site.rpartition('/')[2]}")
        return "lighthose" in ann.text and "zeppelin" in ann.text

    ann.wait(analytics_know, "the searches did not reach analytics")
    assert ann.texts("section[aria-labelledby=zero_result_queries-title] tbody th") == ["zeppelin"]
    ann.go("/dashboard")
    ann.sees("2 searches in 1 day, 1 of them without results")
    reads_the_values_of_a_chart_by_keyboard(ann)

    ann.go(site)
    ann.press("Pause site")
    ann.sees("Site paused")
    rejected = requests.get(
        f"{server.base_url}/v1/search", {"q": "hours"}, headers={"Authorization": f"Bearer {token}"}, timeout=30
    )
    assert rejected.json()["error"] == "site_inactive"
    ann.go(f"{site}/try?q=hours")
    ann.sees("This site is paused")

    ann.go("/profile/edit")
    ann.press("Delete my account…", "summary")
    ann.fill(reason="Only a test")
    ann.find("#delete-password").send_keys("not the password")
    ann.press("Delete my account and all its data")
    ann.sees("Password is incorrect")
    ann.find("#delete-password").send_keys(PASSWORD)
    ann.press("Delete my account and all its data")
    ann.sees("Your account and all its data have been deleted")
    ended = requests.get(f"{server.base_url}/sites", headers={"Authorization": f"Bearer {token}"}, timeout=30)
    assert ended.status_code == 401
    ann.go("/dashboard")
    assert browser.current_url == f"{server.base_url}/login?next=/dashboard"


def test_crawl_progress_updates_while_the_owner_watches(
    server: Server, browser: Any, other_origin: tuple[str, Path]
) -> None:
    base_url, folder = other_origin
    pages = "".join(f"<a href=/{number}.html>Room {number}</a>" for number in range(40))
    folder.joinpath("index.html").write_text(f"<title>Museum</title><main><p>Forty rooms.</p></main><nav>{pages}</nav>")
    for number in range(40):
        text = f"Room {number} shows lighthouse number {number * 7919}."
        folder.joinpath(f"{number}.html").write_text(f"<title>Room {number}</title><main><p>{text}</p></main>")
    bea = Person(browser, server.base_url)
    bea.register("bea@example.com")
    site = bea.add_site("Museum", base_url)

    bea.press("Start")
    bea.sees("Source added. The crawler is reading its pages.")
    bea.sees("41 pages indexed.")
    assert "Source added" not in bea.text, "the page was fetched again instead of loaded again"
    bea.press("Run now")
    bea.sees("41 pages indexed (unchanged).")

    bea.go(f"{site}/try?q=31676")
    assert bea.texts(".hits h2") == ["Room 4"]


def reads_the_values_of_a_chart_by_keyboard(ann: Person) -> None:
    from selenium.webdriver.common.keys import Keys

    chart = ann.find(".chart svg")
    ann.driver.execute_script("arguments[0].focus()", chart)
    latest = ann.find(".chart .values").text
    assert chart.get_attribute("aria-valuetext") == latest
    chart.send_keys(Keys.HOME)
    searches = 0
    for _ in range(int(chart.get_attribute("aria-valuemax") or 0)):
        text = ann.find(".chart .values").text
        assert chart.get_attribute("aria-valuetext") == text
        searches += int(text.rpartition(": searches ")[2].partition(",")[0])
        chart.send_keys(Keys.ARROW_RIGHT)
    assert searches == 2, "over all hours of the first day"
    assert ann.find(".chart .values").text == latest
    chart.send_keys(Keys.HOME, Keys.ARROW_LEFT)
    assert chart.get_attribute("aria-valuenow") == "1"


def test_documentation_is_searched_by_keyboard_without_a_site(server: Server, browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    reader = Person(browser, server.base_url)
    reader.go("/docs/search")
    assert reader.find(".on-page [aria-current]").get_attribute("textContent") == "Examples"
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
    ActionChains(browser).send_keys("rate limts").perform()
    script = "return document.querySelector('#docs-search').shadowRoot.querySelector('[part~=hit]')?.textContent ?? ''"
    reader.wait(lambda: "Rate limits" in browser.execute_script(script), "the box found nothing")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    reader.wait(lambda: "/docs/limits" in browser.current_url, "the result was not opened")
    assert reader.find("h1").text == "Rate limits and quotas"


def test_registration_works_by_keyboard(server: Server, browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def type_keys(*keys: str) -> None:
        ActionChains(browser).send_keys(*keys).perform()

    kim = Person(browser, server.base_url)
    kim.go("/register")
    type_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to content"
    type_keys(Keys.ENTER, Keys.TAB, "Kim", Keys.TAB, "kim@example.com", Keys.TAB, PASSWORD, Keys.ENTER)
    kim.sees("Make your first site searchable")


@pytest.mark.parametrize(("width", "folded"), [(360, True), (1200, False)], ids=["phone", "desktop"])
def test_documentation_contents_are_folded_only_on_a_phone(
    server: Server, browser: Any, width: int, folded: bool
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    reader = Person(browser, server.base_url)
    reader.go("/docs/search")

    assert reader.find(".side > ul").is_displayed() is not folded
    assert reader.find(".side summary").is_displayed() is folded
    if folded:
        reader.press("Contents", "summary")
        assert reader.find(".side > ul").is_displayed()
