"""The search box in pages of others: its colors, style sheets, and the page behind a dialog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.stub import STRICT, Stub
from tests.browser.test_widget import Visitor
from tests.browser.test_widget_box import SEARCH, finding_stub, finds, focused, open_page, press

pytestmark = pytest.mark.browser

LIGHT, DARK = "rgb(255, 255, 255)", "rgb(23, 29, 35)"
LOOKS = """
    const root = document.querySelector("#site-search").shadowRoot;
    return [".panel", ".title", ".snippet", ".more"].map((css) => {
      const element = root.querySelector(css), style = getComputedStyle(element);
      const names = ["fontSize", "fontWeight", "textTransform", "letterSpacing", "lineHeight", "display", "color",
        "textAlign", "wordSpacing", "textIndent", "cursor"];
      return [element.getBoundingClientRect().height, ...names.map((name) => style[name])];
    });"""


@pytest.fixture
def stub() -> Iterator[Stub]:
    with finding_stub() as running:
        running.policy = STRICT + "; style-src 'unsafe-inline'"
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Visitor:
    return Visitor(browser, stub.base_url, tmp_path)


def ground(visitor: Visitor) -> str:
    script = "return getComputedStyle(arguments[0]).backgroundColor"
    return str(visitor.driver.execute_script(script, visitor.inside("input")[0]))


def prefer(visitor: Visitor, scheme: str) -> None:
    """Set the system's color scheme."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    visitor.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


class TestColors:
    @pytest.mark.parametrize(("data", "body", "in_light", "in_dark"), [
        ("", "", LIGHT, LIGHT),
        ("", "<style>:root { color-scheme: dark }</style>", DARK, DARK),
        ("", "<style>:root { color-scheme: light dark }</style>", LIGHT, DARK),
        ("", "<style>:root { color-scheme: dark } #site-search { color-scheme: light }</style>", LIGHT, LIGHT),
        ("", '<meta name="color-scheme" content="dark">', DARK, DARK),
        ('data-theme="auto"', "<style>:root { color-scheme: light }</style>", LIGHT, DARK),
        ('data-theme="dark"', "<style>* { all: unset !important }</style>", DARK, DARK),
        ('data-theme="light"', "<style>:root { color-scheme: dark }</style>", LIGHT, LIGHT),
    ])  # fmt: skip
    def test_colors_follow_the_page_not_the_system_unless_configured(
        self, stub: Stub, visitor: Visitor, data: str, body: str, in_light: str, in_dark: str
    ) -> None:
        prefer(visitor, "dark")
        open_page(stub, visitor, data, body=body)
        assert ground(visitor) == in_dark
        prefer(visitor, "light")
        assert ground(visitor) == in_light

    def test_colors_follow_a_theme_change_of_the_page(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor, body="<style>.night { color-scheme: dark }</style>")
        for name, seen in (("night", DARK), ("", LIGHT)):
            visitor.driver.execute_script("document.body.className = arguments[0]", name)
            assert ground(visitor) == seen
        visitor.driver.execute_script("document.querySelector('#site-search').dataset.theme = 'dark'")
        assert ground(visitor) == DARK


class TestStyleSheets:
    @pytest.mark.parametrize("style", [
        "* { all: unset !important }",
        "html { zoom: 1.5 }",
        "* { zoom: 1.1 !important }",
        "body { text-transform: uppercase; letter-spacing: 9px; line-height: 3; word-spacing: 1em; text-indent: 2em }",
        "div, span, a, p { display: flex !important; font: 40px serif !important; text-align: right !important }",
        "a { cursor: none; color: red !important } mark { background: none }",
    ])  # fmt: skip
    def test_page_style_sheets_do_not_affect_the_results(self, stub: Stub, visitor: Visitor, style: str) -> None:
        seen = []
        for sheet in ("", f"<style>{style}</style>"):
            open_page(stub, visitor, body=sheet)
            finds(visitor)
            seen.append(visitor.driver.execute_script(LOOKS))
        assert seen[0] == seen[1]

    @pytest.mark.parametrize("zoom", ["1.5", "0.7"])
    def test_results_are_aligned_with_the_box_in_a_zoomed_page(self, stub: Stub, visitor: Visitor, zoom: str) -> None:
        open_page(
            stub,
            visitor,
            body=f"<style>html {{ zoom: {zoom} }} #site-search {{ width: 500px; margin: 30px }}</style>",
        )
        finds(visitor)
        at = """const root = document.querySelector("#site-search").shadowRoot;
            const at = (css) => root.querySelector(css).getBoundingClientRect();
            return [at(".panel").left - at("input").left, at(".panel").top - at("input").bottom,
              at(".panel").width - at("input").width].map(Math.round)"""
        assert visitor.driver.execute_script(at) == [0, 6, 0]

    def test_hidden_box_is_not_displayed(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor, body="<style>#site-search { visibility: hidden }</style>")
        assert not visitor.inside("input")[0].is_displayed()


class TestDialog:
    def test_page_behind_the_dialog_does_not_scroll_and_is_restored(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        body = "<style>body { height: 4000px } * { overflow: visible !important }</style>"
        open_page(stub, visitor, 'data-mode="modal"', body=body)
        script = "document.documentElement.style.overflow = 'auto'; scrollTo(0, 300); return scrollY"
        assert visitor.driver.execute_script(script) == 300
        press(visitor, Keys.CONTROL, "k")
        finds(visitor)
        press(visitor, Keys.SHIFT, Keys.ENTER)
        visitor.wait(lambda: visitor.inside("dialog.all[open]"), "the full view did not appear")
        for _ in range(2):
            ActionChains(visitor.driver).scroll_by_amount(0, 500).perform()
            press(visitor, Keys.PAGE_DOWN)
        shown = "return [scrollY, getComputedStyle(document.documentElement).overflowY]"
        assert visitor.driver.execute_script(shown) == [300, "hidden"]
        press(visitor, Keys.ESCAPE)
        kept = "return document.documentElement.style.cssText"
        visitor.wait(lambda: visitor.driver.execute_script(kept) == "overflow: auto;", "the page did not change")

    def test_control_k_opens_the_dialog_from_any_field_and_escape_returns_the_focus(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        body = '<input id="name"><textarea id="text"></textarea><p contenteditable id="rich">x</p>'
        open_page(stub, visitor, 'data-mode="modal"', body=body)
        for field in ("name", "text", "rich"):
            visitor.find(f"#{field}").click()
            press(visitor, Keys.CONTROL, "k")
            assert focused(visitor) == "input", field
            press(visitor, Keys.ESCAPE)
            assert focused(visitor) == field


@pytest.mark.parametrize("attributes", ['lang="en"', 'lang="ar" dir="rtl"'])
@pytest.mark.parametrize("data", ["", 'data-mode="modal"'])
def test_results_scroll_and_all_are_reachable_on_a_small_screen(
    stub: Stub, visitor: Visitor, data: str, attributes: str
) -> None:
    hits = [{"id": str(number), "title": f"Page {number}", "url": "/", "excerpt": "Text. " * 20} for number in range(8)]
    stub.answers[SEARCH] = [(200, {"hits": hits, "estimatedTotalHits": 8})]
    device = {"width": 320, "height": 480, "deviceScaleFactor": 1, "mobile": False}
    visitor.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    open_page(stub, visitor, data, attributes=attributes, body='<meta name="viewport" content="width=device-width">')
    if data:
        press(visitor, "/")
    visitor.type("page")
    visitor.wait(lambda: len(visitor.titles()) == 8, "the results did not appear")
    script = """const root = document.querySelector("#site-search").shadowRoot, list = root.querySelector("#results");
        const more = root.querySelector(".more"), at = more.getBoundingClientRect();
        const isSeen = root.elementFromPoint(at.left + at.width / 2, at.top + at.height / 2) === more;
        const isScrolled = list.scrollHeight > list.clientHeight;
        const isNarrow = document.documentElement.scrollWidth <= 320 && list.scrollWidth <= list.clientWidth;
        return [isSeen, isScrolled, isNarrow]"""
    assert visitor.driver.execute_script(script) == [True] * 3
