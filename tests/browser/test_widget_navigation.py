"""The search box on pages that change without loading: with Turbo, htmx, and any framework that replaces the body."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.stub import SCRIPT_ELEMENT, Stub
from tests.browser.test_widget import Visitor
from tests.browser.test_widget_box import finding_stub, focused, press
from tests.packages import install_packages

pytestmark = pytest.mark.browser

SWAP = """
  const show = async (url) => {
    const next = new DOMParser().parseFromString(await (await fetch(url)).text(), "text/html");
    document.body.replaceWith(next.body);
  };
  document.addEventListener("click", (event) => {
    const link = event.composedPath().find((each) => each.localName === "a");
    if (!link) return;
    event.preventDefault();
    history.pushState({}, "", link.href);
    show(link.href);
  });
  addEventListener("popstate", () => show(location.href));
"""
"""A router that replaces the body without running its scripts, as Astro's does."""

ROUTERS = {
    "turbo": "node_modules/@hotwired/turbo/dist/turbo.es2017-umd.js",
    "htmx": "node_modules/htmx.org/dist/htmx.js",
}
BOOST = 'hx-boost="true" hx-boost:inherited="true"'
CLOSED_FIELD = """<div id="editor"></div><script>
  const inner = document.getElementById("editor").attachShadow({ mode: "closed" });
  inner.append(document.createElement("input"));
  inner.firstChild.setAttribute("aria-label", "Comment");
  window.enter = () => inner.firstChild.focus();
  window.entered = () => inner.firstChild.value;
</script>"""


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Scripts of the unmodified frameworks, by name."""
    folder = tmp_path_factory.mktemp("routers")
    install_packages(Path(__file__).with_name("package.json"), folder)
    return {"swap": SWAP, **{name: (folder / path).read_text() for name, path in ROUTERS.items()}}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with finding_stub() as running:
        running.policy = "default-src 'self' 'unsafe-inline'; img-src data:"  # Turbo adds a style element.
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Visitor:
    return Visitor(browser, stub.base_url, tmp_path)


Site = Callable[..., None]


@pytest.fixture
def open_site(stub: Stub, visitor: Visitor, routers: dict[str, str]) -> Site:
    """Open the first of a site's two pages, which a router loads; the two lines are in the head or the body."""

    def open_first(router: str, *, lines_in: str = "body", attributes: str = "", place: str = "") -> None:
        stub.files["/router.js"] = routers[router]
        script = SCRIPT_ELEMENT.replace(" async", f" {attributes} async")
        head, foot = (script, "") if lines_in == "head" else ("", script)

        def page(title: str, link: str, more: str = "") -> str:
            return (
                f'<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">'
                # Turbo logs an error if the page is left while it loads a link in advance.
                f'<meta name="turbo-prefetch" content="false"><title>{title}</title>'
                f'<script src="/router.js" defer></script>{head}</head>'
                f"<body {BOOST if router == 'htmx' else ''}><h1>{title}</h1><div id='site-search'></div>"
                f'<a id="link" href="{link}">Next</a>{more}{foot}</body></html>'
            )

        stub.page = page("First", "/second")
        stub.pages["/second"] = page("Second", "/", place)
        visitor.go("/")
        visitor.wait(lambda: visitor.inside("input"), "the box did not appear")
        visitor.driver.execute_script("window.isSamePage = true")

    return open_first


def _follow_link(visitor: Visitor, title: str) -> None:
    # Turbo may show a page from its cache first, and replace it while the link is being clicked.
    visitor.wait(lambda: visitor.find("#link").click() is None, "the link could not be clicked")
    _sees_page(visitor, title)


def _sees_page(visitor: Visitor, title: str) -> None:
    visitor.wait(
        lambda: visitor.driver.execute_script("return document.querySelector('h1')?.textContent") == title, title
    )


def _boxes(visitor: Visitor) -> tuple[bool, int, int]:
    """Return whether the page was never loaded again, how many boxes are active, and how many the page shows."""
    script = """return [window.isSamePage === true, window[Symbol.for("site-search.boxes")].length,
        [...document.querySelectorAll("*")].filter((each) => each.shadowRoot?.querySelector("input")).length]"""
    same, active, seen = visitor.driver.execute_script(script)
    return same, active, seen


@pytest.mark.parametrize("lines_in", ["body", "head"])
@pytest.mark.parametrize("router", ["turbo", "htmx", "swap"])
def test_box_appears_on_every_page_of_a_router(visitor: Visitor, open_site: Site, router: str, lines_in: str) -> None:
    open_site(router, lines_in=lines_in)

    for title in ("Second", "First", "Second"):
        _follow_link(visitor, title)
        visitor.wait(lambda: _boxes(visitor) == (True, 1, 1), f"{title} has other boxes: {_boxes(visitor)}")
    visitor.type("open")

    visitor.wait(lambda: visitor.told() == "7 results", "the results did not appear")
    press(visitor, "\ue00c")  # Escape
    visitor.wait(lambda: not visitor.inside(".panel")[0].is_displayed(), "the panel stayed open")
    visitor.driver.back()
    _sees_page(visitor, "First")
    visitor.wait(lambda: _boxes(visitor) == (True, 1, 1), "the box was missing after going back")


@pytest.mark.parametrize("mode", ["inline", "modal"])
@pytest.mark.parametrize("router", ["turbo", "htmx", "swap"])
def test_visitor_returning_from_a_result_finds_the_query_and_a_closed_panel(
    stub: Stub, visitor: Visitor, open_site: Site, router: str, mode: str
) -> None:
    open_site(router, attributes=f'data-mode="{mode}"')
    stub.pages["/way"] = stub.pages["/second"].replace("Second", "Way")
    stub.answers["/engine/indexes/site_7/search"] = [
        (200, {"hits": [{"id": "way", "title": "Way", "url": "/way", "_formatted": {}}], "estimatedTotalHits": 1})
    ]
    if mode == "modal":
        visitor.inside(".open")[0].click()
    visitor.type("way")
    visitor.wait(lambda: visitor.inside(".hit"), "the result did not appear")

    visitor.inside(".hit")[0].click()
    _sees_page(visitor, "Way")
    visitor.driver.back()
    _sees_page(visitor, "First")

    visitor.wait(
        lambda: [each.get_attribute("value") for each in visitor.inside("input")] == ["way"], "the query was lost"
    )
    assert not visitor.inside(".panel")[0].is_displayed()
    if mode == "modal":
        visitor.inside(".open")[0].click()
    else:
        visitor.inside("input")[0].click()
    visitor.wait(lambda: visitor.told() == "1 result", "the results did not reappear")


def test_element_removed_and_inserted_again_has_one_working_box(visitor: Visitor, open_site: Site) -> None:
    open_site("swap")
    visitor.driver.execute_script("window.host = document.querySelector('#site-search'); window.host.remove()")
    visitor.wait(lambda: _boxes(visitor)[1:] == (0, 0), "the box of the removed element is still active")

    visitor.driver.execute_script("document.body.append(window.host)")

    visitor.wait(lambda: _boxes(visitor)[1:] == (1, 1), "the box did not reappear")
    visitor.type("open")
    visitor.wait(lambda: visitor.told() == "7 results", "the results did not appear")


def test_box_removed_by_the_page_is_not_recreated(stub: Stub, visitor: Visitor) -> None:
    stub.page = (
        f'<!doctype html><title>Museum</title><link rel="icon" href="data:,"><div id="site-search"></div>'
        f"{SCRIPT_ELEMENT}"
    )
    visitor.go("/")
    visitor.wait(lambda: visitor.inside("input"), "the box did not appear")

    visitor.driver.execute_script("SiteSearch.mount(document.querySelector('#site-search')).unmount()")
    visitor.driver.execute_script("document.body.append(document.createElement('p'))")
    time.sleep(0.3)

    assert visitor.inside("input") == []


def test_results_element_of_a_later_page_shows_the_full_view(visitor: Visitor, open_site: Site) -> None:
    open_site("turbo", place="<div id='place' data-site-search-results></div>")
    script = "return document.querySelector('#place')?.shadowRoot?.querySelectorAll('.view').length"

    for _ in range(2):
        _follow_link(visitor, "Second")
        visitor.wait(lambda: visitor.driver.execute_script(script) == 1, "the view did not appear")
        _follow_link(visitor, "First")
        visitor.wait(lambda: _boxes(visitor) == (True, 1, 1), "the box did not reappear")


def test_changed_attributes_of_a_later_page_apply(stub: Stub, visitor: Visitor, open_site: Site) -> None:
    open_site("turbo")
    stub.pages["/second"] = stub.pages["/second"].replace(" async", ' data-placeholder="Find a page" async')

    _follow_link(visitor, "Second")

    visitor.wait(
        lambda: [each.get_attribute("placeholder") for each in visitor.inside("input")] == ["Find a page"],
        "the box kept the first page's attributes",
    )
    assert _boxes(visitor) == (True, 1, 1)


def test_slash_typed_into_a_closed_shadow_root_does_not_focus_the_box(stub: Stub, visitor: Visitor) -> None:
    stub.page = (
        f'<!doctype html><title>Museum</title><link rel="icon" href="data:,">{CLOSED_FIELD}'
        f'<div id="site-search"></div><p id="main" tabindex="-1">Text</p>{SCRIPT_ELEMENT}'
    )
    visitor.go("/")
    visitor.wait(lambda: visitor.inside("input"), "the box did not appear")

    visitor.driver.execute_script("window.enter()")
    press(visitor, "/")
    assert visitor.driver.execute_script("return window.entered()") == "/"
    visitor.driver.execute_script("document.querySelector('#main').focus()")
    press(visitor, "/")

    assert focused(visitor) == "input"


def test_escape_during_text_composition_keeps_the_panel_open(visitor: Visitor, open_site: Site) -> None:
    open_site("swap")
    visitor.type("open")
    visitor.wait(lambda: visitor.inside(".hit"), "the results did not appear")
    script = """const press = new KeyboardEvent("keydown", { key: "Escape", keyCode: arguments[0], bubbles: true });
        document.querySelector("#site-search").shadowRoot.querySelector("input").dispatchEvent(press)"""

    visitor.driver.execute_script(script, 229)
    assert visitor.inside(".panel")[0].is_displayed()
    visitor.driver.execute_script(script, 27)

    assert not visitor.inside(".panel")[0].is_displayed()


def test_box_is_not_printed(visitor: Visitor, open_site: Site) -> None:
    open_site("swap")
    visitor.type("open")
    visitor.wait(lambda: visitor.inside(".hit"), "the results did not appear")
    visitor.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not any(each.is_displayed() for each in visitor.inside("input, .panel"))
    finally:
        visitor.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
