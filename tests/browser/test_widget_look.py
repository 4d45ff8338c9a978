"""What results of the search box look like: icons, places, groups, whole rows, and the keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.stub import CLOSE, OPEN, Stub
from tests.browser.test_widget import Visitor
from tests.browser.test_widget_box import SEARCH, finding_stub, open_page

pytestmark = pytest.mark.browser


def _section(name: str) -> dict[str, Any]:
    formatted = {"title": name, "content": f"We {OPEN}open{CLOSE} then"}
    return {"anchor": name, "title": name, "path": [], "url": f"/hours#{name}", "_formatted": formatted}


def _hit(name: str, url: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "title": name,
        "url": url,
        "_formatted": {"title": name, "content": f"{OPEN}open{CLOSE}"},
        **fields,
    }


HITS = [
    _hit("Hours", "/hours", section="Visit", sections=[_section(name) for name in ("Summer", "Winter", "Easter")]),
    _hit("Programme", "https://files.example.org/2026/Gr%C3%BCn/day.PDF"),
    _hit("Talk", "/talk", section=["Events", "News"], breadcrumbs=["Events", "Talks", "Talk"]),
    _hit("Tickets", "/visit/tickets/", section="Visit"),
    _hit("Tours", "/visit/tours/index.html"),
]


@pytest.fixture
def stub() -> Iterator[Stub]:
    with finding_stub() as running:
        running.answers[SEARCH] = [(200, {"hits": HITS, "estimatedTotalHits": len(HITS)})]
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Visitor:
    return Visitor(browser, stub.base_url, tmp_path)


def _search(stub: Stub, visitor: Visitor, data: str = "", attributes: str = 'lang="en"') -> None:
    open_page(stub, visitor, data, attributes=attributes)
    visitor.type("open")
    visitor.wait(lambda: visitor.inside(".hit"), "the results did not appear")


def _texts(visitor: Visitor, css: str) -> list[str]:
    return [each.text for each in visitor.inside(css)]


def test_results_show_their_location_even_without_breadcrumbs(stub: Stub, visitor: Visitor) -> None:
    _search(stub, visitor)

    assert _texts(visitor, ".hit > .meta") == [
        "Visit", "PDF · files.example.org › 2026 › Grün › day.PDF", "Events › Talks", "Visit", "visit › tours",
    ]  # fmt: skip


def test_pages_files_and_sections_have_different_icons(stub: Stub, visitor: Visitor) -> None:
    _search(stub, visitor)

    paths = [icon.get_attribute("d") for icon in visitor.inside(".hit > .icon path")]

    assert len(paths) == len(HITS) + 3
    page, section, file = paths[0], paths[1], paths[4]
    assert len({page, section, file}) == 3
    assert paths == [page, section, section, section, file, page, page, page]
    assert {each.get_attribute("aria-hidden") for each in visitor.inside("svg")} == {"true"}


def test_page_has_one_snippet(stub: Stub, visitor: Visitor) -> None:
    _search(stub, visitor)

    assert len(visitor.inside(".section")) == 3
    assert len(visitor.inside("#hit-0 .snippet, .section .snippet")) == 1


def test_results_are_grouped_under_headings_in_order_of_their_best_result(stub: Stub, visitor: Visitor) -> None:
    from selenium.webdriver.common.keys import Keys

    _search(stub, visitor, 'data-group="section"')

    assert _texts(visitor, ".heading, .hit:not(.section) > .title") == [
        "Visit",
        "Hours",
        "Tickets",
        "Programme",
        "Tours",
        "Events",
        "Talk",
    ]
    groups = [
        (each.get_attribute("role"), each.get_attribute("aria-label")) for each in visitor.inside("#results > div")
    ]
    assert groups == [("group", "Visit"), ("group", "Events")]
    assert "section" in stub.bodies(SEARCH)[0]["attributesToRetrieve"]
    visitor.type(*[Keys.ARROW_DOWN] * 4, Keys.ENTER)
    visitor.wait(lambda: visitor.driver.current_url.endswith("/visit/tickets/"), "the fifth option is the second page")
    assert stub.bodies("/api/v1/click")[0]["position"] == 4, "the position counts all results, not only the group"


@pytest.mark.parametrize("mode", ["inline", "modal"])
def test_result_list_ends_with_a_complete_row(stub: Stub, visitor: Visitor, mode: str) -> None:
    stub.answers[SEARCH] = [(200, {"hits": HITS * 4, "estimatedTotalHits": 20})]
    open_page(stub, visitor, f'data-mode="{mode}" data-limit="20"')
    if mode == "modal":
        visitor.inside(".open")[0].click()
    visitor.type("open")
    visitor.wait(lambda: visitor.inside(".hit"), "the results did not appear")
    script = """const list = document.querySelector("#site-search").shadowRoot.querySelector("#results");
        const end = list.getBoundingClientRect().bottom;
        const rows = [...list.querySelectorAll("[role=option]")].map((row) => row.getBoundingClientRect());
        const cut = rows.filter((row) => row.top < end - 1 && row.bottom > end + 1);
        return [list.scrollHeight > list.clientHeight, cut.length];"""

    assert visitor.driver.execute_script(script) == [True, 0]


def test_footer_shows_keyboard_hints_on_wide_screens(stub: Stub, visitor: Visitor) -> None:
    _search(stub, visitor, 'data-mode="inline"')
    assert " ".join(_texts(visitor, ".keys")).split() == ["↑", "↓", "Navigate", "↵", "Open", "Esc", "Close"]
    assert visitor.inside(".more")[0].text.split() == ["All", "results", "⇧", "↵"]
    assert visitor.inside(".more")[0].accessible_name == "All results"

    visitor.driver.set_window_size(500, 900)
    visitor.driver.execute_script(
        "document.querySelector('#site-search').style.width = '340px'; dispatchEvent(new Event('resize'))"
    )
    visitor.wait(lambda: not visitor.inside(".keys")[0].is_displayed(), "the keys were not removed")
    assert visitor.inside(".more")[0].text == "All results"


def test_message_without_results_is_below_an_illustration(stub: Stub, visitor: Visitor) -> None:
    _search(stub, visitor, 'data-mode="inline"')
    assert not visitor.inside(".status svg")

    for answer, message in [
        ((200, {"hits": [], "estimatedTotalHits": 0}), "Nothing matches “shut”."),
        ((503, {}), "Search cannot be reached at the moment."),
    ]:
        stub.answers[SEARCH] = [answer]
        visitor.inside(".wipe")[0].click()
        visitor.type("shut" if answer[0] == 200 else "shutter")
        visitor.wait(lambda message=message: _texts(visitor, ".alone") == [message], message)
        assert visitor.inside(".alone > svg")[0].size == {"width": 44, "height": 44}

    stub.answers[SEARCH] = [(200, {"hits": HITS, "estimatedTotalHits": 5})]
    visitor.inside(".wipe")[0].click()
    visitor.type("opens")
    visitor.wait(lambda: visitor.inside(".hit"), "the results did not appear")
    assert not visitor.inside(".alone")


def test_reopened_dialog_shows_its_message_again(stub: Stub, visitor: Visitor) -> None:
    stub.answers[SEARCH] = [(200, {"hits": [], "estimatedTotalHits": 0})]
    open_page(stub, visitor, 'data-mode="modal"')
    visitor.inside(".open")[0].click()
    assert "Navigate" in visitor.inside(".keys")[0].text, "the empty dialog must show the keys, too"
    visitor.type("open")
    visitor.wait(lambda: visitor.inside(".alone"), "the message did not appear")

    visitor.inside(".close")[0].click()
    assert not visitor.inside(".alone")[0].is_displayed()
    visitor.inside(".open")[0].click()

    assert visitor.inside(".alone")[0].is_displayed()


def test_clear_button_empties_the_field_and_keeps_the_focus(stub: Stub, visitor: Visitor) -> None:
    _search(stub, visitor)
    (wipe,) = visitor.inside(".wipe")
    assert wipe.accessible_name == "Clear"

    wipe.click()

    visitor.wait(lambda: not visitor.inside(".hit"), "the results were not removed")
    assert visitor.inside("input")[0].get_attribute("value") == ""
    assert visitor.driver.execute_script("return document.activeElement.shadowRoot.activeElement.localName") == "input"
    assert not wipe.is_displayed()


def test_texts_of_another_language_load_on_its_pages_only(stub: Stub, visitor: Visitor) -> None:
    _search(stub, visitor)
    assert "/widget-texts.js" not in stub.addresses

    _search(stub, visitor, attributes='lang="de-AT"')

    assert "/widget-texts.js" in stub.addresses
    assert visitor.told() == "5 Treffer"
    assert visitor.inside("#results")[0].accessible_name == "Treffer"


def test_box_speaks_english_if_its_texts_do_not_load(stub: Stub, visitor: Visitor) -> None:
    stub.missing.add("/widget-texts.js")

    _search(stub, visitor, attributes='lang="de"')

    assert visitor.told() == "5 results"
    assert visitor.inside(".status span")[0].get_attribute("lang") == "en"
    assert visitor.inside("input")[0].accessible_name == "Suche"
    assert any("widget-texts.js" in entry["message"] for entry in visitor.driver.get_log("browser"))


def test_box_without_analytics_reports_no_search_and_no_click(stub: Stub, visitor: Visitor) -> None:
    _search(stub, visitor, 'data-analytics="false"')

    visitor.inside(".hit")[0].click()
    visitor.wait(lambda: visitor.driver.current_url.endswith("/hours"), "the link did not open a page")

    assert stub.bodies("/api/v1/click") == []
    assert {headers.get("X-Search-Analytics") for path, headers in stub.headers if path == SEARCH} == {"false"}
