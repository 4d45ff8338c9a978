"""Features of the search box for visitors, and its options for pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.stub import CLOSE, OPEN, SCRIPT_ELEMENT, STRICT, Stub, page_with, running_stub
from tests.browser.test_widget import Visitor

pytestmark = pytest.mark.browser

SEARCH = "/engine/indexes/site_7/search"
HITS = {
    "hits": [
        {"id": "hours", "title": "Opening hours", "url": "/#hours", "excerpt": "When",
         "_formatted": {"title": f"{OPEN}Open{CLOSE}ing hours", "content": f"We {OPEN}open{CLOSE} at nine"}},
        {"id": "way", "title": "Getting here", "url": "/#way", "excerpt": "By tram",
         "_formatted": {"title": "Getting here", "content": "Take the tram"}},
    ],
    "estimatedTotalHits": 7,
    "metadata": {"queryUid": "query-1"},
}  # fmt: skip
SUGGESTED = {
    "suggestions": [
        {"text": "opening hours", "kind": "query"},
        {"text": "open", "kind": "query"},
        {"text": "Opening hours", "kind": "title", "url": "/#hours"},
        {"text": "Open day", "kind": "title", "url": "/#day"},
        {"text": "Evil", "kind": "title", "url": "javascript:alert(1)"},
    ]
}
ARABIC = {
    "hits": [
        {"title": "ساعات العمل (2024)", "url": "/a", "_formatted": {"content": "نفتح!"}},
        {"title": "Opening hours (2024)", "url": "/b", "_formatted": {"content": "Yes!"}},
    ],
    "estimatedTotalHits": 2,
}  # fmt: skip
MOUNT = '<script nonce="page" src="/widget.js"></script><script nonce="page">{}</script>'


@contextmanager
def finding_stub() -> Iterator[Stub]:
    """Run a stub of the gateway that finds :data:`HITS` and suggests nothing."""
    with running_stub() as running:
        running.info = {"engine_host": f"{running.base_url}/engine", "engine_public_key": "engine", "index": "site_7"}
        running.answers[SEARCH] = [(200, HITS)]
        yield running


@pytest.fixture
def stub() -> Iterator[Stub]:
    with finding_stub() as running:
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Visitor:
    return Visitor(browser, stub.base_url, tmp_path)


def open_page(stub: Stub, visitor: Visitor, data: str = "", *, attributes: str = 'lang="en"', body: str = "") -> None:
    """Open a page with the two lines of the search box, the second one with ``data``."""
    script = SCRIPT_ELEMENT.replace(" async", f" {data} async")
    stub.page = page_with(script, attributes=attributes, body=body)
    visitor.go("/")
    visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")


def open_mounted(stub: Stub, visitor: Visitor, script: str, *, body: str = "") -> None:
    """Open a page with a script that mounts a box."""
    stub.page = page_with(MOUNT.format(script), body=body)
    visitor.go("/")


def press(visitor: Visitor, *keys: str) -> None:
    """Press keys together, wherever the focus is."""
    from selenium.webdriver.common.action_chains import ActionChains

    chain = ActionChains(visitor.driver)
    for key in keys:
        chain.key_down(key)
    for key in reversed(keys):
        chain.key_up(key)
    chain.perform()


def focused(visitor: Visitor) -> str:
    """Return the ID or name of the focused element, through shadow trees."""
    script = """let here = document.activeElement;
        while (here.shadowRoot?.activeElement) here = here.shadowRoot.activeElement;
        return here.id || here.localName;"""
    return str(visitor.driver.execute_script(script))


def severe(visitor: Visitor) -> list[str]:
    """Return the errors that the page logged since the last call."""
    return [entry["message"] for entry in visitor.driver.get_log("browser") if entry["level"] == "SEVERE"]


def is_seen_whole(visitor: Visitor, css: str, name: str = "site-search") -> bool:
    """Whether a part of a box is at least 340 pixels wide, within the window, and not covered or clipped."""
    script = """
        const host = document.getElementById(arguments[0]), part = host.shadowRoot.querySelector(arguments[1]);
        const at = part.getBoundingClientRect();
        const corners = [[at.left + 8, at.top + 8], [at.right - 8, at.bottom - 8], [at.left + 8, at.bottom - 8]];
        const gaps = [at.left, innerWidth - at.right, at.top, innerHeight - at.bottom];
        return at.width >= 340 && gaps.every((gap) => gap >= 0) &&
          corners.every(([x, y]) => part.contains(host.shadowRoot.elementFromPoint(x, y)));"""
    return bool(visitor.driver.execute_script(script, name, css))


def finds(visitor: Visitor, text: str = "open") -> None:
    visitor.type(text)
    visitor.wait(lambda: visitor.told() == "7 results", "the results did not appear")


class TestShortcuts:
    def test_slash_focuses_the_first_box_but_is_typed_into_fields(self, stub: Stub, visitor: Visitor) -> None:
        second = SCRIPT_ELEMENT.replace("async", 'data-target="#other" async')
        stub.page = page_with(second + SCRIPT_ELEMENT, body='<input id="name"><p contenteditable id="text">x</p>')
        visitor.go("/")
        for selector in ("#site-search", "#other"):
            visitor.wait(lambda selector=selector: visitor.find(selector).shadow_root, "the box did not appear")
        for field in ("name", "text"):
            visitor.find(f"#{field}").click()
            press(visitor, "/")
            assert focused(visitor) == field
        assert visitor.find("#name").get_attribute("value") == "/"
        visitor.driver.execute_script("document.activeElement.blur()")
        press(visitor, "/")
        assert focused(visitor) == "input"
        assert visitor.driver.execute_script("return document.activeElement.id") == "site-search"
        assert visitor.inside("input")[0].get_attribute("value") == ""
        press(visitor, "/")
        assert visitor.inside("input")[0].get_attribute("value") == "/", "the box must show the character, too"

    def test_disabled_shortcuts_are_left_to_the_page(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor, 'data-shortcut="false" data-mode="modal"')
        press(visitor, "/")
        press(visitor, Keys.CONTROL, "k")
        assert focused(visitor) == "body"
        assert not visitor.inside("dialog[open]")

    def test_keys_typed_into_the_box_do_not_reach_page_shortcuts(self, stub: Stub, visitor: Visitor) -> None:
        script = "var keys = []; addEventListener('keydown', (event) => keys.push(event.key));"
        open_page(stub, visitor, body=f'<script nonce="page">{script}</script>')
        visitor.type("jk")
        assert visitor.driver.execute_script("return keys") == []


class TestDialog:
    def test_shortcut_opens_the_dialog_and_escape_returns_the_focus(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor, 'data-mode="modal"', body='<a id="link" href="#x">x</a>')
        visitor.driver.execute_script("document.querySelector('#link').focus()")
        for keys in (("/",), (Keys.CONTROL, "k")):
            press(visitor, *keys)
            assert focused(visitor) == "input"
            assert visitor.inside("dialog[open]")
            press(visitor, Keys.ESCAPE)
            assert not visitor.inside("dialog[open]")
            assert focused(visitor) == "link"

    def test_dialog_searches_by_keyboard_and_closes_when_a_result_is_selected(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor, 'data-mode="modal"')
        visitor.inside("button.open")[0].click()
        finds(visitor)
        assert visitor.inside("input")[0].get_attribute("aria-expanded") == "true"
        assert is_seen_whole(visitor, ".panel")
        press(visitor, Keys.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("#hours"), "the result did not open")
        assert not visitor.inside("dialog[open]")
        press(visitor, Keys.CONTROL, "k")
        assert visitor.inside("input")[0].get_attribute("value") == "open", "the query must still be there"
        press(visitor, Keys.CONTROL, "k")
        assert not visitor.inside("dialog[open]")


class TestSuggestions:
    def test_suggested_queries_precede_results_and_titles_follow_them_without_duplicates(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.found["open"] = (200, {**HITS, **SUGGESTED})
        open_page(stub, visitor)
        finds(visitor)
        options = [(found.get_attribute("id"), found.text.split("\n")[0]) for found in visitor.inside("[role=option]")]
        assert options == [
            ("suggestion-0", "opening hours"),
            ("hit-0", "Opening hours"),
            ("hit-1", "Getting here"),
            ("suggestion-3", "Open day"),
        ]
        assert [found.accessible_name for found in visitor.inside("[role=group]")] == ["Suggestions"] * 2
        assert visitor.inside("input")[0].get_attribute("aria-activedescendant") == "hit-0", (
            "results must come before the links"
        )
        visitor.type(Keys.ARROW_UP, Keys.ENTER)
        visitor.wait(lambda: stub.searches("opening hours"), "the suggestion was not searched")
        assert visitor.inside("input")[0].get_attribute("value") == "opening hours"
        assert focused(visitor) == "input"

    def test_suggestions_come_with_the_results_and_use_the_filters_of_the_box(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        open_page(stub, visitor, 'data-filters="section = a&amp;b"')
        finds(visitor, "open day")
        (asked,) = stub.bodies(SEARCH)
        assert (asked["suggestions"], asked["filter"]) == (4, ["section = a&b"])

    @pytest.mark.parametrize("status", [404, 503])
    def test_results_are_shown_without_suggestions_and_when_popular_searches_fail(
        self, stub: Stub, visitor: Visitor, status: int
    ) -> None:
        stub.popular_status = status
        open_page(stub, visitor)
        finds(visitor)
        visitor.type("s")
        visitor.wait(lambda: stub.searches("opens"), "the box did not search again")
        visitor.wait(lambda: visitor.titles() == ["Opening hours", "Getting here"], "the results did not appear")
        assert "suggestions" not in HITS
        assert len(stub.popular_requests) == 1, "missing objects must be requested once"


class TestRecentSearches:
    def test_last_five_searches_are_stored_shown_and_can_be_cleared(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor, 'data-recent="true"')
        for number in range(6):
            visitor.driver.execute_script("arguments[0].value = ''", visitor.inside("input")[0])
            finds(visitor, f"open {number}")
            visitor.type(Keys.ENTER)
            visitor.wait(lambda: not visitor.inside(".panel")[0].is_displayed(), "the panel did not close")
        visitor.go("/?again")
        visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")
        visitor.inside("input")[0].click()
        shown = [f"open {number}" for number in (5, 4, 3, 2, 1)]
        visitor.wait(lambda: [found.text for found in visitor.inside(".query")] == shown, "they did not appear")
        visitor.type(Keys.ARROW_DOWN, Keys.ENTER)
        visitor.wait(lambda: visitor.told() == "7 results", "the search was not repeated")
        visitor.type(*[Keys.BACKSPACE] * len("open 5"))
        visitor.wait(lambda: visitor.inside(".foot button"), "they cannot be cleared")
        visitor.inside(".foot button")[0].click()
        visitor.wait(lambda: visitor.driver.execute_script("return localStorage.length") == 0, "they were not removed")
        assert not visitor.inside(".panel")[0].is_displayed()
        assert focused(visitor) == "input"

    def test_no_searches_are_stored_without_the_attribute(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor)
        finds(visitor)
        visitor.type(Keys.ENTER)
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "no option was selected")
        assert visitor.driver.execute_script("return localStorage.length + sessionStorage.length") == 0
        assert visitor.driver.get_cookies() == []

    @pytest.mark.parametrize(
        "trouble",
        [
            "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('No'); } })",
            "localStorage.setItem('site-search:' + location.host + ':site_7', '[[}')",
            "localStorage.setItem('site-search:' + location.host + ':site_7', '[{},null,5]')",
        ],
    )
    def test_blocked_or_corrupt_storage_does_not_affect_searching(
        self, stub: Stub, visitor: Visitor, trouble: str
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor, 'data-recent="true"', body=f'<script nonce="page">{trouble}</script>')
        finds(visitor)
        visitor.type(Keys.ENTER)
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the result could not be selected")


class TestClicks:
    def test_selected_result_is_reported_with_its_query_id(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor)
        finds(visitor)
        visitor.inside(".hit")[1].click()
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the click was not reported")
        (told,) = stub.bodies("/api/v1/click")
        assert told.pop("session_id")
        assert told == {"query_id": "query-1", "query": "open", "id": "way", "position": 2}
        assert "id" in stub.bodies(SEARCH)[0]["attributesToRetrieve"]

    def test_click_without_a_query_id_is_reported_with_its_query(self, stub: Stub, visitor: Visitor) -> None:
        stub.answers[SEARCH] = [(200, {key: value for key, value in HITS.items() if key != "metadata"})]
        open_page(stub, visitor)
        finds(visitor)
        visitor.inside(".hit")[0].click()
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the click was not reported")
        (told,) = stub.bodies("/api/v1/click")
        assert told.pop("session_id")
        assert told == {"query": "open", "id": "hours", "position": 1}


class TestMounting:
    def test_page_callbacks_and_events_receive_searches_and_selections(self, stub: Stub, visitor: Visitor) -> None:
        script = """
            var events = [];
            for (const type of ["search", "select", "error"])
              document.addEventListener(`site-search:${type}`,
                ({ target: { id }, detail }) => events.push([type, id, detail]));
            var box = SiteSearch.mount(document.querySelector("#other"), {
              key: "svc_pub_test", limit: 3, filters: "section = visit", placeholder: "Find",
              texts: { many: "{n} pages" },
              transform: ([hit]) => [{ ...hit, title: "<b>" + hit.title }],
              onSelect: (hit) => { events.push(["onSelect", hit.id]); return false; },
            });"""
        open_mounted(stub, visitor, script)
        box = visitor.find("#other").shadow_root
        box.find_element("css selector", "input").click()
        press(visitor, "o")
        visitor.wait(lambda: box.find_elements("css selector", ".hit"), "the results did not appear")
        assert [found.text for found in box.find_elements("css selector", ".title")] == ["<b>Opening hours"]
        assert not box.find_elements("css selector", ".title mark"), "marks of another text must not appear in this one"
        assert box.find_elements("css selector", ".snippet mark")
        assert box.find_element("css selector", ".status").text == "7 pages"
        (sent,) = stub.bodies(SEARCH)
        assert (sent["limit"], sent["filter"]) == (3, ["section = visit"])
        visitor.wait(lambda: visitor.driver.execute_script("return events.length"), "the page received no event")
        before = visitor.driver.current_url
        box.find_element("css selector", ".hit").click()
        events = visitor.driver.execute_script("return events")
        assert [event[0] for event in events] == ["search", "select", "onSelect"]
        assert events[0][1] == "other"
        assert (events[0][2]["query"], events[0][2]["total"], len(events[0][2]["hits"])) == ("o", 7, 1)
        assert (events[1][2]["query"], events[1][2]["position"], events[1][2]["hit"]["id"]) == ("o", 1, "hours")
        assert visitor.driver.current_url == before
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the option was selected anyway")

    def test_selection_can_be_canceled_by_its_event(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor)
        visitor.driver.execute_script("addEventListener('site-search:select', (event) => event.preventDefault())")
        finds(visitor)
        visitor.inside(".hit")[0].click()
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the option was selected")
        assert "#" not in visitor.driver.current_url

    def test_failing_page_callbacks_are_logged_and_ignored(self, stub: Stub, visitor: Visitor) -> None:
        script = """SiteSearch.mount(document.querySelector("#site-search"), { key: "svc_pub_test",
            transform: () => null, onSelect: () => { throw new Error("broken"); } });"""
        open_mounted(stub, visitor, script)
        finds(visitor)
        visitor.inside(".hit")[0].click()
        visitor.wait(lambda: visitor.driver.current_url.endswith("#hours"), "the result did not open")
        said = severe(visitor)
        assert len(said) == 2
        assert "transform failed" in said[0]
        assert "onSelect failed" in said[1]

    def test_unmounting_restores_the_page_and_the_box_can_be_mounted_again(self, stub: Stub, visitor: Visitor) -> None:
        script = """
            var host = document.querySelector("#site-search");
            host.innerText = "Search is here";
            var mount = () => SiteSearch.mount(host, { key: "svc_pub_test" });
            var box = mount();"""
        open_mounted(stub, visitor, script)
        finds(visitor)
        visitor.driver.execute_script("box.unmount(); box.unmount();")
        assert visitor.find("#site-search").text == "Search is here"
        assert visitor.find("#site-search").get_attribute("data-theme") is None
        press(visitor, "/")
        assert focused(visitor) == "body"
        visitor.driver.execute_script("mount(); mount();")
        assert len(visitor.inside("input")) == 1
        finds(visitor)

    def test_mounting_repeatedly_leaks_no_listeners_or_nodes(self, stub: Stub, visitor: Visitor) -> None:
        script = """var host = document.querySelector("#site-search");
            var turn = () => SiteSearch.mount(host, { key: "svc_pub_test", mode: "modal" }).unmount();
            turn();"""
        open_mounted(stub, visitor, script)
        driver = visitor.driver

        def counts() -> tuple[int, int]:
            driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
            metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            found = {metric["name"]: metric["value"] for metric in metrics}
            return int(found["JSEventListeners"]), int(found["Nodes"])

        driver.execute_cdp_cmd("Performance.enable", {})
        before = counts()
        driver.execute_script("for (let count = 0; count < 50; count += 1) turn();")
        after = counts()
        assert after[0] - before[0] < 50
        assert after[1] - before[1] < 200

    @pytest.mark.parametrize("key", ["", "svc_prv_secret"])
    def test_mount_rejects_keys_that_are_not_public(self, stub: Stub, visitor: Visitor, key: str) -> None:
        open_mounted(stub, visitor, "")
        script = (
            "try { SiteSearch.mount(document.body, { key: arguments[0] }); } catch (error) { return error.message; }"
        )
        assert "only a public key" in visitor.driver.execute_script(script, key)


class TestPlace:
    @pytest.mark.parametrize("popover", [True, False], ids=["top layer", "without popover"])
    @pytest.mark.parametrize(
        "style",
        [
            "width: 90px; height: 48px; overflow: hidden",
            "position: absolute; right: 0; top: 300px; width: 120px; height: 48px; overflow: clip",
            "position: fixed; bottom: 4px; left: 300px; width: 500px",
        ],
        ids=["narrow", "at the right", "at the bottom"],
    )
    def test_results_are_fully_visible_wherever_the_box_is(
        self, stub: Stub, visitor: Visitor, style: str, popover: bool
    ) -> None:
        before = "" if popover else "delete HTMLElement.prototype.showPopover;"
        body = f'<div id="narrow"></div><script nonce="page">{before}narrow.style.cssText = "{style}";</script>'
        script = SCRIPT_ELEMENT.replace("async", 'data-target="#narrow" async')
        stub.page = page_with(script, body=body)
        visitor.go("/")
        visitor.wait(lambda: visitor.find("#narrow").shadow_root, "the box did not appear")
        box = visitor.find("#narrow").shadow_root
        box.find_element("css selector", "input").click()
        press(visitor, "o")
        visitor.wait(lambda: box.find_elements("css selector", ".hit"), "the results did not appear")
        assert is_seen_whole(visitor, ".panel", "narrow")

    def test_results_are_placed_below_the_box_in_a_transformed_page(self, stub: Stub, visitor: Visitor) -> None:
        body = """<script nonce="page">delete HTMLElement.prototype.showPopover;
            document.documentElement.style.cssText = "width: 600px; transform: translate(40px, 30px)";</script>"""
        open_page(stub, visitor, body=body)
        finds(visitor)
        below = visitor.driver.execute_script(
            """const root = arguments[0].shadowRoot, at = (css) => root.querySelector(css).getBoundingClientRect();
            return [at(".panel").top - at("input").bottom, at(".panel").left - at("input").left];""",
            visitor.find("#site-search"),
        )
        assert below == [6, 0]


class TestNetwork:
    def test_loading_message_is_shown_and_outdated_responses_are_ignored(self, stub: Stub, visitor: Visitor) -> None:
        stub.held.add(SEARCH)
        open_page(stub, visitor)
        visitor.type("op")
        visitor.wait(lambda: visitor.told() == "Searching…", 'the message "Searching…" did not appear')
        stub.answers[SEARCH] = [(200, {"hits": [], "estimatedTotalHits": 0})]
        visitor.type("en")
        visitor.wait(lambda: stub.searches("open"), "the box did not search again")
        stub.release.set()
        visitor.wait(lambda: visitor.told() == "Nothing matches “open”.", "the answer did not appear")

    def test_network_failure_is_reported_and_the_next_search_recovers(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor)
        visitor.driver.execute_script(
            "window.reasons = []; addEventListener('site-search:error', (event) => reasons.push(event.detail.reason))"
        )
        self._be_offline(visitor, True)
        visitor.type("op")
        visitor.wait(lambda: visitor.told() == "Search cannot be reached at the moment.", "the message was not shown")
        assert visitor.driver.execute_script("return reasons") == ["away"]
        self._be_offline(visitor, False)
        visitor.type("en")
        visitor.wait(lambda: visitor.told() == "7 results", "the box did not recover")

    def _be_offline(self, visitor: Visitor, offline: bool) -> None:
        limits = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        visitor.driver.execute_cdp_cmd("Network.enable", {})
        visitor.driver.execute_cdp_cmd("Network.emulateNetworkConditions", limits)


class TestHostileDocuments:
    def test_hostile_documents_are_displayed_as_text_without_links(self, stub: Stub, visitor: Visitor) -> None:
        evil = "<img src=x onerror=\"document.title='pwned'\">"
        stub.answers[SEARCH] = [(200, {"estimatedTotalHits": 3, "hits": [
            {"id": "1", "title": evil, "url": "javascript:document.title='pwned'", "excerpt": evil},
            {"id": "2", "title": "\ue005\ue006match\u202eesrever", "url": "data:text/html,x", "excerpt": None},
            {"id": "3", "title": 5, "url": None, "excerpt": ["x"], "_formatted": {"title": None, "content": None}},
        ]})]  # fmt: skip
        open_page(stub, visitor)
        visitor.type("open")
        visitor.wait(lambda: visitor.told() == "3 results", "the results did not appear")
        assert visitor.titles()[0] == evil
        assert visitor.inside("img, mark, a") == []
        visitor.inside(".hit")[0].click()
        assert visitor.driver.title == "Museum"

    def test_highlight_marks_are_random_per_page_load(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor)
        finds(visitor)
        visitor.go("/?again")
        visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")
        finds(visitor)
        one, other = (body["highlightPreTag"] for body in stub.bodies(SEARCH))
        assert one != other


FULL = """
let shown = [];
export function showResults(core, { container, query }) {
  container ??= core.element.shadowRoot.appendChild(core.make("div"));
  core.addTexts("sort", { en: "Sort by {field}", de: "Nach {field} ordnen" });
  const search = async (text) => {
    const wish = { limit: 1, offset: 1, sort: ["date:desc"], facets: ["section"], filters: { section: ['a"b', "c"] } };
    const found = await core.search(text, wish);
    const sorted = core.text("sort", { field: "date" });
    shown = [core.make("p", { class: "seen" }, `${text}: ${sorted}, ${Object.keys(found.facets)}`),
             ...found.hits.map((hit, at) => core.makeHit(hit, at + 2, found))];
    container.replaceChildren(...shown);
  };
  search(query ?? new URLSearchParams(location.search).get("q"));
  return { unmount: () => container.replaceChildren() };
}
"""


class TestFullView:
    def test_shift_enter_opens_the_full_view_in_place_of_the_panel(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.files["/widget-results.js"] = FULL
        stub.answers[SEARCH] = [(200, HITS), (200, {**HITS, "facetDistribution": {"section": {"c": 1}}}), (200, HITS)]
        open_page(stub, visitor, 'data-lang="de"')
        visitor.type("open")
        visitor.wait(lambda: visitor.told() == "7 Treffer", "the results did not appear")
        press(visitor, Keys.SHIFT, Keys.ENTER)
        visitor.wait(
            lambda: [found.text for found in visitor.inside(".seen")] == ["open: Nach date ordnen, section"], "it"
        )
        asked = stub.bodies(SEARCH)[1]
        assert (asked["limit"], asked["offset"], asked["sort"], asked["facets"]) == (1, 1, ["date:desc"], ["section"])
        assert asked["filter"] == ['"section" IN ["a\\"b", "c"]']
        assert not visitor.inside(".panel")[0].is_displayed()

    def test_full_view_is_shown_in_its_placeholder_on_the_page(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.files["/widget-results.js"] = FULL
        script = SCRIPT_ELEMENT.replace(" async", ' data-results-url="/elsewhere" async')
        stub.page = page_with(script, body='<div id="all" data-site-search-results></div>')
        visitor.go("/?q=first")
        visitor.wait(lambda: "first: Sort by date" in visitor.text, "the search in the URL was not shown")
        visitor.type("open")
        press(visitor, Keys.SHIFT, Keys.ENTER)
        visitor.wait(lambda: "open: Sort by date" in visitor.text, "the box's search was not shown")
        assert not visitor.inside(".panel")[0].is_displayed()

    def test_results_url_receives_the_query_beside_its_own_parameters(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor, 'data-results-url="/?site=a%26b&amp;q=old#top"')
        finds(visitor, "open day")
        (more,) = visitor.inside(".more")
        assert more.get_attribute("href") == f"{stub.base_url}/?site=a%26b&q=open+day#top"
        press(visitor, Keys.SHIFT, Keys.ENTER)
        visitor.wait(lambda: visitor.driver.current_url == f"{stub.base_url}/?site=a%26b&q=open+day#top", "it")

    def test_javascript_results_url_is_rejected(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.files["/widget-results.js"] = FULL
        open_page(stub, visitor, 'data-results-url="javascript:alert(1)"')
        finds(visitor)
        press(visitor, Keys.SHIFT, Keys.ENTER)
        visitor.wait(lambda: visitor.inside(".seen"), "the full view did not appear")
        assert all("data-results-url must be" in message for message in severe(visitor))

    def test_failure_to_load_the_full_view_is_reported_and_the_box_still_works(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.answers["/widget-results.js"] = [(503, {})]
        open_page(stub, visitor)
        finds(visitor)
        press(visitor, Keys.SHIFT, Keys.ENTER)
        visitor.wait(lambda: visitor.told() == "Search cannot be reached at the moment.", "the message was not shown")
        visitor.type("s")
        visitor.wait(lambda: visitor.told() == "7 results", "the box did not continue")
        severe(visitor)


class TestLanguages:
    def _directions(self, visitor: Visitor, css: str) -> list[tuple[str, str]]:
        script = "return [getComputedStyle(arguments[0]).direction, arguments[0].closest('[lang]').lang]"
        return [tuple(visitor.driver.execute_script(script, found)) for found in visitor.inside(css)]

    def test_box_on_a_right_to_left_page_is_right_to_left(self, stub: Stub, visitor: Visitor) -> None:
        stub.answers[SEARCH] = [(200, ARABIC)]
        open_page(stub, visitor, attributes='lang="ar-EG" dir="rtl"')
        assert self._directions(visitor, "input") == [("rtl", "ar")]
        visitor.type("open")
        visitor.wait(lambda: visitor.titles(), "the results did not appear")
        assert visitor.told().startswith("عدد النتائج")
        assert self._directions(visitor, ".status") == [("rtl", "ar")]
        assert self._directions(visitor, ".title") == self._directions(visitor, ".snippet")
        assert self._directions(visitor, ".title") == [("rtl", "ar-EG"), ("ltr", "ar-EG")]
        assert self._directions(visitor, "input") == [("ltr", "ar")], "text must keep its own direction"

    def test_language_without_translations_falls_back_to_english_marked_as_such(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        stub.answers[SEARCH] = [(200, {"hits": [], "estimatedTotalHits": 0})]
        open_page(stub, visitor, attributes='lang="he" dir="rtl"')
        assert self._directions(visitor, "input") == [("ltr", "en")]
        visitor.type("שעות!")
        visitor.wait(lambda: visitor.told() == "Nothing matches “שעות!”.", "the message did not appear")
        assert self._directions(visitor, "input") == [("rtl", "en")]
        assert self._directions(visitor, ".status") == [("ltr", "en")]
        assert self._directions(visitor, ".status bdi") == [("rtl", "en")]

    def test_page_texts_use_the_page_language_and_missing_texts_are_english(self, stub: Stub, visitor: Visitor) -> None:
        texts = json.dumps({"label": "חיפוש", "many": "{n} תוצאות"})
        options = f'{{ key: "svc_pub_test", lang: "he", texts: {texts} }}'
        script = f'SiteSearch.mount(document.querySelector("#site-search"), {options});'
        open_mounted(stub, visitor, script)
        assert self._directions(visitor, "input") == [("rtl", "he")]
        visitor.type("open")
        visitor.wait(lambda: visitor.told() == "7 תוצאות", "the results did not appear")
        assert self._directions(visitor, ".status") == [("rtl", "he")]
        stub.answers[SEARCH] = [(200, {"hits": [], "estimatedTotalHits": 0})]
        visitor.type("s")
        visitor.wait(lambda: visitor.told() == "Nothing matches “opens”.", "the message did not appear")
        assert self._directions(visitor, ".status > span") == [("ltr", "en")]


class TestKeyboard:
    def test_control_enter_opens_a_result_in_a_new_tab(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor)
        finds(visitor)
        visitor.type(Keys.ARROW_UP)
        assert visitor.inside("input")[0].get_attribute("aria-activedescendant") == "hit-1"
        before = len(visitor.driver.window_handles)
        press(visitor, Keys.CONTROL, Keys.ENTER)
        visitor.wait(lambda: len(visitor.driver.window_handles) == before + 1, "no tab was opened")
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the click was not reported")

    def test_keys_during_text_composition_are_ignored(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor)
        finds(visitor)
        script = """const input = arguments[0];
            for (const [key, more] of [["Enter", { isComposing: true }], ["ArrowDown", { keyCode: 229 }]])
              input.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));"""
        visitor.driver.execute_script(script, visitor.inside("input")[0])
        assert visitor.told() == "7 results"
        assert visitor.inside("input")[0].get_attribute("aria-activedescendant") == "hit-0"
        assert "#" not in visitor.driver.current_url

    def test_result_count_is_announced_in_a_persistent_status_region(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor)
        region = visitor.inside("[role=status]")[0]
        assert region.is_displayed(), "announcements must appear in an element that already existed"
        finds(visitor)
        visitor.wait(lambda: region.get_attribute("textContent") == "7 results", "the page received no event")


def test_page_styles_can_set_colors_and_parts_of_the_box(stub: Stub, visitor: Visitor) -> None:
    style = """<style>#site-search { --site-search-ground: rgb(1, 2, 3); --site-search-font: monospace }
        #site-search::part(title) { letter-spacing: 3px }</style>"""
    stub.policy = STRICT + "; style-src 'unsafe-inline'"
    open_page(stub, visitor, 'data-theme="dark"', body=style)
    finds(visitor)
    script = "return getComputedStyle(arguments[0])[arguments[1]]"
    look = lambda css, name: visitor.driver.execute_script(script, visitor.inside(css)[0], name)  # noqa: E731
    assert look("input", "backgroundColor") == look(".panel", "backgroundColor") == "rgb(1, 2, 3)"
    assert look("input", "fontFamily") == "monospace"
    assert look(".title", "letterSpacing") == "3px"
