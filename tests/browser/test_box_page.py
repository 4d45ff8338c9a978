"""The pages for trying the options of the search box: a site's own page, and the documentation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.browser.people import Person
from tests.browser.test_widget import Customer
from tests.callers import PASSWORD
from tests.server import Server

pytestmark = pytest.mark.browser


class Reader(Person):
    """A person trying the search box."""

    def code(self) -> str:
        return str(self.find("#try-code").text)

    def shows(self, words: str) -> None:
        self.wait(lambda: words in self.code(), f"{words!r} did not appear, but {self.code()}")

    def set(self, name: str, value: str) -> None:
        from selenium.webdriver.support.select import Select

        field = self.find(f"#try-options [name='{name}']")
        self.driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", field)
        if field.tag_name == "select":
            Select(field).select_by_value(value)
        elif field.get_attribute("type") == "checkbox":
            field.click()
        else:
            field.clear()
            field.send_keys(value)

    def pick(self, name: str, value: str) -> None:
        field = self.find(f"#try-options [name='{name}'][value='{value}']")
        self.driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", field)
        field.click()

    def choose_color(self, color: str) -> None:
        script = """const field = document.querySelector("#try-accent");
            field.value = arguments[0];
            field.dispatchEvent(new Event("input", { bubbles: true }));"""
        self.driver.execute_script(script, color)

    def in_box(self, css: str) -> Any:
        script = "return [...(document.querySelector('#site-search').shadowRoot?.querySelectorAll(arguments[0]) ?? [])]"
        return self.driver.execute_script(script, css)

    def search(self, text: str) -> None:
        """Type a text into the box, in place of the text in it."""
        from selenium.webdriver.common.action_chains import ActionChains

        self.driver.execute_script("arguments[0].focus(); arguments[0].select()", self.in_box("input")[0])
        ActionChains(self.driver).send_keys(text).perform()

    def open_all_results(self) -> None:
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        ActionChains(self.driver).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()

    def query(self) -> str:
        return str(self.in_box("input")[0].get_attribute("value"))

    def titles(self) -> list[str]:
        return [found.text for found in self.in_box(".hit > .title")]


@pytest.fixture
def reader(server: Server, browser: Any) -> Reader:
    browser.set_window_size(1200, 900)
    return Reader(browser, server.base_url)


LINES = '<div id="site-search"></div>\n<script src="{}/widget.js" data-key="{}"{} async></script>'


def _log_in(server: Server, reader: Reader, email: str) -> Customer:
    customer = Customer(server, email)
    reader.go("/login")
    reader.fill(email=email, password=PASSWORD)
    reader.press("Log in")
    reader.sees("Dashboard")
    return customer


def test_owner_designs_a_search_box_and_copies_its_code(server: Server, reader: Reader) -> None:
    customer = _log_in(server, reader, "designs@example.com")
    reader.go(f"/sites/{customer.site_id}/box")
    reader.wait(lambda: reader.in_box("input"), "the box did not appear")
    assert reader.code() == LINES.format(server.base_url, customer.public_key, "")

    reader.pick("color", "ruby")
    reader.set("radius", "16px")
    reader.set("theme", "light")
    reader.shows(
        ":root {\n  --site-search-accent: #97184a;\n  --site-search-chosen: #fbeaf0;\n  --site-search-radius: 16px;\n}"
    )
    reader.set("theme", "")
    reader.shows("--site-search-accent: light-dark(#97184a, #ff9fbe);")
    reader.set("filters", "id = page-2")
    reader.set("show-image", "")
    reader.set("show-date", "")
    reader.set("sections", "0")
    reader.set("group", "section")
    reader.set("context-lang", "")
    reader.set("lang", "de")
    attributes = (
        ' data-lang="de" data-filters="id = page-2" data-sections="0" data-group="section" data-show="breadcrumb"'
        ' data-context="lang"'
    )
    reader.shows(LINES.format(server.base_url, customer.public_key, attributes))

    reader.wait(lambda: reader.in_box("input")[0].get_attribute("aria-label") == "Suche", "the box did not change")
    reader.set("context-lang", "")
    reader.wait(lambda: "data-context" not in reader.code(), "the selection was not removed")
    reader.search("lighthouse")
    reader.open_all_results()
    place = reader.find("#try-view")
    reader.wait(lambda: place.shadow_root.find_elements("css selector", ".hits .title"), "the results did not appear")
    (title,) = place.shadow_root.find_elements("css selector", ".hits .title")
    assert title.text.startswith("Lighthouse tickets")
    (mark,) = title.find_elements("css selector", "mark")
    assert mark.value_of_css_property("color") in ("rgba(151, 24, 74, 1)", "rgba(255, 159, 190, 1)")
    reader.pick("placement", "modal")
    reader.shows('data-mode="modal"')
    reader.wait(lambda: reader.in_box(".open"), "the button did not appear")
    reader.pick("placement", "page")
    reader.shows('data-results-url="/search"')
    assert customer.searched() == {}


def test_designer_begins_with_a_frequent_search_and_keeps_the_query(server: Server, reader: Reader) -> None:
    customer = _log_in(server, reader, "begins@example.com")
    reader.go(f"/sites/{customer.site_id}/box")
    reader.wait(
        lambda: reader.query() == "Lighthouse tickets <img", "the field did not start with words of the newest page"
    )
    reader.wait(lambda: reader.titles(), "the first results did not appear")
    for query, visitors in (("hours", 3), ("zeppelin", 5), ("tickets", 2)):
        for number in range(visitors):
            customer.search(query, f"visitor-{number}")
    reader.wait(lambda: customer.searched() == {"zeppelin": 5, "hours": 3, "tickets": 2}, "they were not recorded")
    reader.go(f"/sites/{customer.site_id}/box")
    reader.wait(lambda: reader.titles() == ["Opening hours"], "the preview did not start with the most frequent search")
    assert reader.query() == "hours"

    reader.search("lighthouse")
    reader.wait(lambda: len(reader.titles()) == 2, "the results did not appear")
    reader.pick("color", "ruby")
    color = "return arguments[0].map((mark) => getComputedStyle(mark).color)"
    ruby = {"rgb(151, 24, 74)", "rgb(255, 159, 190)"}
    reader.wait(
        lambda: ruby & set(reader.driver.execute_script(color, reader.in_box(".title mark"))),
        "the color did not change",
    )
    assert (reader.query(), len(reader.titles())) == ("lighthouse", 2)
    reader.set("theme", "dark")
    reader.wait(
        lambda: reader.find("#try-box").value_of_css_property("background-color") == "rgba(23, 29, 35, 1)",
        "the card stayed light",
    )
    assert reader.query() == "lighthouse"
    reader.wait(lambda: len(reader.titles()) == 2, "the results did not reappear")
    reader.in_box("#hit-0")[0].click()
    assert reader.driver.current_url.endswith("/box"), "results must not open in the preview"
    assert customer.used_today() == 10
    assert customer.searched() == {"zeppelin": 5, "hours": 3, "tickets": 2}
    assert customer.clicks()[0] == 0


def test_designer_works_for_a_key_that_is_restricted_to_another_origin(server: Server, reader: Reader) -> None:
    customer = _log_in(server, reader, "restricts@example.com")
    keys = customer.http.get(f"{server.base_url}/api/sites/{customer.site_id}/keys", timeout=30).json()["keys"]
    (key,) = [key for key in keys if key["type"] == "public"]
    customer.call(
        "PUT",
        f"/api/sites/{customer.site_id}/keys/{key['id']}",
        {"name": "public", "expires_at": None, "allowed_origins": ["https://www.example.com"]},
    )
    reader.go(f"/sites/{customer.site_id}/box")
    reader.search("hours")
    reader.wait(lambda: reader.titles() == ["Opening hours"], "the preview finds nothing")
    assert customer.public_key in reader.code()
    assert customer.used_today() == 0


def test_owner_sets_the_font_and_the_texts(server: Server, reader: Reader) -> None:
    customer = _log_in(server, reader, "words@example.com")
    reader.go(f"/sites/{customer.site_id}/box")
    reader.set("font", "own")
    reader.wait(lambda: reader.find("#try-font-name").is_displayed(), "the field for the name did not appear")
    reader.set("font-name", 'Palatino "Linotype"</style>')
    reader.shows('--site-search-font: "Palatino Linotype/style", sans-serif;')
    reader.press("Change any text of the search box", "summary")
    reader.set("text-many", "{n} rooms")
    reader.shows('  texts: {"many":"{n} rooms"},')
    assert "clientInfo" not in reader.code()
    reader.search("lighthouse")
    reader.wait(lambda: [found.text for found in reader.in_box(".status")] == ["2 rooms"], "the text did not change")
    # In one step, since further responses may replace the rows.
    title = "document.querySelector('#site-search').shadowRoot.querySelector('.title')"
    font = reader.driver.execute_script(f"return getComputedStyle({title}).fontFamily")
    assert font == '"Palatino Linotype/style", sans-serif'
    reader.set("font", "system-ui, sans-serif")
    reader.shows("--site-search-font: system-ui, sans-serif;")


def test_owner_is_warned_of_a_color_that_is_hard_to_read(server: Server, reader: Reader) -> None:
    customer = _log_in(server, reader, "colors@example.com")
    reader.go(f"/sites/{customer.site_id}/box")
    reader.wait(lambda: reader.in_box("input"), "the box did not appear")

    reader.pick("color", "own")
    reader.sees("Easy to read.")
    reader.choose_color("#ff9900")
    reader.sees("Hard to read on light pages: contrast 1.9, but 4.5 is needed.")
    suggested = reader.find("#try-contrast").text.split("needed. ")[1].split(" ")[0]
    reader.choose_color(suggested)

    reader.sees("Easy to read.")
    reader.shows(f"--site-search-accent: light-dark({suggested}, #")


def test_reader_can_try_every_search_box_option(server: Server, reader: Reader) -> None:
    customer = _log_in(server, reader, "tries@example.com")
    reader.go("/docs/search-box")
    reader.set("key", customer.public_key)
    reader.shows(LINES.format(server.base_url, customer.public_key, ""))
    reader.wait(lambda: reader.in_box("input"), "the box did not appear")

    reader.set("theme", "dark")
    reader.set("lang", "de")
    reader.set("limit", "1")
    reader.set("placeholder", 'Say "it"')
    reader.set("variable-accent", "rgb(200, 0, 0)")
    reader.shows('data-placeholder="Say &quot;it&quot;" data-limit="1" data-lang="de" data-theme="dark"')
    reader.shows(":root {\n  --site-search-accent: rgb(200, 0, 0);\n}")
    reader.wait(lambda: reader.in_box("input")[0].get_attribute("placeholder") == 'Say "it"', "the box did not change")
    assert reader.find("#site-search").get_attribute("data-theme") == "dark"
    reader.search("lighthouse")
    reader.wait(
        lambda: [found.text for found in reader.in_box(".status")] == ["2 Treffer"], "the results did not appear"
    )
    assert len(reader.in_box(".hit")) == 1
    assert reader.in_box(".title mark")[0].value_of_css_property("color") == "rgba(200, 0, 0, 1)"
    reader.wait(lambda: 'site-search:search {"query":"lighthouse","total":2' in reader.text, "the event was not shown")

    reader.set("texts", "label = Find a page\nmany = {n} pages")
    reader.set("select", "")
    reader.set("filters", "id = page-2")
    reader.shows('  filters: "id = page-2",\n  texts: {"label":"Find a page","many":"{n} pages"},\n  onSelect:')
    reader.wait(
        lambda: reader.in_box("input")[0].get_attribute("aria-label") == "Find a page", "the box did not change"
    )
    reader.set("results", "container")
    reader.shows("<div data-site-search-results></div>")
    reader.search("lighthouse")
    reader.open_all_results()
    place = reader.find("#try-view")
    reader.wait(lambda: place.shadow_root.find_elements("css selector", ".hits a"), "the full view did not appear")
    place.shadow_root.find_elements("css selector", ".hits a")[0].click()
    reader.wait(lambda: "site-search:select" in reader.text, "the event was not shown")
    assert reader.driver.current_url.startswith(f"{server.base_url}/docs/search-box")


def test_new_owner_has_a_working_search_box_within_two_minutes(
    server: Server, reader: Reader, other_origin: tuple[str, Path]
) -> None:
    """Six steps from the front page to a search on the owner's page, without reading documentation."""
    address, folder = other_origin
    home = folder / "index.html"
    text = "<!doctype html><title>Museum</title><main><h1>Museum</h1><p>The lighthouse opens at nine.</p></main>{}"
    home.write_text(text.format(""))

    def is_indexed() -> bool:
        reader.press("Overview", "a")
        return "Pages indexed\n1" in reader.text

    began = time.monotonic()
    reader.register("newcomer@example.com")
    reader.press("Add a site", "a")
    reader.fill(name="Museum", url=address)
    reader.press("Add site")
    reader.sees("Add your content")
    reader.press("Start")
    reader.sees("Source added")
    reader.press("Search box", "a")
    reader.wait(lambda: reader.in_box("input"), "the preview did not appear")
    home.write_text(text.format(reader.code()))
    reader.wait(is_indexed, "the page was not indexed")
    reader.driver.get(address)
    reader.wait(lambda: reader.in_box("input"), "the box did not appear")
    reader.search("lighthouse")
    reader.wait(lambda: [found.text for found in reader.in_box(".title")] == ["Museum"], "the page was not found")
    assert time.monotonic() - began < 120

    def is_seen() -> bool:
        reader.go("/sites")
        reader.press("Museum", "a")
        return f"Seen on {address.removeprefix('http://')}" in reader.text

    reader.wait(is_seen, "the overview did not show where the box was used")


def test_anonymous_reader_is_asked_for_a_public_key(reader: Reader) -> None:
    reader.go("/docs/search-box")
    assert "Log in to find yours" in reader.text
    reader.set("key", "svc_prv_secret")
    reader.sees("Use only a public key (svc_pub_…) in a page.")
    assert "svc_prv" not in reader.find("#site-search").get_attribute("outerHTML")


def test_page_of_the_search_box_has_the_search_of_the_documentation(reader: Reader) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def in_docs_search(css: str) -> list[Any]:
        return list(reader.find("#docs-search").shadow_root.find_elements("css selector", css))

    reader.go("/docs/search-box")
    reader.wait(lambda: reader.find("#docs-search").shadow_root and in_docs_search("button.open"), "no search arrived")
    ActionChains(reader.driver).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
    reader.wait(lambda: in_docs_search("dialog[open]"), "Ctrl+K did not open the search of the documentation")
    ActionChains(reader.driver).send_keys("webhook signature").perform()
    first_title = (
        "return document.querySelector('#docs-search').shadowRoot.querySelector('[part~=hit] .title')?.textContent"
    )
    reader.wait(lambda: reader.driver.execute_script(first_title) == "Webhooks", "the page was not found")
