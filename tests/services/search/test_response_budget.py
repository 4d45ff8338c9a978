"""Fields of hits, and the size limit of responses."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from flask import Flask

from backends.errors import ResponseTooLarge
from backends.query import SearchQuery
from tests.backends.contract import has_native_filters
from tests.callers import Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.gateway.callers import Gateway, assert_engine_error
from tests.responses import assert_error, assert_ok

MOST = 20_000
"""Maximum bytes of documents in a response in these tests."""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    application = make_app(make_settings(tmp_path, max_answer_bytes=MOST))
    yield application
    close_app(application)


@pytest.fixture
def owner(app: Flask) -> Tenant:
    return register_tenant(app, "owner@example.com")


@pytest.fixture
def gateway(owner: Tenant) -> Gateway:
    return Gateway(owner)


def long_page(number: int, size: int = 9_000, **fields: Any) -> dict[str, Any]:
    """Return a document with about ``size`` bytes of content."""
    return page(number, **{"title": f"Page {number}", "content": "x" * size, **fields})


def used_today(owner: Tenant) -> int:
    return int(owner.search.get("/v1/search?q=nothing").get_json()["remaining_quota"]["used_today"]) - 1


class TestFields:
    """`fields` selects the fields of hits."""

    @pytest.fixture(autouse=True)
    def _documents(self, owner: Tenant) -> None:
        owner.index(page(1, author="Ann", rank=5), page(2))

    @pytest.mark.parametrize(
        ("named", "shown"),
        [
            ("title,url", {"id", "title", "url"}),
            (" rank , title,", {"id", "rank", "title"}),
            ("id", {"id"}),
            ("excerpt", {"id", "excerpt"}),
            ("no_such_field,title", {"id", "title"}),
            ("no_such_field", {"id"}),
            ("", {"id", "title", "url", "excerpt", "content", "author", "rank"}),
            (" , ", {"id", "title", "url", "excerpt", "content", "author", "rank"}),
        ],
    )
    def test_hits_contain_only_the_requested_fields_and_the_id(
        self, owner: Tenant, named: str, shown: set[str]
    ) -> None:
        by_query = owner.find("page", fields=named)["hits"]
        by_text = owner.search.post("/v1/search", json={"q": "page", "fields": named}).get_json()["results"]["hits"]
        by_list = owner.search.post("/v1/search", json={"q": "page", "fields": named.split(",")})

        for hits in (by_query, by_text, by_list.get_json()["results"]["hits"]):
            first = next(hit for hit in hits if hit["id"] == "page-1")
            assert set(first) == shown

    def test_null_or_empty_fields_return_all_fields(self, owner: Tenant) -> None:
        for fields in (None, []):
            answer = owner.search.post("/v1/search", json={"q": "page", "fields": fields}).get_json()
            assert all("content" in hit for hit in answer["results"]["hits"])

    def test_formatted_copies_contain_only_the_requested_fields(self, owner: Tenant) -> None:
        (hit, _) = owner.find("page", fields="title", highlight="true")["hits"]

        assert set(hit) == {"id", "title", "_formatted"}
        assert set(hit["_formatted"]) == {"id", "title"}
        assert "<em>Page</em>" in hit["_formatted"]["title"]

    def test_invalid_fields_parameter_is_rejected(self, owner: Tenant) -> None:
        body = {"q": "page", "fields": ["title", 5]}
        assert_error(owner.search.post("/v1/search", json=body), 400, "validation_failed", field="fields")
        assert_error(owner.search.get(f"/v1/search?q=x&fields={'x' * 2001}"), 400, "validation_failed", field="fields")


class TestWarnings:
    """Unknown query parameters of a search are listed as warnings."""

    def test_unknown_parameters_are_listed_in_order_and_the_search_succeeds(self, owner: Tenant) -> None:
        owner.index(page(1))

        results = assert_ok(owner.search.get("/v1/search?q=page&filter=a&limit=5&Sort=b&filter=c"))["results"]

        assert results["warnings"] == [
            {"code": "unknown_parameter", "field": "filter", "did_you_mean": "filters"},
            {"code": "unknown_parameter", "field": "Sort", "did_you_mean": "sort"},
        ]
        assert [hit["id"] for hit in results["hits"]] == ["page-1"]

    def test_known_parameters_cause_no_warnings(self, owner: Tenant) -> None:
        known = "q=x&site_id=&limit=5&offset=0&page=1&filters=&sort=&facets=&fields=&highlight=1&session_id=s"
        assert "warnings" not in assert_ok(owner.search.get(f"/v1/search?{known.replace('site_id=&', '')}"))["results"]

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("filter_by", "filters"),
            ("hitsPerPage", "limit"),
            ("query", "q"),
            ("siteId", "site_id"),
            ("facet", "facets"),
            ("utm_source", None),
            ("n" * 500, None),
        ],
    )
    def test_unknown_names_get_the_probable_one_in_the_query_string_and_in_the_body(
        self, owner: Tenant, name: str, meant: str | None
    ) -> None:
        found = assert_ok(owner.search.get(f"/v1/search?{name}=1&q=page"))["results"]
        rejected = assert_error(owner.search.post("/v1/search", json={"q": "page", name: 1}), 400, "validation_failed")

        assert [warning.get("did_you_mean") for warning in found["warnings"]] == [meant]
        (detail,) = rejected["details"]
        hint = f"; did you mean {meant}?" if meant else ""
        assert detail["message"] == f"{name[:80]} is not a known field{hint}"

    def test_parameters_in_the_query_string_of_a_post_are_listed_as_well(self, owner: Tenant) -> None:
        results = assert_ok(owner.search.post("/v1/search?filter=x&limit=1", json={"q": "x"}))["results"]

        assert [warning["field"] for warning in results["warnings"]] == ["filter", "limit"]

    def test_a_body_of_unknown_fields_is_rejected_quickly(self, owner: Tenant) -> None:
        body = {f"{number:03}" + "filters" * 30: 1 for number in range(3000)}
        start = time.thread_time()

        assert_error(owner.search.post("/v1/search", json=body), 400, "validation_failed")

        assert time.thread_time() - start < 1

    def test_unknown_parameters_of_other_endpoints_cause_no_warnings(self, owner: Tenant) -> None:
        answer = owner.private.post("/api/v1/index/bulk?filter=x", json={"documents": [page(1)]}).get_json()
        assert "warnings" not in answer

    def test_unknown_parameter_warnings_are_limited_in_number_and_length(self, owner: Tenant) -> None:
        many = "&".join(f"x{number}=1" for number in range(300))

        results = assert_ok(owner.search.get(f"/v1/search?q=x&{'n' * 500}=1&{many}"))["results"]

        assert len(results["warnings"]) == 100
        assert results["warnings"][0]["field"] == "n" * 80


class TestAnswers:
    """A response above the size limit is rejected while it is built."""

    def test_oversized_response_is_rejected_without_charge_and_smaller_ones_succeed(self, owner: Tenant) -> None:
        owner.index(*map(long_page, range(5)))

        fitting = owner.find("page", limit=2)
        body = assert_error(owner.search.get("/v1/search?q=page&limit=3"), 400, "answer_too_large")

        assert len(fitting["hits"]) == 2
        assert "request fewer hits, or select the fields you need" in body["message"]
        assert len(owner.find("page", fields="title,url")["hits"]) == 5
        assert used_today(owner) == 2

    def test_response_size_limit_is_exact(self, owner: Tenant) -> None:
        owner.index(long_page(1, 1))
        size = len(orjson.dumps(owner.find("page")["hits"][0]))
        owner.index(long_page(1, 1 + MOST - size))
        assert len(orjson.dumps(owner.find("page")["hits"][0])) == MOST

        owner.index(long_page(1, 2 + MOST - size))

        assert_error(owner.search.get("/v1/search?q=page"), 400, "answer_too_large")

    def test_formatted_copies_count_towards_the_response_size(self, owner: Tenant) -> None:
        owner.index(long_page(1, 100, excerpt="<" * 6_000))

        assert_ok(owner.search.get("/v1/search?q=page"))
        assert_error(owner.search.get("/v1/search?q=page&highlight=true"), 400, "answer_too_large")
        assert_ok(owner.search.get("/v1/search?q=page&highlight=true&fields=title"))

    def test_memory_for_an_oversized_response_is_bounded(
        self, app: Flask, owner: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The memory limit holds for any number and size of documents."""
        owner.index(*(long_page(number, 300_000) for number in range(40)))
        tracemalloc.start()
        try:
            assert_error(owner.search.get("/v1/search?q=page&limit=40"), 400, "answer_too_large")
            assert_ok(owner.search.get("/v1/search?q=page&limit=40&fields=title"))
            used = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

        if not has_native_filters(app.extensions["runtime"].engines.default):  # A server's reply is read whole.
            assert used < 6_000_000

    def test_oversized_engine_body_returns_answer_too_large(
        self, app: Flask, owner: Tenant, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any) -> None:
            raise ResponseTooLarge

        monkeypatch.setattr(app.extensions["runtime"].engines.default, "search", refuse)

        assert_error(owner.search.get("/v1/search?q=page"), 400, "answer_too_large")
        assert_engine_error(gateway.send({"q": "page"}), 400, "answer_too_large")

    def test_searches_pass_their_byte_limit_and_fields_to_the_engine(
        self, app: Flask, owner: Tenant, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        owner.index(page(1))
        engine = app.extensions["runtime"].engines.default
        told: list[tuple[int | None, Any]] = []
        real = engine.search

        def wishes(query: SearchQuery) -> tuple[int | None, Any]:
            return query.max_bytes, query.returned_fields

        monkeypatch.setattr(engine, "search", lambda *given: told.append(wishes(given[1])) or real(*given))

        owner.find("page")
        owner.find("page", fields="title,url")
        gateway.send({"q": "page"})
        gateway.send({"q": "page", "attributesToRetrieve": ["title"]})

        assert told == [(MOST, None), (MOST, {"id", "title", "url"}), (MOST, None), (MOST, {"title"})]

    def test_search_page_reports_an_oversized_response(self, owner: Tenant) -> None:
        owner.index(*map(long_page, range(5)))

        answer = owner.browser.get(f"/sites/{owner.site_id}/try?q=page", headers={"Accept": "text/html"})

        assert answer.status_code == 400
        assert "request fewer hits" in answer.text


class TestGateway:
    """The same limit below /engine, in Meilisearch's format."""

    def test_gateway_search_above_the_size_limit_is_rejected(self, owner: Tenant, gateway: Gateway) -> None:
        owner.index(*map(long_page, range(5)))

        assert len(gateway.search("page", limit=2)["hits"]) == 2
        body = assert_engine_error(gateway.send({"q": "page"}), 400, "answer_too_large")

        assert body["link"].endswith("/docs/errors")
        assert len(gateway.search("page", attributesToRetrieve=["title"])["hits"]) == 5

    def test_multi_search_responses_count_together_towards_the_size_limit(
        self, owner: Tenant, gateway: Gateway
    ) -> None:
        owner.index(*map(long_page, range(5)))
        one = {"q": "page", "limit": 1}

        assert gateway.multi(one, one).status_code == 200
        body = assert_engine_error(gateway.multi(one, one, one), 400, "answer_too_large")

        assert body["message"].startswith("Inside `.queries[2]`")

    @pytest.mark.parametrize(
        "wish",
        [
            {"attributesToHighlight": ["content"], "highlightPreTag": "<" + "b" * 199, "highlightPostTag": "/" * 200},
            {"attributesToHighlight": ["*"], "highlightPreTag": "<" + "b" * 199},
            {"showMatchesPosition": True},
        ],
    )
    def test_highlighting_and_positions_count_before_they_are_generated(
        self, owner: Tenant, gateway: Gateway, wish: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        owner.index(page(1, title="a " * 400, excerpt="a " * 400, content="a " * 400))
        assert len(gateway.search("a")["hits"]) == 1
        made: list[Any] = []
        for name in ("_matches", "_as_text"):
            monkeypatch.setattr(f"app.gateway.hits.{name}", made.append)

        assert_engine_error(gateway.send({"q": "a", **wish}), 400, "answer_too_large")

        assert made == []

    def test_highlighted_or_cropped_fields_are_in_formatted_without_being_retrieved(
        self, owner: Tenant, gateway: Gateway
    ) -> None:
        owner.index(page(1, content="harbour " * 100, author="Ann"))

        (hit,) = gateway.search(
            "harbour",
            attributesToRetrieve=["title"],
            attributesToHighlight=["url"],
            attributesToCrop=["content:3"],
        )["hits"]

        assert set(hit) == {"title", "_formatted"}
        assert set(hit["_formatted"]) == {"title", "url", "content"}
        assert len(hit["_formatted"]["content"].split()) <= 4
