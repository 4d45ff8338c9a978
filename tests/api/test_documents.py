"""Documents: bulk indexing, listing, updates, and removal."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.callers import Tenant, page, register_tenant
from tests.responses import assert_error, assert_ok


@pytest.fixture
def owner(shared_app: Flask) -> Tenant:
    """A new customer without documents, not shared with other tests."""
    return register_tenant(shared_app, f"owner-{uuid4().hex}@example.com")


def bulk(tenant: Tenant, *documents: Any, **kwargs: Any) -> TestResponse:
    return tenant.private.post("/api/v1/index/bulk", json={"documents": list(documents)}, **kwargs)


def raw_bulk(tenant: Tenant, text: str) -> TestResponse:
    return tenant.private.post("/api/v1/index/bulk", data=text, content_type="application/json")


def destroy(tenant: Tenant, body: Any = None, path: str = "") -> TestResponse:
    return tenant.private.delete(f"/api/v1/index/destroy{path}", **({} if body is None else {"json": body}))


def ids(tenant: Tenant) -> list[str]:
    return sorted(tenant.found_ids("*", limit=100))


class TestBatches:
    """POST /api/v1/index/bulk."""

    def test_bulk_response_counts_created_and_updated_documents(self, owner: Tenant) -> None:
        assert assert_ok(bulk(owner, page(1), page(2))) == {"success": True, "indexed": 2, "created": 2, "updated": 0}
        assert assert_ok(bulk(owner, page(2), page(3))) == {"success": True, "indexed": 2, "created": 1, "updated": 1}
        assert ids(owner) == ["page-1", "page-2", "page-3"]

    def test_update_replaces_the_whole_document(self, owner: Tenant) -> None:
        owner.index(page(1, title="Bicycle", author="Ann", color="red"))
        owner.index(page(1, title="Tram"))

        (hit,) = owner.find("tram")["hits"]
        assert "author" not in hit
        assert "color" not in hit
        assert owner.found_ids("bicycle") == []

    def test_last_document_with_the_same_id_wins(self, owner: Tenant) -> None:
        answer = owner.index(page(1, title="First"), page(1, title="Second"))

        assert answer == {"success": True, "indexed": 1, "created": 1, "updated": 0}
        assert owner.find("*")["hits"][0]["title"] == "Second"

    def test_one_invalid_document_rejects_the_batch(self, owner: Tenant) -> None:
        assert_error(bulk(owner, page(1), page(2, url=""), page(3)), 400, "validation_failed", field="documents[1].url")
        assert ids(owner) == []

    def test_bulk_accepts_10_000_documents_and_warns_above_1_000(self, owner: Tenant) -> None:
        exactly = assert_ok(bulk(owner, *[page(number) for number in range(1_000)]))
        more = assert_ok(bulk(owner, *[page(number, content="") for number in range(1_001)]))

        assert "warnings" not in exactly
        assert (more["indexed"], more["created"], more["updated"]) == (1_001, 1, 1_000)
        assert [warning["code"] for warning in more["warnings"]] == ["batch_above_recommended"]

    def test_bulk_of_10_001_documents_is_rejected(self, owner: Tenant) -> None:
        small = {"id": "1", "title": "", "content": "", "url": "/"}

        assert_error(bulk(owner, *[small] * 10_001), 400, "batch_too_large")
        assert assert_ok(bulk(owner, *[small] * 10_000))["indexed"] == 1

    @pytest.mark.parametrize("documents", [[], None, {}, "x", 5, [5], [None], [[]], ["x"]])
    def test_bulk_rejects_an_invalid_documents_list(self, ann: Tenant, documents: Any) -> None:
        answer = assert_error(
            ann.private.post("/api/v1/index/bulk", json={"documents": documents}), 400, "validation_failed"
        )

        assert answer["details"][0]["field"].startswith("documents")

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "documents"),
            ({"document": []}, "documents"),
            ({"documents": [page(1)], "index": "x"}, "index"),
            ({"documents": [page(1)], "site_id": "1"}, "site_id"),
        ],
    )
    def test_bulk_rejects_missing_or_unknown_body_fields(self, ann: Tenant, body: Any, field: str) -> None:
        assert_error(ann.private.post("/api/v1/index/bulk", json=body), 400, "validation_failed", field=field)


VALID: list[dict[str, Any]] = [
    {"title": ""},
    {"content": ""},
    {"url": "https://example.com/a?b=c#d"},
    {"url": "http://example.com"},
    {"url": "HTTPS://EXAMPLE.com/"},
    {"url": "/"},
    {"url": "/a%20b"},
    {"url": "/a b c"},
    {"url": "https://example.com/a b?c=d e"},
    {"url": "https://example.com/ünïcode/日本語"},
    {"url": "https://bücher.example/"},
    {"url": "/straße"},
    {"url": "/" + "x" * 2047},
    {"excerpt": None, "author": None, "date": None, "further": None},
    {"date": "2024-02-29"},
    {"date": "2024-02-29T12:30:00Z"},
    {"date": "2024-02-29T12:30:00.123456+02:00"},
    {"date": "2024-02-29T12:30:00"},
    {"a" * 64: "x"},
    {f"field_{number}": number for number in range(100)},
    {"n": 2**63 - 1, "m": -(2**63), "f": 1.5, "b": True, "s": "text", "t": ["a", "b"], "l": [1, 2.5], "e": []},
    {"text": "日本語 🔎 \u202e \ufeff"},
]


@pytest.mark.parametrize("fields", VALID, ids=lambda fields: str(fields)[:40])
def test_valid_document_is_returned_as_it_was_sent(owner: Tenant, fields: dict[str, Any]) -> None:
    sent = page(1, **fields)

    owner.index(sent)

    (hit,) = owner.find("*")["hits"]
    expected = {"excerpt": "", **{name: value for name, value in sent.items() if value is not None}}
    assert hit == expected


INVALID: list[tuple[dict[str, Any], str, str]] = [
    ({"id": ""}, "id", "too_short"),
    ({"id": None}, "id", "required"),
    ({"id": "x" * 513}, "id", "too_long"),
    ({"id": True}, "id", "type"),
    ({"id": 1.5}, "id", "type"),
    ({"id": ["x"]}, "id", "type"),
    ({"title": None}, "title", "required"),
    ({"title": 5}, "title", "type"),
    ({"content": ["x"]}, "content", "type"),
    ({"url": ""}, "url", "too_short"),
    ({"url": "page"}, "url", "invalid_url"),
    ({"url": "//evil.example/"}, "url", "invalid_url"),
    ({"url": "/\\evil.example/"}, "url", "invalid_url"),
    ({"url": "javascript:alert(1)"}, "url", "invalid_url"),
    ({"url": "ftp://example.com/"}, "url", "invalid_url"),
    ({"url": "https://"}, "url", "invalid_url"),
    ({"url": "https://example.com:99999/"}, "url", "invalid_url"),
    ({"url": "/a\nb"}, "url", "invalid_url"),
    ({"url": "/a\tb"}, "url", "invalid_url"),
    ({"url": "/a\x7fb"}, "url", "invalid_url"),
    ({"url": "/a\x85b"}, "url", "invalid_url"),
    ({"url": "https://example.com/\x1f"}, "url", "invalid_url"),
    ({"url": "https://exa mple.com/"}, "url", "invalid_url"),
    ({"url": " //evil.example/"}, "url", "invalid_url"),
    ({"url": " /pages"}, "url", "invalid_url"),
    ({"url": "/" + "x" * 2048}, "url", "too_long"),
    ({"excerpt": 5}, "excerpt", "type"),
    ({"author": {}}, "author", "type"),
    ({"date": 20240101}, "date", "type"),
    ({"date": "yesterday"}, "date", "invalid_date"),
    ({"date": "2023-02-29"}, "date", "invalid_date"),
    ({"date": ""}, "date", "invalid_date"),
    ({"date": "2024-02-29T25:00:00Z"}, "date", "invalid_date"),
    ({"further": {}}, "further", "type"),
    ({"further": [{}]}, "further", "type"),
    ({"further": [1, "a"]}, "further", "type"),
    ({"further": [True]}, "further", "type"),
    ({"further": [[1]]}, "further", "type"),
    ({"further": 2**63}, "further", "out_of_range"),
    ({"1st": "x"}, "1st", "invalid_name"),
    ({"_formatted": "x"}, "_formatted", "invalid_name"),
    ({"with space": None}, "with space", "invalid_name"),
    ({"a" * 65: "x"}, "a" * 64, "invalid_name"),
    ({"ümlaut": "x"}, "ümlaut", "invalid_name"),
    ({"a.b": "x"}, "", "invalid_name"),
    ({"": "x"}, "", "invalid_name"),
    ({"title": "a\x00b"}, "title", "invalid"),
    ({"further": ["a\x00b"]}, "further", "invalid"),
]


@pytest.mark.parametrize(("fields", "field", "code"), INVALID, ids=lambda value: str(value)[:40])
def test_invalid_document_is_located_and_rejects_the_batch(
    ann: Tenant, fields: dict[str, Any], field: str, code: str
) -> None:
    answer = assert_error(bulk(ann, page("new"), page("bad", **fields)), 400, "validation_failed")

    (detail,) = answer["details"]
    assert detail["field"].startswith(f"documents[1].{field}".rstrip("."))
    assert (detail["code"], detail["index"]) == (code, 1)
    assert "page-new" not in ids(ann)


def test_name_with_a_dot_is_reported_in_full(ann: Tenant) -> None:
    """Clients of other services send nested objects with such names."""
    answer = assert_error(bulk(ann, page("bad", **{"price.value": 1})), 400, "validation_failed")

    assert answer["message"].startswith("documents[0] has a field with the name 'price.value'; use a letter")


def test_more_than_100_custom_fields_are_rejected(ann: Tenant) -> None:
    answer = assert_error(bulk(ann, page(1, **{f"f{n}": n for n in range(101)})), 400, "validation_failed")

    assert answer["details"][0]["code"] == "too_many_fields"


def test_document_larger_than_one_mebibyte_is_rejected(ann: Tenant) -> None:
    answer = assert_error(bulk(ann, page(1, content="x" * 1_048_576)), 400, "validation_failed")

    assert (answer["details"][0]["code"], answer["details"][0]["id"]) == ("too_large", "page-1")
    assert_ok(bulk(ann, page("large", content="lorem ipsum " * 80_000)))


class TestIdentifiers:
    """Any string of 1 to 512 characters, compared exactly."""

    AWKWARD = (
        "../x", "..", ".", "/", "\\", " ", "a b", "a/b?c#d", "%2e%2e", "x" * 512, "🔑" * 512, "日本",
        "\n", "\t", "'", '"', "*", "null", "0", "-1", "a`b", "<script>", "é", "e\u0301", "A", "a",
        "\u202e", "site_1", "[1,2]", "a:b", "a&&b",
    )  # fmt: skip

    def test_unusual_ids_stay_distinct_and_can_be_found_and_deleted(self, owner: Tenant) -> None:
        documents = [{"id": name, "title": "t", "content": "c", "url": "/u"} for name in self.AWKWARD]

        assert owner.index(*documents)["created"] == len(self.AWKWARD)

        assert ids(owner) == sorted(self.AWKWARD)
        for name in self.AWKWARD:
            assert assert_ok(destroy(owner, {"id": name})) == {"success": True, "deleted": 1}
        assert ids(owner) == []

    @pytest.mark.parametrize(
        ("literal", "taken_as"),
        [
            ("5", "5"),
            ("5.0", "5"),
            ("-7", "-7"),
            ("0", "0"),
            ("-0.0", "0"),
            ("9223372036854775807", "9223372036854775807"),
        ],
    )
    def test_integer_id_is_stored_as_its_string(self, owner: Tenant, literal: str, taken_as: str) -> None:
        response = raw_bulk(owner, f'{{"documents": [{{"id": {literal}, "title": "", "content": "", "url": "/"}}]}}')

        assert assert_ok(response)["created"] == 1
        assert ids(owner) == [taken_as]
        assert_ok(destroy(owner, {"id": taken_as}))

    @pytest.mark.parametrize(
        "literal", ["18446744073709551616", "-9223372036854775809", "1e300", "1.5", "true", "null"]
    )
    def test_numbers_outside_64_bits_fractions_and_booleans_are_rejected_as_ids(
        self, ann: Tenant, literal: str
    ) -> None:
        response = raw_bulk(ann, f'{{"documents": [{{"id": {literal}, "title": "", "content": "", "url": "/"}}]}}')

        assert_error(response, 400, "validation_failed", field="documents[0].id")

    @pytest.mark.parametrize("text", ['"\\ud800"', '"a\\udc00b"'])
    def test_lone_surrogates_are_rejected_in_every_field(self, ann: Tenant, text: str) -> None:
        for name in ("id", "title", "content", "url", "further"):
            document = json.dumps({**page(1), name: "HERE"}).replace('"HERE"', text)
            assert raw_bulk(ann, f'{{"documents": [{document}]}}').status_code == 400

    @pytest.mark.parametrize("literal", ["18446744073709551616", "1e300", "-1e300", "[1, 18446744073709551616]"])
    def test_numbers_beyond_64_bits_are_rejected(self, ann: Tenant, literal: str) -> None:
        document = json.dumps({**page(1), "n": "HERE"}).replace('"HERE"', literal)

        assert_error(raw_bulk(ann, f'{{"documents": [{document}]}}'), 400, "validation_failed", field="documents[0].n")


class TestDestroy:
    """DELETE /api/v1/index/destroy."""

    def test_destroyed_document_is_missing_from_the_next_search(self, owner: Tenant) -> None:
        owner.index(page(1), page(2))

        assert assert_ok(destroy(owner, {"id": "page-1"})) == {"success": True, "deleted": 1}
        assert ids(owner) == ["page-2"]
        assert owner.private.get(f"/sites/{owner.site_id}").get_json()["site"]["indexed_pages"] == 1

    def test_destroying_a_document_twice_returns_404(self, owner: Tenant) -> None:
        owner.index(page(1))
        assert_ok(destroy(owner, {"id": "page-1"}))

        assert_error(destroy(owner, {"id": "page-1"}), 404, "document_not_found")

    def test_destroyed_document_can_be_added_again(self, owner: Tenant) -> None:
        owner.index(page(1))
        destroy(owner, {"id": "page-1"})

        assert owner.index(page(1)) == {"success": True, "indexed": 1, "created": 1, "updated": 0}

    def test_destroying_another_sites_document_returns_404(self, ann: Tenant, eve: Tenant) -> None:
        eve.index(page("hers"))

        assert_error(destroy(ann, {"id": "page-hers"}), 404, "document_not_found")
        assert "page-hers" in ids(eve)

    def test_destroy_accepts_the_id_in_the_query_string(self, owner: Tenant) -> None:
        owner.index(page(1), page(2), page(3))

        assert_ok(destroy(owner, path="?id=page-1"))
        assert_ok(destroy(owner, {"id": "page-2"}, "?id=page-2"))
        assert_ok(destroy(owner, {}, "?id=page-3"))
        assert ids(owner) == []

    def test_destroy_with_conflicting_ids_returns_400(self, owner: Tenant) -> None:
        owner.index(page(1), page(2))

        assert_error(destroy(owner, {"id": "page-1"}, "?id=page-2"), 400, "validation_failed", field="id")
        assert ids(owner) == ["page-1", "page-2"]

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            (None, "id"), ({}, "id"), ({"id": None}, "id"), ({"id": ""}, "id"), ({"id": True}, "id"),
            ({"id": 5.5}, "id"), ({"id": 1e300}, "id"), ({"id": ["a"]}, "id"), ({"id": "x" * 513}, "id"),
            ({"id": "a\x00"}, "id"), ({"ids": ["x"]}, "ids"), ({"id": "x", "wrong": 1}, "wrong"),
        ],
    )  # fmt: skip
    def test_destroy_with_an_invalid_body_returns_400(self, ann: Tenant, body: Any, field: str) -> None:
        assert_error(destroy(ann, body), 400, "validation_failed", field=field)

    @pytest.mark.parametrize("body", [{"id": 5}, {"id": 5.0}, {"id": "5"}])
    @pytest.mark.parametrize("query", ["", "?id=5"])
    def test_destroy_accepts_integer_ids_as_their_strings(self, owner: Tenant, body: Any, query: str) -> None:
        owner.index(page(1, id=5), page(2))

        assert_ok(destroy(owner, body, query))

        assert ids(owner) == ["page-2"]

    @pytest.mark.parametrize("body", [b"null", b"[]", b'"page-1"', b"1"])
    def test_destroy_rejects_a_body_that_is_not_an_object(self, owner: Tenant, body: bytes) -> None:
        owner.index(page(1))

        path = "/api/v1/index/destroy?id=page-1"
        response = owner.private.delete(path, data=body, content_type="application/json")

        assert_error(response, 400, "validation_failed", field="body")
        assert ids(owner) == ["page-1"]

    @pytest.mark.parametrize("query", ["?id=", "?id=" + "x" * 513, "?id=%00", "?id=%ff"])
    def test_destroy_with_an_invalid_id_in_the_query_returns_400(self, ann: Tenant, query: str) -> None:
        assert_error(destroy(ann, path=query), 400, "validation_failed")


def test_unknown_query_parameters_are_ignored(owner: Tenant) -> None:
    bulk = owner.private.post("/api/v1/index/bulk?utm_source=x&", json={"documents": [page(1), page(2)]})
    destroyed = destroy(owner, {"id": "page-1"}, "?utm_source=x&site=9")

    assert (assert_ok(bulk)["indexed"], assert_ok(destroyed)["deleted"]) == (2, 1)
    assert ids(owner) == ["page-2"]


def test_paused_site_rejects_indexing_and_destroying(owner: Tenant) -> None:
    owner.index(page(1))
    owner.browser.put(f"/sites/{owner.site_id}", json={"active": False})

    assert_error(bulk(owner, page(2)), 403, "site_inactive")
    assert_error(destroy(owner, {"id": "page-1"}), 403, "site_inactive")
    owner.browser.put(f"/sites/{owner.site_id}", json={"active": True})
    assert ids(owner) == ["page-1"]


LIST = "/api/v1/documents"
LINES = {"Accept": "application/x-ndjson"}


def listed(tenant: Tenant, **query: Any) -> dict[str, Any]:
    response = tenant.private.get(LIST, query_string=query)
    assert response.status_code == 200, response.get_json()
    answer: dict[str, Any] = response.get_json()
    return answer


def listed_ids(tenant: Tenant, **query: Any) -> list[str]:
    return [document["id"] for document in listed(tenant, **query)["documents"]]


def lines_of(response: TestResponse) -> list[dict[str, Any]]:
    assert response.status_code == 200
    assert response.mimetype == "application/x-ndjson"
    return [json.loads(line) for line in response.get_data(as_text=True).splitlines()]


def test_listed_documents_include_source_and_update_time(owner: Tenant) -> None:
    owner.index(page(1, price=5), page(2))

    answer = listed(owner)

    assert (answer["total"], answer["next_cursor"]) == (2, None)
    first = next(document for document in answer["documents"] if document["id"] == "page-1")
    assert first == {**page(1, price=5), "_source": "api", "_updated_at": first["_updated_at"]}
    assert first["_updated_at"].endswith("Z")


@pytest.mark.parametrize("filters", ["", "price >= 0"])
def test_export_can_be_sent_back_unchanged(owner: Tenant, filters: str) -> None:
    owner.index(page(1, price=5), page(2, price=6, tags=["a"]))
    lines = owner.private.get(LIST, headers={"Accept": "application/x-ndjson"}, query_string={"filters": filters})
    exported = lines_of(lines)
    before = listed(owner)["documents"]
    assert all(document.keys() >= {"_source", "_updated_at"} for document in (*exported, *before))

    changed = owner.private.call("PATCH", LIST, json={"documents": exported})
    assert assert_ok(changed) == {"success": True, "updated": 2}
    for answer in (
        send(owner, "application/x-ndjson", lines.get_data()),
        bulk(owner, *before),
        send(owner, "text/csv", "id,title,content,url,_source,_updated_at,price\npage-1,a,b,/c,shop,2024-05-01,5"),
    ):
        assert assert_ok(answer)["created"] == 0

    sent_last = {"id": "page-1", "title": "a", "content": "b", "url": "/c", "price": 5}
    after = {document["id"]: document for document in listed(owner)["documents"]}
    assert after["page-1"] == {**after["page-1"], **sent_last, "_source": "api"}
    assert after["page-2"] == {**page(2, price=6, tags=["a"]), "_source": "api"} | {
        "_updated_at": after["page-2"]["_updated_at"]
    }


@pytest.mark.parametrize("value", ["api", None, 5, {"a": []}, "\x00"])
@pytest.mark.parametrize("name", ["_source", "_updated_at"])
def test_read_only_fields_of_lists_are_ignored_when_sent_back(owner: Tenant, name: str, value: Any) -> None:
    owner.index(page(1))
    assert_ok(bulk(owner, {**page(1), name: value}))
    changed = owner.private.call("PATCH", LIST, json={"documents": [{"id": "page-1", "title": "x", name: value}]})
    assert_ok(changed)
    assert [(found["title"], found["_source"]) for found in listed(owner)["documents"]] == [("x", "api")]


@pytest.mark.parametrize("name", ["_id", "_source_", "_Source", "_formatted", "__source", "_"])
def test_other_field_names_with_a_leading_underscore_are_rejected(owner: Tenant, name: str) -> None:
    owner.index(page(1))
    field = f"documents[0].{name}"
    assert_error(bulk(owner, {**page(1), name: "x"}), 400, "validation_failed", field=field)
    changed = owner.private.call("PATCH", LIST, json={"documents": [{"id": "page-1", name: "x"}]})
    assert_error(changed, 400, "validation_failed", field=field)


def test_document_list_is_paginated_by_cursor(owner: Tenant) -> None:
    for number in range(5):
        owner.index(page(number))
    first = listed(owner, limit=3)
    second = listed(owner, limit=3, cursor=first["next_cursor"])

    assert [d["id"] for d in first["documents"] + second["documents"]] == [f"page-{n}" for n in (4, 3, 2, 1, 0)]
    assert (first["total"], second["total"], second["next_cursor"]) == (5, 5, None)


@pytest.mark.parametrize(("query", "expected"), [
    ({"filters": "price > 5"}, ["page-2"]), ({"filters": "price = 5 OR section = b"}, ["page-1", "page-2"]),
    ({"filters": " "}, ["page-1", "page-2", "page-3"]), ({"source": "shop"}, ["page-3"]),
    ({"source": "api"}, ["page-1", "page-2"]), ({"source": "shop", "filters": "price > 0"}, []),
    ({"id": ["page-3", "none", "page-1", "page-3"]}, ["page-1", "page-3"]),
    ({"id": ["page-3", "page-1"], "source": "shop"}, ["page-3"]), ({"source": ""}, ["page-1", "page-2", "page-3"]),
    ({"source": "elsewhere"}, []), ({"limit": 1, "id": ["page-1", "page-2"]}, ["page-1", "page-2"]),
])  # fmt: skip
def test_documents_are_selected_by_filter_source_and_id_on_every_engine(
    owner: Tenant, query: dict[str, Any], expected: list[str]
) -> None:
    owner.index(page(1, price=5, section="a"), page(2, price=6, section="b"))
    sync = owner.private.post("/api/v1/sync", json={"source": "shop"}).get_json()["sync"]["id"]
    sent = owner.private.post(f"/api/v1/index/bulk?sync={sync}", json={"documents": [page(3)]})
    assert sent.status_code == 200

    answer = listed(owner, **query)

    assert sorted(document["id"] for document in answer["documents"]) == expected
    assert answer["total"] == len(expected)
    streamed = owner.private.get(LIST, query_string=query, headers=LINES)
    assert sorted(document["id"] for document in lines_of(streamed)) == expected


def test_document_list_returns_only_the_requested_fields(owner: Tenant) -> None:
    owner.index(page(1, price=5))

    (document,) = listed(owner, fields="price, nothing,title")["documents"]

    assert set(document) == {"id", "title", "price", "_source", "_updated_at"}
    (line,) = lines_of(owner.private.get(f"{LIST}?fields=url", headers=LINES))
    assert set(line) == {"id", "url", "_source", "_updated_at"}


@pytest.mark.parametrize(("query", "field"), [
    ("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("cursor=x", "cursor"),
    ("id=a&cursor=x", "id"), ("id=a&filters=id%20=%201", "id"), ("id=", "id[0]"), ("id=" + "a" * 513, "id[0]"),
    ("&".join(f"id={n}" for n in range(101)), "id"), ("source=" + "a" * 65, "source"), ("site_id=x", "site_id"),
    ("filters=unknown%20=%201", "filters"), ("filters=price", "filters"), ("source=%00", "source"),
    ("filters=" + "a" * 2001, "filters"),
])  # fmt: skip
def test_document_list_with_invalid_parameters_returns_400(owner: Tenant, query: str, field: str) -> None:
    for headers in ({}, LINES):
        response = owner.private.get(f"{LIST}?{query}", headers=headers)

        assert response.status_code == 400, response.get_json()
        assert response.get_json()["details"][0]["field"] == field


@pytest.mark.slow
def test_large_json_list_ends_early_but_a_stream_is_complete(owner: Tenant) -> None:
    for number in range(20):
        owner.index(page(number, content="x" * 1_000_000))

    first = listed(owner, limit=1_000)

    assert len(first["documents"]) == 16
    assert listed_ids(owner, limit=1_000, cursor=first["next_cursor"]) == ["page-3", "page-2", "page-1", "page-0"]
    streamed = owner.private.get(LIST, headers=LINES)
    assert len(lines_of(streamed)) == 20
    rest = owner.private.get(LIST, query_string={"cursor": first["next_cursor"]}, headers=LINES)
    assert len(lines_of(rest)) == 4
    too_much = owner.private.get(LIST, query_string={"id": [f"page-{n}" for n in range(20)]})
    assert_error(too_much, 400, "answer_too_large")


def test_document_lists_do_not_use_search_quota(owner: Tenant) -> None:
    owner.index(page(1))
    before = owner.search.get("/v1/search?q=page").get_json()["remaining_quota"]["used_today"]
    listed(owner)
    listed(owner, filters="id = page-1")

    assert owner.search.get("/v1/search?q=page").get_json()["remaining_quota"]["used_today"] == before + 1


def test_head_request_has_no_body_and_lists_vary_by_accept(owner: Tenant) -> None:
    owner.index(page(1))
    for headers in ({}, LINES):
        response = owner.private.call("HEAD", LIST, headers=headers)
        assert (response.status_code, response.data) == (200, b"")
        assert "Accept" in response.headers["Vary"]
    either = owner.private.get(LIST, headers={"Accept": "application/json, application/x-ndjson;q=0.5"})
    assert either.mimetype == "application/json"


def test_patch_replaces_the_given_fields_and_null_removes_a_field(owner: Tenant) -> None:
    owner.index(page(1, price=5, section="a", author="Ann"), page(2, section="a"))

    response = owner.private.call("PATCH", LIST, json={"documents": [
        {"id": "page-1", "title": "New", "price": None, "colour": "red", "author": None},
        {"id": "page-2", "section": ["b"]}, {"id": "page-2", "price": 1},
    ]})  # fmt: skip

    assert response.get_json() == {"success": True, "updated": 2}
    found = {document["id"]: document for document in owner.find("*")["hits"]}
    expected = {**page(1), "title": "New", "section": "a", "colour": "red", "excerpt": ""}
    assert found["page-1"] == expected
    assert (found["page-2"]["section"], found["page-2"]["price"]) == (["b"], 1)
    assert owner.found_ids("*", filters=owner.equals("colour", "red")) == ["page-1"]


def test_patched_document_keeps_its_source(owner: Tenant) -> None:
    sync = owner.private.post("/api/v1/sync", json={"source": "shop"}).get_json()["sync"]["id"]
    owner.private.post(f"/api/v1/index/bulk?sync={sync}", json={"documents": [page(1)]})
    assert owner.private.call("PATCH", LIST, json={"documents": [{"id": "page-1", "price": 1}]}).status_code == 200

    assert listed(owner)["documents"][0]["_source"] == "shop"
    finished = owner.private.post(f"/api/v1/sync/{sync}/finish")
    assert finished.get_json() == {"success": True, "removed": 0}, "a changed document must stay marked as seen"


@pytest.mark.parametrize(("change", "field", "code"), [
    ({"id": "page-1", "title": None}, "documents[0].title", "required"),
    ({"id": "page-1", "url": "x"}, "documents[0].url", "invalid_url"),
    ({"id": "nothing", "content": 5}, "documents[0].content", "type"),
    ({"title": "x"}, "documents[0].id", "required"),
    ({"id": None}, "documents[0].id", "required"),
    ({"id": "page-1", "a b": 1}, "documents[0].a b", "invalid_name"),
    ({"id": "page-1", "a b": None}, "documents[0].a b", "invalid_name"),
    ({"id": "page-1", "x": {}}, "documents[0].x", "type"),
    ("page-1", "documents[0]", "type"),
    ({"id": "page-1", "more": "x" * 700_000}, "documents[0]", "too_large"),
    ({"id": "page-1"} | {f"f{n}": 1 for n in range(100)}, "documents[0]", "too_many_fields"),
])  # fmt: skip
def test_invalid_patch_returns_400_before_unknown_ids_return_404_and_changes_nothing(
    owner: Tenant, change: Any, field: str, code: str
) -> None:
    owner.index(page(1, content="x" * 700_000, price=1), page(2))
    for rest in ([], [{"id": "unknown", "title": "x"}, {"id": "page-2", "title": "y"}]):
        response = owner.private.call("PATCH", LIST, json={"documents": [change, *rest]})

        assert_error(response, 400, "validation_failed")
        detail = response.get_json()["details"][0]
        assert (detail["field"], detail["code"]) == (field, code)
    assert listed(owner, id="page-2")["documents"][0]["title"] == "Page 2"


def test_patching_an_unknown_document_returns_404_and_changes_nothing(owner: Tenant, eve: Tenant) -> None:
    owner.index(page(1))
    eve.index(page(9))

    response = owner.private.call(
        "PATCH", LIST, json={"documents": [{"id": "page-1", "title": "x"}, {"id": "page-9", "title": "x"}]}
    )

    assert_error(response, 404, "document_not_found")
    assert "page-9" in response.get_json()["message"]
    assert listed(owner)["documents"][0]["title"] == "Page 1"


def test_documents_are_removed_by_ids_by_filter_or_all(owner: Tenant) -> None:
    owner.index(*(page(number, price=number) for number in range(9)))
    for body, deleted in (
        ({"ids": ["page-0", "page-1", "nothing", "page-1"]}, 2), ({"filters": "price >= 7"}, 2),
        ({"filters": "price > 100"}, 0), ({"ids": ["page-0"]}, 0), ({"all": True}, 5), ({"all": True}, 0),
    ):  # fmt: skip
        response = owner.private.post(f"{LIST}/delete", json=body)

        assert response.get_json() == {"success": True, "deleted": deleted}, body
        assert sorted(owner.found_ids("*")) == sorted(listed_ids(owner))
    assert listed(owner)["total"] == 0
    unknown = owner.private.get(f"{LIST}?filters=price%20=%201")
    assert_error(unknown, 400, "invalid_filter")


@pytest.mark.parametrize("body", [
    {}, {"ids": ["a"], "all": True}, {"filters": ""}, {"filters": "  "}, {"all": False}, {"all": 1}, {"ids": []},
    {"ids": "a"}, {"ids": [True]}, {"ids": [""]}, {"ids": [{}]}, {"filters": "a", "ids": ["b"]}, {"ids": None},
    {"ids": ["a\x00"]}, {"ids": ["a" * 513]}, {"query": "x", "all": True}, [], {"filters": 5},
])  # fmt: skip
def test_deletion_without_exactly_one_valid_selector_returns_400(owner: Tenant, body: Any) -> None:
    owner.index(page(1))
    assert_error(owner.private.post(f"{LIST}/delete", json=body), 400, "validation_failed")
    assert listed(owner)["total"] == 1


def test_deletion_of_more_than_10000_ids_is_rejected(owner: Tenant) -> None:
    response = owner.private.post(f"{LIST}/delete", json={"ids": [str(number) for number in range(10_001)]})

    assert_error(response, 400, "batch_too_large")
    assert owner.private.post(f"{LIST}/delete", json={"ids": list(range(10_000))}).status_code == 200


def test_other_accounts_cannot_list_change_or_delete_documents(owner: Tenant, eve: Tenant) -> None:
    owner.index(page(1))
    site = f"?site_id={owner.site_id}"
    for method, path, body in (
        ("GET", LIST + site, None), ("PATCH", LIST + site, {"documents": [{"id": "page-1"}]}),
        ("POST", f"{LIST}/delete{site}", {"all": True}),
        ("POST", f"{LIST}/delete", {"all": True, "site_id": owner.site_id}),
    ):  # fmt: skip
        response = eve.private.call(method, path, **({} if body is None else {"json": body}))
        assert_error(response, 404, "site_not_found")
    assert eve.private.get(f"{LIST}?id=page-1").get_json()["total"] == 0
    assert listed(owner)["total"] == 1


def test_browser_session_can_list_patch_and_delete_documents(owner: Tenant) -> None:
    owner.index(page(1), page(2))
    site = f"?site_id={owner.site_id}"
    assert owner.browser.get(LIST).status_code == 400
    assert owner.browser.get(LIST + site).get_json()["total"] == 2
    change = {"documents": [{"id": "page-1", "title": "x"}]}
    assert owner.browser.call("PATCH", LIST + site, json=change).status_code == 200
    forged = owner.browser.client.post(f"{LIST}/delete{site}", json={"all": True})
    assert_error(forged, 403, "csrf_failed")
    assert owner.browser.post(f"{LIST}/delete{site}", json={"all": True}).get_json()["deleted"] == 2


@pytest.mark.parametrize("kind", ["public", "search"])
def test_public_and_search_keys_cannot_list_or_change_documents(owner: Tenant, kind: str) -> None:
    for method, path in (("GET", LIST), ("PATCH", LIST), ("POST", f"{LIST}/delete")):
        assert_error(owner.client(kind).call(method, path), 403, "insufficient_permission")


def test_paused_sites_documents_can_be_listed_but_not_changed(owner: Tenant) -> None:
    owner.index(page(1))
    assert owner.browser.put(f"/sites/{owner.site_id}", json={"active": False}).status_code == 200
    try:
        assert listed(owner)["total"] == 1
        change = owner.private.call("PATCH", LIST, json={"documents": [{"id": "page-1"}]})
        assert_error(change, 403, "site_inactive")
        assert_error(owner.private.post(f"{LIST}/delete", json={"all": True}), 403, "site_inactive")
        assert_error(owner.private.post(f"{LIST}/delete", json={"ids": ["page-1"]}), 403, "site_inactive")
    finally:
        owner.browser.put(f"/sites/{owner.site_id}", json={"active": True})


def send(tenant: Tenant, kind: str, body: str | bytes, query: str = "") -> TestResponse:
    return tenant.private.post(f"/api/v1/index/bulk{query}", data=body, content_type=kind)


def test_documents_can_be_sent_as_json_lines(owner: Tenant) -> None:
    body = "\ufeff" + "\n".join(json.dumps(page(number, price=number)) for number in range(3)) + "\n\n"

    answer = send(owner, "application/x-ndjson; charset=utf-8", body).get_json()

    assert answer == {"success": True, "indexed": 3, "created": 3, "updated": 0}
    assert sorted(listed_ids(owner, filters="price >= 1")) == ["page-1", "page-2"]


def test_documents_can_be_sent_as_csv(owner: Tenant) -> None:
    body = (
        "\ufeffid,title,content,url,author,price,tags,shown\r\n"
        '5,"Ticket, adult","Two\r\nlines",/ticket,,12.5,,true\r\n'
        "b,,,/b,Ann,x,a,\r\n"
    )

    assert send(owner, "text/csv", body).get_json()["indexed"] == 2

    found = {document["id"]: document for document in listed(owner)["documents"]}
    kept = {name: value for name, value in found["5"].items() if not name.startswith("_")}
    assert kept == {
        "id": "5", "title": "Ticket, adult", "content": "Two\r\nlines", "url": "/ticket", "price": 12.5, "shown": True,
    }  # fmt: skip
    assert (found["b"]["title"], found["b"]["price"], "shown" in found["b"]) == ("", "x", False)


@pytest.mark.parametrize(("kind", "body", "field"), [
    ("application/x-ndjson", b'{"id": "1"\n', "documents[0]"), ("application/x-ndjson", b"", "documents"),
    ("application/x-ndjson", b'{"id":"1","title":"","content":"","url":"/"}\n[]\n', "documents[1]"),
    ("application/x-ndjson", b'"\xff"\n', "documents[0]"), ("application/x-ndjson", b'"\\ud800"\n', "documents[0]"),
    ("text/csv", b"", "body"), ("text/csv", b"id,id\n", "body"), ("text/csv", b"id,title\n", "documents"),
    ("text/csv", b"id,title,content,url\n1,a,b,/,more\n", "documents[0]"),
    ("text/csv", b"id,title,content,url\n1,a,b,nowhere\n", "documents[0].url"),
    ("text/csv", b"id,a b,title,content,url\n1,a,b,c,/\n", "documents[0].a b"),
    ("text/csv", b'id,title\n1,"open\n', "documents[0]"),
])  # fmt: skip
def test_invalid_lines_are_located_and_reject_the_batch(owner: Tenant, kind: str, body: bytes, field: str) -> None:
    response = send(owner, kind, body)

    assert_error(response, 400, "validation_failed")
    assert response.get_json()["details"][0]["field"] == field
    assert listed(owner)["total"] == 0


def test_bulk_of_more_than_10000_lines_is_rejected(owner: Tenant) -> None:
    assert_error(send(owner, "application/x-ndjson", "{}\n" * 10_001), 400, "batch_too_large")
    assert_error(send(owner, "text/csv", "id\n" + "1\n" * 10_001), 400, "batch_too_large")


def test_unsupported_content_type_returns_415_naming_the_supported_types(owner: Tenant) -> None:
    for kind in ("text/plain", "application/xml", ""):
        response = send(owner, kind, "{}")
        assert_error(response, 415, "unsupported_media_type")
        assert "text/csv" in response.get_json()["message"]


@pytest.mark.parametrize(("markup", "title", "content"), [
    ("html", "<b>Caf&eacute;</b> &amp; bar", "<p>One</p><script>x()</script><style>p{}</style><p>two&nbsp;three</p>"),
    ("markdown", "**Café** &amp; bar", "# One\n\n[two](/x) three"),
])  # fmt: skip
def test_html_and_markdown_are_converted_to_text(owner: Tenant, markup: str, title: str, content: str) -> None:
    document = page(1, title=title, content=content, note="<b>kept</b>")
    for number, (kind, body) in enumerate(
        (("application/json", json.dumps({"documents": [document]})), ("application/x-ndjson", json.dumps(document)))
    ):
        assert send(owner, kind, body, f"?format={markup}").status_code == 200, number
        (found,) = listed(owner)["documents"]
        assert found["title"] == "Café & bar"
        assert found["content"].split() == ["One", "two", "three"]
        assert found["note"] == "<b>kept</b>"
    assert send(owner, "application/json", json.dumps({"documents": [document]}), "?format=text").status_code == 200
    assert listed(owner)["documents"][0]["content"] == content


def test_markup_too_large_to_convert_is_rejected(owner: Tenant) -> None:
    document = page(1) | {"content": "<p>" * 700_000 + "Boats"}

    response = send(owner, "application/json", json.dumps({"documents": [document]}), "?format=html")

    assert_error(response, 400, "validation_failed")
    assert [detail["code"] for detail in response.get_json()["details"]] == ["too_large"]


def test_unknown_format_and_malformed_bodies_are_rejected(owner: Tenant) -> None:
    response = send(owner, "application/json", json.dumps({"documents": [page(1)]}), "?format=pdf")

    assert_error(response, 400, "validation_failed")
    assert response.get_json()["details"][0]["field"] == "format"
    broken = send(owner, "application/json", json.dumps({"documents": [5, {"title": 5}]}), "?format=html")
    assert_error(broken, 400, "validation_failed")
    for odd in ("null", '{"documents": 5}', "[]"):
        assert_error(send(owner, "application/json", odd, "?format=html"), 400, "validation_failed")
