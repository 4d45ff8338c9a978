"""*Try the search*, the preview of settings, and the search box show the same results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.callers import Tenant, page
from tests.gateway.callers import Gateway
from tests.pages.markup import Element
from tests.pages.people import Person
from tests.pages.test_search_settings import open_page, path_of, write

CONTENT = "The museum has a cafe.\nSundays\nOn Sundays the museum opens at ten."
SECTION = {"anchor": "sundays", "title": "Sundays", "level": 2, "start": CONTENT.index("Sundays")}
QUESTION = "when does the museum open on sundays"
MISS = "zeppelin"
SETTINGS: dict[str, Any] = {
    "answers": True,
    "no_results_links": [{"text": "All pages", "url": "/all"}],
    "rules": [
        {
            "id": "closed",
            "when": {"query": query, "match": "is"},
            "do": {"redirect": "/closed", "notice": {"text": "Closed <today>.", "url": "/news"}},
            "enabled": True,
        }
        for query in (QUESTION,)
    ],
}


def seen_by_visitors(shown: Element) -> dict[str, Any]:
    """Return what visitors see, according to a page."""
    return {
        "redirect": [each.one("code").text for each in shown.all("p", class_="redirect")],
        "notice": [each.text for each in shown.all("p", class_="preview-notice")],
        "answer": [each.text for each in shown.all("figure", class_="preview-answer")],
        "sections": [
            (link.text, link.attributes["href"])
            for each in shown.all("ul", class_="where sections")
            for link in each.all("a")
        ],
        "links": [each.text for each in shown.all("p", class_="help") if "these links" in each.text],
    }


def seen_in_box(results: dict[str, Any], site_url: str) -> dict[str, Any]:
    """Return the search box's content in the terms of the pages."""
    notice, answer = results.get("notice"), results.get("answer")
    links = [link["text"] for link in results.get("no_results_links", ())]
    return {
        "redirect": [results["redirect"]] if "redirect" in results else [],
        "notice": [f"{notice['text']} {notice['url']}"] if notice else [],
        "answer": [f"{answer['text']}{answer['url']}#{answer['anchor']}"] if answer else [],
        "sections": [
            (" › ".join([*section["path"], section["title"]]), f"{site_url}{section['url']}")
            for hit in results["hits"]
            for section in hit["sections"]
        ],
        "links": [f"Visitors see these links: {', '.join(links)}"] if links else [],
    }


@pytest.mark.parametrize(("query", "shown"), [
    (QUESTION, {"redirect", "notice", "answer", "sections"}),
    ("museum sundays", {"sections"}),
    (MISS, {"links"}),
])  # fmt: skip
def test_pages_and_box_show_the_same_for_a_query(person: Person, tenant: Tenant, query: str, shown: set[str]) -> None:
    tenant.index(page(1, title="Opening hours", url="/hours", content=CONTENT, sections=[SECTION]))
    assert tenant.private.put(path_of(tenant), json=SETTINGS).status_code == 200
    site = tenant.private.get(f"/sites/{tenant.site_id}").get_json()["site"]

    in_box = seen_in_box(Gateway(tenant).search(query, sections=3), site["url"].rstrip("/"))
    in_try = seen_by_visitors(person.go(f"/sites/{tenant.site_id}/try?q={query}").one("main"))
    open_page(person, tenant, "results")
    write(person, "Preview", query=query)
    in_preview = seen_by_visitors(person.page.one("div", id="results"))

    assert {name for name, values in in_box.items() if values} == shown
    assert in_try == in_box
    assert in_preview == in_box
