"""Content from the owner and other visitors: corrections, notices, redirects, links, and popular searches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.stub import Stub
from tests.browser.test_widget import EVIL, Visitor
from tests.browser.test_widget_box import HITS, SEARCH, finding_stub, finds, focused, open_page, press
from tests.browser.test_widget_results import PLACE, Searcher

pytestmark = pytest.mark.browser

POPULAR = ["tickets", EVIL]
LINKS = [
    {"text": f"Ask us {EVIL}", "url": "/contact"},
    {"text": "Evil", "url": "javascript:document.title='pwned'"},
    {"text": "Map", "url": "https://maps.example.com/museum"},
]
NOTHING = {"hits": [], "estimatedTotalHits": 0, "no_results_links": LINKS}


def found(**metadata: Any) -> dict[str, Any]:
    return {**HITS, "metadata": {"queryUid": "query-1", "matched": "all", "corrected_query": None, **metadata}}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with finding_stub() as running:
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Searcher:
    return Searcher(browser, stub.base_url, tmp_path)


WORDS = [
    ({"matched": "corrected", "corrected_query": "opening"}, "Showing results for “opening”: 7 results"),
    ({"matched": "some"}, "No page matches all words. Pages with some of them: 7 results"),
    ({}, "7 results"),
]


class TestWords:
    @pytest.mark.parametrize(("metadata", "told"), WORDS)
    def test_box_reports_corrected_and_partial_queries(
        self, stub: Stub, visitor: Visitor, metadata: dict[str, Any], told: str
    ) -> None:
        stub.answers[SEARCH] = [(200, found(**metadata))]
        open_page(stub, visitor)
        visitor.type("opne")
        visitor.wait(lambda: visitor.told() == told, f"{told!r} did not appear, but {visitor.told()!r}")
        region = visitor.inside("[role=status]")[0]
        visitor.wait(lambda: region.get_attribute("textContent") == told, "the message was not announced")

    @pytest.mark.parametrize(("metadata", "told"), WORDS)
    def test_full_view_reports_corrected_and_partial_queries(
        self, stub: Stub, visitor: Searcher, metadata: dict[str, Any], told: str
    ) -> None:
        stub.answers[SEARCH] = [(200, found(**metadata))]
        open_page(stub, visitor, body=PLACE)
        visitor.go("/?q=opne")
        visitor.wait(lambda: visitor.status() == told, f"{told!r} did not appear")


class TestNotice:
    @pytest.mark.parametrize("url", ["/closed", None, "javascript:alert(1)"])
    def test_notice_is_shown_as_text_above_the_results_and_announced(
        self, stub: Stub, visitor: Searcher, url: str | None
    ) -> None:
        stub.answers[SEARCH] = [(200, {**HITS, "notice": {"text": EVIL, "url": url}})]
        open_page(stub, visitor)
        finds(visitor)
        (notice,) = visitor.inside(".notice")
        assert notice.text == EVIL
        assert [link.get_attribute("href") for link in notice.find_elements("css selector", "a")] == (
            [f"{stub.base_url}/closed"] if url == "/closed" else []
        )
        assert notice.location["y"] < visitor.inside(".hit")[0].location["y"]
        region = visitor.inside("[role=status]")[0]
        visitor.wait(lambda: EVIL in region.get_attribute("textContent"), "the message was not announced")
        stub.answers[SEARCH] = [(200, HITS)]
        visitor.type("s")
        visitor.wait(lambda: not notice.is_displayed(), "the panel did not move with the field")

    def test_notice_is_shown_in_the_full_view(self, stub: Stub, visitor: Searcher) -> None:
        stub.answers[SEARCH] = [(200, {**HITS, "notice": {"text": "Closed", "url": "/closed"}})]
        open_page(stub, visitor, body=PLACE)
        visitor.go("/?q=open")
        visitor.wait(lambda: [one.text for one in visitor.seen(".notice a")] == ["Closed"], "it did not appear")


class TestRedirect:
    @pytest.mark.parametrize("body", ["", PLACE])
    @pytest.mark.parametrize("address", ["/jobs", "https://example.invalid/jobs"])
    def test_enter_follows_a_redirect_first(self, stub: Stub, visitor: Visitor, address: str, body: str) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.answers[SEARCH] = [(200, {**HITS, "redirect": address})]
        open_page(stub, visitor, 'data-results-url="/all"', body=body)
        visitor.type("open", Keys.ENTER)  # Before any results arrived.
        visitor.wait(lambda: visitor.driver.current_url.endswith("/jobs"), "the link did not open a page")

    def test_typing_or_selecting_a_result_does_not_follow_the_redirect(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.answers[SEARCH] = [(200, {**HITS, "redirect": "/jobs"})]
        open_page(stub, visitor)
        finds(visitor)
        visitor.type(Keys.ARROW_DOWN, Keys.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/#way"), "the result did not open")

    def test_javascript_redirect_is_ignored(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.answers[SEARCH] = [(200, {**HITS, "redirect": "javascript:document.title='pwned'"})]
        open_page(stub, visitor, 'data-results-url="/all"')
        visitor.type("open", Keys.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/#hours"), "the first result did not open")
        assert visitor.driver.title == "Museum"

    def test_enter_after_a_failed_search_shows_the_failure_in_the_full_view(
        self, stub: Stub, visitor: Searcher
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.answers[SEARCH] = [(503, {})]
        open_page(stub, visitor, body=PLACE)
        visitor.type("open", Keys.ENTER)
        visitor.wait(lambda: visitor.status() == "Search cannot be reached at the moment.", "the message was not shown")

    def test_enter_in_the_full_view_follows_a_redirect(self, stub: Stub, visitor: Searcher) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor, 'data-mode="modal"', body=PLACE)
        visitor.go("/?q=open")
        visitor.wait(lambda: visitor.status() == "7 results", "the results did not appear")
        stub.answers[SEARCH] = [(200, {**HITS, "redirect": "/jobs"})]
        (field,) = visitor.seen("input[type=search]")
        field.send_keys("s")
        visitor.wait(lambda: stub.searches("opens"), "the box did not search again")
        assert "/jobs" not in visitor.driver.current_url
        field.send_keys(Keys.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/jobs"), "the link did not open a page")


class TestNothingFound:
    def test_search_without_results_offers_the_owners_links_and_popular_searches(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.answers[SEARCH] = [(200, NOTHING), (200, HITS)]
        stub.popular = POPULAR
        open_page(stub, visitor)
        visitor.type("zzz")
        visitor.wait(lambda: "Nothing matches “zzz”." in visitor.told(), "the message was not shown")
        links = [(each.text, each.get_attribute("href")) for each in visitor.inside(".link")]
        assert links == [(LINKS[0]["text"], f"{stub.base_url}/contact"), ("Map", LINKS[2]["url"])]
        group = [each.text for each in visitor.inside("[role=group][aria-label='Popular searches'] .query")]
        assert group == ["tickets", EVIL]
        assert not visitor.inside("img")
        visitor.type(Keys.ARROW_UP, Keys.ARROW_UP, Keys.ENTER)
        visitor.wait(lambda: visitor.told() == "7 results", "the popular query was not searched")
        assert stub.bodies(SEARCH)[-1]["q"] == "tickets"

    def test_link_for_searches_without_results_can_be_followed_by_keyboard(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.answers[SEARCH] = [(200, NOTHING)]
        open_page(stub, visitor)
        visitor.type("zzz")
        visitor.wait(lambda: visitor.inside(".link"), "they did not appear")
        visitor.type(Keys.ARROW_DOWN, Keys.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/contact"), "the link did not open a page")

    def test_full_view_without_results_offers_links_and_popular_searches(self, stub: Stub, visitor: Searcher) -> None:
        stub.answers[SEARCH] = [(200, NOTHING)]
        stub.popular = POPULAR
        open_page(stub, visitor, body=PLACE)
        visitor.go("/?q=zzz")
        visitor.wait(lambda: [each.text for each in visitor.seen(".queries button")] == ["tickets", EVIL], "it")
        assert [each.text for each in visitor.seen(".link")] == [LINKS[0]["text"], "Map"]
        stub.answers[SEARCH] = [(200, HITS)]
        visitor.seen(".queries button")[0].click()
        visitor.wait(lambda: visitor.status() == "7 results", "the popular query was not searched")
        assert visitor.address()["q"] == ["tickets"]


class TestPopularSearches:
    def test_popular_searches_are_shown_below_recent_ones_while_the_field_is_empty(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        stub.popular = POPULAR
        open_page(stub, visitor, 'data-recent="true"')
        visitor.inside("input")[0].click()
        visitor.wait(
            lambda: [each.text for each in visitor.inside(".query")] == ["tickets", EVIL], "they did not appear"
        )
        assert visitor.told() == " Popular searches"
        visitor.type(Keys.ARROW_DOWN, Keys.ENTER)
        visitor.wait(lambda: visitor.told() == "7 results", "the query was not searched")
        visitor.type(*[Keys.BACKSPACE] * len("tickets"))
        visitor.wait(lambda: visitor.told() == " Recent searches Popular searches", "they did not reappear")
        assert [each.text for each in visitor.inside(".query")] == ["tickets", EVIL], "no suggestion may appear twice"
        assert len(stub.popular_requests) == 1

    def test_dialog_shows_popular_searches_when_it_opens(self, stub: Stub, visitor: Visitor) -> None:
        stub.popular = POPULAR
        open_page(stub, visitor, 'data-mode="modal"')
        press(visitor, "/")
        visitor.wait(lambda: len(visitor.inside(".query")) == 2, "they did not appear")
        assert focused(visitor) == "input"

    def test_empty_box_stays_closed_without_popular_searches(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor)
        visitor.inside("input")[0].click()
        visitor.wait(lambda: stub.popular_requests, "they were not requested")
        assert not visitor.inside(".panel")[0].is_displayed()
