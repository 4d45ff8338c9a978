"""GET and POST /v1/search."""

from __future__ import annotations

import pytest
from flask import Flask
from sqlalchemy import select

from app.clock import now
from app.models import SearchEvent
from app.services.analytics.clicks import read_query_id
from tests.callers import Tenant, page
from tests.responses import assert_error


def test_document_is_searchable_in_the_next_request(tenant: Tenant) -> None:
    tenant.index(page(1, title="Installing the bicycle pump"), page(2))

    response = tenant.search.get("/v1/search?q=bicycle")

    assert response.status_code == 200
    answer = response.get_json()
    assert [hit["id"] for hit in answer["results"]["hits"]] == ["page-1"]
    assert answer["results"]["estimatedTotalHits"] == 1
    assert answer["results"]["query"] == "bicycle"
    assert answer["results"]["limit"] == 20
    assert answer["results"]["offset"] == 0
    assert isinstance(answer["results"]["processingTimeMs"], int)
    assert answer["remaining_quota"] == {"daily_limit": 10_000, "used_today": 1, "unlimited": False}


def test_hits_have_the_five_standard_string_fields(tenant: Tenant) -> None:
    tenant.index(page(1, title="Bicycle"))

    (hit,) = tenant.find("bicycle")["hits"]

    assert {name: type(hit[name]) for name in ("id", "title", "url", "excerpt", "content")} == dict.fromkeys(
        ("id", "title", "url", "excerpt", "content"), str
    )
    assert hit["excerpt"] == ""
    assert "author" not in hit
    assert "_formatted" not in hit


@pytest.mark.parametrize("kind", ["search", "private"])
def test_search_and_private_keys_can_search(tenant: Tenant, kind: str) -> None:
    assert tenant.client(kind).get("/v1/search?q=x").status_code == 200


def test_public_key_gets_403_pointing_to_client_info(tenant: Tenant) -> None:
    response = tenant.public.get("/v1/search?q=x")

    assert response.status_code == 403
    assert response.get_json()["error"] == "insufficient_permission"
    assert "/v1/client-info" in response.get_json()["message"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "q"),
        ("q=", "q"),
        ("q=%20%20", "q"),
        ("q=" + "x" * 513, "q"),
        ("q=a%00b", "q"),
        ("q=%ff", "query string"),
        ("q=x&limit=0", "limit"),
        ("q=x&limit=101", "limit"),
        ("q=x&limit=ten", "limit"),
        ("q=x&limit=1.0", "limit"),
        ("q=x&limit=", "limit"),
        ("q=x&limit=%2B5", "limit"),
        ("q=x&offset=-1", "offset"),
        ("q=x&offset=2147483648", "offset"),
        ("q=x&page=0", "page"),
        ("q=x&page=2147483647&limit=100", "page"),
        ("q=x&site_id=abc", "site_id"),
        ("q=x&site_id=99999999999999999999", "site_id"),
        ("q=x&highlight=yes", "highlight"),
        ("q=x&session_id=" + "s" * 65, "session_id"),
        ("q=x&filters=" + "(" * 2001, "filters"),
    ],
)
def test_invalid_search_parameters_return_400_naming_the_field(ann: Tenant, query: str, field: str) -> None:
    response = ann.search.get(f"/v1/search?{query}")

    assert response.status_code == 400
    answer = response.get_json()
    assert answer["error"] == "validation_failed"
    assert answer["details"][0]["field"] == field
    assert field in answer["message"]


def test_unknown_query_parameters_are_ignored(tenant: Tenant) -> None:
    assert tenant.search.get("/v1/search?q=x&utm_source=mail").status_code == 200


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"filters": "author ="}, "invalid_filter"),
        ({"filters": "nowhere = 1"}, "invalid_filter"),
        ({"filters": "(" * 200 + "a = 1" + ")" * 200}, "invalid_filter"),
        ({"sort": "nowhere"}, "invalid_sort"),
        ({"sort": "date:down"}, "invalid_sort"),
        ({"sort": "date,title,author,url"}, "invalid_sort"),
        ({"sort": "content"}, "invalid_sort"),
        ({"facets": "nowhere"}, "invalid_facet"),
        ({"facets": "content"}, "invalid_facet"),
        ({"facets": "author,,date"}, "invalid_facet"),
    ],
)
def test_invalid_filter_sort_and_facets_return_400_with_specific_codes(
    ann: Tenant, parameters: dict[str, str], code: str
) -> None:
    ann.index(page(1))

    response = ann.search.get("/v1/search", query_string={"q": "page", **parameters})

    assert response.status_code == 400
    assert response.get_json()["error"] == code


def test_facets_that_are_neither_a_string_nor_a_list_of_strings_return_400(ann: Tenant) -> None:
    for facets in ([1], ["author", None], {}, 1):
        answer = assert_error(
            ann.search.post("/v1/search", json={"q": "page", "facets": facets}), 400, "validation_failed"
        )
        assert answer["message"] == "facets must be a string or a list of strings"


def test_invalid_filter_error_contains_its_position(tenant: Tenant) -> None:
    tenant.index(page(1))

    response = tenant.search.get("/v1/search", query_string={"q": "page", "filters": "author = Ann AND AND"})

    (detail,) = response.get_json()["details"]
    tells_where = tenant.app.extensions["runtime"].engines.default.name != "typesense"
    assert detail.get("position") == (17 if tells_where else None)


def test_page_above_one_takes_precedence_over_offset(tenant: Tenant) -> None:
    tenant.index(*[page(number) for number in range(10)])

    assert tenant.find("page", limit=3, page=2, offset=1)["offset"] == 3
    assert tenant.find("page", limit=3, page=1, offset=4)["offset"] == 4


def test_offset_past_the_end_returns_no_hits_and_the_true_total(tenant: Tenant) -> None:
    tenant.index(*[page(number) for number in range(5)])

    for offset in (5, 1_000_000, 2_147_483_647):
        results = tenant.find("page", offset=offset)
        assert results["hits"] == []
        assert results["estimatedTotalHits"] == 5


def test_pagination_returns_every_hit_once(tenant: Tenant) -> None:
    tenant.index(*[page(number) for number in range(25)])

    seen = [hit for number in (1, 2, 3) for hit in tenant.found_ids("page", limit=10, page=number)]

    assert sorted(seen) == sorted(f"page-{number}" for number in range(25))


def test_post_search_returns_the_same_as_get(tenant: Tenant) -> None:
    tenant.index(page(1, author="Ann"), page(2, author="Bob"))

    wishes = {"q": "page", "filters": tenant.equals("author", "Ann")}

    by_query = tenant.search.get(
        "/v1/search", query_string={**wishes, "facets": "author", "sort": "title:desc"}
    ).get_json()
    by_body = tenant.search.post("/v1/search", json={**wishes, "facets": ["author"], "sort": ["title:desc"]}).get_json()

    for answer in (by_query, by_body):
        assert answer["results"].pop("query_id")
        answer["results"].pop("processingTimeMs")
    assert by_body["results"] == by_query["results"]
    assert by_body["results"]["facetDistribution"] == {"author": {"Ann": 1}}


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "q"), ({"q": 5}, "q"), ({"q": "x", "limit": "5"}, "limit"), ({"q": "x", "limit": True}, "limit"),
     ({"q": "x", "highlight": 1}, "highlight"), ({"q": "x", "wrong": 1}, "wrong"), ({"q": "x", "sort": [1]}, "sort")],
)  # fmt: skip
def test_post_search_does_not_convert_json_types(ann: Tenant, body: dict[str, object], field: str) -> None:
    response = ann.search.post("/v1/search", json=body)

    assert response.status_code == 400
    assert response.get_json()["details"][0]["field"] == field


def test_integral_float_is_accepted_as_an_integer(tenant: Tenant) -> None:
    response = tenant.search.post("/v1/search", data='{"q": "x", "limit": 5.0}', content_type="application/json")

    assert response.status_code == 200
    assert response.get_json()["results"]["limit"] == 5


def test_highlighted_text_is_escaped_except_for_the_markers(tenant: Tenant) -> None:
    tenant.index(page(1, title="<b>Bicycle</b> & pump"))

    (hit,) = tenant.find("bicycle", highlight="true")["hits"]

    assert hit["_formatted"]["title"] == "&lt;b&gt;<em>Bicycle</em>&lt;/b&gt; &amp; pump"
    assert hit["title"] == "<b>Bicycle</b> & pump"


def test_placeholder_search_sorts_by_date_then_by_last_change(tenant: Tenant) -> None:
    tenant.index(page("undated-1"))
    tenant.index(page("undated-2"))
    tenant.index(page("old", date="2020-01-01"), page("new", date="2024-06-01T10:00:00+02:00"))

    assert tenant.found_ids("*") == ["page-new", "page-old", "page-undated-2", "page-undated-1"]


def test_search_of_only_punctuation_returns_no_hits(tenant: Tenant) -> None:
    tenant.index(page(1))

    assert tenant.find("?!")["estimatedTotalHits"] == 0


@pytest.mark.parametrize(("q", "matched", "corrected"), [
    ("harbour ships", "all", None),
    ("*", "all", None),
    ("harbour zeppelin", "some", None),
    ("zeppelin", "some", None),
    ("Harbuor ships", "corrected", "Harbour ships"),
])  # fmt: skip
def test_search_reports_whether_all_words_matched_or_were_corrected(
    app: Flask, tenant: Tenant, q: str, matched: str, corrected: str | None
) -> None:
    tenant.index(page(1, title="Ships of the harbour"))

    results = tenant.find(q)
    assert (results["matched"], results["corrected_query"]) == (matched, corrected)
    by_body = tenant.search.post("/v1/search", json={"q": q}).get_json()["results"]
    assert (by_body["matched"], by_body["corrected_query"]) == (matched, corrected)

    part = app.extensions["runtime"]
    part.events.flush()
    with part.database.read() as session:
        assert set(session.scalars(select(SearchEvent.matched))) == (set() if q == "*" else {matched})


def test_each_search_has_a_unique_query_id_encoding_its_query(app: Flask, tenant: Tenant) -> None:
    first, second = tenant.find(" Harbour  SHIPS ")["query_id"], tenant.find("harbour ships")["query_id"]

    assert first != second
    for query_id in (first, second):
        secret = app.extensions["runtime"].settings.secret_key
        assert read_query_id(secret, tenant.site_id, query_id, now()) == "harbour ships"


def test_clicks_are_attributed_to_searches_by_query_id(app: Flask, tenant: Tenant) -> None:
    tenant.index(page(1, title="Ships of the harbour"))
    for q in ("harbour", "harbour zeppelin"):
        click = {"query_id": tenant.find(q)["query_id"], "id": "page-1", "position": 1}
        assert tenant.public.post("/api/v1/click", json=click).status_code == 200

    app.extensions["runtime"].events.flush()
    analytics = tenant.private.get("/api/analytics?period=7d").get_json()
    assert analytics["clicks"] == 2
    assert [entry["query"] for entry in analytics["partial_queries"]] == ["harbour zeppelin"]


def test_failed_search_uses_no_quota(tenant: Tenant) -> None:
    for query in ("q=", "q=x&limit=0", "q=x&sort=nowhere", "q=x&site_id=999999"):
        assert tenant.search.get(f"/v1/search?{query}").status_code in (400, 404)

    assert tenant.search.get("/v1/search?q=x").get_json()["remaining_quota"]["used_today"] == 1


def test_head_request_has_no_body_and_uses_no_quota(tenant: Tenant) -> None:
    response = tenant.search.call("HEAD", "/v1/search?q=x")

    assert response.status_code == 200
    assert response.data == b""
    assert tenant.search.get("/v1/search?q=x").get_json()["remaining_quota"]["used_today"] == 1


def test_private_key_can_search_any_site_of_its_account(tenant: Tenant) -> None:
    other = tenant.browser.post("/sites", json={"name": "Other", "url": "https://other.example/"}).get_json()["site"]
    tenant.private.post(f"/api/v1/index/bulk?site_id={other['id']}", json={"documents": [page(7)]})

    answer = tenant.private.get(f"/v1/search?q=page&site_id={other['id']}").get_json()

    assert [hit["id"] for hit in answer["results"]["hits"]] == ["page-7"]
    assert tenant.found_ids("page") == []


def test_search_key_cannot_search_another_site_of_its_account(tenant: Tenant) -> None:
    other = tenant.browser.post("/sites", json={"name": "Other", "url": "https://other.example/"}).get_json()["site"]

    assert tenant.search.get(f"/v1/search?q=x&site_id={other['id']}").status_code == 403
    assert tenant.search.get(f"/v1/search?q=x&site_id={tenant.site_id}").status_code == 200


@pytest.mark.parametrize("kind", ["search", "private"])
def test_another_accounts_site_gets_the_same_404_as_a_missing_site(tenant: Tenant, stranger: Tenant, kind: str) -> None:
    theirs = tenant.client(kind).get(f"/v1/search?q=x&site_id={stranger.site_id}")
    nobodys = tenant.client(kind).get("/v1/search?q=x&site_id=123456789")

    assert theirs.status_code == nobodys.status_code == 404
    assert theirs.get_json() == nobodys.get_json()
    assert theirs.get_json()["error"] == "site_not_found"


def test_searching_a_paused_site_returns_403(tenant: Tenant) -> None:
    tenant.browser.put(f"/sites/{tenant.site_id}", json={"active": False})

    response = tenant.search.get("/v1/search?q=x")

    assert response.status_code == 403
    assert response.get_json()["error"] == "site_inactive"
