"""The documentation pages that the service itself serves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.apidoc.openapi import document
from app.apidoc.samples import mark_placeholders
from app.documentation import GROUPS, MOVED_PAGES, REFERENCE, anchor_of, documentation_files
from app.pages.docs import render_markdown
from tests.callers import ApiClient, Tenant
from tests.conftest import close_app, make_app, make_settings
from tests.pages.markup import Element
from tests.pages.people import BROWSER_ACCEPT, Person
from tests.responses import assert_error

KEYS = "/docs/reference/keys"
BUILT_IN_KEY = "svc_pub_documentation"
SEARCH = "/docs/engine/indexes/documentation/search"


def tags(app: Flask) -> list[str]:
    """Return the names of the API reference's pages of operations."""
    with app.app_context():
        described = document()
    used = {
        operation["tags"][0]
        for item in described["paths"].values()
        for operation in item.values()
        if "tags" in operation
    }
    return [tag["name"] for tag in described["tags"] if tag["name"] in used]


def test_docs_overview_has_parts_for_customers_and_operators(passer_by: Person) -> None:
    shown = passer_by.go("/docs").one("article")
    assert [heading.text for heading in shown.all("h2")] == list(GROUPS) == ["Using the service", "Self-hosting"]
    listed = [[found.attributes["href"] for found in part.all("a")] for part in shown.all("dl")]
    assert listed == [[f"/docs/{name}" for name in names] for names in GROUPS.values()]
    assert all(found.text.endswith((".", "?", ":")) for found in shown.all("dd"))


def test_docs_pages_link_to_previous_and_next_in_order(app: Flask, passer_by: Person) -> None:
    passer_by.go("/docs")
    read = []
    while following := passer_by.page.all("a", rel="next"):
        (found,) = following
        href = found.attributes["href"]
        before = passer_by.path
        passer_by.go(href)
        assert passer_by.response.status_code == 200
        assert passer_by.page.one("a", rel="prev").attributes["href"] == before
        read.append(href.removeprefix("/docs/"))
    reference = [REFERENCE, *(f"{REFERENCE}/{name}" for name in [*tags(app), "schemas"])]
    guide = [name for names in GROUPS.values() for name in names]
    place = guide.index(REFERENCE)
    assert read == guide[:place] + reference + guide[place + 1 :]


def test_internal_docs_links_lead_to_existing_pages_and_anchors(app: Flask, passer_by: Person) -> None:
    names = ["", *documentation_files(), REFERENCE, *(f"{REFERENCE}/{name}" for name in [*tags(app), "schemas"])]
    ids: dict[str, set[str]] = {}
    links: dict[str, set[str]] = {}
    for name in names:
        path = f"/docs/{name}".rstrip("/")
        shown = passer_by.go(path)
        ids[path] = {found.attributes["id"] for found in shown.walk() if "id" in found.attributes}
        hrefs = (found.attributes["href"] for found in shown.all("a"))
        links[path] = {
            path + href if href.startswith("#") else href for href in hrefs if href.startswith(("#", "/docs"))
        }
    for page, targets in links.items():
        for target in targets:
            path, _, anchor = target.partition("#")
            assert path in ids, f"{page}: {target}"
            assert not anchor or anchor in ids[path], f"{page}: {target}"


def test_docs_page_marks_its_navigation_entry_and_has_a_description(passer_by: Person) -> None:
    shown = passer_by.go("/docs/limits")
    chosen = [
        found for found in shown.one("nav", aria_label="Documentation").all("a") if "aria-current" in found.attributes
    ]
    assert [found.text for found in chosen] == ["Rate limits and quotas"]
    assert shown.one("meta", name="description").attributes["content"].startswith("The rate limits of the API")


def test_docs_headings_link_to_themselves(passer_by: Person) -> None:
    article = passer_by.go("/docs/limits").one("article")
    heading = article.first("h2", "Plans")
    (link,) = heading.all("a")
    assert (link.attributes["href"], link.attributes["aria-label"], link.text) == ("#plans", "Link to Plans", "")
    assert not article.one("h1").all("a")


def test_docs_images_are_served(passer_by: Person) -> None:
    shown = passer_by.go("/docs/readme")
    sources = [found.attributes["src"] for found in shown.one("article").all("img")]
    assert sources
    for source in sources:
        response = passer_by.call("GET", source)
        assert (response.status_code, response.content_type) == (200, "image/png")
        assert response.data.startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["nope.png", "..", "%2e%2e%2fREADME.md", "..%2f..%2fREADME.md", "%00"])
def test_unknown_docs_images_return_404(passer_by: Person, name: str) -> None:
    assert passer_by.call("GET", f"/docs/images/{name}").status_code == 404


@pytest.mark.parametrize(
    "name",
    [
        "nope",
        "..",
        "%2e%2e",
        "engines.txt",
        "..%2fREADME",
        "README",
        "%00",
        "reference/nope",
        "reference/..",
        "reference/",
    ],
)
def test_unknown_docs_pages_return_404(passer_by: Person, name: str) -> None:
    assert passer_by.call("GET", f"/docs/{name}").status_code == 404


# --- The reference


def operation_of(shown: Element, name: str) -> Element:
    """Return an operation's section of the page."""
    return shown.one("section", aria_labelledby=f"operation-{name}")


def test_every_api_operation_is_on_its_tag_page_and_in_the_overview(app: Flask, passer_by: Person) -> None:
    with app.app_context():
        paths = document()["paths"]
    overview = passer_by.go("/docs/reference")
    pages = {tag: passer_by.go(f"/docs/reference/{tag}") for tag in tags(app)}
    count = 0
    for path, item in paths.items():
        for verb, described in item.items():
            if verb == "parameters":
                continue
            count += 1
            name = described["operationId"]
            (link,) = overview.one("li", id=f"operation-{name}").all("a")
            tag = described["tags"][0]
            assert link.attributes["href"] == f"/docs/reference/{tag}#operation-{name}"
            shown = operation_of(pages[tag], name)
            assert f"{verb.upper()} {path}" in [line.text for line in shown.all("p", class_="call")]
            assert len(shown.all("div", class_="code")) >= 4
    assert count > 60


def test_every_schema_has_a_section_in_the_reference(app: Flask, passer_by: Person) -> None:
    shown = passer_by.go("/docs/reference/schemas")
    with app.app_context():
        schemas = document()["components"]["schemas"]
    for name in schemas:
        assert shown.one("h2", id=f"schema-{name}").text == name


def test_docs_samples_use_the_services_public_url(tmp_path: Path) -> None:
    app = make_app(make_settings(tmp_path, public_url="https://find.example.net"))
    reader = Person(app)
    for path in (KEYS, "/docs/start", "/docs/search-box"):
        shown = reader.go(path).one("article").raw_text
        assert "https://find.example.net" in shown, path
        assert "https://search.example.com" not in shown, path
    close_app(app)


def test_samples_default_to_the_last_chosen_language(passer_by: Person) -> None:
    def chosen() -> set[str]:
        return {found.attributes["value"] for found in passer_by.go(KEYS).all("input") if "checked" in found.attributes}

    assert chosen() == {"curl"}
    passer_by.client.set_cookie("docs_language", "php", path="/docs")
    assert chosen() == {"php"}
    passer_by.client.set_cookie("docs_language", "<script>", path="/docs")
    assert chosen() == {"curl"}


def test_docs_pages_contain_no_real_keys_and_are_not_cached(person: Person, passer_by: Person) -> None:
    passer_by.call("GET", "/openapi.json")
    examples = _tokens(passer_by)
    for reader in (person, passer_by):
        for path in (KEYS, "/docs/start"):
            shown = reader.go(path)
            assert {found.text for found in shown.all("span", class_="own")} <= {"YOUR_KEY", "YOUR_SITE", "svc_prv_…"}
            assert shown.all("span", class_="own")
            assert _tokens(reader) <= {*examples, BUILT_IN_KEY}
            assert reader.response.headers["Cache-Control"] == "no-store"


def _tokens(reader: Person) -> set[str]:
    """Return the API keys in the last response."""
    return set(re.findall(r"svc_(?:prv|srch|pub)_\w+", reader.response.get_data(as_text=True)))


def test_logged_in_users_can_choose_one_of_their_sites_for_a_docs_key(person: Person, passer_by: Person) -> None:
    def sites(reader: Person) -> list[str]:
        selects = reader.go(KEYS).all("select", id="docs-site")
        return [option.text for select in selects for option in select.all("option")]

    assert len(sites(person)) == 1
    assert sites(passer_by) == []
    assert passer_by.page.first("a", "Log in").attributes["href"]
    assert f"/login?next={KEYS}" in {found.attributes["href"] for found in passer_by.page.all("a")}


def test_docs_without_scripts_show_samples_but_no_trial_forms(passer_by: Person) -> None:
    shown = passer_by.go(KEYS)
    assert shown.all("noscript")
    trials = shown.all("details", class_="trial scripted")
    assert trials
    assert not any(trial.all("form") or trial.all("button") for trial in trials)
    assert "scripted" in shown.one("form", id="docs-key-form").attributes["class"]


def test_docs_pages_are_at_most_16_kb_compressed(app: Flask) -> None:
    """Compressed pages are small enough to load quickly on a phone."""
    heavy = {}
    for name in ["", *documentation_files(), REFERENCE, *(f"{REFERENCE}/{name}" for name in tags(app))]:
        headers = {"Accept-Encoding": "gzip", "Accept": BROWSER_ACCEPT}
        response = app.test_client().get(f"/docs/{name}".rstrip("/"), headers=headers)
        assert response.headers["Content-Encoding"] == "gzip"
        heavy[name] = len(response.data)
    assert {name: size for name, size in heavy.items() if size > 16_000} == {}


# --- The search box page


def test_search_box_page_hides_the_trial_from_browsers_without_scripts(app: Flask, passer_by: Person) -> None:
    shown = passer_by.go("/docs/search-box")
    titles = [heading.text for heading in shown.all("h2")]
    assert titles.index("Try it") < titles.index("Attributes")
    assert "hidden" in shown.one("section", id="try-it").attributes, "controls that need scripts must be hidden"
    assert not shown.all("style")
    assert all(not script.raw_text.strip() for script in shown.all("script"))


def test_search_box_page_links_to_the_users_own_search_boxes(person: Person, passer_by: Person, tenant: Tenant) -> None:
    def addresses(reader: Person) -> list[str]:
        links = reader.go("/docs/search-box").one("p", id="try-key-help").all("a")
        return [link.attributes["href"] for link in links]

    assert addresses(person) == [f"/sites/{tenant.site_id}/box"]
    assert addresses(passer_by) == ["/login?next=/docs/search-box"]


def script_of_box(shown: Element) -> dict[str, str]:
    (script,) = (found for found in shown.all("script") if "data-key" in found.attributes)
    return script.attributes


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/engines", KEYS])
def test_docs_search_key_makes_the_box_search_its_site(tmp_path: Path, path: str) -> None:
    public_url = "http://127.0.0.1:7700"
    app = make_app(
        make_settings(
            tmp_path,
            docs_search_key="svc_pub_docs",
            search_url="meilisearch://:key@127.0.0.1:9",
            search_public_url=public_url,
        )
    )
    script = script_of_box(Person(app).go(path))
    assert (script["src"], script["data-key"]) == ("/widget.js", "svc_pub_docs")
    assert "data-analytics" not in script
    if path != "/":
        policy = app.test_client().get(path, headers={"Accept": "text/html"}).headers["Content-Security-Policy"]
        assert f"connect-src 'self' {public_url};" in policy
    close_app(app)


# --- The built-in search


def ask(app: Flask, body: object) -> TestResponse:
    return app.test_client().post(SEARCH, json=body, headers={"Authorization": f"Bearer {BUILT_IN_KEY}"})


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/engines", KEYS])
def test_box_searches_the_documentation_without_a_site(app: Flask, passer_by: Person, path: str) -> None:
    script = script_of_box(passer_by.go(path))
    assert (script["src"], script["data-analytics"]) == ("/docs/widget.js", "false")
    client = app.test_client()
    key = {"Authorization": f"Bearer {script['data-key']}"}
    for name in ("widget.js", "widget-results.js", "widget-texts.js"):
        assert client.get(f"/docs/{name}").data == client.get(f"/{name}").data
    info = client.get("/docs/v1/client-info", headers=key).get_json()
    assert info["active"]
    assert info["engine_host"] == "http://localhost/docs/engine"
    assert f"/docs/engine/indexes/{info['index']}/search" in {rule.rule for rule in app.url_map.iter_rules()}


def test_built_in_search_finds_pages_and_their_sections(shared_app: Flask) -> None:
    answer = ask(
        shared_app,
        {
            "q": "rotate kyes", "limit": 2, "sections": 1, "attributesToRetrieve": ["id", "title", "url"],
            "attributesToCrop": ["content"], "cropLength": 10, "highlightPreTag": "[", "highlightPostTag": "]",
        },
    ).get_json()  # fmt: skip
    assert answer["metadata"] == {"matched": "corrected", "corrected_query": "rotate keys"}
    assert len(answer["hits"]) == 2
    hit = answer["hits"][0]
    assert set(hit) == {"id", "title", "url", "sections", "_formatted"}
    assert hit["url"] in ("/docs/api", "/docs/reference/keys")
    assert "Site Search" not in hit["title"]
    assert re.search(r"\[rotate|\[key", hit["sections"][0]["_formatted"]["content"], re.IGNORECASE)


def test_built_in_search_finds_every_page_by_its_title(shared_app: Flask) -> None:
    passer_by = Person(shared_app)
    for name in documentation_files():
        (title, *_) = passer_by.go(f"/docs/{name}").all("h1")
        urls = [hit["url"] for hit in ask(shared_app, {"q": title.text, "limit": 3}).get_json()["hits"]]
        assert f"/docs/{name}" in urls, title.text


def test_built_in_search_suggests_titles(shared_app: Flask) -> None:
    answer = shared_app.test_client().get("/docs/engine/suggest", query_string={"q": "rate li", "limit": 2}).get_json()
    (suggestion,) = answer["suggestions"]
    assert (suggestion["text"], suggestion["url"]) == ("Rate limits and quotas", "/docs/limits")
    assert_error(
        shared_app.test_client().get("/docs/engine/suggest", query_string={"limit": "many"}), 400, "validation_failed"
    )


@pytest.mark.parametrize("body", [{"q": 1}, {"q": "a" * 10_000}, {"limit": -1}, {"surprise": 1}, [], "text"])
def test_built_in_search_rejects_invalid_requests(shared_app: Flask, body: object) -> None:
    assert_error(ask(shared_app, body), 400, "validation_failed")


def test_built_in_search_contains_nothing_of_a_user(app: Flask, person: Person, tenant: Tenant) -> None:
    assert person.go("/docs/search-box").one("a", href=f"/sites/{tenant.site_id}/box").text == tenant.site["name"]
    answer = ask(app, {"q": tenant.site["name"], "limit": 100})
    assert answer.status_code == 200
    assert f"/sites/{tenant.site_id}/box" not in answer.get_data(as_text=True)


# --- Markdown


def test_markdown_html_is_escaped_and_comments_are_removed() -> None:
    shown = render_markdown("# A *b* `c`\n<!-- gone -->\n<script>alert(1)</script>\n\n[x](javascript:alert(1))\n").html
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "gone" not in shown
    assert 'href="javascript' not in shown
    assert '<h1 id="a-b-c">' in shown


def test_markdown_links_between_files_become_page_urls() -> None:
    shown = render_markdown(
        "[a](docs/engines.md#size) [b](engines.md) [c](../README.md#keys) [d](https://a.example/x.md) [e](#x)"
    ).html
    hrefs = re.findall(r'href="([^"]+)"', shown)
    assert hrefs == ["/docs/engines#size", "/docs/engines", "/docs/readme#keys", "https://a.example/x.md", "#x"]


def test_lead_is_the_first_paragraph_as_plain_text() -> None:
    assert render_markdown("# A\n\nIt is `b`,\nand [c](d.md). More.\n\nNext.\n").lead == "It is b, and c. More."


def test_key_placeholders_are_marked_only_in_code_blocks() -> None:
    assert mark_placeholders('curl -H "Bearer YOUR_KEY" <x>') == (
        'curl -H &#34;Bearer <span class="own">YOUR_KEY</span>&#34; &lt;x&gt;'
    )
    shown = render_markdown("`svc_prv_…`\n\n```sh\nexport KEY=svc_prv_…\n```\n").html
    assert shown.count('<span class="own">svc_prv_…</span>') == 1


def test_anchors_are_slugs_of_headings() -> None:
    assert anchor_of("A tour of the `API`!") == "a-tour-of-the-api"


def test_docs_are_available_as_llms_txt_and_markdown(app: Flask) -> None:
    client = ApiClient(app)

    contents = client.get("/llms.txt")
    pages = re.findall(r"\]\(http://localhost(/docs/\S+\.md)\)", contents.get_data(as_text=True))

    assert contents.mimetype == "text/plain"
    assert "/docs/agents.md" in pages
    assert "# Using the service" in contents.get_data(as_text=True)
    linked = set()
    for path in pages:
        answer = client.get(path)
        text = answer.get_data(as_text=True)
        assert (answer.status_code, answer.mimetype) == (200, "text/markdown"), path
        assert text.startswith("# "), path
        linked |= set(re.findall(r"\]\((?!https?:)([\w./-]+\.md)", text))
    for name in linked:
        assert client.get(f"/docs/{name}").status_code == 200, name
    assert client.get("/llms.txt", headers={"If-None-Match": contents.headers["ETag"]}).status_code == 304
    assert_error(client.get("/docs/nowhere.md"), 404, "not_found")


@pytest.mark.parametrize(("former", "current"), MOVED_PAGES.items())
def test_former_urls_of_pages_redirect(passer_by: Person, former: str, current: str) -> None:
    for ending in ("", ".md"):
        response = passer_by.client.get(f"/docs/{former}{ending}")

        assert (response.status_code, response.headers["Location"]) == (301, f"/docs/{current}{ending}")
        assert passer_by.client.get(response.headers["Location"]).status_code == 200


QUERIES = [
    line.split("\t") for line in (Path(__file__).parent / "queries.tsv").read_text(encoding="utf-8").splitlines()
]
"""Queries in the words of owners and developers, each with the pages of which one should be among the first three.

They were written before looking at what the search finds.
"""
LEAST_FOUND = 45


def test_words_that_people_use_find_their_page_among_the_first_three(shared_app: Flask) -> None:
    misses = []
    for query, pages in QUERIES:
        answer = shared_app.test_client().post(SEARCH, json={"q": query, "limit": 3}).get_json()
        found = {hit["url"].removeprefix("/docs/") for hit in answer["hits"]}
        if found.isdisjoint(pages.split("|")):
            misses.append((query, sorted(found)))

    assert len(QUERIES) == 50
    assert len(QUERIES) - len(misses) >= LEAST_FOUND, misses


def test_documentation_search_returns_suggestions_with_the_hits(shared_app: Flask) -> None:
    answer = shared_app.test_client().post(SEARCH, json={"q": "rate li", "suggestions": 2}).get_json()
    alone = shared_app.test_client().get("/docs/engine/suggest", query_string={"q": "rate li", "limit": 2}).get_json()
    assert answer["suggestions"] == alone["suggestions"] != []
    assert "suggestions" not in shared_app.test_client().post(SEARCH, json={"q": "rate li"}).get_json()
