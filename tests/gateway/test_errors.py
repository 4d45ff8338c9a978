"""Errors of the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from backends.errors import BackendUnavailable
from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.gateway.callers import Gateway, assert_engine_error, used_today


@pytest.fixture
def gateway(tenant: Tenant) -> Gateway:
    tenant.index(page(1, author="Ann", price=5))
    return Gateway(tenant)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway for tests that leave no data behind; each request comes from a different visitor."""
    app = make_app(make_settings(tmp_path_factory.mktemp("service"), default_plan="business"))
    tenant = register_tenant(app, "ann@example.com")
    tenant.index(page(1, author="Ann", price=5))
    yield Gateway(tenant, visitors=(f"10.0.{at // 250}.{at % 250}" for at in range(10_000)))
    close_app(app)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"q": 5}, "invalid_search_q"),
        ({"q": ["x"]}, "invalid_search_q"),
        ({"q": "x" * 513}, "invalid_search_q"),
        ({"q": "a\0b"}, "invalid_search_q"),
        ({"limit": "5"}, "invalid_search_limit"),
        ({"limit": -1}, "invalid_search_limit"),
        ({"limit": 1.5}, "invalid_search_limit"),
        ({"limit": True}, "invalid_search_limit"),
        ({"limit": 1e30}, "invalid_search_limit"),
        ({"offset": -1}, "invalid_search_offset"),
        ({"offset": 2147483648}, "invalid_search_offset"),
        ({"page": -1}, "invalid_search_page"),
        ({"page": 2147483647, "hitsPerPage": 100}, "invalid_search_page"),
        ({"hitsPerPage": "10"}, "invalid_search_hits_per_page"),
        ({"hitsPerPage": 1000}, "invalid_search_hits_per_page"),
        ({"filter": 5}, "invalid_search_filter"),
        ({"filter": {"author": "Ann"}}, "invalid_search_filter"),
        ({"filter": [5]}, "invalid_search_filter"),
        ({"filter": [["author = Ann", ["author = Bob"]]]}, "invalid_search_filter"),
        ({"filter": "author ="}, "invalid_search_filter"),
        ({"filter": "nowhere = 1"}, "invalid_search_filter"),
        ({"filter": "author = 'a\0b'"}, "invalid_search_filter"),
        ({"filter": "author = " + "x" * 10_000}, "invalid_search_filter"),
        ({"filter": [f"price = {number}" for number in range(1000)]}, "invalid_search_filter"),
        ({"filter": "(" * 900 + "price = 1" + ")" * 900}, "invalid_search_filter"),
        ({"filter": "NOT " * 400 + "price = 1"}, "invalid_search_filter"),
        ({"filter": "_geoRadius(1, 2, 3)"}, "invalid_search_filter"),
        ({"sort": "price:asc"}, "invalid_search_sort"),
        ({"sort": ["price"]}, "invalid_search_sort"),
        ({"sort": ["price:down"]}, "invalid_search_sort"),
        ({"sort": [5]}, "invalid_search_sort"),
        ({"sort": ["nowhere:asc"]}, "invalid_search_sort"),
        ({"sort": ["content:asc"]}, "invalid_search_sort"),
        ({"sort": ["price:asc", "title:asc", "author:asc", "url:asc"]}, "invalid_search_sort"),
        ({"facets": "author"}, "invalid_search_facets"),
        ({"facets": ["nowhere"]}, "invalid_search_facets"),
        ({"facets": ["content"]}, "invalid_search_facets"),
        ({"facets": ["author"] * 101}, "invalid_search_facets"),
        ({"facets": [None]}, "invalid_search_facets"),
        ({"attributesToRetrieve": "title"}, "invalid_search_attributes_to_retrieve"),
        ({"attributesToRetrieve": ["x" * 201]}, "invalid_search_attributes_to_retrieve"),
        ({"attributesToHighlight": [5]}, "invalid_search_attributes_to_highlight"),
        ({"highlightPreTag": 5}, "invalid_search_highlight_pre_tag"),
        ({"highlightPreTag": "x" * 201}, "invalid_search_highlight_pre_tag"),
        ({"highlightPostTag": "a\0"}, "invalid_search_highlight_post_tag"),
        ({"attributesToCrop": 5}, "invalid_search_attributes_to_crop"),
        ({"cropLength": -1}, "invalid_search_crop_length"),
        ({"cropMarker": []}, "invalid_search_crop_marker"),
        ({"attributesToSearchOn": ["author"]}, "invalid_search_attributes_to_search_on"),
        ({"attributesToSearchOn": "title"}, "invalid_search_attributes_to_search_on"),
        ({"matchingStrategy": "frequency"}, "invalid_search_matching_strategy"),
        ({"matchingStrategy": "ALL"}, "invalid_search_matching_strategy"),
        ({"showMatchesPosition": "true"}, "invalid_search_show_matches_position"),
        ({"showRankingScore": True}, "invalid_search_show_ranking_score"),
        ({"showRankingScore": 1}, "invalid_search_show_ranking_score"),
        ({"wrong": 1}, "bad_request"),
        ({"hybrid": {"embedder": "x"}}, "bad_request"),
        ({"queries[0].limit": 1}, "bad_request"),
        ({"": 1}, "bad_request"),
        ([], "bad_request"),
        ("text", "bad_request"),
        (5, "bad_request"),
    ],
)  # fmt: skip
def test_each_invalid_parameter_has_its_own_error_code(shared: Gateway, body: Any, code: str) -> None:
    error = assert_engine_error(shared.send(body), 400, code)

    assert error["link"].endswith(f"#{code}")
    assert error["message"]


def test_null_parameters_count_as_absent(gateway: Gateway) -> None:
    names = ("q", "limit", "offset", "page", "hitsPerPage", "filter", "facets", "sort", "attributesToRetrieve",
             "attributesToHighlight", "highlightPreTag", "highlightPostTag", "attributesToCrop", "cropLength",
             "cropMarker", "attributesToSearchOn", "matchingStrategy", "showMatchesPosition",
             "showRankingScore")  # fmt: skip

    answer = gateway.search(**dict.fromkeys(names))

    assert (answer["limit"], answer["estimatedTotalHits"]) == (20, 1)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=x", "invalid_search_limit"),
        ("limit=", "invalid_search_limit"),
        ("limit=%2B5", "invalid_search_limit"),
        ("limit=" + "9" * 5000, "invalid_search_limit"),
        ("page=-1", "invalid_search_page"),
        ("showMatchesPosition=yes", "invalid_search_show_matches_position"),
        ("showRankingScore=true", "invalid_search_show_ranking_score"),
        ("filter=[", "invalid_search_filter"),
        ("filter=[5]", "invalid_search_filter"),
        ("filter=%00", "invalid_search_filter"),
        ("sort=price", "invalid_search_sort"),
        ("facets=author,,price", "invalid_search_facets"),
        ("q=" + "x" * 513, "invalid_search_q"),
        ("q=a%00b", "invalid_search_q"),
        ("q=%ff", "bad_request"),
        ("wrong=1", "bad_request"),
    ],
)
def test_query_string_parameters_are_validated_as_strictly(shared: Gateway, query: str, code: str) -> None:
    response = shared.client.get(f"/engine/indexes/{shared.index}/search?{query}")

    assert_engine_error(response, 400, code)


@pytest.mark.parametrize(
    "path", ["/engine/indexes/{}/search", "/engine/multi-search", "/engine/indexes/{}/facet-search"]
)
@pytest.mark.parametrize(
    ("data", "content_type", "status", "code"),
    [
        (b"{", "application/json", 400, "bad_request"),
        (b"", "application/json", 400, "bad_request"),
        (b'{"q": "\xff"}', "application/json", 400, "bad_request"),
        (rb'{"q": "\ud800"}', "application/json", 400, "bad_request"),
        (b"[" * 100_000, "application/json", 400, "bad_request"),
        (b'{"q": NaN}', "application/json", 400, "bad_request"),
        (b"null", "application/json", 400, "bad_request"),
        (b"{}", None, 415, "missing_content_type"),
        (b"{}", "text/plain", 415, "missing_content_type"),
        (b"q=x", "application/x-www-form-urlencoded", 415, "missing_content_type"),
        (b'{"q": "' + b"x" * 1_100_000 + b'"}', "application/json", 413, "payload_too_large"),
    ],
)
def test_unreadable_bodies_are_rejected(
    shared: Gateway, path: str, data: bytes, content_type: str | None, status: int, code: str
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}

    response = shared.client.post(path.format(shared.index), data=data, headers=headers)

    assert_engine_error(response, status, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "bad_request"),
        ({"queries": 5}, "bad_request"),
        ({"queries": [5]}, "bad_request"),
        ({"queries": [{"q": "x"}]}, "missing_index_uid"),
        ({"queries": [{"indexUid": None}]}, "missing_index_uid"),
        ({"queries": [{"indexUid": 5}]}, "invalid_index_uid"),
        ({"queries": [{"indexUid": "site_1", "limit": "x"}]}, "invalid_search_limit"),
        ({"queries": [{"indexUid": "site_1"}] * 11}, "bad_request"),
        ({"queries": [], "federation": 5}, "bad_request"),
        ({"queries": [], "federation": {"limit": "x"}}, "invalid_search_limit"),
        ({"queries": [], "federation": {"facetsByIndex": 5}}, "invalid_multi_search_facets_by_index"),
        ({"queries": [], "federation": {"mergeFacets": 5}}, "invalid_multi_search_merge_facets"),
        (
            {"queries": [], "federation": {"mergeFacets": {"maxValuesPerFacet": 0}}},
            "invalid_multi_search_max_values_per_facet",
        ),
        ({"queries": [{"indexUid": "site_1", "federationOptions": {"weight": -1}}]}, "invalid_multi_search_weight"),
        ({"queries": [{"indexUid": "site_1", "federationOptions": {"remote": "x"}}]}, "bad_request"),
    ],
)
def test_invalid_multi_searches_are_rejected(shared: Gateway, body: Any, code: str) -> None:
    assert_engine_error(shared.client.post("/engine/multi-search", json=body), 400, code)


@pytest.mark.parametrize(
    "path",
    ["/engine", "/engine/", "/engine/health/", "/engine/indexes", "/engine/indexes/site_1", "/engine/keys",
     "/engine/indexes//search", "/engine/indexes/site_1/documents", "/engine/indexes/site_1/search/", "/engine/%00"],
)  # fmt: skip
def test_unknown_paths_below_engine_return_404(shared: Gateway, path: str) -> None:
    for client in (shared.client, shared.nobody):
        assert_engine_error(client.get(path), 404, "not_found")


def test_unsupported_method_returns_405_with_the_allowed_methods(gateway: Gateway) -> None:
    for method, path, allowed in (
        ("GET", "/engine/multi-search", "POST"),
        ("PUT", f"/engine/indexes/{gateway.index}/search", "GET"),
        ("DELETE", f"/engine/indexes/{gateway.index}/facet-search", "POST"),
        ("POST", "/engine/health", "GET"),
    ):
        response = gateway.client.call(method, path)
        assert_engine_error(response, 405, "method_not_allowed")
        assert allowed in response.headers["Allow"]


def test_identity_and_index_are_checked_before_the_body_of_a_search(gateway: Gateway) -> None:
    assert_engine_error(
        gateway.nobody.post(f"/engine/indexes/{gateway.index}/search", data=b"{"), 401, "missing_authorization_header"
    )
    assert_engine_error(gateway.send(index="site_999", data=b"{"), 403, "invalid_api_key")
    assert_engine_error(
        gateway.client.post("/engine/multi-search", json={"queries": [{"indexUid": "site_999", "limit": "x"}]}),
        400,
        "invalid_search_limit",
    )


def test_filter_error_states_its_position(gateway: Gateway) -> None:
    body = assert_engine_error(gateway.send({"filter": "author = Ann AND AND"}), 400, "invalid_search_filter")

    assert "(At character 17.)" in body["message"]


def test_unavailable_engine_returns_503_in_meilisearchs_format_without_charge(
    tenant: Tenant, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_away(*args: Any, **kwargs: Any) -> None:
        raise BackendUnavailable("engine secret words", retry_after=7)

    monkeypatch.setattr(tenant.app.extensions["runtime"].engines.default, "search", be_away)

    for response in (gateway.send({"q": "x"}), gateway.multi({"q": "x"}), gateway.facet(facetName="author", q="x")):
        body = assert_engine_error(response, 503, "search_engine_unavailable")
        assert response.headers["Retry-After"] == "7"
        assert "secret" not in body["message"]
    assert used_today(tenant) == 0


def test_unexpected_exception_returns_500_without_details_or_charge(
    tenant: Tenant, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("secret words")

    monkeypatch.setattr(tenant.app.extensions["runtime"].searcher, "run", break_down)

    body = assert_engine_error(gateway.send({"q": "x"}), 500, "internal")

    assert "secret" not in str(body)
    assert used_today(tenant) == 0


def test_any_origin_may_call_the_gateway_and_read_responses(gateway: Gateway) -> None:
    asked = {
        "Origin": "https://www.example.org",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-meilisearch-client",
    }
    for path in ("/engine/multi-search", f"/engine/indexes/{gateway.index}/search"):
        preflight = gateway.nobody.call("OPTIONS", path, headers=asked)
        assert preflight.status_code == 204
        assert preflight.headers["Access-Control-Allow-Origin"] == "*"
        assert "X-Meilisearch-Client" in preflight.headers["Access-Control-Allow-Headers"]
        assert preflight.headers["Access-Control-Max-Age"] == "7200"
        assert "Access-Control-Allow-Credentials" not in preflight.headers

    for response in (gateway.send({"q": "x"}), gateway.send({"limit": "x"}), gateway.client.get("/engine/nowhere")):
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        for name in ("X-RateLimit-Remaining", "Retry-After", "X-Request-Id"):
            assert name in response.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("filters", "; did you mean filter?"), ("hits_per_page", "; did you mean hitsPerPage?"), ("xyz", ".")],
)
def test_unknown_fields_get_the_probable_name_in_get_and_post(gateway: Gateway, name: str, hint: str) -> None:
    for response in (gateway.send({"q": "x", name: "1"}), gateway.get(q="x", **{name: "1"})):
        assert assert_engine_error(response, 400, "bad_request")["message"] == f"Unknown field `{name}`{hint}"
