"""The display of results: their content, and customization by pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.stub import CLOSE, OPEN, STRICT, Stub, running_stub
from tests.browser.test_widget import EVIL
from tests.browser.test_widget_box import SEARCH, open_mounted, open_page, severe
from tests.browser.test_widget_results import PLACE, Searcher

pytestmark = pytest.mark.browser

HIT = {
    "id": "hours", "title": "Opening hours", "url": "/#hours", "date": "2024-05-01T22:30:00Z", "price": 12,
    "stock": False, "sale": True, "tags": ["a", "b"], "evil": EVIL, "breadcrumbs": ["Visit", EVIL, "Opening hours"],
    "_formatted": {"title": f"{OPEN}Open{CLOSE}ing hours", "content": f"We {OPEN}open{CLOSE} at {EVIL}"},
}  # fmt: skip


@pytest.fixture
def stub() -> Iterator[Stub]:
    with running_stub() as running:
        running.info = {"engine_host": f"{running.base_url}/engine", "engine_public_key": "engine", "index": "site_7"}
        running.answers[SEARCH] = [(200, {"hits": [HIT], "estimatedTotalHits": 1})]
        running.policy = STRICT.replace("img-src", "img-src 'self'")
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Searcher:
    return Searcher(browser, stub.base_url, tmp_path)


def find_hit(visitor: Searcher) -> Any:
    visitor.type("open")
    visitor.wait(lambda: visitor.inside("#hit-0"), "the results did not appear")
    return visitor.inside("#hit-0")[0]


class TestWhatIsShown:
    @pytest.mark.parametrize(("data", "line"), [
        ("", f"Visit › {EVIL} · May 1, 2024"),
        ('data-show="date"', "May 1, 2024"),
        ('data-show="breadcrumb, image"', f"Visit › {EVIL}"),
        ('data-show=""', None),
        ('data-lang="de"', f"Visit › {EVIL} · 01.05.2024"),
    ])  # fmt: skip
    def test_breadcrumb_and_date_are_shown_as_configured(
        self, stub: Stub, visitor: Searcher, data: str, line: str | None
    ) -> None:
        open_page(stub, visitor, data)
        find_hit(visitor)
        assert [each.text for each in visitor.inside(".meta")] == ([] if line is None else [line])

    @pytest.mark.parametrize(("data", "image", "shown"), [
        ("", "/picture.svg", True), ("", "javascript:alert(1)", False), ("", 5, False), ("", "/missing.png", False),
        ('data-show="date"', "/picture.svg", False),
    ])  # fmt: skip
    def test_image_is_shown_if_its_url_is_valid_and_loads(
        self, stub: Stub, visitor: Searcher, data: str, image: Any, shown: bool
    ) -> None:
        stub.answers[SEARCH] = [(200, {"hits": [{**HIT, "image": image}], "estimatedTotalHits": 1})]
        stub.pictures["/picture.svg"] = '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="60"/>'
        open_page(stub, visitor, data)
        hit = find_hit(visitor)
        loaded = "return [...arguments[0].querySelectorAll('img')].map((image) => image.naturalWidth)"
        expected = [80] if shown else []
        visitor.wait(lambda: visitor.driver.execute_script(loaded, hit) == expected, "the condition was not met")
        severe(visitor)  # Ignore the error about the missing picture.

    @pytest.mark.parametrize("date", ["soon", 5, None, "2024-13-45"])
    def test_invalid_date_is_not_shown(self, stub: Stub, visitor: Searcher, date: Any) -> None:
        stub.answers[SEARCH] = [
            (200, {"hits": [{**HIT, "date": date, "breadcrumbs": ["Visit"]}], "estimatedTotalHits": 1})
        ]
        open_page(stub, visitor)
        find_hit(visitor)
        assert not visitor.inside("time")
        assert [each.text for each in visitor.inside(".meta")] == ["Visit"]

    def test_full_view_shows_breadcrumb_and_date_outside_the_link(self, stub: Stub, visitor: Searcher) -> None:
        open_page(stub, visitor, body=PLACE)
        visitor.go("/?q=open")
        visitor.wait(lambda: visitor.seen(".meta"), "the results did not appear")
        assert visitor.seen(".meta")[0].text == f"Visit › {EVIL} · May 1, 2024"
        assert [each.text for each in visitor.seen("a.to")] == ["Opening hours"]


TEMPLATE = """<template data-site-search-hit>
    <h3 part="name" title="{{ title }}: {{evil}}">{{title}}</h3>{{#image}}<img src="{{image}}" alt="">{{/image}}
    <p>{{{snippet}}} {{evil}}</p>{{#stock}}<b>in stock</b>{{/stock}}{{#sale}}<b>sale</b>{{/sale}}
    {{#tags}}<i>{{tags}}{{#nothing}}<u>!</u>{{/nothing}}</i>{{/tags}}<small>{{price}}{{constructor}}</small>
    </template>"""


class TestTemplate:
    def test_template_renders_fields_as_text(self, stub: Stub, visitor: Searcher) -> None:
        open_page(stub, visitor, body=TEMPLATE)
        hit = find_hit(visitor)
        (name,) = hit.find_elements("css selector", "h3")
        assert (name.text, name.get_attribute("title")) == ("Opening hours", f"Opening hours: {EVIL}")
        assert hit.find_element("css selector", "p").text == f"We open at {EVIL} {EVIL}"
        assert [each.text for each in hit.find_elements("css selector", "p mark, b, i, u, small")] == [
            "open", "sale", "a, b", "12",
        ]  # fmt: skip
        assert not hit.find_elements("css selector", "img")
        assert {"price", "evil", "tags", "sale"} <= set(stub.bodies(SEARCH)[-1]["attributesToRetrieve"])
        assert visitor.driver.title == "Museum"
        hit.click()
        visitor.wait(lambda: visitor.driver.current_url.endswith("#hours"), "the link did not open a page")

    def test_template_applies_to_the_full_view(self, stub: Stub, visitor: Searcher) -> None:
        open_page(stub, visitor, body=TEMPLATE + PLACE)
        visitor.go("/?q=open")
        visitor.wait(lambda: [each.text for each in visitor.seen("a.to h3")] == ["Opening hours"], "it did not appear")

    @pytest.mark.parametrize("inside", [
        "<script>{{title}}</script>", "<style>{{title}}</style>", '<p onclick="{{title}}">x</p>',
        '<p style="{{evil}}">x</p>', '<a href="{{url}}">x</a>',
        '<iframe src="{{url}}"></iframe>', '<svg><use href="#x"></use></svg>', "<input>",
    ])  # fmt: skip
    def test_unsafe_template_is_rejected_and_the_default_is_used(
        self, stub: Stub, visitor: Searcher, inside: str
    ) -> None:
        open_page(stub, visitor, body=f"<template data-site-search-hit>{inside}</template>")
        find_hit(visitor)
        assert visitor.titles() == ["Opening hours"]
        errors = [message for message in severe(visitor) if "Content Security Policy" not in message]
        assert errors
        assert all("is not allowed in a result" in message for message in errors)


RENDER = """SiteSearch.mount(document.querySelector("#site-search"), {{ key: "svc_pub_test", fields: "price", {} }})"""


class TestRenderHit:
    def test_render_hit_values_are_text_and_matches_are_marked(self, stub: Stub, visitor: Searcher) -> None:
        made = """renderHit: (hit, html) => html`<!-- ours -->
            <h3 title="${hit.evil} &amp; ${1}" data-n=${hit.price}>${hit.title}</h3>
            <p>${hit.marked.snippet} &lt;${hit.evil}<br/>${null}${false}${
              hit.tags.map((tag) => html`<i>${tag}</i>`)}</p>
            <img src="${"javascript:alert(1)"}" alt="">`"""
        open_mounted(stub, visitor, RENDER.format(made))
        hit = find_hit(visitor)
        (name,) = hit.find_elements("css selector", "h3")
        seen = (name.text, name.get_attribute("title"), name.get_attribute("data-n"))
        assert seen == ("Opening hours", f"{EVIL} & 1", "12")
        assert hit.find_element("css selector", "p").text == f"We open at {EVIL} <{EVIL}\nab"
        assert [each.text for each in hit.find_elements("css selector", "mark, i")] == ["open", "a", "b"]
        assert [each.get_attribute("src") for each in hit.find_elements("css selector", "img")] == [None]
        assert "price" in stub.bodies(SEARCH)[-1]["attributesToRetrieve"]

    @pytest.mark.parametrize(("made", "text"), [
        ("(hit) => hit.evil", EVIL),
        ("(hit) => '<b>' + hit.title", "<b>Opening hours"),
        ("(hit) => Object.assign(document.createElement('b'), { textContent: hit.title })", "Opening hours"),
    ])  # fmt: skip
    def test_render_hit_may_return_a_string_or_an_element(
        self, stub: Stub, visitor: Searcher, made: str, text: str
    ) -> None:
        open_mounted(stub, visitor, RENDER.format(f"renderHit: {made}"))
        assert find_hit(visitor).text == text

    @pytest.mark.parametrize("made", [
        "html`<p onclick=\"x\">a</p>`", "html`<p style=\"${hit.evil}\">a</p>`", "html`<a href=\"/\">a</a>`",
        "html`<p>a</b>`", "html`<${hit.title}>`", "html`<!-- ${hit.title} -->`", "html`a < b`", "missing.name",
        "({ title: hit.title })", "[{ title: hit.title }]", "Promise.resolve(hit.title)", "() => hit.title",
        "html`<b>${{ title: hit.title }}</b>`",
    ])  # fmt: skip
    def test_failing_or_unsafe_render_hit_is_logged_and_the_default_is_used(
        self, stub: Stub, visitor: Searcher, made: str
    ) -> None:
        open_mounted(stub, visitor, RENDER.format(f"renderHit: (hit, html) => {made}"))
        find_hit(visitor)
        assert visitor.titles() == ["Opening hours"]
        said = severe(visitor)
        assert said
        assert all("renderHit failed" in each for each in said)

    def test_render_hit_receives_the_transformed_title(self, stub: Stub, visitor: Searcher) -> None:
        made = """transform: (hits) => hits.map((hit) => ({ ...hit, title: hit.title.toUpperCase() })),
            renderHit: (hit, html) => html`<b>${hit.marked.title}</b>`"""
        open_mounted(stub, visitor, RENDER.format(made))
        assert find_hit(visitor).text == "OPENING HOURS"
