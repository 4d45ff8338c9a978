"""The full view of the search box: facets, sorting, "load more", and shareable URLs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from tests.browser.stub import CLOSE, OPEN, SCRIPT_ELEMENT, Stub, page_with, running_stub
from tests.browser.test_widget import EVIL, Customer, Visitor
from tests.browser.test_widget_box import press
from tests.server import Server

pytestmark = pytest.mark.browser

PLACE = '<div id="all" data-site-search-results></div>'
SECTIONS = ("help", "news", f"shop {EVIL}")


class Searcher(Visitor):
    """A visitor using the full view of results."""

    def open_at(
        self,
        customer: Customer,
        address: str,
        *,
        body: str = "",
        data: str = "",
        html: str = 'lang="en"',
        box: str = '<div id="site-search"></div>',
    ) -> None:
        """Open a page with the two lines of the search box, and the strictest policy that allows them."""
        base = customer.base_url
        policy = f"default-src 'none'; script-src {base}; connect-src {base}; require-trusted-types-for 'script'"
        (self.folder / "index.html").write_text(
            f"""<!doctype html><html {html}><meta charset="utf-8"><link rel="icon" href="data:,">
            <meta name="viewport" content="width=device-width">
            <meta http-equiv="Content-Security-Policy" content="{policy}">
            <title>Museum</title><h1>Museum</h1><main>{box}{body}</main>
            <script src="{base}/widget.js" data-key="{customer.public_key}" {data} async></script></html>"""
        )
        (self.folder / "page.html").write_text("<!doctype html><title>A page</title><h1>A page</h1>")
        self.go(address)
        script = "return Boolean(document.querySelector(arguments[0]).shadowRoot)"
        host = "#site-search" if box else "#all"
        self.wait(lambda: self.driver.execute_script(script, host), "the box did not appear")

    def seen(self, css: str) -> Any:
        """Return elements of the full view, wherever it is."""
        for host in ("#all", "#site-search", "body > div:last-of-type"):
            found = self.driver.execute_script(
                "return document.querySelector(arguments[0])?.shadowRoot?.querySelector('.view')", host
            )
            if found:
                return found.find_elements("css selector", css)
        return []

    def status(self) -> str:
        """Return the status, and how many results are shown of how many, which the button for more says."""
        buttons = [found.text for found in self.seen(".load") if found.is_displayed()]
        shown = [text[text.index("(") :] for text in buttons]
        return " ".join([*(found.text for found in self.seen(".status")), *shown])

    def finds(self, words: str) -> None:
        self.wait(lambda: self.status() == words, f"{words!r} did not appear, but {self.status()!r}")

    def hits(self) -> list[str]:
        return [found.text for found in self.seen(".hits .title")]

    def values(self) -> dict[str, dict[str, int]]:
        """Return the values of each facet with their counts."""
        return {
            group.find_element("css selector", "legend").text: {
                value.find_element("css selector", ":nth-child(2)").text: int(
                    value.find_element("css selector", ".count").text
                )
                for value in group.find_elements("css selector", ".value")
            }
            for group in self.seen("fieldset")
        }

    def choose(self, value: str) -> None:
        (label,) = [found for found in self.seen(".value") if found.text.startswith(value)]
        label.find_element("css selector", "input").click()

    def address(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.driver.current_url).query)

    def focused(self) -> str:
        script = """let here = document.activeElement;
            while (here.shadowRoot?.activeElement) here = here.shadowRoot.activeElement;
            return here.closest("label")?.textContent ?? (here.className || here.localName)"""
        return str(self.driver.execute_script(script))

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def entries(self) -> int:
        return int(self.driver.execute_script("return history.length"))


@pytest.fixture
def visitor(browser: Any, other_origin: tuple[str, Path]) -> Searcher:
    return Searcher(browser, *other_origin)


@pytest.fixture(scope="module")
def customer(server: Server) -> Customer:
    """A museum with 45 additional pages about its harbour."""
    customer = Customer(server, "all-results@example.com")
    documents = [
        {
            "id": f"harbour-{number}",
            "title": f"Harbour {number}",
            "content": f"Ships in the harbour. {EVIL}",
            "url": "/page.html",
            "date": f"2024-{number % 12 + 1:02d}-{number % 28 + 1:02d}",
            "section": SECTIONS[number % 3],
            "year": 2020 + number % 2,
            "open": number % 5 == 0,
            "sku": f"sku-{number}",
        }
        for number in range(45)
    ]
    sent = requests.post(
        f"{customer.base_url}/api/v1/index/bulk",
        json={"documents": documents},
        headers={"Authorization": f"Bearer {customer.make_key('private')}"},
        timeout=30,
    )
    assert sent.status_code == 200, sent.text
    return customer


class TestRefining:
    def test_values_of_one_facet_are_alternatives_and_several_facets_are_combined(
        self, customer: Customer, visitor: Searcher
    ) -> None:
        visitor.open_at(customer, "/index.html?lang=en&q=harbour", body=PLACE)
        visitor.finds("45 results (20 of 45)")
        assert list(visitor.values()) == ["Open", "Section", "Year"], (
            "fields with a unique value for each document are not facets"
        )
        assert visitor.values()["Section"] == dict.fromkeys(SECTIONS, 15)
        assert visitor.values()["Open"] == {"No": 36, "Yes": 9}

        visitor.choose("help")
        visitor.finds("15 results")
        assert visitor.values()["Section"] == dict.fromkeys(SECTIONS, 15), "the other values must still be selectable"
        assert visitor.values()["Year"] == {"2020": 8, "2021": 7}
        assert visitor.focused().startswith("help"), "the focus must not move"
        visitor.choose("news")
        visitor.finds("30 results (20 of 30)")
        visitor.choose("Yes")
        visitor.finds("6 results")
        assert visitor.address() == {
            "lang": ["en"], "q": ["harbour"], "f.section": ["help", "news"], "f.open": ["true"],
        }  # fmt: skip

        visitor.driver.back()
        visitor.finds("30 results (20 of 30)")
        visitor.driver.back()
        visitor.finds("15 results")
        visitor.driver.forward()
        visitor.finds("30 results (20 of 30)")
        assert [found.text for found in visitor.seen(".value:has(:checked) bdi")] == ["help", "news"]

    def test_full_view_search_is_charged_and_recorded_once(self, server: Server, visitor: Searcher) -> None:
        customer = Customer(server, "one-search@example.com")
        visitor.open_at(customer, "/index.html?q=lighthouse", body=PLACE)
        visitor.finds("2 results")
        visitor.wait(lambda: customer.searched() == {"lighthouse": 1}, "the search was not recorded")
        assert customer.used_today() == 1

    def test_results_can_be_sorted_and_back_restores_the_order(self, customer: Customer, visitor: Searcher) -> None:
        visitor.open_at(customer, "/index.html?q=harbour", body=PLACE)
        visitor.finds("45 results (20 of 45)")
        assert [found.text for found in visitor.seen("option")] == ["Relevance", "Newest first", "Oldest first"]
        visitor.seen("option")[2].click()
        visitor.wait(lambda: visitor.hits()[0] == "Harbour 0", "the oldest response did not arrive")
        assert visitor.address()["sort"] == ["date:asc"]
        visitor.driver.back()
        visitor.wait(
            lambda: "sort" not in visitor.address() and visitor.hits()[0] != "Harbour 0", "it did not reappear"
        )

    def test_page_configures_its_facets_and_sort_options(self, customer: Customer, visitor: Searcher) -> None:
        data = 'data-facets="year, nothing" data-sort="year:desc,title:asc"'
        visitor.open_at(customer, "/index.html?q=harbour", body=PLACE, data=data)
        visitor.finds("45 results (20 of 45)")
        assert list(visitor.values()) == ["Year"]
        assert [found.text for found in visitor.seen("option")] == ["Relevance", "Year ↓", "Title ↑"]

    def test_filters_without_results_can_be_removed(self, customer: Customer, visitor: Searcher) -> None:
        visitor.open_at(customer, "/index.html?q=tickets&f.section=help&f.nothing=1", body=PLACE)
        visitor.finds("Nothing matches “tickets”.")
        (picture,) = visitor.seen(".status.alone > svg")
        assert picture.size == {"width": 44, "height": 44}
        (clear,) = [found for found in visitor.seen("button") if found.text == "Remove all filters"]
        clear.click()
        visitor.finds("1 result")
        assert not visitor.seen(".status > svg")
        assert visitor.address() == {"q": ["tickets"]}
        assert visitor.hits() == [f"Lighthouse tickets {EVIL}"], "markup in documents must be shown as text"
        assert not visitor.seen("img")
        assert visitor.driver.title == "Museum"


class TestMore:
    def test_loading_more_appends_results_and_updates_the_url_and_focus(
        self, customer: Customer, visitor: Searcher
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        visitor.open_at(customer, "/index.html?q=harbour", body=PLACE)
        visitor.finds("45 results (20 of 45)")
        steps = visitor.entries()
        visitor.driver.execute_script("arguments[0].focus()", visitor.seen(".load")[0])
        visitor.press(Keys.ENTER)
        visitor.finds("45 results (40 of 45)")
        assert visitor.focused() == "load"
        assert visitor.address() == {"q": ["harbour"], "page": ["2"]}
        visitor.press(Keys.ENTER)
        visitor.finds("45 results")
        assert len(set(visitor.hits())) == 45
        assert not visitor.seen(".load")[0].is_displayed()
        assert visitor.focused() == "to", "the first new hit must have the focus"
        assert visitor.entries() == steps, "typing must not add a history entry"

    def test_shared_url_restores_page_sorting_and_facets(self, customer: Customer, visitor: Searcher) -> None:
        visitor.open_at(customer, "/index.html?q=harbour&page=2&sort=date:asc&f.year=2020&f.year=2021", body=PLACE)
        visitor.finds("45 results (40 of 45)")
        assert visitor.hits()[0] == "Harbour 0"
        assert len(visitor.hits()) == 40
        assert len(visitor.seen(".value :checked")) == 2

    @pytest.mark.parametrize("page", ["0", "x", "-3", "999999999999"])
    def test_invalid_url_parameters_still_show_results(self, customer: Customer, visitor: Searcher, page: str) -> None:
        visitor.open_at(customer, f"/index.html?q=harbour&page={page}&sort=nothing:up", body=PLACE)
        visitor.wait(lambda: visitor.status().startswith("45 results"), "no response arrived")


class TestHistory:
    def test_typing_replaces_the_history_entry_and_an_empty_field_shows_a_prompt(
        self, customer: Customer, visitor: Searcher
    ) -> None:
        visitor.open_at(customer, "/index.html?x=a%26b#here", body=PLACE, box="")
        visitor.finds("What are you looking for?")
        steps = visitor.entries()
        visitor.seen("input")[0].click()
        visitor.press("lighthose")
        visitor.finds("Showing results for “lighthouse”: 2 results")
        assert visitor.entries() == steps
        assert visitor.driver.current_url.endswith("/index.html?x=a%26b&q=lighthose#here")

    def test_going_back_restores_the_focused_result(self, customer: Customer, visitor: Searcher) -> None:
        visitor.open_at(customer, "/index.html?q=harbour&sort=date:desc", body=PLACE)
        visitor.finds("45 results (20 of 45)")
        visitor.driver.execute_script("addEventListener('unload', () => {})")  # Disable the back/forward cache.
        chosen = visitor.hits()[12]
        visitor.seen(".hits a")[12].click()
        visitor.wait(lambda: visitor.driver.title == "A page", "the selected result did not open")
        visitor.driver.back()
        visitor.wait(
            lambda: visitor.driver.title == "Museum" and visitor.focused() == "to", "the result did not reappear"
        )
        script = "return document.querySelector('#all').shadowRoot.activeElement.querySelector('.title').textContent"
        assert visitor.driver.execute_script(script) == chosen


class TestBesideTheBox:
    """A page with the two lines and a placeholder for results, the target of data-results-url."""

    def fields(self, visitor: Searcher) -> list[Any]:
        """Return the visible search fields."""
        script = """return [...document.querySelectorAll("*")].flatMap((each) => each.shadowRoot ?
            [...each.shadowRoot.querySelectorAll("input[type=search]")] : [])
            .filter((field) => field.checkVisibility())"""
        found: list[Any] = visitor.driver.execute_script(script)
        return found

    def test_box_beside_the_results_is_the_only_field_and_contains_the_query(
        self, customer: Customer, visitor: Searcher
    ) -> None:
        visitor.open_at(customer, "/index.html?q=harbour", body=PLACE)
        visitor.finds("45 results (20 of 45)")
        (field,) = self.fields(visitor)
        assert field.get_property("value") == "harbour"
        assert not visitor.inside(".panel")[0].is_displayed()

    def test_next_search_replaces_the_results_and_back_restores_the_previous_one(
        self, customer: Customer, visitor: Searcher
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        visitor.open_at(customer, "/index.html?q=harbour&f.year=2020", body=PLACE)
        visitor.wait(visitor.hits, "the search in the URL was not shown")
        (field,) = self.fields(visitor)
        field.clear()
        field.send_keys("lighthouse")
        press(visitor, Keys.SHIFT, Keys.ENTER)
        visitor.finds("2 results")
        assert visitor.address() == {"q": ["lighthouse"]}
        assert visitor.focused() == "input", "the focus must not move during a search"
        visitor.driver.back()
        visitor.wait(lambda: field.get_property("value") == "harbour", "the field did not change its direction")
        assert visitor.address() == {"q": ["harbour"], "f.year": ["2020"]}
        clear = "Remove all filters"
        visitor.wait(lambda: clear in [found.text for found in visitor.seen("button")], "the filter was not restored")
        next(found for found in visitor.seen("button") if found.text == clear).click()
        visitor.finds("45 results (20 of 45)")
        assert not visitor.inside(".panel")[0].is_displayed()

    def test_results_without_a_box_have_their_own_field(self, customer: Customer, visitor: Searcher) -> None:
        visitor.open_at(customer, "/index.html?q=harbour", body=PLACE, box="")
        visitor.finds("45 results (20 of 45)")
        assert len(self.fields(visitor)) == 1

    def test_results_beside_a_modal_box_have_their_own_field(self, customer: Customer, visitor: Searcher) -> None:
        visitor.open_at(customer, "/index.html?q=harbour", body=PLACE, data='data-mode="modal"')
        visitor.finds("45 results (20 of 45)")
        assert len(self.fields(visitor)) == 1


class TestOverThePage:
    def test_shift_enter_opens_the_overlay_escape_closes_it_and_history_restores_it(
        self, customer: Customer, visitor: Searcher
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        visitor.open_at(customer, "/index.html?x=1")
        visitor.type("harbour")
        press(visitor, Keys.SHIFT, Keys.ENTER)
        visitor.finds("45 results (20 of 45)")
        assert visitor.address() == {"x": ["1"], "q": ["harbour"]}
        box = visitor.inside("dialog[open]")[0].rect
        assert box["width"] >= visitor.driver.execute_script("return innerWidth") - 1, "the dialog must cover the page"
        visitor.choose("help")
        visitor.finds("15 results")
        visitor.press(Keys.ESCAPE)
        visitor.wait(lambda: visitor.address() == {"x": ["1"]}, "the URL was not restored")
        assert not visitor.inside("dialog[open]")
        assert visitor.focused() == "input"
        visitor.driver.forward()
        visitor.finds("45 results (20 of 45)")
        assert visitor.inside("dialog[open]")
        visitor.driver.back()
        visitor.wait(lambda: not visitor.inside("dialog[open]"), "the panel did not close")

    def test_url_with_a_query_opens_the_overlay_even_if_the_box_is_hidden(
        self, customer: Customer, visitor: Searcher
    ) -> None:
        visitor.open_at(customer, "/index.html?q=harbour")
        visitor.finds("45 results (20 of 45)")
        page = visitor.folder / "index.html"
        page.write_text(
            page.read_text().replace("<main>", "<details><summary>Menu</summary>").replace("</main>", "</details>")
        )
        visitor.go("/index.html?q=lighthouse")
        visitor.finds("2 results")
        visitor.seen("form .close")[0].click()
        visitor.wait(lambda: visitor.address() == {}, "the panel did not close")

    def test_overlay_replaces_the_modal_box(self, customer: Customer, visitor: Searcher) -> None:
        from selenium.webdriver.common.keys import Keys

        visitor.open_at(customer, "/index.html", data='data-mode="modal"')
        visitor.inside(".open")[0].click()
        visitor.press("harbour")
        press(visitor, Keys.SHIFT, Keys.ENTER)
        visitor.finds("45 results (20 of 45)")
        assert [found.get_attribute("class") for found in visitor.inside("dialog[open]")] == ["all"]
        visitor.press(Keys.ESCAPE)
        visitor.wait(lambda: not visitor.inside("dialog[open]"), "the panel did not close")


def test_narrow_full_view_folds_the_facets_and_keeps_text_directions(customer: Customer, visitor: Searcher) -> None:
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    visitor.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    visitor.open_at(customer, "/index.html?q=harbour", body=PLACE, html='lang="ar" dir="rtl"')
    visitor.wait(lambda: visitor.hits(), "the results did not appear")
    (unfold,) = visitor.seen(".unfold")
    assert (unfold.text, unfold.get_attribute("aria-expanded")) == ("عوامل التصفية", "false")
    assert not visitor.seen(".facets")[0].is_displayed()
    unfold.click()
    assert visitor.seen(".facets")[0].is_displayed()
    assert unfold.get_attribute("aria-expanded") == "true"
    directions = {
        css: visitor.seen(css)[0].value_of_css_property("direction") for css in (".status", ".title", "legend")
    }
    assert directions == {".status": "rtl", ".title": "ltr", "legend": "rtl"}
    assert visitor.driver.execute_script("return document.documentElement.scrollWidth") <= 360


# --- Services that are slow, broken, or reached directly.

SEARCH = "/engine/indexes/site_7/search"
FOUND = {
    "hits": [{"id": f"page-{number}", "title": f"Page {number}", "url": f"/#{number}",
              "_formatted": {"title": f"{OPEN}Page{CLOSE} {number}", "content": "Text"}} for number in range(20)],
    "estimatedTotalHits": 30,
    "facetDistribution": {"section": {"help": 20, "news": 10}},
}  # fmt: skip


@pytest.fixture
def stub() -> Iterator[Stub]:
    with running_stub() as running:
        running.info = {"engine_host": f"{running.base_url}/engine", "engine_public_key": "engine", "index": "site_7"}
        running.answers[SEARCH] = [(200, FOUND)]
        running.page = page_with(SCRIPT_ELEMENT, body=PLACE)
        yield running


@pytest.fixture
def guest(browser: Any, stub: Stub, tmp_path: Path) -> Searcher:
    return Searcher(browser, stub.base_url, tmp_path)


def test_loading_message_is_shown_until_results_arrive(stub: Stub, guest: Searcher) -> None:
    stub.held.add(SEARCH)
    guest.go("/?q=page")
    guest.finds("Searching…")
    assert guest.seen(".hits")[0].get_attribute("aria-busy") == "true"
    stub.release.set()
    guest.finds("30 results (20 of 30)")
    assert guest.seen(".hits")[0].get_attribute("aria-busy") is None


def test_failure_is_reported_and_retry_continues_at_the_same_position(stub: Stub, guest: Searcher) -> None:
    stub.answers[SEARCH] = [(200, FOUND), (200, FOUND), (503, {}), (200, FOUND)]
    guest.go("/?q=page")
    guest.finds("30 results (20 of 30)")
    guest.seen(".load")[0].click()
    guest.finds("Search cannot be reached at the moment. (20 of 30)")
    assert len(guest.hits()) == 20, "existing results must stay"
    (again,) = [found for found in guest.seen("button") if found.text == "Try again"]
    again.click()
    guest.finds("30 results (20 of 30)")
    assert guest.focused() == "view", "focusing the box's field would open its panel over the results"
    guest.driver.get_log("browser")


MOUNT = """<script nonce="page" src="/widget.js"></script><script nonce="page">
    var told = [], routed = [];
    for (const type of ["search", "select", "error"])
      addEventListener(`site-search:${type}`, ({ target, detail }) =>
        told.push([type, target.id, detail.query, detail.position ?? detail.total]));
    SiteSearch.mount(document.querySelector("#site-search"), { key: "svc_pub_test", filters: "open = true",
      texts: { "facet.section": "Where" },
      transform: (hits) => hits.map((hit) => ({ ...hit, title: hit.title + "!" })),
      onSelect: (hit) => { routed.push(hit.id); return false; } });
</script>"""


def test_options_of_a_mounted_box_apply_to_the_full_view(stub: Stub, guest: Searcher) -> None:
    stub.page = page_with(MOUNT)
    guest.go("/?q=page&f.section=help")
    guest.finds("30 results (20 of 30)")
    assert list(guest.values()) == ["Where"]
    assert guest.hits()[3] == "Page 3!"
    filters = [body.get("filter") for body in stub.bodies(SEARCH)]
    assert ['"section" IN ["help"]', "open = true"] in filters
    assert all("open = true" in expressions for expressions in filters)
    guest.seen(".hits a")[3].click()
    guest.wait(lambda: not guest.inside("dialog[open]"), "the dialog did not close for the page")
    guest.wait(lambda: stub.bodies("/api/v1/click"), "the click was not reported")
    (clicked,) = stub.bodies("/api/v1/click")
    assert (clicked["query"], clicked["id"], clicked["position"]) == ("page", "page-3", 4)
    told, routed = guest.driver.execute_script("return [told, routed]")
    assert told == [["search", "site-search", "page", 30], ["select", "site-search", "page", 4]]
    assert routed == ["page-3"]


def test_directly_reached_engine_gets_no_facets_sort_or_filters(stub: Stub, guest: Searcher) -> None:
    stub.info = {"engine_host": stub.base_url, "engine_public_key": "one.two.three", "index": "site_1_1"}
    path = "/indexes/site_1_1/search"
    stub.answers[path] = [(200, {name: value for name, value in FOUND.items() if name != "facetDistribution"})]
    guest.go("/?q=page&sort=date:asc&f.section=help")
    guest.finds("30 results (20 of 30)")
    assert guest.values() == {}
    guest.seen(".load")[0].click()
    guest.finds("30 results")
    bodies = stub.bodies(path)
    assert [(body["q"], body["offset"]) for body in bodies if body["q"]] == [("page", 0), ("page", 20)]
    assert not any({"facets", "sort", "filter"} & body.keys() for body in bodies)
