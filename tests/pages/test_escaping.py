"""Text from customers and visitors is always escaped."""

from __future__ import annotations

import pytest

from tests.callers import Tenant, page
from tests.pages.markup import Element
from tests.pages.people import Person

EVIL = """<script>alert(1)</script><img src=x onerror=alert(1)>"'`{{7*7}}{% raw %}</title></textarea><!--"""


def _is_harmless(shown: Element) -> bool:
    handlers = shown.has(lambda found: any(name.startswith("on") for name in found.attributes))
    links = [found.attributes.get("href", "") for found in shown.walk()]
    scripts = [found.attributes.get("src", "") for found in shown.all("script")]
    return (
        not handlers
        and not shown.all("img")
        and all(link.startswith(("/", "#", "?", "http://", "https://")) or not link for link in links)
        and all(source.startswith("/static/") for source in scripts)
        and "49" not in shown.one("head").one("title").text
    )


@pytest.fixture
def evil(tenant: Tenant) -> Tenant:
    """A customer whose names, URLs, and documents are all hostile."""
    path = f"/sites/{tenant.site_id}"
    answers = [
        tenant.browser.put(
            path, json={"name": EVIL[:100], "url": "https://www.example.com/?<script>alert(1)</script>\"'"}
        ),
        tenant.browser.put("/profile", json={"name": EVIL[:100]}),
        *(
            tenant.browser.put(f"/api{path}/keys/{key['id']}", json={"name": EVIL[:100]})
            for key in tenant.keys.values()
        ),
    ]
    assert [answer.status_code for answer in answers] == [200] * len(answers)
    tenant.index(
        page(
            1,
            id=EVIL,
            title=f"harbour {EVIL}",
            content=f"harbour {EVIL}",
            excerpt=EVIL,
            author=EVIL,
            date="2024-05-01",
            url=f"/{EVIL.replace(' ', '')}",
            evil=EVIL,
            evils=[EVIL, "other"],
        ),
        page(3, title=f"harbour {EVIL}", author=EVIL, evil=EVIL),
        page(
            2,
            title=f"harbour <em>{EVIL}</em>",
            content="harbour &lt;script&gt;alert(1)&lt;/script&gt;",
            author="Ann",
            url="https://www.example.com/javascript:alert(1)",
            evil="other",
        ),
    )
    return tenant


def test_every_page_escapes_hostile_names(person: Person, evil: Tenant) -> None:
    key = evil.keys["public"]["id"]
    site = f"/sites/{evil.site_id}"
    for path in (
        "/dashboard",
        "/sites",
        site,
        f"{site}/edit",
        f"{site}/try",
        f"/api{site}/keys",
        f"/api{site}/keys/{key}/edit",
        "/api/analytics",
        f"/api/analytics?site_id={evil.site_id}",
        "/profile/edit",
    ):
        shown = person.go(path)
        assert person.response.status_code == 200
        assert _is_harmless(shown), path
        values = [found.attributes.get("value", "") for found in shown.all("input")]
        assert any("<script>alert(1)</script>" in text for text in (shown.text, *values)), path


def test_hostile_documents_are_escaped(person: Person, evil: Tenant) -> None:
    shown = person.go(f"/sites/{evil.site_id}/try?q=harbour")
    assert _is_harmless(shown)
    titles = {found.text for found in shown.one("ol", class_="hits").all("h2")}
    assert " ".join(f"harbour {EVIL}".split()) in titles
    assert {found.text for found in shown.all("mark")} == {"harbour"}
    assert "&lt;script&gt;alert(1)" in shown.text
    for link in shown.one("aside").all("a"):
        assert _is_harmless(person.go(f"/sites/{evil.site_id}/try{link.attributes['href']}"))


@pytest.mark.parametrize(
    "query", [EVIL, "</title><script>alert(1)</script>", '" autofocus onfocus=alert(1) x="', "\u202eharbour"]
)
def test_hostile_queries_are_escaped(person: Person, evil: Tenant, query: str) -> None:
    person.call("GET", f"/sites/{evil.site_id}/try", query_string={"q": query, "f": ["evil:" + query, query]})
    assert person.response.status_code == 200
    assert _is_harmless(person.page)
    assert person.page.one("input", type="search").attributes["value"] == query
    assert evil.search.get("/v1/search", query_string={"q": query}).status_code == 200
    evil.app.extensions["runtime"].events.flush()
    shown = person.go(f"/api/analytics?site_id={evil.site_id}")
    assert _is_harmless(shown)
    assert " ".join(query.lower().split()) in shown.text


@pytest.mark.parametrize(
    "path",
    [
        "/sites?limit=<script>alert(1)</script>",
        "/api/analytics?period=<script>alert(1)</script>",
        "/login?next=/<script>alert(1)</script>",
        "/<script>alert(1)</script>",
        "/docs/<script>alert(1)</script>",
        "/dashboard?notice=<script>alert(1)</script>",
    ],
)
def test_hostile_urls_inject_no_markup(person: Person, path: str) -> None:
    person.go(path)
    assert _is_harmless(person.page)


def test_failed_form_escapes_its_input(person: Person) -> None:
    person.go("/sites/create")
    person.send("Add site", name=EVIL * 3, url=EVIL)
    assert _is_harmless(person.page)
    assert person.page.one("input", name="url").attributes["value"] == EVIL
