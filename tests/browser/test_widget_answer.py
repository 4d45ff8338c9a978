"""The quoted answer to a question, above the results of the search box."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.stub import SCRIPT_ELEMENT, Stub, page_with
from tests.browser.test_widget import EVIL
from tests.browser.test_widget_box import HITS, SEARCH, finding_stub, finds, open_mounted, open_page, press, severe
from tests.browser.test_widget_results import PLACE, Searcher

pytestmark = pytest.mark.browser

TEXT = "In summer we open at nine, and close at eight in the evening."
ANSWER = {"text": TEXT, "id": "way", "url": "/#old", "anchor": "tram"}
QUESTION = "when do you open"
ARABIC = {"text": "نفتح في الساعة التاسعة صباحًا، ونغلق في الثامنة مساءً.", "id": "way", "url": "/", "anchor": ""}


def answered(**changes: Any) -> dict[str, Any]:
    return {**HITS, "answer": {**ANSWER, **changes}}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with finding_stub() as running:
        running.answers[SEARCH] = [(200, answered())]
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Searcher:
    return Searcher(browser, stub.base_url, tmp_path)


def asks(visitor: Searcher) -> Any:
    """Type the question and return the link of the answer."""
    visitor.type(QUESTION)
    visitor.wait(lambda: visitor.inside("#answer"), "the answer did not appear")
    return visitor.inside("#answer")[0]


def is_within(visitor: Searcher, figure: Any) -> bool:
    """Whether a figure and its content fit their container, and the page fits the window."""
    script = """
        const [figure] = arguments, around = figure.parentElement.getBoundingClientRect();
        const all = [figure, ...figure.querySelectorAll("*")].map((each) => each.getBoundingClientRect());
        return all.every((at) => at.left >= around.left && at.right <= around.right) && around.left >= 0 &&
          around.right <= innerWidth && document.documentElement.scrollWidth <= innerWidth;"""
    return bool(visitor.driver.execute_script(script, figure))


class TestInTheBox:
    def test_answer_is_quoted_above_the_results_and_links_to_its_section(self, stub: Stub, visitor: Searcher) -> None:
        open_page(stub, visitor)
        link = asks(visitor)
        (figure,) = visitor.inside("figure")
        assert (figure.get_attribute("aria-label"), figure.get_attribute("role")) == ("Answer", "group")
        assert figure.text.splitlines() == ["Answer", TEXT, "Getting here"]
        there = f"{stub.base_url}/#tram"
        (quote,) = figure.find_elements("css selector", "blockquote")
        assert (quote.text, quote.get_attribute("cite")) == (TEXT, there)
        assert (link.find_element("css selector", "cite").text, link.get_attribute("href")) == ("Getting here", there)
        assert figure.rect["y"] < visitor.inside("#hit-0")[0].rect["y"]
        assert [each.get_attribute("id") for each in visitor.inside("[role=option]")] == ["answer", "hit-0", "hit-1"]
        assert not visitor.inside("[role=listbox] > :not([role=group], [role=option])")

    def test_answer_disappears_when_the_next_response_has_no_answer(self, stub: Stub, visitor: Searcher) -> None:
        stub.answers[SEARCH] = [(200, answered()), (200, HITS)]
        open_page(stub, visitor)
        asks(visitor)
        visitor.type(" then")
        visitor.wait(lambda: not visitor.inside("figure"), "the panel did not move with the field")
        assert visitor.inside("#hit-0")

    @pytest.mark.parametrize("url", ["javascript:document.title='pwned'", None, ""])
    def test_answer_without_a_valid_url_is_not_quoted(self, stub: Stub, visitor: Searcher, url: str | None) -> None:
        stub.answers[SEARCH] = [(200, answered(url=url))]
        open_page(stub, visitor)
        finds(visitor, QUESTION)
        assert not visitor.inside("figure")

    def test_markup_in_an_answer_is_displayed_as_text(self, stub: Stub, visitor: Searcher) -> None:
        hits = [{**HITS["hits"][0], "_formatted": {"title": EVIL, "content": ""}}]
        stub.answers[SEARCH] = [(200, {**answered(text=EVIL, id="hours"), "hits": hits})]
        open_page(stub, visitor)
        asks(visitor)
        assert [each.text for each in visitor.inside("blockquote, cite")] == [EVIL, EVIL]
        assert not visitor.inside("img")
        assert visitor.driver.title == "Museum"

    def test_answer_from_a_page_outside_the_results_is_labelled_with_its_url(
        self, stub: Stub, visitor: Searcher
    ) -> None:
        stub.answers[SEARCH] = [(200, answered(id="other", url="https://example.com/visit?a=1", anchor=""))]
        open_page(stub, visitor)
        link = asks(visitor)
        assert visitor.inside("cite")[0].text == "example.com/visit"
        assert link.get_attribute("href") == "https://example.com/visit?a=1"

    def test_answer_is_chosen_first_and_its_click_is_reported(self, stub: Stub, visitor: Searcher) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor)
        link = asks(visitor)
        assert visitor.inside("input")[0].get_attribute("aria-activedescendant") == "answer"
        assert link.get_attribute("aria-selected") == "true"
        visitor.type(Keys.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/#tram"), "the link did not open a page")
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the click was not reported")
        (told,) = stub.bodies("/api/v1/click")
        assert told.pop("session_id")
        assert told == {"query_id": "query-1", "query": QUESTION, "id": "way", "position": 2, "anchor": "tram"}

    @pytest.mark.parametrize(("answer", "place"), [
        ({"anchor": ""}, {"id": "way", "position": 2}),
        ({"id": "other"}, {"id": "other", "position": None, "anchor": "tram"}),
    ])  # fmt: skip
    def test_answer_click_omits_unknown_position_and_anchor(
        self, stub: Stub, visitor: Searcher, answer: dict[str, str], place: dict[str, Any]
    ) -> None:
        stub.answers[SEARCH] = [(200, answered(**answer))]
        open_page(stub, visitor)
        asks(visitor).click()
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the click was not reported")
        (told,) = stub.bodies("/api/v1/click")
        assert told.pop("session_id")
        assert told == {"query_id": "query-1", "query": QUESTION, **place}

    def test_answer_is_announced_after_the_number_of_results(self, stub: Stub, visitor: Searcher) -> None:
        open_page(stub, visitor)
        asks(visitor)
        region = visitor.inside("[role=status]")[0]
        told = f"7 results. Answer: {TEXT}"
        visitor.wait(lambda: region.get_attribute("textContent") == told, "the message was not announced")

    def test_answer_hidden_by_the_page_is_skipped_by_keyboard_and_announcement(
        self, stub: Stub, visitor: Searcher
    ) -> None:
        style = '<style nonce="page">#site-search::part(answer) { display: none }</style>'
        stub.policy += "; style-src 'nonce-page'"
        open_page(stub, visitor, body=style)
        asks(visitor)
        assert not visitor.inside("figure")[0].is_displayed()
        assert visitor.inside("input")[0].get_attribute("aria-activedescendant") == "hit-0"
        region = visitor.inside("[role=status]")[0]
        visitor.wait(lambda: region.get_attribute("textContent") == "7 results", "the message was not announced")

    @pytest.mark.parametrize(("answer", "end"), [
        ({"anchor": "", "url": "/"}, "/#:~:text=In%20summer%20we%20open%20at%20nine%2C%20and%20close%20at%20eight%20in"
         "%20the%20evening."),
        ({}, "/#tram"),
    ])  # fmt: skip
    def test_answer_links_to_its_passage_when_results_do(
        self, stub: Stub, visitor: Searcher, answer: dict[str, str], end: str
    ) -> None:
        stub.answers[SEARCH] = [(200, answered(**answer))]
        open_page(stub, visitor, 'data-jump="true"')
        assert asks(visitor).get_attribute("href") == stub.base_url + end


class TestFunctionsOfThePage:
    def test_page_callbacks_receive_the_selected_answer(self, stub: Stub, visitor: Searcher) -> None:
        script = """
            var seen = [];
            document.addEventListener("site-search:select", ({ detail }) => seen.push(detail));
            SiteSearch.mount(document.querySelector("#site-search"), { key: "svc_pub_test",
              onSelect: (hit) => { seen.push(hit); return false; } });"""
        open_mounted(stub, visitor, script)
        asks(visitor).click()
        event, hit = visitor.driver.execute_script("return seen")
        assert (event["query"], event["position"], event["hit"]) == (QUESTION, 2, hit)
        assert (hit["id"], hit["title"], hit["url"], hit["answer"]) == ("way", "Getting here", "/#tram", ANSWER)
        assert "#" not in visitor.driver.current_url

    @pytest.mark.parametrize(("transform", "shown"), [
        ("hits.map((hit) => ({ ...hit, title: hit.title.toUpperCase() }))", ["GETTING HERE"]),
        ('hits.filter(({ id }) => id !== "way")', []),
    ])  # fmt: skip
    def test_answer_follows_transformed_hits_and_is_hidden_with_its_hit(
        self, stub: Stub, visitor: Searcher, transform: str, shown: list[str]
    ) -> None:
        script = f"""SiteSearch.mount(document.querySelector("#site-search"), {{ key: "svc_pub_test",
            transform: (hits) => {transform} }})"""
        open_mounted(stub, visitor, script)
        finds(visitor, QUESTION) if not shown else asks(visitor)
        assert [each.text for each in visitor.inside("cite")] == shown
        assert severe(visitor) == []


class TestInTheFullView:
    @pytest.mark.parametrize("place", [PLACE, ""], ids=["in the page", "over the page"])
    def test_answer_is_quoted_above_the_full_results_and_links_to_its_section(
        self, stub: Stub, visitor: Searcher, place: str
    ) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        open_page(stub, visitor, body=place)
        visitor.go("/?q=open")
        visitor.wait(lambda: visitor.seen("figure"), "the answer did not appear")
        (figure,) = visitor.seen("figure")
        assert figure.get_attribute("aria-label") == "Answer"
        assert figure.text.splitlines() == ["Answer", TEXT, "Getting here"]
        assert figure.rect["y"] < visitor.seen(".hits")[0].rect["y"]
        (link,) = figure.find_elements("css selector", "a")
        assert (link.text, link.get_attribute("href")) == ("Getting here", f"{stub.base_url}/#tram")
        assert not figure.find_elements("css selector", "a blockquote")
        ActionChains(visitor.driver).click(figure.find_element("css selector", "blockquote")).perform()
        visitor.wait(lambda: visitor.driver.current_url.endswith("/#tram"), "the link did not open a page")
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the click was not reported")
        told = stub.bodies("/api/v1/click")[0]
        assert (told["id"], told["position"], told["anchor"]) == ("way", 2, "tram")

    def test_going_back_returns_the_focus_to_the_answer(self, stub: Stub, visitor: Searcher) -> None:
        stub.answers[SEARCH] = [(200, answered(url="/other"))]
        open_page(stub, visitor, body=PLACE)
        visitor.go("/?q=open")
        visitor.wait(lambda: visitor.seen("figure a"), "the answer did not appear")
        visitor.seen("figure a")[0].click()
        visitor.wait(lambda: visitor.driver.current_url.endswith("/other#tram"), "the link did not open a page")
        visitor.driver.back()
        script = """return document.querySelector("#all")?.shadowRoot?.activeElement?.closest("figure") != null"""
        visitor.wait(lambda: visitor.driver.execute_script(script), "the focus did not return")

    def test_answer_disappears_with_the_next_search_or_failure(self, stub: Stub, visitor: Searcher) -> None:
        open_page(stub, visitor, 'data-mode="modal"', body=PLACE)
        visitor.go("/?q=open")
        visitor.wait(lambda: visitor.seen("figure"), "the answer did not appear")
        stub.answers[SEARCH] = [(200, HITS)]
        visitor.seen("input")[0].send_keys("s")
        visitor.wait(lambda: not visitor.seen("figure"), "the panel did not move with the field")
        stub.answers[SEARCH] = [(200, answered())]
        visitor.seen("input")[0].send_keys("x")
        visitor.wait(lambda: visitor.seen("figure"), "the answer did not appear")
        stub.answers[SEARCH] = [(503, {})]
        visitor.seen("input")[0].send_keys("y")
        visitor.wait(lambda: not visitor.seen("figure"), "the answer stayed after a failed search")


class TestLooks:
    @pytest.mark.parametrize(("attributes", "answer", "side"), [
        ('lang="en"', ANSWER, "left"),
        ('lang="ar" dir="rtl"', {**ARABIC, "text": f"{ARABIC['text']} " * 5}, "right"),
        ('lang="ar" dir="rtl"', ANSWER, "left"),
        ('lang="en"', {**ANSWER, "text": "Donaudampfschifffahrtsgesellschaft" * 8}, "left"),
    ])  # fmt: skip
    @pytest.mark.parametrize("place", ["", PLACE], ids=["box", "full view"])
    def test_answer_fits_320_pixels_with_its_bar_at_the_start_of_the_text(
        self, stub: Stub, visitor: Searcher, attributes: str, answer: dict[str, str], side: str, place: str
    ) -> None:
        size = {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": False}
        visitor.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        stub.answers[SEARCH] = [(200, {**HITS, "answer": answer})]
        open_page(stub, visitor, attributes=attributes, body=place)
        if place:
            visitor.go("/?q=open")
            visitor.wait(lambda: visitor.seen("figure"), "the answer did not appear")
            (figure,) = visitor.seen("figure")
        else:
            asks(visitor)
            (figure,) = visitor.inside("figure")
        assert is_within(visitor, figure)
        quote = figure.find_element("css selector", "blockquote")
        widths = {name: quote.value_of_css_property(f"border-{name}-width") for name in ("left", "right")}
        assert widths == {"left": "0px", "right": "0px", side: "3px"}

    def test_answer_uses_the_colors_of_the_theme(self, stub: Stub, visitor: Searcher) -> None:
        open_page(stub, visitor, 'data-theme="dark"')
        link = asks(visitor)
        color = "return getComputedStyle(arguments[0])[arguments[1]]"
        quote, cite = (link.find_element("css selector", name) for name in ("blockquote", "cite"))
        assert visitor.driver.execute_script(color, quote, "color") == "rgb(228, 233, 237)"
        assert visitor.driver.execute_script(color, cite, "color") == "rgb(108, 195, 218)"
        assert visitor.driver.execute_script(color, quote, "borderInlineStartColor") == "rgb(108, 195, 218)"

    @pytest.mark.parametrize(("lang", "label"), [("de", "Antwort"), ("ar", "الإجابة"), ("ja", "回答")])
    def test_answer_label_is_in_the_language_of_the_box(
        self, stub: Stub, visitor: Searcher, lang: str, label: str
    ) -> None:
        open_page(stub, visitor, f'data-lang="{lang}"')
        asks(visitor)
        assert visitor.inside("figure")[0].get_attribute("aria-label") == label


def test_hit_template_does_not_apply_to_the_answer(stub: Stub, visitor: Searcher) -> None:
    template = "<template data-site-search-hit><figure><cite>{{title}}</cite></figure></template>"
    stub.page = page_with(SCRIPT_ELEMENT, body=template)
    visitor.go("/")
    visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")
    press(visitor, "/")
    asks(visitor)
    assert visitor.inside("[part=answer]")[0].text.splitlines() == ["Answer", TEXT, "Getting here"]
    assert [each.text for each in visitor.inside("#hit-0 cite, #hit-1 cite")] == ["Opening hours", "Getting here"]
