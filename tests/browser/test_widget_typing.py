"""Search as you type: when the box searches, which response it shows, and what the keys do meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.browser.stub import STRICT, Stub
from tests.browser.test_widget import Customer, Visitor
from tests.browser.test_widget_box import HITS, SEARCH, finding_stub, open_page, press
from tests.server import Server

pytestmark = pytest.mark.browser

PACE_MS, SLOW_LINE_MS = 120, 300
WATCH = """
    window.seen = { starts: [], mostTogether: 0, shown: [], together: 0 };
    const fetched = window.fetch;
    window.fetch = async (address, options) => {
      if (!/search$/.test(String(address)) || JSON.parse(options.body).q === "") return fetched(address, options);
      seen.starts.push(performance.now());
      seen.together += 1;
      seen.mostTogether = Math.max(seen.mostTogether, seen.together);
      try { return await fetched(address, options); } finally { seen.together -= 1; }
    };
    const list = document.querySelector("#site-search").shadowRoot.querySelector("#results");
    new MutationObserver(() => {
      const title = list.querySelector("#hit-0 .title")?.textContent;
      if (title && title !== seen.shown.at(-1)) seen.shown.push(title);
    }).observe(list, { childList: true });"""
"""Records the starts of searches, how many were under way together, and the first title of each list of results."""


@pytest.fixture
def stub() -> Iterator[Stub]:
    with finding_stub() as running:
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Visitor:
    return Visitor(browser, stub.base_url, tmp_path)


def finding(title: str, **fields: Any) -> tuple[int, dict[str, Any]]:
    """Return a response with one hit."""
    hit = {"id": title, "title": title, "url": f"/#{title}", "_formatted": {"title": title, "content": ""}}
    return 200, {"hits": [hit], "estimatedTotalHits": 1, **fields}


def watch(stub: Stub, visitor: Visitor, data: str = "") -> None:
    open_page(stub, visitor, data)
    visitor.driver.execute_script(WATCH)


def seen(visitor: Visitor, name: str) -> Any:
    return visitor.driver.execute_script("return seen[arguments[0]]", name)


def is_dimmed(visitor: Visitor) -> bool:
    return bool(visitor.inside("#results")[0].get_attribute("aria-busy") == "true")


def test_long_text_is_cut_to_the_512_bytes_that_an_engine_accepts(stub: Stub, visitor: Visitor) -> None:
    open_page(stub, visitor, "")
    visitor.type("港" * 180)
    visitor.wait(lambda: stub.searches("港" * 170), "the truncated text was not searched")
    assert stub.searches("港" * 180) == []


class TestResponses:
    def test_first_row_appears_while_keys_still_come(self, stub: Stub, visitor: Visitor) -> None:
        stub.found["o"] = finding("one")
        stub.waiting["op"] = Event()
        watch(stub, visitor)
        visitor.type("o")
        visitor.wait(lambda: visitor.titles() == ["one"], "the first key found nothing")
        visitor.type("p")
        visitor.wait(lambda: stub.searches("op"), "the second key was not searched")
        visitor.wait(lambda: is_dimmed(visitor), "the older results were not dimmed")
        assert visitor.titles() == ["one"], "rows must stay until newer ones arrive"
        visitor.type("e")
        assert visitor.titles() == ["one"]
        stub.waiting["op"].set()
        visitor.wait(lambda: visitor.titles() == ["Opening hours", "Getting here"], "the newer rows did not appear")
        assert not is_dimmed(visitor)

    def test_older_response_never_replaces_a_newer_one(self, stub: Stub, visitor: Visitor) -> None:
        stub.found |= {"a": finding("old"), "ab": finding("new")}
        stub.waiting["a"] = Event()
        watch(stub, visitor)
        visitor.type("a")
        visitor.wait(lambda: stub.searches("a"), "the first key was not searched")
        visitor.type("b")
        visitor.wait(lambda: visitor.titles() == ["new"], "the newer response waited for the older one")
        stub.waiting["a"].set()
        visitor.type("c")
        visitor.wait(lambda: visitor.titles() == ["Opening hours", "Getting here"], "the last response did not arrive")
        assert seen(visitor, "shown") == ["new", "Opening hours"]

    def test_older_response_is_shown_until_a_newer_one_comes(self, stub: Stub, visitor: Visitor) -> None:
        stub.found |= {"a": finding("old"), "ab": finding("new")}
        stub.waiting |= {"a": Event(), "ab": Event()}
        watch(stub, visitor)
        visitor.type("a")
        visitor.wait(lambda: stub.searches("a"), "the first key was not searched")
        visitor.type("b")
        stub.waiting["a"].set()
        visitor.wait(lambda: visitor.titles() == ["old"], "the older response was not shown")
        stub.waiting["ab"].set()
        visitor.wait(lambda: visitor.titles() == ["new"], "the newer response did not arrive")

    def test_page_gets_an_event_only_for_the_last_text(self, stub: Stub, visitor: Visitor) -> None:
        watch(stub, visitor)
        visitor.driver.execute_script(
            "window.told = []; addEventListener('site-search:search', ({ detail }) => told.push(detail.query))"
        )
        visitor.type(*"open")
        visitor.wait(lambda: visitor.driver.execute_script("return told.length"), "the page received no event")
        assert visitor.driver.execute_script("return told") == ["open"]


class TestPace:
    def test_keys_are_searched_at_the_pace_and_the_last_text_always(self, stub: Stub, visitor: Visitor) -> None:
        watch(stub, visitor)
        for letter in "webhooks":
            visitor.type(letter)
        visitor.wait(lambda: stub.searches("webhooks"), "the last text was not searched")
        starts = seen(visitor, "starts")
        assert stub.bodies(SEARCH)[0]["q"] == "w", "the first key must be searched immediately"
        assert min(later - earlier for earlier, later in pairwise(starts)) >= PACE_MS - 1
        assert seen(visitor, "mostTogether") <= 2

    def test_slow_line_has_one_request_at_a_time_and_rarely(self, stub: Stub, visitor: Visitor) -> None:
        self._be_slow(visitor)
        watch(stub, visitor)
        visitor.inside("input")[0].click()
        visitor.wait(lambda: stub.popular_requests, "the suggestion was not searched")
        for letter in "migrations":
            visitor.type(letter)
        visitor.wait(lambda: stub.searches("migrations"), "the last text was not searched")
        visitor.wait(lambda: visitor.titles(), "the results did not appear")
        starts = seen(visitor, "starts")
        assert len(starts) >= 2
        assert min(later - earlier for earlier, later in pairwise(starts)) >= SLOW_LINE_MS - 1
        assert seen(visitor, "mostTogether") == 1

    def test_third_search_waits_until_a_stalled_search_is_canceled(self, stub: Stub, visitor: Visitor) -> None:
        stub.waiting |= {"a": Event(), "ab": Event(), "abc": Event()}
        watch(stub, visitor)
        visitor.type("a")
        visitor.wait(lambda: stub.searches("a"), "the first key was not searched")
        began = time.monotonic()
        for letter in "bc":
            visitor.type(letter)
        visitor.wait(lambda: stub.searches("abc"), "the last text was not searched")
        assert seen(visitor, "mostTogether") <= 2
        assert time.monotonic() - began < 10
        for event in stub.waiting.values():
            event.set()
        visitor.wait(lambda: visitor.titles(), "the results did not appear")

    def _be_slow(self, visitor: Visitor) -> None:
        limits = {"offline": False, "latency": 400, "downloadThroughput": -1, "uploadThroughput": -1}
        visitor.driver.execute_cdp_cmd("Network.enable", {})
        visitor.driver.execute_cdp_cmd("Network.emulateNetworkConditions", limits)

    def test_typed_query_is_charged_once_and_is_one_search_in_analytics(
        self, server: Server, browser: Any, other_origin: tuple[str, Path]
    ) -> None:
        customer = Customer(server, "types@example.com")
        guest = Visitor(browser, *other_origin)
        guest.open(customer.base_url, customer.public_key)
        guest.driver.execute_script(WATCH)
        for letter in "lighthouse":
            guest.type(letter)
        guest.wait(lambda: guest.told() == "2 results", "the results did not appear")
        guest.wait(lambda: customer.searched() == {"lighthouse": 1}, f"it was recorded as {customer.searched()}")
        assert len(seen(guest, "starts")) >= 2, "the text was searched while it was typed"
        assert customer.used_today() == 1


class TestKeys:
    ENTER, SHIFT = "\ue007", "\ue008"

    def test_enter_opens_the_first_result(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor)
        visitor.type("open")
        visitor.wait(lambda: visitor.inside("#hit-0[aria-selected=true]"), "the first result was not selected")
        visitor.type(self.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/#hours"), "the first result did not open")
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the click was not reported")
        assert stub.bodies("/api/v1/click")[0]["position"] == 1

    def test_first_result_is_chosen_again_when_the_dialog_opens_again(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor, 'data-mode="modal"')
        visitor.inside(".open")[0].click()
        visitor.type("open")
        visitor.wait(lambda: visitor.inside("#hit-0[aria-selected=true]"), "the first result was not selected")
        press(visitor, "\ue00c")  # Escape
        visitor.wait(lambda: not visitor.inside("[aria-selected=true]"), "the dialog did not close")
        visitor.inside(".open")[0].click()
        visitor.wait(lambda: visitor.inside("#hit-0[aria-selected=true]"), "no option was selected again")

    def test_enter_before_the_response_opens_the_first_result_of_the_text_as_typed(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        stub.found |= {"a": finding("old"), "ab": finding("new")}
        stub.waiting["ab"] = Event()
        open_page(stub, visitor)
        visitor.type("a")
        visitor.wait(lambda: visitor.titles() == ["old"], "the results did not appear")
        visitor.type("b", self.ENTER)
        visitor.wait(lambda: stub.searches("ab"), "the text was not searched")
        assert "#" not in visitor.driver.current_url, "Enter opened a result of an older text"
        stub.waiting["ab"].set()
        visitor.wait(lambda: visitor.driver.current_url.endswith("/#new"), "the first result did not open")

    def test_shift_enter_opens_all_results(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor, 'data-results-url="/all"')
        visitor.type("open")
        visitor.wait(lambda: visitor.titles(), "the results did not appear")
        press(visitor, self.SHIFT, self.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/all?q=open"), "the full view did not appear")

    def test_enter_without_hits_opens_all_results(self, stub: Stub, visitor: Visitor) -> None:
        stub.answers[SEARCH] = [(200, {"hits": [], "estimatedTotalHits": 0})]
        open_page(stub, visitor, 'data-results-url="/all"')
        visitor.type("zzz", self.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/all?q=zzz"), "the full view did not appear")

    def test_enter_with_nothing_typed_does_nothing(self, stub: Stub, visitor: Visitor) -> None:
        stub.popular = ["tickets"]
        open_page(stub, visitor, 'data-results-url="/all"')
        before = visitor.driver.current_url
        visitor.inside("input")[0].click()
        visitor.wait(lambda: visitor.inside("#popular-0"), "the popular searches did not appear")
        visitor.type(self.ENTER)
        press(visitor, self.SHIFT, self.ENTER)
        assert visitor.driver.current_url == before
        assert stub.bodies(SEARCH) == []
        assert visitor.inside("#popular-0[aria-selected=false]"), "no choice may be preselected"

    def test_nothing_is_chosen_in_advance_on_a_touch_screen(self, stub: Stub, visitor: Visitor) -> None:
        touch = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        visitor.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", touch)
        visitor.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        open_page(stub, visitor, 'data-results-url="/all"')
        visitor.type("open")
        visitor.wait(lambda: visitor.titles(), "the results did not appear")
        assert not visitor.inside("[aria-selected=true]")
        visitor.type(self.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/all?q=open"), "the full view did not appear")


class TestLooks:
    def test_breadcrumbs_that_all_results_share_are_hidden(self, stub: Stub, visitor: Visitor) -> None:
        given: Any = HITS["hits"]
        hits = [{**hit, "date": "2024-05-01"} for hit in given]
        for places, shown in (
            (["docs", "docs"], ["May 1, 2024"] * 2),
            (["docs", "howto"], ["docs · May 1, 2024", "howto · May 1, 2024"]),
        ):
            found = [{**hit, "section": place} for hit, place in zip(hits, places, strict=True)]
            stub.found["open"] = (200, {**HITS, "hits": found})
            open_page(stub, visitor)
            visitor.type("open")
            visitor.wait(lambda: visitor.titles(), "the results did not appear")
            assert [each.text for each in visitor.inside(".meta")] == shown

    @pytest.mark.parametrize("mode", ["inline", "modal"])
    def test_box_has_the_font_of_the_page(self, stub: Stub, visitor: Visitor, mode: str) -> None:
        stub.policy = STRICT + "; style-src 'unsafe-inline'"
        open_page(stub, visitor, f'data-mode="{mode}"', body="<style>body { font-family: Palatino, serif }</style>")
        if mode == "modal":
            visitor.inside(".open")[0].click()
        visitor.type("open")
        visitor.wait(lambda: visitor.titles(), "the results did not appear")
        script = "return getComputedStyle(arguments[0]).fontFamily"
        for css in ("input", ".title", ".snippet", ".more"):
            assert visitor.driver.execute_script(script, visitor.inside(css)[0]) == "Palatino, serif", css


def test_misspelt_attributes_and_wrong_values_are_reported_in_the_console(stub: Stub, visitor: Visitor) -> None:
    visitor.driver.get_log("browser")
    open_page(stub, visitor, 'data-placeholer="Find" data-limit="abc" data-results-url="/all" data-recent="true"')
    said = [entry["message"] for entry in visitor.driver.get_log("browser")]
    assert [each.partition("Site search: ")[2].rstrip('"') for each in said] == [
        "the attribute data-placeholer is unknown.",
        'data-limit=\\"abc\\" is not a number.',
    ]


def test_rejected_filter_names_its_attribute(stub: Stub, visitor: Visitor) -> None:
    body = {"message": "Expected a value. (At character 9.)", "code": "invalid_search_filter"}
    stub.answers[SEARCH] = [(400, body)]
    open_page(stub, visitor, 'data-filters="section ="')
    visitor.driver.get_log("browser")
    visitor.type("open")
    visitor.wait(lambda: visitor.told() == "Search is not available.", "the message was not shown")
    said = [entry["message"] for entry in visitor.driver.get_log("browser")]
    assert any("Site search: data-filters: Expected a value. (At character 9.)" in each for each in said), said
