"""POST /api/v1/index/bulk and DELETE /api/v1/index/destroy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.answers import assert_error, assert_ok
from tests.callers import Tenant, page, register_tenant


@pytest.fixture
def owner(shared_app: Flask, request: pytest.FixtureRequest) -> Tenant:
    """A customer of the test's own, without any document."""
    return register_tenant(shared_app, f"owner-{request.node.name.encode().hex()[-50:]}@example.com")


def bulk(tenant: Tenant, *documents: Any, **kwargs: Any) -> TestResponse:
    return tenant.private.post("/api/v1/index/bulk", json={"documents": list(documents)}, **kwargs)


def raw_bulk(tenant: Tenant, text: str) -> TestResponse:
    return tenant.private.post("/api/v1/index/bulk", data=text, content_type="application/json")


def destroy(tenant: Tenant, body: Any = None, path: str = "") -> TestResponse:
    return tenant.private.delete(f"/api/v1/index/destroy{path}", **({} if body is None else {"json": body}))


def ids(tenant: Tenant) -> list[str]:
    return sorted(tenant.found_ids("*", limit=100))


class TestBatches:
    """Adding and replacing."""

    def test_what_was_created_and_what_was_updated(self, owner: Tenant) -> None:
        assert assert_ok(bulk(owner, page(1), page(2))) == {"success": True, "indexed": 2, "created": 2, "updated": 0}
        assert assert_ok(bulk(owner, page(2), page(3))) == {"success": True, "indexed": 2, "created": 1, "updated": 1}
        assert ids(owner) == ["page-1", "page-2", "page-3"]

    def test_an_update_replaces_the_whole_document(self, owner: Tenant) -> None:
        owner.index(page(1, title="Bicycle", author="Ann", color="red"))
        owner.index(page(1, title="Tram"))

        (hit,) = owner.find("tram")["hits"]
        assert "author" not in hit
        assert "color" not in hit
        assert owner.found_ids("bicycle") == []

    def test_of_the_same_id_twice_the_last_one_wins(self, owner: Tenant) -> None:
        answer = owner.index(page(1, title="First"), page(1, title="Second"))

        assert answer == {"success": True, "indexed": 1, "created": 1, "updated": 0}
        assert owner.find("*")["hits"][0]["title"] == "Second"

    def test_one_invalid_document_refuses_the_batch(self, owner: Tenant) -> None:
        assert_error(bulk(owner, page(1), page(2, url=""), page(3)), 400, "validation_failed", field="documents[1].url")
        assert ids(owner) == []

    def test_up_to_10_000_are_taken_with_a_warning_above_1_000(self, owner: Tenant) -> None:
        exactly = assert_ok(bulk(owner, *[page(number) for number in range(1_000)]))
        more = assert_ok(bulk(owner, *[page(number, content="") for number in range(1_001)]))

        assert "warnings" not in exactly
        assert (more["indexed"], more["created"], more["updated"]) == (1_001, 1, 1_000)
        assert [warning["code"] for warning in more["warnings"]] == ["batch_above_recommended"]

    def test_10_001_are_too_many(self, owner: Tenant) -> None:
        small = {"id": "1", "title": "", "content": "", "url": "/"}

        assert_error(bulk(owner, *[small] * 10_001), 400, "batch_too_large")
        assert assert_ok(bulk(owner, *[small] * 10_000))["indexed"] == 1

    @pytest.mark.parametrize("documents", [[], None, {}, "x", 5, [5], [None], [[]], ["x"]])
    def test_what_is_no_list_of_documents(self, ann: Tenant, documents: Any) -> None:
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
    def test_the_body_around_them(self, ann: Tenant, body: Any, field: str) -> None:
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
def test_a_valid_document_is_kept_as_it_was_sent(owner: Tenant, fields: dict[str, Any]) -> None:
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
    ({"title": "a\x00b"}, "title", "invalid"),
    ({"further": ["a\x00b"]}, "further", "invalid"),
]


@pytest.mark.parametrize(("fields", "field", "code"), INVALID, ids=lambda value: str(value)[:40])
def test_an_invalid_document_is_located_and_changes_nothing(
    ann: Tenant, fields: dict[str, Any], field: str, code: str
) -> None:
    answer = assert_error(bulk(ann, page("new"), page("bad", **fields)), 400, "validation_failed")

    (detail,) = answer["details"]
    assert detail["field"].startswith(f"documents[1].{field}")
    assert (detail["code"], detail["index"]) == (code, 1)
    assert "page-new" not in ids(ann)


def test_101_further_fields_are_too_many(ann: Tenant) -> None:
    answer = assert_error(bulk(ann, page(1, **{f"f{n}": n for n in range(101)})), 400, "validation_failed")

    assert answer["details"][0]["code"] == "too_many_fields"


def test_a_document_has_at_most_a_mebibyte(ann: Tenant) -> None:
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

    def test_awkward_ones_are_kept_apart_found_and_removed(self, owner: Tenant) -> None:
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
    def test_an_integer_is_taken_as_its_string(self, owner: Tenant, literal: str, taken_as: str) -> None:
        response = raw_bulk(owner, f'{{"documents": [{{"id": {literal}, "title": "", "content": "", "url": "/"}}]}}')

        assert assert_ok(response)["created"] == 1
        assert ids(owner) == [taken_as]
        assert_ok(destroy(owner, {"id": taken_as}))

    @pytest.mark.parametrize(
        "literal", ["18446744073709551616", "-9223372036854775809", "1e300", "1.5", "true", "null"]
    )
    def test_another_number_is_not(self, ann: Tenant, literal: str) -> None:
        response = raw_bulk(ann, f'{{"documents": [{{"id": {literal}, "title": "", "content": "", "url": "/"}}]}}')

        assert_error(response, 400, "validation_failed", field="documents[0].id")

    @pytest.mark.parametrize("text", ['"\\ud800"', '"a\\udc00b"'])
    def test_lone_surrogates_are_refused_everywhere(self, ann: Tenant, text: str) -> None:
        for name in ("id", "title", "content", "url", "further"):
            document = json.dumps({**page(1), name: "HERE"}).replace('"HERE"', text)
            assert raw_bulk(ann, f'{{"documents": [{document}]}}').status_code == 400

    @pytest.mark.parametrize("literal", ["18446744073709551616", "1e300", "-1e300", "[1, 18446744073709551616]"])
    def test_numbers_beyond_64_bits_are_refused(self, ann: Tenant, literal: str) -> None:
        document = json.dumps({**page(1), "n": "HERE"}).replace('"HERE"', literal)

        assert_error(raw_bulk(ann, f'{{"documents": [{document}]}}'), 400, "validation_failed", field="documents[0].n")


class TestDestroy:
    """Removing one document."""

    def test_it_is_gone_with_the_next_search(self, owner: Tenant) -> None:
        owner.index(page(1), page(2))

        assert assert_ok(destroy(owner, {"id": "page-1"})) == {"success": True, "deleted": 1}
        assert ids(owner) == ["page-2"]
        assert owner.private.get(f"/sites/{owner.site_id}").get_json()["site"]["indexed_pages"] == 1

    def test_a_second_time_it_is_not_found(self, owner: Tenant) -> None:
        owner.index(page(1))
        assert_ok(destroy(owner, {"id": "page-1"}))

        assert_error(destroy(owner, {"id": "page-1"}), 404, "document_not_found")

    def test_it_can_be_added_again(self, owner: Tenant) -> None:
        owner.index(page(1))
        destroy(owner, {"id": "page-1"})

        assert owner.index(page(1)) == {"success": True, "indexed": 1, "created": 1, "updated": 0}

    def test_another_sites_document_is_not_found(self, ann: Tenant, eve: Tenant) -> None:
        eve.index(page("hers"))

        assert_error(destroy(ann, {"id": "page-hers"}), 404, "document_not_found")
        assert "page-hers" in ids(eve)

    def test_the_id_may_be_in_the_query(self, owner: Tenant) -> None:
        owner.index(page(1), page(2), page(3))

        assert_ok(destroy(owner, path="?id=page-1"))
        assert_ok(destroy(owner, {"id": "page-2"}, "?id=page-2"))
        assert_ok(destroy(owner, {}, "?id=page-3"))
        assert ids(owner) == []

    def test_two_different_ids_are_refused(self, owner: Tenant) -> None:
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
    def test_what_names_no_document(self, ann: Tenant, body: Any, field: str) -> None:
        assert_error(destroy(ann, body), 400, "validation_failed", field=field)

    @pytest.mark.parametrize("body", [{"id": 5}, {"id": 5.0}, {"id": "5"}])
    @pytest.mark.parametrize("query", ["", "?id=5"])
    def test_an_integer_is_taken_as_its_string(self, owner: Tenant, body: Any, query: str) -> None:
        owner.index(page(1, id=5), page(2))

        assert_ok(destroy(owner, body, query))

        assert ids(owner) == ["page-2"]

    @pytest.mark.parametrize("body", [b"null", b"[]", b'"page-1"', b"1"])
    def test_a_body_that_is_no_object_names_nothing(self, owner: Tenant, body: bytes) -> None:
        owner.index(page(1))

        path = "/api/v1/index/destroy?id=page-1"
        response = owner.private.delete(path, data=body, content_type="application/json")

        assert_error(response, 400, "validation_failed", field="body")
        assert ids(owner) == ["page-1"]

    @pytest.mark.parametrize("query", ["?id=", "?id=" + "x" * 513, "?id=%00", "?id=%ff"])
    def test_what_names_none_in_the_query(self, ann: Tenant, query: str) -> None:
        assert_error(destroy(ann, path=query), 400, "validation_failed")


def test_unknown_query_parameters_are_ignored(owner: Tenant) -> None:
    bulk = owner.private.post("/api/v1/index/bulk?utm_source=x&", json={"documents": [page(1), page(2)]})
    destroyed = destroy(owner, {"id": "page-1"}, "?utm_source=x&site=9")

    assert (assert_ok(bulk)["indexed"], assert_ok(destroyed)["deleted"]) == (2, 1)
    assert ids(owner) == ["page-2"]


def test_a_paused_site_takes_and_gives_up_nothing(owner: Tenant) -> None:
    owner.index(page(1))
    owner.browser.put(f"/sites/{owner.site_id}", json={"active": False})

    assert_error(bulk(owner, page(2)), 403, "site_inactive")
    assert_error(destroy(owner, {"id": "page-1"}), 403, "site_inactive")
    owner.browser.put(f"/sites/{owner.site_id}", json={"active": True})
    assert ids(owner) == ["page-1"]
