"""GET /v1/related."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.services.access.credentials import site_record
from app.services.search.related_pages import possible_urls
from app.services.sites import get_site
from schemas.validation.documents import MAX_URL_LENGTH
from tests.callers import ApiClient, Tenant, page, register_tenant
from tests.responses import assert_error, assert_ok

MUSEUM = (
    page(id="hours", title="Opening hours", content="Open from nine to six. Opening hours change in winter.",
        url="https://www.example.com/visit/hours", excerpt="When we are open.",
    ),
    page(id="winter", title="Winter opening", content="Opening hours in winter: open from ten to four.",
        url="https://www.example.com/visit/winter/", section="visit",
    ),
    page(id="piano", title="Piano lessons", content="Lessons for beginners with sheet music.", url="/piano"),
    page(id="bike", title="Bicycle repair", content="Brakes, gears, and flat tires.", url="/bike"),
    page(id="paint", title="Wall paint", content="White paint dries within an hour.", url="/paint"),
    page(id="garden", title="Garden tools", content="Spades, rakes, and gloves.", url="/garden"),
)  # fmt: skip


@pytest.fixture
def museum(tenant: Tenant) -> Tenant:
    tenant.index(*MUSEUM)
    return tenant


def related(client: ApiClient, **parameters: Any) -> list[str]:
    """Return the IDs of related pages; fail if the response is not a success."""
    return [each["id"] for each in assert_ok(ask(client, **parameters))["pages"]]


def ask(client: ApiClient, **parameters: Any) -> TestResponse:
    return client.get("/v1/related", query_string=parameters)


def test_related_pages_have_a_title_a_url_and_an_excerpt(museum: Tenant) -> None:
    assert assert_ok(ask(museum.public, id="winter")) == {
        "pages": [
            {
                "id": "hours",
                "title": "Opening hours",
                "url": "https://www.example.com/visit/hours",
                "excerpt": "When we are open.",
            }
        ]
    }
    assert related(museum.search, id="piano") == []


@pytest.mark.parametrize("kind", ["public", "search", "private"])
def test_keys_of_every_type_get_related_pages(museum: Tenant, kind: str) -> None:
    assert related(museum.client(kind), id="hours") == ["winter"]


@pytest.mark.parametrize(
    "url",
    [
        "https://www.example.com/visit/hours",
        "https://www.example.com/visit/hours/",
        "https://www.example.com/visit/hours#winter",
        "https://www.example.com/visit/hours?utm_source=news#winter",
        "http://www.example.com/visit/hours",
        "/visit/hours",
    ],
)
def test_page_is_found_by_the_spellings_of_its_url(museum: Tenant, url: str) -> None:
    assert related(museum.public, url=url) == ["winter"]


def test_page_that_is_indexed_with_its_path_is_found_by_the_url_on_the_sites_own_host(tenant: Tenant) -> None:
    tenant.index(*({**each, "url": urlsplit(each["url"]).path} for each in MUSEUM))

    assert related(tenant.public, url="https://www.example.com/visit/hours?page=2") == ["winter"]
    assert_error(ask(tenant.public, url="https://other.example/visit/hours"), 404, "document_not_found")


def test_page_with_a_query_is_preferred_to_the_page_without_it(museum: Tenant) -> None:
    url = "https://www.example.com/visit/hours?page=piano"
    museum.index({**MUSEUM[2], "id": "second", "title": "More piano lessons", "url": url})

    assert related(museum.public, url=url) == ["piano"]
    assert related(museum.public, url="https://www.example.com/visit/hours?page=other") == ["winter"]


def test_unknown_page_gets_document_not_found_even_without_any_document(tenant: Tenant) -> None:
    for parameters in ({"id": "nothing"}, {"url": "/nothing"}, {"url": "http://["}):
        answer = ask(tenant.public, **parameters)
        assert_error(answer, 404, "document_not_found")
        assert answer.headers["Cache-Control"] == "no-store"
    tenant.index(page(1))
    assert_error(ask(tenant.public, id="nothing"), 404, "document_not_found")
    assert_error(ask(tenant.public, url="/nothing"), 404, "document_not_found")


def test_exactly_one_of_id_and_url_is_required(museum: Tenant) -> None:
    assert_error(ask(museum.public), 400, "validation_failed", field="id")
    assert_error(ask(museum.public, id="hours", url="/hours"), 400, "validation_failed", field="url")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", ""), ("id", "x" * 513), ("url", ""), ("url", "/" + "x" * MAX_URL_LENGTH), ("limit", "0"),
        ("limit", "11"), ("limit", "many"), ("filters", "x" * 2001), ("site_id", "x"),
    ],
)  # fmt: skip
def test_invalid_parameters_are_rejected(museum: Tenant, field: str, value: str) -> None:
    place = {} if field in ("id", "url") else {"id": "hours"}
    assert_error(ask(museum.public, **place, **{field: value}), 400, "validation_failed", field=field)


def test_limit_and_filters_apply(museum: Tenant) -> None:
    museum.index({**MUSEUM[1], "id": "holidays", "title": "Opening hours on holidays", "section": "news"})

    assert set(related(museum.public, id="hours")) == {"winter", "holidays"}
    assert len(related(museum.public, id="hours", limit=1)) == 1
    assert related(museum.public, id="hours", filters=museum.equals("section", "visit")) == ["winter"]
    assert_error(ask(museum.public, id="hours", filters="AND"), 400, "invalid_filter")


def test_rules_for_every_search_hide_related_pages(museum: Tenant) -> None:
    rule = {"id": "hidden", "when": {}, "do": {"hide": ["winter"]}}
    assert_ok(museum.browser.put(f"/sites/{museum.site_id}/search-settings", json={"rules": [rule]}))

    assert related(museum.public, id="hours") == []


def test_response_may_be_cached_by_the_browser_for_five_minutes(museum: Tenant) -> None:
    answer = ask(museum.public, id="hours")

    assert answer.headers["Cache-Control"] == "private, max-age=300"
    assert answer.headers["Vary"] == "Authorization"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert ask(museum.public, id="hours", limit=0).headers["Cache-Control"] == "no-store"


def test_related_pages_are_not_charged_and_go_on_when_the_searches_of_the_day_are_used_up(museum: Tenant) -> None:
    museum.set_plan("free", searches_per_day=1)
    assert_ok(museum.search.get("/v1/search?q=open"))

    assert related(museum.search, id="hours") == ["winter"]
    assert_error(museum.search.get("/v1/search?q=open"), 429, "rate_limit_exceeded")


def test_private_key_gets_related_pages_of_another_site_but_other_keys_do_not(museum: Tenant) -> None:
    other = assert_ok(museum.browser.post("/sites", json={"name": "Other", "url": "https://o.example"}), 201)["site"]
    museum.private.post(f"/api/v1/index/bulk?site_id={other['id']}", json={"documents": list(MUSEUM)})

    assert related(museum.private, id="hours", site_id=other["id"]) == ["winter"]
    assert_error(ask(museum.public, id="hours", site_id=other["id"]), 403, "insufficient_permission")


def test_pages_of_another_account_are_never_found(app: Flask, museum: Tenant) -> None:
    stranger = register_tenant(app, "stranger@example.com")

    assert_error(ask(stranger.private, id="hours"), 404, "document_not_found")
    assert_error(ask(stranger.private, id="hours", site_id=museum.site_id), 404, "site_not_found")


def test_paused_site_has_no_related_pages(museum: Tenant) -> None:
    assert_ok(museum.browser.put(f"/sites/{museum.site_id}", json={"active": False}))

    assert_error(ask(museum.public, id="hours"), 403, "site_inactive")


def test_public_key_lists_related_pages_only_on_its_own_pages(museum: Tenant) -> None:
    path = f"/api/sites/{museum.site_id}/keys/{museum.keys['public']['id']}"
    assert_ok(museum.browser.put(path, json={"allowed_origins": ["https://www.example.com"]}))

    def from_page(origin: str) -> TestResponse:
        return museum.public.get("/v1/related?id=hours", headers={"Origin": origin})

    assert_ok(from_page("https://www.example.com"))
    assert_error(from_page("https://evil.example"), 403, "origin_not_allowed")


def test_unknown_parameters_are_named(museum: Tenant) -> None:
    warnings = assert_ok(ask(museum.public, id="hours", limits="3"))["warnings"]
    assert warnings == [{"code": "unknown_parameter", "field": "limits", "did_you_mean": "limit"}]


def test_number_of_urls_that_are_looked_up_is_small(museum: Tenant) -> None:
    with museum.app.extensions["runtime"].database.read() as session:
        site = site_record(get_site(session, museum.account_id, museum.site_id))
    page = possible_urls(site, "https://www.example.com/a/b?" + "c=d&" * 400)
    assert len(page.values) == 12
    assert possible_urls(site, "/").values == ("https://www.example.com/", "http://www.example.com/", "/")
