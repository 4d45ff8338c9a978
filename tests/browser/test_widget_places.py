"""Link targets of the search box: sections, passages, and pages of the visitor's own version and language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.browser.stub import CLOSE, OPEN, Stub, running_stub
from tests.browser.test_widget import Customer, Visitor
from tests.browser.test_widget_box import SEARCH, open_mounted, open_page
from tests.browser.test_widget_results import PLACE, Searcher
from tests.server import Server

pytestmark = pytest.mark.browser

EVIL = "<img src=x onerror=\"document.title='pwned'\">"
FOUND = {
    "hits": [
        {"id": "hours", "title": "Opening hours", "url": "/", "excerpt": "When",
         "_formatted": {"title": f"{OPEN}Open{CLOSE}ing hours", "content": f"We {OPEN}open{CLOSE} at nine"},
         "sections": [
             {"anchor": "nine", "title": "Open at nine", "path": ["Summer", "Weekdays"], "url": "/#nine",
              "_formatted": {"title": f"{OPEN}Open{CLOSE} at nine", "content": f"We {OPEN}open{CLOSE} at nine"}},
             {"anchor": "evil", "title": EVIL, "path": [EVIL], "url": "/#evil",
              "_formatted": {"title": EVIL, "content": EVIL}},
             {"anchor": "x", "title": "Script", "path": [], "url": "javascript:document.title='pwned'",
              "_formatted": {"title": "Script", "content": ""}},
         ]},
        {"id": "way", "title": "Getting here", "url": "/#way", "excerpt": "By tram", "sections": [],
         "_formatted": {"title": "Getting here", "content": f"Take the {OPEN}open{CLOSE} tram"}},
    ],
    "estimatedTotalHits": 7,
    "metadata": {"queryUid": "query-1"},
}  # fmt: skip
NOTHING: dict[str, Any] = {"hits": [], "estimatedTotalHits": 0}
VERSION = '<meta name="site-search:version" content="2.1">'


@pytest.fixture
def stub() -> Iterator[Stub]:
    with running_stub() as running:
        running.info = {"engine_host": f"{running.base_url}/engine", "engine_public_key": "engine", "index": "site_7"}
        running.answers[SEARCH] = [(200, FOUND)]
        yield running


@pytest.fixture
def visitor(browser: Any, stub: Stub, tmp_path: Path) -> Visitor:
    return Visitor(browser, stub.base_url, tmp_path)


def finds(visitor: Visitor, words: str = "7 results", text: str = "open") -> None:
    visitor.type(text)
    visitor.wait(lambda: visitor.told() == words, f"{words!r} did not appear, but {visitor.told()!r}")


class TestSections:
    def test_sections_are_listed_below_their_page_and_reachable_by_arrow_keys(
        self, stub: Stub, visitor: Visitor
    ) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor)
        finds(visitor)
        assert stub.bodies(SEARCH)[0]["sections"] == 3
        assert visitor.titles() == [
            "Opening hours",
            "Summer › Weekdays › Open at nine",
            f"{EVIL} › {EVIL}",
            "Getting here",
        ]
        assert [found.text for found in visitor.inside(".section mark")] == ["Open", "open"]
        assert [found.text for found in visitor.inside(".snippet")] == ["We open at nine", "Take the open tram"]
        assert not visitor.inside("img")
        options = [found.get_attribute("id") for found in visitor.inside("[role=option]")]
        assert options == ["hit-0", "hit-0-0", "hit-0-1", "hit-1"]

        visitor.type(Keys.ARROW_DOWN)
        assert visitor.inside("input")[0].get_attribute("aria-activedescendant") == "hit-0-0"
        assert visitor.inside("#hit-0-0")[0].get_attribute("aria-selected") == "true"
        visitor.type(Keys.ENTER)
        visitor.wait(lambda: visitor.driver.current_url.endswith("/#nine"), "the section did not open")
        (told,) = stub.bodies("/api/v1/click")
        assert told.pop("session_id")
        assert told == {"query_id": "query-1", "query": "open", "id": "hours", "position": 1, "anchor": "nine"}

    def test_click_on_the_page_itself_reports_no_section(self, stub: Stub, visitor: Visitor) -> None:
        open_page(stub, visitor)
        finds(visitor)
        visitor.inside("#hit-0")[0].click()
        visitor.wait(lambda: stub.bodies("/api/v1/click"), "the click was not reported")
        assert "anchor" not in stub.bodies("/api/v1/click")[0]

    def test_number_of_sections_is_configurable(self, stub: Stub, visitor: Visitor) -> None:
        for given, asked in (("0", None), ("1", 1), ("99", 5), ("many", 3)):
            open_page(stub, visitor, f'data-sections="{given}"')
            finds(visitor)
            assert stub.bodies(SEARCH)[-1].get("sections") == asked, given

    def test_page_callbacks_receive_the_selected_section(self, stub: Stub, visitor: Visitor) -> None:
        script = """
            var seen = [];
            document.addEventListener("site-search:select", ({ detail }) => seen.push(detail));
            SiteSearch.mount(document.querySelector("#site-search"), { key: "svc_pub_test", sections: 1,
              transform: (hits) => hits.map((hit) => ({ ...hit, sections: hit.sections.slice(0, 1) })),
              onSelect: (hit) => { seen.push(hit); return false; } });"""
        open_mounted(stub, visitor, script)
        finds(visitor)
        assert len(visitor.inside(".section")) == 1
        visitor.inside(".section")[0].click()
        event, hit = visitor.driver.execute_script("return seen")
        assert (event["query"], event["position"], event["hit"]) == ("open", 1, hit)
        assert (hit["id"], hit["title"], hit["url"]) == ("hours", "Opening hours", "/#nine")
        section = {name: hit["section"][name] for name in ("anchor", "title", "path", "url", "snippet")}
        assert section == {
            "anchor": "nine", "title": "Open at nine", "path": ["Summer", "Weekdays"], "url": "/#nine",
            "snippet": "We open at nine",
        }  # fmt: skip
        assert "#" not in visitor.driver.current_url

    def test_invalid_sections_from_transform_are_ignored(self, stub: Stub, visitor: Visitor) -> None:
        made = [None, "x", [None, 3, "x", {}, {"url": 5}], {"0": {"url": "/"}}]
        open_mounted(stub, visitor, "")
        visitor.driver.execute_script(
            """SiteSearch.mount(document.querySelector("#site-search"), { key: "svc_pub_test",
                transform: ([, hit]) => arguments[0].map((sections) => ({ ...hit, sections })) });""",
            made,
        )
        finds(visitor)
        assert visitor.titles() == ["Getting here"] * len(made)
        assert [found.text for found in visitor.inside(".snippet")] == ["Take the open tram"] * len(made)


class TestPassages:
    def test_result_links_to_the_sentence_of_its_snippet(self, stub: Stub, visitor: Visitor) -> None:
        places = [
            ("/a", f"Doors. At {OPEN}nine{CLOSE}, well-known. Later", "/a#:~:text=At%20nine%2C%20well%2Dknown"),
            ("/a#b", f"…the {OPEN}open{CLOSE} & {OPEN}wide{CLOSE} door…", "/a#b:~:text=the%20open%20%26%20wide%20door"),
            ("/a#:~:text=own", f"We {OPEN}open{CLOSE}", "/a#:~:text=own"),
            ("/a", f"Title\n\n{OPEN}Öffnet{CLOSE} um neun\nEnde", "/a#:~:text=%C3%96ffnet%20um%20neun"),
            ("/a", f"朝は閉館。{OPEN}開館{CLOSE}です。", "/a#:~:text=%E9%96%8B%E9%A4%A8%E3%81%A7%E3%81%99"),
            ("/a", "Nothing is marked", "/a"),
        ]
        hits = [{"title": "A", "url": url, "_formatted": {"content": snippet}} for url, snippet, _ in places]
        stub.answers[SEARCH] = [(200, {"hits": hits, "estimatedTotalHits": len(hits)})]
        open_page(stub, visitor, 'data-jump="true"')
        finds(visitor, f"{len(hits)} results")
        links = [found.get_attribute("href").removeprefix(stub.base_url) for found in visitor.inside(".hit")]
        assert links == [leads_to for _, _, leads_to in places]

    def test_result_with_sections_or_without_the_attribute_links_to_its_url(self, stub: Stub, visitor: Visitor) -> None:
        passage = "/#way:~:text=Take%20the%20open%20tram"
        for data, last in (('data-jump="true"', passage), ("", "/#way")):
            open_page(stub, visitor, data)
            finds(visitor)
            links = [found.get_attribute("href").removeprefix(stub.base_url) for found in visitor.inside(".hit")]
            assert links == ["/", "/#nine", "/#evil", last], data

    def test_browser_scrolls_to_the_linked_passage(self, stub: Stub, visitor: Visitor) -> None:
        passage = "We open at nine, well-known"
        snippet = f"{passage.replace('open', f'{OPEN}open{CLOSE}')}. Or"
        hit = {"id": "1", "title": "A", "url": "/?there", "_formatted": {"content": snippet}}
        stub.answers[SEARCH] = [(200, {"hits": [hit], "estimatedTotalHits": 1})]
        stub.policy += "; style-src 'unsafe-inline'"
        open_page(
            stub, visitor, 'data-jump="true"', body=f'<p style="position: absolute; top: 9000px">{passage}. Or.</p>'
        )
        finds(visitor, "1 result")
        visitor.inside(".hit")[0].click()
        script = "return location.search === '?there' && scrollY > 5000"
        visitor.wait(lambda: visitor.driver.execute_script(script), "the page did not scroll")


class TestContext:
    def asked(self, stub: Stub) -> list[list[str] | None]:
        return [body.get("filter") for body in stub.bodies(SEARCH)]

    def test_context_restricts_results_and_suggestions_by_page_metadata(self, stub: Stub, visitor: Visitor) -> None:
        product = '<meta name="site-search:product" content=" a&quot;b\\ ">'
        for context, html, head, filters in (
            ("version,lang", 'lang="de"', VERSION, '"version" IN ["2.1"] AND "lang" IN ["de"]'),
            ("version", "", '<meta name="DocSearch:Version" content="2.0">', '"version" IN ["2.0"]'),
            ("version", "", '<meta name="docsearch:version" content="2.0">' + VERSION, '"version" IN ["2.1"]'),
            ("lang", 'lang="de"', '<meta name="docsearch:language" content="fr">', '"lang" IN ["fr"]'),
            ("product", "", product, r'"product" IN ["a\"b\\"]'),
            ("version", "", VERSION + VERSION.replace("2.1", "3"), '"version" IN ["2.1", "3"]'),
            ("version,lang", "", '<meta name="version" content="9"><meta name="site-search:version">', None),
        ):
            open_page(stub, visitor, f'data-context="{context}" data-lang="en"', attributes=html, body=head)
            finds(visitor)
            wanted = filters and [filters]
            assert self.asked(stub)[-1] == wanted
            assert stub.bodies(SEARCH)[-1]["suggestions"] == 4, "suggested titles must be, too"

    def test_empty_context_falls_back_to_all_results_with_a_message(self, stub: Stub, visitor: Visitor) -> None:
        stub.answers[SEARCH] = [(200, NOTHING), (200, FOUND)]
        data = 'data-context="version,lang" data-filters="section = a OR section = b"'
        open_page(stub, visitor, data, attributes='lang="en"', body=VERSION)
        finds(visitor, "No results in 2.1, en. Results elsewhere: 7 results")
        assert self.asked(stub) == [
            ['(section = a OR section = b) AND "version" IN ["2.1"] AND "lang" IN ["en"]'],
            ["section = a OR section = b"],
        ]

    def test_context_field_without_documents_falls_back_to_all_results(self, stub: Stub, visitor: Visitor) -> None:
        problem = {"message": "No document has a field 'version'.", "code": "invalid_search_filter"}
        stub.answers[SEARCH] = [(400, problem), (200, FOUND)]
        open_page(stub, visitor, 'data-context="version"', body=VERSION)
        finds(visitor, "No results in 2.1. Results elsewhere: 7 results")

    def test_no_results_in_any_context_shows_the_usual_message(self, stub: Stub, visitor: Visitor) -> None:
        stub.answers[SEARCH] = [(200, NOTHING)]
        open_page(stub, visitor, 'data-context="version"', body=VERSION)
        finds(visitor, "Nothing matches “open”.")

    def test_failure_with_a_context_shows_the_usual_message_without_a_retry(self, stub: Stub, visitor: Visitor) -> None:
        stub.answers[SEARCH] = [(429, {})]
        open_page(stub, visitor, 'data-context="version"', body=VERSION)
        finds(visitor, "Search is busy at the moment. Please try again later.")
        assert len(stub.bodies(SEARCH)) == 1

    def test_changed_page_metadata_is_used_by_the_next_search(self, stub: Stub, visitor: Visitor) -> None:
        from selenium.webdriver.common.keys import Keys

        open_page(stub, visitor, 'data-context="version"', body=VERSION)
        finds(visitor)
        visitor.driver.execute_script("document.querySelector('meta[name^=site]').content = '3.0'")
        visitor.type("s", Keys.BACKSPACE)
        visitor.wait(lambda: ['"version" IN ["3.0"]'] in self.asked(stub), "the earlier results were shown again")

    def test_result_of_another_version_has_a_badge(self, stub: Stub, visitor: Visitor) -> None:
        versions = ["2.0", "2.1", None, ["1.0", "1.1"], "v3"]
        hits = [{"title": "A", "url": f"/{version}", "version": version} for version in versions]
        stub.answers[SEARCH] = [(200, {"hits": hits, "estimatedTotalHits": 5})]
        for head, badges in (
            (VERSION, ["2.0", "1.0, 1.1", "v3"]),
            (VERSION.replace("2.1", "V3"), ["2.0", "2.1", "1.0, 1.1"]),
            ("", []),
        ):
            open_page(stub, visitor, body=head)
            finds(visitor, "5 results")
            assert [found.text for found in visitor.inside(".badge")] == badges
        assert "version" in stub.bodies(SEARCH)[0]["attributesToRetrieve"]

    def test_context_and_sections_are_not_sent_to_directly_reached_engines(self, stub: Stub, visitor: Visitor) -> None:
        stub.info = {"engine_host": stub.base_url, "engine_public_key": "one.two.three", "index": "site_7"}
        stub.answers["/indexes/site_7/search"] = [(200, NOTHING)]
        open_page(stub, visitor, 'data-context="version" data-filters="a = 1"', body=VERSION)
        finds(visitor, "Nothing matches “open”.")
        (asked,) = stub.bodies("/indexes/site_7/search")
        assert (asked["filter"], asked.get("sections")) == (["a = 1"], None)


@pytest.fixture(scope="module")
def manual(server: Server) -> Customer:
    """A manual in two versions; the new one lacks a chapter of the old one."""
    customer = Customer(server, "manual@example.com")
    content = f"Installation\nRead this first.\nProxies\nSet the proxy {EVIL}.\nMedia\nFloppies and diskettes."
    old: dict[str, Any] = {
        "id": "old",
        "title": "Installation",
        "url": "/page.html?v=1.0",
        "version": "1.0",
        "content": content,
        "sections": [
            {"anchor": title.lower(), "title": title, "level": level, "start": content.index(title)}
            for title, level in (("Installation", 1), ("Proxies", 2), ("Media", 2))
        ],
    }
    kept = content.partition("Media")[0]
    new = {
        **old,
        "id": "new",
        "url": "/page.html?v=2.0",
        "version": "2.0",
        "content": kept,
        "sections": old["sections"][:2],
    }
    documents = [old, new]
    sent = requests.post(
        f"{customer.base_url}/api/v1/index/bulk",
        json={"documents": documents},
        headers={"Authorization": f"Bearer {customer.private_key}"},
        timeout=30,
    )
    assert sent.status_code == 200, sent.text
    return customer


class TestInTheFullView:
    """With the real service."""

    @pytest.fixture
    def reader(self, browser: Any, other_origin: tuple[str, Path]) -> Searcher:
        return Searcher(browser, *other_origin)

    def test_sections_in_the_full_view_link_to_their_heading_and_clicks_are_counted(
        self, manual: Customer, reader: Searcher
    ) -> None:
        reader.open_at(manual, "/index.html?q=proxy", body=PLACE)
        reader.finds("2 results")
        reader.driver.execute_script("addEventListener('unload', () => {})")  # Disable the back/forward cache.
        assert [found.text for found in reader.seen(".sections .title")] == ["Proxies", "Proxies"]
        assert [found.text for found in reader.seen(".section .snippet")] == [f"Set the proxy {EVIL}."] * 2
        assert not reader.seen("img, .section .section")
        reader.seen(".section")[1].click()
        reader.wait(lambda: reader.driver.current_url.endswith("#proxies"), "the section did not open")
        clicked = f"{manual.base_url}/api/analytics/query?site_id={manual.site_id}&q=proxy"

        def anchors() -> list[Any]:
            answer = manual.http.get(clicked, timeout=30).json()
            return [document["anchors"] for document in answer["clicked_documents"]]

        reader.wait(lambda: anchors() == [[{"anchor": "proxies", "clicks": 1}]], "the section was not counted")
        reader.driver.back()
        reader.wait(
            lambda: reader.driver.title == "Museum" and reader.focused() == "to", "the new page does not have the focus"
        )

    def test_page_of_a_section_can_still_be_opened(self, manual: Customer, reader: Searcher) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        reader.open_at(manual, "/index.html?q=proxy", body=PLACE)
        reader.finds("2 results")
        ActionChains(reader.driver).click(reader.seen(".where")[0]).perform()  # The link covers the whole row.
        reader.wait(lambda: reader.driver.title == "A page", "the page did not open")
        assert "#" not in reader.driver.current_url

    def test_context_restricts_results_and_facets_unless_nothing_is_left(
        self, manual: Customer, reader: Searcher
    ) -> None:
        body = f'<meta name="site-search:version" content="2.0">{PLACE}'
        reader.open_at(manual, "/index.html?q=proxy", body=body, data='data-context="version" data-facets="version"')
        reader.finds("1 result")
        assert reader.values() == {"Version": {"2.0": 1}}
        reader.go("/index.html?q=floppies")
        reader.finds("No results in 2.0. Results elsewhere: 1 result")
        assert reader.values() == {"Version": {"1.0": 1}}
        assert [found.text for found in reader.seen(".badge")] == ["1.0"]

    def test_box_search_with_fallback_is_charged_and_recorded_once(self, manual: Customer, reader: Searcher) -> None:
        used = manual.used_today()
        body = '<meta name="site-search:version" content="2.0">'
        reader.open_at(manual, "/index.html", body=body, data='data-context="version"')
        reader.type("diskettes")
        reader.wait(lambda: reader.told() == "No results in 2.0. Results elsewhere: 1 result", "it did not appear")
        assert [found.text for found in reader.inside(".section .title")] == ["Media"]
        assert manual.used_today() == used + 1
        reader.wait(lambda: manual.searched().get("diskettes") == 1, "the search was not recorded")
        zero = manual.http.get(f"{manual.base_url}/api/analytics", timeout=30).json()["zero_result_queries"]
        assert "diskettes" not in [item["query"] for item in zero], "the search must find it eventually"
