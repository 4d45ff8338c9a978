"""Lists of related pages in the pages of a site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.stub import Stub
from tests.browser.test_widget import Visitor
from tests.browser.test_widget_box import SCRIPT_ELEMENT, finding_stub, page_with

pytestmark = pytest.mark.browser

RELATED = "/v1/related"
PAGES = {
    "pages": [
        {"id": "1", "title": "Opening <b>hours</b>", "url": "/hours", "excerpt": ""},
        {"id": "2", "title": "", "url": "https://other.example/tickets", "excerpt": ""},
        {"id": "3", "title": "Unsafe", "url": "javascript:alert(1)", "excerpt": ""},
    ]
}
NOT_FOUND = {"error": "document_not_found", "message": "The site has no page with this ID or URL."}
PLACE = '<div data-site-search="related"></div>'


@pytest.fixture
def stub() -> Iterator[Stub]:
    with finding_stub() as running:
        running.answers[RELATED] = [(200, PAGES)]
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Visitor:
    return Visitor(browser, stub.base_url, tmp_path)


def open_page(
    stub: Stub, visitor: Visitor, body: str = PLACE, *, query: str = "", attributes: str = 'lang="en"'
) -> None:
    """Open a page that has lists of related pages, and no search box."""
    stub.page = page_with(SCRIPT_ELEMENT, attributes=attributes, body=body).replace(' id="site-search"', "")
    visitor.go(f"/{query}")


def requests(stub: Stub) -> list[dict[str, list[str]]]:
    """Return the parameters of the requests for related pages."""
    return [parse_qs(urlsplit(address).query) for address in stub.addresses if address.startswith(RELATED)]


def inside(visitor: Visitor, css: str) -> list[Any]:
    from selenium.webdriver.common.by import By

    root = visitor.driver.execute_script("return document.querySelector('[data-site-search=related]').shadowRoot")
    return [] if root is None else root.find_elements(By.CSS_SELECTOR, css)


def await_links(visitor: Visitor) -> list[Any]:
    visitor.wait(lambda: inside(visitor, "a"), "the related pages did not appear")
    return inside(visitor, "a")


def test_list_shows_titles_as_text_and_links_only_to_web_pages(stub: Stub, visitor: Visitor) -> None:
    open_page(stub, visitor)

    links = await_links(visitor)
    assert [link.text for link in links] == ["Opening <b>hours</b>", "https://other.example/tickets"]
    assert [link.get_attribute("href") for link in links] == [f"{stub.base_url}/hours", "https://other.example/tickets"]
    (navigation,) = inside(visitor, "nav")
    assert navigation.accessible_name == "Related pages"
    assert requests(stub) == [{"url": [f"{stub.base_url}/"], "limit": ["4"]}]
    assert [entry for entry in visitor.driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_pages_without_a_list_of_related_pages_do_not_load_the_script(stub: Stub, visitor: Visitor) -> None:
    stub.page = page_with(SCRIPT_ELEMENT)
    visitor.go("/")
    visitor.wait(lambda: visitor.find("#site-search").shadow_root, "the box did not appear")
    assert not any("widget-related" in address for address in stub.addresses)
    assert requests(stub) == []


def test_canonical_url_is_tried_first_and_the_address_of_the_page_second(stub: Stub, visitor: Visitor) -> None:
    canonical = f'<link rel="canonical" href="{stub.base_url}/canonical#part">'
    open_page(stub, visitor, canonical + PLACE, query="?utm=1#top")
    await_links(visitor)
    assert [request["url"] for request in requests(stub)] == [[f"{stub.base_url}/canonical"]]

    stub.addresses.clear()
    stub.answers[RELATED] = [(404, NOT_FOUND), (200, PAGES)]
    open_page(stub, visitor, canonical + PLACE, query="?utm=2#top")
    await_links(visitor)
    assert [request["url"] for request in requests(stub)] == [
        [f"{stub.base_url}/canonical"],
        [f"{stub.base_url}/?utm=2"],
    ]


@pytest.mark.parametrize("answer", [(200, {"pages": []}), (404, NOT_FOUND)])
def test_list_without_related_pages_stays_empty(stub: Stub, visitor: Visitor, answer: tuple[int, Any]) -> None:
    stub.answers[RELATED] = [answer]
    open_page(stub, visitor)
    visitor.wait(lambda: requests(stub), "no related pages were requested")

    visitor.wait(
        lambda: visitor.driver.execute_script(
            "return document.querySelector('[data-site-search=related]').shadowRoot?.children.length === 0"
        ),
        "the place was not left empty",
    )
    assert visitor.find("[data-site-search=related]").size["height"] == 0


def test_failure_leaves_the_list_empty_and_is_reported_in_the_console(stub: Stub, visitor: Visitor) -> None:
    stub.answers[RELATED] = [(403, {"error": "origin_not_allowed", "message": "Pages of this origin may not."})]
    open_page(stub, visitor)
    log: list[str] = []

    def is_reported() -> bool:
        log.extend(entry["message"] for entry in visitor.driver.get_log("browser"))
        return any("Pages of this origin may not." in message for message in log)

    visitor.wait(is_reported, "the failure was not reported")
    assert inside(visitor, "nav") == []


@pytest.mark.parametrize(
    ("attributes", "heading", "direction"),
    [
        ('lang="de-AT"', "Verwandte Seiten", "ltr"),
        ('lang="ar"', "صفحات ذات صلة", "rtl"),
        ('lang="nb"', "Relaterte sider", "ltr"),
        ('lang="xx"', "Related pages", "ltr"),
    ],
)
def test_heading_is_in_the_language_of_the_page(
    stub: Stub, visitor: Visitor, attributes: str, heading: str, direction: str
) -> None:
    open_page(stub, visitor, attributes=attributes)
    await_links(visitor)
    (title,) = inside(visitor, "h2")
    assert (title.text, title.get_attribute("dir")) == (heading, direction)


def test_each_list_has_its_own_heading_limit_and_filter(stub: Stub, visitor: Visitor) -> None:
    data = 'data-heading="See also" data-limit="99" data-filters="section = help"'
    open_page(stub, visitor, f'<div data-site-search="related" {data}></div>')
    await_links(visitor)
    (title,) = inside(visitor, "h2")
    assert title.text == "See also"
    assert requests(stub) == [{"url": [f"{stub.base_url}/"], "limit": ["10"], "filters": ["section = help"]}]


def test_list_far_below_the_window_is_loaded_when_the_visitor_comes_near(stub: Stub, visitor: Visitor) -> None:
    open_page(stub, visitor, "<p>A paragraph.</p>" * 300 + PLACE)
    visitor.wait(lambda: "/widget-related.js" in stub.addresses, "the script was not loaded")
    assert requests(stub) == []

    visitor.driver.execute_script("scrollTo(0, 9000)")

    await_links(visitor)
    assert len(requests(stub)) == 1


def test_list_follows_pages_that_change_without_loading(stub: Stub, visitor: Visitor) -> None:
    open_page(stub, visitor)
    await_links(visitor)
    other = {"pages": [{"id": "9", "title": "Other", "url": "/other", "excerpt": ""}]}
    stub.answers[RELATED] = [(200, other)]

    visitor.driver.execute_script("history.pushState(null, '', '/next'); document.body.append('The next page')")

    visitor.wait(lambda: [link.text for link in inside(visitor, "a")] == ["Other"], "the list did not change")
    assert requests(stub)[-1]["url"] == [f"{stub.base_url}/next"]
    visitor.driver.execute_script("document.body.append('The same page')")
    visitor.driver.execute_script(
        "document.querySelector('[data-site-search=related]').remove();"
        "const place = document.createElement('div'); place.dataset.siteSearch = 'related'; document.body.append(place)"
    )
    await_links(visitor)
    assert len(requests(stub)) == 3


def test_page_with_only_related_pages_is_no_error(stub: Stub, visitor: Visitor) -> None:
    open_page(stub, visitor)
    await_links(visitor)
    assert not any("the page has no element" in entry["message"] for entry in visitor.driver.get_log("browser"))
