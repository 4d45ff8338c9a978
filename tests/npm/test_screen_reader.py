"""The search box with a virtual screen reader from npm in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import browser, chromium, devtools, start_browser  # noqa: F401
from tests.browser.stub import SCRIPT_ELEMENT, Stub, page_with, running_stub
from tests.browser.test_widget import Visitor
from tests.browser.test_widget_box import HITS, SEARCH, press
from tests.npm.conftest import Packages

READER = "node_modules/@guidepup/virtual-screen-reader/lib/esm/index.browser.js"
START = """
    const [done] = arguments;
    import("/reader.js").then(async ({ virtual }) => {
      const container = document.querySelector("#site-search").shadowRoot.querySelector(".box");
      await virtual.start({ container });
      let heard = 0;
      window.hear = async () => {
        const log = await virtual.spokenPhraseLog();
        return log.slice(heard, (heard = log.length));
      };
      window.readOn = async (last) => {
        while ((await virtual.lastSpokenPhrase()) !== last) await virtual.next();
      };
      done();
    }, (error) => done(String(error)));"""
COMBOBOX = "combobox, Search{}, has popup listbox, {}expanded, {}autocomplete in list, 1 control{}"


class Listener(Visitor):
    """A visitor who uses the search box with a keyboard and a screen reader."""

    def open_box(self) -> None:
        self.go("/")
        self.wait(lambda: self.find("#site-search").shadow_root, "the box did not appear")
        assert self.driver.execute_async_script(START) is None

    def hears(self) -> list[str]:
        """Return the phrases spoken since the previous call."""
        script = "hear().then(arguments[0])"
        heard: list[str] = self.driver.execute_async_script(script)
        return [phrase for phrase in heard if phrase != "polite: "]

    def hears_soon(self, phrase: str) -> None:
        heard: list[str] = []
        self.wait(lambda: heard.extend(self.hears()) or phrase in heard, f"{phrase!r} was never said, but {heard}")

    def reads_on_to(self, phrase: str) -> list[str]:
        self.driver.execute_async_script("readOn(arguments[0]).then(arguments[1])", phrase)
        return self.hears()


@pytest.fixture
def stub(packages: Packages) -> Iterator[Stub]:
    with running_stub() as running:
        running.info = {"engine_host": f"{running.base_url}/engine", "engine_public_key": "engine", "index": "site_7"}
        first, *others = HITS["hits"]
        metadata = {"queryUid": "query-1", "matched": "corrected", "corrected_query": "open"}
        found = {"hits": [{**first, "date": "2024-05-01"}, *others], "estimatedTotalHits": 7, "metadata": metadata}
        running.answers[SEARCH] = [(200, {**found, "suggestions": [{"text": "open day", "kind": "query"}]})]
        running.files["/reader.js"] = (packages.folder / READER).read_text()
        running.policy = "default-src 'self' data:"  # The test's screen reader does not support Trusted Types.
        yield running


@pytest.fixture
def listener(browser: Any, stub: Stub, tmp_path: Path) -> Listener:  # noqa: F811
    return Listener(browser, stub.base_url, tmp_path)


@pytest.mark.parametrize("mode", ["inline", "modal"])
def test_keyboard_search_is_announced_from_field_to_result(stub: Stub, listener: Listener, mode: str) -> None:
    from selenium.webdriver.common.keys import Keys

    stub.page = page_with(SCRIPT_ELEMENT.replace(" async", f' data-mode="{mode}" async'))
    keys = ", key shortcuts /" if mode == "inline" else ""
    listener.open_box()
    if mode == "modal":
        assert listener.hears() == ["button, Search, has popup dialog, key shortcuts / Control+K Meta+K"]
    else:
        assert listener.hears() == ["search"]
    press(listener, "/")
    listener.hears_soon(COMBOBOX.format("", "not ", "", keys))

    listener.type("opne")
    listener.hears_soon("polite: Showing results for “open”: 7 results")

    listener.wait(
        lambda: listener.inside("input")[0].get_attribute("aria-activedescendant") == "hit-0", "no option was selected"
    )
    heard = listener.reads_on_to("end of listbox, Results, orientated vertically")
    first = "Opening hours May 1, 2024 We open at nine"
    assert COMBOBOX.format(", opne", "", f"active descendant {first}, ", keys) in heard
    results = heard[heard.index("listbox, Results, orientated vertically") :]
    assert [phrase for phrase in results if phrase.startswith(("group", "option"))] == [
        "group, Suggestions",
        "option, open day, not selected, position 1, set size 1",
        f"option, {first}, selected, position 1, set size 2",
        "option, Getting here By tram, not selected, position 2, set size 2",
    ]

    listener.type(Keys.ENTER)
    listener.wait(lambda: listener.driver.current_url.endswith("#hours"), "the result did not open")


def test_missing_results_are_announced_with_links_and_popular_searches(stub: Stub, listener: Listener) -> None:
    stub.popular = ["tickets"]
    links = [{"text": "Contact us", "url": "/contact"}]
    stub.answers[SEARCH] = [(200, {"hits": [], "estimatedTotalHits": 0, "no_results_links": links})]
    listener.open_box()
    press(listener, "/")
    listener.type("zzz")
    listener.hears_soon("polite: Nothing matches “zzz”.")
    heard = listener.reads_on_to("end of listbox, Results, orientated vertically")
    assert "option, Contact us, not selected, position 1, set size 1" in heard
    assert "group, Popular searches" in heard


def test_answer_is_announced_first_and_is_the_first_option(stub: Stub, listener: Listener) -> None:

    answer = {"text": "We open at nine.", "id": "hours", "url": "/", "anchor": "nine"}
    stub.answers[SEARCH] = [(200, {**HITS, "answer": answer})]
    listener.open_box()
    press(listener, "/")
    listener.type("when do you open")
    listener.hears_soon("polite: 7 results. Answer: We open at nine.")
    heard = listener.reads_on_to("end of listbox, Results, orientated vertically")
    results = heard[heard.index("listbox, Results, orientated vertically") :]
    assert [phrase for phrase in results if phrase.startswith(("group", "option"))][:2] == [
        "group, Answer",
        "option, We open at nine. Opening hours, selected, position 1, set size 1",
    ]
