"""Rules for every page: content security policy, caching, markup, and accessibility."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest
from flask import Flask

from app.clock import now
from app.models import PasswordReset
from app.operations.digests import unsubscribe_url
from app.services.accounts.members import first_owner
from app.services.asks.model import LanguageModel
from app.tokens import hash_token
from app.web.headers import CONTENT_SECURITY_POLICY
from tests.callers import Tenant, page
from tests.conftest import SECRET
from tests.pages.operator.conftest import register_operator
from tests.pages.people import Person, filled, person_of
from tests.pages.sources.test_views import make_source
from tests.patience import PATIENCE_SECONDS
from tests.responses import assert_ok
from tests.services.asks.model_server import run_model_server
from tests.services.webhooks.receiver import add_webhook, tell

OPEN = [
    "/",
    "/login",
    "/register",
    "/plans",
    "/password/forgot",
    "/docs",
    "/docs/start",
    "/docs/reference",
    "/docs/reference/documents",
    "/docs/reference/custom_search",
    "/docs/reference/algolia",
    "/nope",
]
MINE = [
    "/",
    "/dashboard",
    "/api/usage",
    "/plans",
    "/sites",
    "/sites/create",
    "/sites/{site}",
    "/sites/{site}/edit",
    "/sites/{site}/documents",
    "/sites/{site}/documents?q=page",
    "/sites/{site}/documents?q=zeppelin",
    "/sites/{site}/documents?id=page-1",
    "/sites/{site}/import",
    "/sites/{site}/box",
    "/sites/{site}/search-settings/results",
    "/sites/{site}/try",
    "/sites/{site}/try?q=page",
    "/sites/{site}/try?q=zeppelin",
    "/sites/{site}/sources/create",
    *(f"/sites/{{site}}/sources/create?kind={kind}" for kind in ("sitemap", "feed", "wordpress", "api")),
    "/sites/{site}/sources/{source}/edit",
    "/api/sites/{site}/sources",
    "/api/sites/{site}/sources/{source}",
    "/api/sites/{site}/sources/lookup?url=www.example.com/nope",
    "/api/sites/{site}/sources/lookup?url=nope://",
    "/api/sites/{site}/sources/{source}/runs",
    "/api/sites/{site}/sources/{source}/runs/{run}",
    "/api/sites/{site}/sources/{source}/dead-links",
    "/api/sites/{site}/keys",
    "/api/sites/{site}/keys/{key}",
    "/api/sites/{site}/keys/{key}/edit",
    "/api/collections",
    "/collections/create",
    "/api/collections/{collection}",
    "/collections/{collection}/edit",
    "/collections/{collection}/try",
    "/collections/{collection}/try?q=page",
    "/api/collections/{collection}/keys",
    "/api/collections/{collection}/keys/{collection_key}",
    "/api/analytics?site_id={collection}",
    "/api/analytics/query?site_id={collection}&q=page",
    "/api/analytics",
    "/api/analytics?site_id={site}&period=7d",
    "/api/analytics?list=top_queries&site_id={site}",
    "/api/analytics?list=partial_queries",
    "/api/analytics/query?site_id={site}&q=page",
    "/api/analytics/query?site_id={site}&q=zeppelin",
    "/api/analytics/inbox?site_id={site}",
    "/api/analytics/inbox?site_id={site}&ignored=true",
    "/api/analytics/inbox?site_id={site}&done=shown&q=zeppelin",
    "/sites/{site}/inbox/synonym?q=zeppelin",
    "/sites/{site}/inbox/synonym?q=zeppelin&synonyms=page",
    "/sites/{site}/inbox/synonym?q=zeppelin&synonyms=,",
    "/sites/{site}/inbox/pin?q=zeppelin",
    "/sites/{site}/inbox/pin?q=page",
    "/sites/{site}/inbox/pin?q=zeppelin&id=page-1",
    "/profile/edit",
    "/api/members",
    "/api/audit-log",
    "/api/webhooks",
    "/api/webhooks/{webhook}",
    "/api/audit-log?kind=key&since=2024-01-01",
    "/api/audit-log?kind=account&until=2024-01-01",
    "/password/reset?token={token}",
    "{unsubscribe}",
    "/docs",
    "/docs/start",
    "/docs/reference/keys",
    "/docs/reference/schemas",
    "/sites/999",
    "/sites?limit=0",
]


def make_collection(tenant: Tenant) -> tuple[int, str]:
    """Create a collection with a public key. Returns the IDs of both."""
    body = {"name": "Everything", "sites": [{"site_id": tenant.site_id, "filters": "author = Ann"}]}
    collection = tenant.browser.post("/api/collections", json=body).get_json()["collection"]["id"]
    path = f"/api/collections/{collection}/keys"
    return collection, tenant.browser.post(path, json={"name": "Box", "type": "public"}).get_json()["key"]["id"]


OPERATED = ["/operator", "/operator?q=nobody", "/operator/accounts/{account}", "/operator/health", "/operator/charts"]


@pytest.fixture(scope="module")
def language_model(shared_app: Flask) -> Iterator[None]:
    """A language model that answers questions, so that pages offer and report them."""
    with run_model_server() as model:
        shared_app.extensions["runtime"].language_model = LanguageModel(model.url, "small", "", PATIENCE_SECONDS)
        yield
        shared_app.extensions["runtime"].language_model = None


@pytest.fixture(scope="module")
def every_page(shared_app: Flask, ann: Tenant, language_model: None) -> list[tuple[str, Person]]:
    """Every page, as seen by a visitor and by a customer, for read-only tests."""
    ann.set_plan("pro")
    ann.index(page(1, author="Ann"), page(2, author="Bo"), page(3, author="Ann"))
    source = make_source(ann)
    ann.browser.post("/api/invitations", json={"email": "guest@example.com"})
    webhook, _ = add_webhook(ann, "https://example.com/hook")
    tell(ann)
    collection, collection_key = make_collection(ann)
    for query in ("zeppelin", "page"):
        ann.find(query, session_id="s")
    assert_ok(ann.private.put(f"/sites/{ann.site_id}/search-settings", json={"ask": True}))
    ann.settle()
    for question in ("Which page is first?", "Where is the zeppelin?"):
        assert_ok(ann.search.post("/v1/ask", json={"q": question}))
    shared_app.extensions["runtime"].events.flush()
    token = "x" * 43
    with shared_app.extensions["runtime"].database.write() as session:
        owner = first_owner(session, ann.account_id)
        link = PasswordReset(
            token_hash=hash_token(token, SECRET), member_id=owner.id, expires_at=now() + timedelta(minutes=30)
        )
        session.add(link)
    seen = []
    for path in OPEN:
        visitor = Person(shared_app)
        visitor.call("GET", path)
        seen.append((path, visitor))
    for template in MINE:
        path = template.format(
            site=ann.site_id,
            key=ann.keys["search"]["id"],
            source=source["id"],
            collection=collection,
            collection_key=collection_key,
            run=source["last_run"]["id"],
            token=token,
            webhook=webhook["id"],
            unsubscribe=unsubscribe_url("", SECRET, ann.account_id),
        )
        person = person_of(ann)
        person.call("GET", path)
        seen.append((path, person))
    operator = register_operator(shared_app, "operator-of-every-page@example.com")
    for template in OPERATED:
        person = Person(shared_app, operator.client)
        path = template.format(account=ann.account_id)
        assert person.call("GET", path).status_code == 200
        seen.append((path, person))
    checked = Person(shared_app, operator.client)
    form = next(form for form in seen[-2][1].page.all("form") if form.attributes["action"].endswith("/model"))
    assert checked.call("POST", form.attributes["action"], data=filled(form)).status_code == 200
    return [*seen, (form.attributes["action"], checked)]


def test_pages_show_what_a_language_model_adds(every_page: list[tuple[str, Person]], ann: Tenant) -> None:
    pages = {path: person.page for path, person in every_page}
    assert pages[f"/sites/{ann.site_id}/search-settings/results"].one("section", aria_labelledby="ask-title")
    assert "where is the zeppelin?" in pages[f"/api/analytics/inbox?site_id={ann.site_id}"].text
    assert pages[f"/api/analytics?site_id={ann.site_id}&period=7d"].one("section", aria_labelledby="asks-title")
    assert "small at 127.0.0.1" in pages["/operator/health/model"].text


def test_pages_are_not_cached_or_framed_and_load_no_external_resources(every_page: list[tuple[str, Person]]) -> None:
    for path, person in every_page:
        headers = person.response.headers
        assert headers["Cache-Control"] == "no-store", path
        assert headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY, path
        assert headers["X-Frame-Options"] == "DENY", path
        assert headers["Content-Type"] == "text/html; charset=utf-8", path
        for found in person.page.walk():
            for name in ("src", "action", "data", "poster", "srcset", "formaction"):
                assert found.attributes.get(name, "/").startswith("/"), f"{path}: {found.attributes}"
            if found.tag == "link":
                assert found.attributes["href"].startswith("/static/"), path


def test_content_security_policy_allows_no_unsafe_source_and_no_other_host() -> None:
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY
    for promise in ("default-src 'none'", "frame-ancestors 'none'", "form-action 'self'"):
        assert promise in CONTENT_SECURITY_POLICY


def test_pages_contain_no_inline_scripts_or_styles(every_page: list[tuple[str, Person]]) -> None:
    for path, person in every_page:
        assert person.page.all("style") == [], path
        for script in person.page.all("script"):
            assert script.attributes["src"], path
            assert script.text == "", path
        assert not person.page.has(lambda found: "style" in found.attributes), path
        assert not person.page.has(lambda found: any(name.startswith("on") for name in found.attributes)), path


def test_every_page_has_a_language_title_single_h1_and_skip_link(
    every_page: list[tuple[str, Person]],
) -> None:
    for path, person in every_page:
        shown = person.page
        assert shown.one("html").attributes["lang"] == "en", path
        assert shown.one("head").one("title").text.endswith("· Site Search"), path
        assert len(shown.all("h1")) == 1, path
        assert shown.one("h1").text, path
        assert shown.one("meta", name="viewport").attributes["content"] == "width=device-width, initial-scale=1", path
        skip = next(found for found in shown.one("body").walk() if found.tag == "a")
        assert skip.attributes["href"] == f"#{shown.one('main').attributes['id']}", path
        levels = [int(found.tag[1]) for found in shown.walk() if re.fullmatch("h[1-6]", found.tag)]
        assert all(after <= before + 1 for before, after in pairwise(levels)), f"{path}: {levels}"


def test_no_page_shows_raw_backticks(every_page: list[tuple[str, Person]]) -> None:
    """Text in backticks is rendered as code, also in labels."""
    for path, person in every_page:
        marked = [found.text for found in person.page.all("label") if "`" in found.text]
        assert marked == [], path
        title = person.page.one("head").one("title").text
        assert "API API" not in title, path
        assert "`" not in title, path


def test_ids_are_unique_and_referenced_ids_exist(every_page: list[tuple[str, Person]]) -> None:
    for path, person in every_page:
        ids = [found.attributes["id"] for found in person.page.walk() if "id" in found.attributes]
        assert len(ids) == len(set(ids)), f"{path}: {sorted({i for i in ids if ids.count(i) > 1})}"
        for found in person.page.walk():
            for name in ("for", "aria-labelledby", "aria-describedby", "aria-controls"):
                for target in found.attributes.get(name, "").split():
                    assert target in ids, f"{path}: {name}={target}"
            href = found.attributes.get("href", "")
            if href.startswith("#"):
                assert href[1:] in ids, f"{path}: {href}"


def test_landmarks_of_the_same_kind_have_distinct_names(every_page: list[tuple[str, Person]]) -> None:
    for path, person in every_page:
        named = {f.attributes["id"]: f.text for f in person.page.walk() if "id" in f.attributes}
        for tag in ("nav", "aside", "section"):
            names = [
                found.attributes.get("aria-label") or named[found.attributes["aria-labelledby"]]
                for found in person.page.all(tag)
                if {"aria-label", "aria-labelledby"} & set(found.attributes)
            ]
            assert len(names) == len(set(names)), f"{path}: {sorted(n for n in names if names.count(n) > 1)}"


def test_scrollable_elements_are_focusable_by_keyboard(every_page: list[tuple[str, Person]]) -> None:
    for path, person in every_page:
        for found in [*person.page.all("pre"), *person.page.all("div", class_="scroll")]:
            assert found.attributes.get("tabindex") == "0", f"{path}: {found.text[:80]}"


def test_every_control_has_an_accessible_name(every_page: list[tuple[str, Person]]) -> None:
    for path, person in every_page:
        labelled = {found.attributes["for"] for found in person.page.all("label") if found.text}
        for found in person.page.walk():
            named = bool(found.attributes.get("aria-label") or found.attributes.get("aria-labelledby"))
            if found.tag in ("input", "select", "textarea") and found.attributes.get("type") != "hidden":
                assert found.attributes.get("id") in labelled or named, f"{path}: {found.attributes}"
            if found.tag in ("button", "a", "summary"):
                assert found.text or named, f"{path}: {found.attributes}"
            if found.tag in ("nav", "aside", "svg", "progress"):
                assert named or found.attributes.get("aria-hidden") == "true", f"{path}: <{found.tag}>"
            if found.tag == "input" and found.attributes.get("type") == "password":
                assert "value" not in found.attributes, path


def words_of(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def test_accessible_names_contain_the_visible_text(every_page: list[tuple[str, Person]]) -> None:
    """People who speak to their computer say what they see (WCAG 2.5.3)."""
    for path, person in every_page:
        for control in [*person.page.all("a"), *person.page.all("button"), *person.page.all("summary")]:
            name = control.attributes.get("aria-label")
            if name is not None:
                assert words_of(control.text) in words_of(name), f"{path}: {control.text!r} is not in {name!r}"


def test_every_internal_link_works(every_page: list[tuple[str, Person]], ann: Tenant) -> None:
    links = {
        found.attributes["href"].partition("#")[0]
        for path, seen in every_page
        for found in seen.page.all("a")
        if found.attributes["href"].startswith("/") and "/docs" not in path and not path.startswith("/operator")
    }
    assert len(links) > 15
    person = person_of(ann)
    for link in sorted(links):
        assert person.call("GET", link).status_code in (200, 303), link


def test_every_table_has_header_cells(every_page: list[tuple[str, Person]]) -> None:
    for path, person in every_page:
        for table in person.page.all("table"):
            assert table.all("th"), f"{path}: {table.text[:100]}"


def test_asset_urls_have_a_version_and_are_cached_for_a_day(app: Flask, passer_by: Person) -> None:
    passer_by.go("/")
    addresses = [
        passer_by.page.one("link", rel="stylesheet").attributes["href"],
        passer_by.page.all("script")[0].attributes["src"],
    ]
    for address in addresses:
        assert re.fullmatch(r"/static/[a-z.]+\?v=[0-9a-f]{12}", address)
        with app.test_client().get(address) as response:
            assert response.status_code == 200
            assert response.cache_control.max_age == 86_400
            assert "X-RateLimit-Limit" not in response.headers
    with app.test_client().get("/static/style.css") as response:
        assert b"url(" not in response.data
        assert b"@import" not in response.data


def test_static_files_do_not_count_against_the_rate_limit(app: Flask) -> None:
    client = app.test_client()
    before = int(client.get("/nope").headers["X-RateLimit-Remaining"])
    for _ in range(3):
        client.get("/static/style.css").close()
        client.get("/widget.js")
    assert int(client.get("/nope").headers["X-RateLimit-Remaining"]) == before - 1
