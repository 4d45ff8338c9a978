"""Errors: their format, every code, and precedence."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from gunicorn.http.errors import ChunkMissingTerminator, InvalidChunkSize, NoMoreData
from marshmallow import Schema, ValidationError
from werkzeug.test import TestResponse

from app.errors import ErrorCode
from app.services.search.search import Searcher
from app.web.headers import make_request_id
from app.web.parsing import invalid
from schemas.documents import BulkSchema
from schemas.gateway import EngineMultiSearchSchema
from schemas.search import SearchBodySchema
from schemas.search_settings import SearchSettingsSchema
from tests.callers import ApiClient, Browser, Tenant, page, register_tenant
from tests.conftest import close_app, make_app, make_settings
from tests.responses import assert_error, assert_ok
from tests.server import free_port
from tests.shared_servers import counters_away, database_away

MIB = 1_048_576
JSON = "application/json"


def send(
    tenant: Tenant, data: bytes, content_type: str | None = JSON, path: str = "/v1/search", **kwargs: Any
) -> TestResponse:
    """POST a raw body with the private key."""
    return tenant.private.post(path, data=data, content_type=content_type, **kwargs)


MANY = {f"-{number}": 1 for number in range(200)}
DEAR_BODIES: dict[str, tuple[type[Schema], Any]] = {
    "names of fields": (BulkSchema, {"documents": [MANY] * 1000}),
    "values of fields": (BulkSchema, {"documents": [page(1, f=[{}], g={}, date="x", url="x")] * 1000}),
    "one document": (BulkSchema, {"documents": [{f"-{number}": 1 for number in range(100_000)}]}),
    "no documents": (BulkSchema, {"documents": [None] * 10_000}),
    "members of a body": (BulkSchema, {f"x{number}": 1 for number in range(100_000)}),
    "members of a search": (SearchBodySchema, {f"x{number}": 1 for number in range(100_000)}),
    "synonyms": (SearchSettingsSchema, {"synonyms": [[1] * 50] * 500}),
    "members of pins": (SearchSettingsSchema, {"pinned": [MANY] * 500}),
    "members of a gateway search": (EngineMultiSearchSchema, {"queries": [{f"x{n}": 1 for n in range(100_000)}]}),
}


@pytest.mark.parametrize("kind", DEAR_BODIES)
def test_validation_problems_beyond_the_listed_ones_use_bounded_memory(kind: str) -> None:
    schema, body = DEAR_BODIES[kind]
    tracemalloc.start()
    try:
        with pytest.raises(ValidationError) as raised:
            schema().load(body)
        error = invalid(raised.value)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(error.details) <= 100
    assert used < 8 * MIB


class TestBodies:
    """Invalid JSON, and JSON of the wrong shape."""

    @pytest.mark.parametrize(
        "data",
        [
            b"", b"{", b"{'q': 'x'}", b'{"q": "x"} trailing', b'{"q": NaN}', b'{"q": Infinity}', b'{"q": 01}',
            b'{"q": "\xff"}', b"\xff\xfe{}", b"\xef\xbb\xbf{}", b'{"q": "\xed\xa0\x80"}', b"[" * 100_000,
            b'{"q": "\\ud800"}', b'{"\\udfff": 1, "q": "x"}', "{\"q\": \"x\"}".encode("utf-16"),
        ],
    )  # fmt: skip
    def test_body_that_is_not_utf_8_json_returns_invalid_json(self, ann: Tenant, data: bytes) -> None:
        body = assert_error(send(ann, data), 400, "invalid_json")

        assert "details" not in body

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b'{"q": 1e999}', "(line 1, column 7): number is infinity when parsed as double."),
            (b'{"q":\n "x', "(line 2, column 4): unexpected end of data."),
            (b'{"q":\n "\xc3\xa9\xff"}', "(line 2, column 4): the byte 0xff is not UTF-8."),
        ],
    )
    def test_message_about_invalid_json_contains_the_position_and_the_reason(
        self, ann: Tenant, data: bytes, reason: str
    ) -> None:
        body = assert_error(send(ann, data), 400, "invalid_json")

        assert body["message"] == f"The body is not valid JSON in UTF-8 {reason}"

    @pytest.mark.parametrize("data", [b"[]", b"null", b'"x"', b"5", b"true", b'[{"q": "x"}]'])
    @pytest.mark.parametrize("path", ["/v1/search", "/api/v1/index/bulk", "/v1/report-usage", "/sites"])
    def test_json_of_the_wrong_top_level_type_is_rejected(self, ann: Tenant, path: str, data: bytes) -> None:
        assert_error(send(ann, data, path=path), 400, "validation_failed", field="body")

    def test_optional_body_is_validated_when_present(self, ann: Tenant) -> None:
        path = f"/api/keys/{ann.keys['search']['id']}/toggle"

        assert_error(send(ann, b"[]", path=path), 400, "validation_failed", field="body")
        assert_error(send(ann, b"{", path=path), 400, "invalid_json")
        assert_error(send(ann, b"{}", "text/plain", path=path), 415, "unsupported_media_type")
        assert_ok(ann.private.post(path))
        assert_ok(ann.private.post(path))

    @pytest.mark.parametrize(
        ("body", "field", "code"),
        [
            (b'{"q": "a\\u0000b"}', "q", "invalid"),
            (b'{"q": null}', "q", "null"),
            (b'{"q": 5}', "q", "type"),
            (b'{"q": "x", "limit": 18446744073709551616}', "limit", "out_of_range"),
            (b'{"q": "x", "limit": 1e300}', "limit", "out_of_range"),
            (b'{"q": "x", "limit": 5.5}', "limit", "type"),
            (b'{"q": "x", "limit": "5"}', "limit", "type"),
            (b'{"q": "x", "limit": true}', "limit", "type"),
            (b'{"q": "x", "limit": [5]}', "limit", "type"),
            (b'{"q": "x", "site_id": 9223372036854775808}', "site_id", "out_of_range"),
            (b'{"q": "x", "site_id": -9223372036854775809}', "site_id", "out_of_range"),
            (b'{"q": "x", "Q": "y"}', "Q", "unknown"),
            (b'{"q": "x", "": 1}', "", "unknown"),
            (b'{"limit": 5}', "q", "required"),
        ],
    )
    def test_invalid_field_is_named_in_the_details(self, ann: Tenant, body: bytes, field: str, code: str) -> None:
        answer = assert_error(send(ann, body), 400, "validation_failed")

        assert [(detail["field"], detail["code"]) for detail in answer["details"]] == [(field or "body", code)]

    def test_number_beyond_the_float_range_is_rejected(self, ann: Tenant) -> None:
        assert send(ann, b'{"q": "x", "limit": 1e999}').status_code == 400

    def test_last_value_of_a_duplicate_json_key_wins(self, ann: Tenant) -> None:
        assert assert_ok(send(ann, b'{"q": "first", "q": "last"}'))["results"]["query"] == "last"

    def test_integral_float_is_accepted_as_an_integer(self, ann: Tenant) -> None:
        assert assert_ok(send(ann, b'{"q": "x", "limit": 5.0, "offset": -0.0}'))["results"]["limit"] == 5

    def test_error_message_states_the_first_problem_and_counts_the_others(self, ann: Tenant) -> None:
        one = assert_error(send(ann, b'{"q": "x", "limit": "5"}'), 400, "validation_failed")
        two = assert_error(send(ann, b'{"limit": "5"}'), 400, "validation_failed")
        three = assert_error(send(ann, b'{"limit": "5", "page": "x"}'), 400, "validation_failed")

        assert one["message"] == "limit must be an integer"
        assert (
            two["message"]
            == f"{two['details'][0]['field']} {two['details'][0]['message'].partition(' ')[2]} (and 1 more problem)"
        )
        assert three["message"].endswith("(and 2 more problems)")

    @pytest.mark.parametrize(("bad", "more"), [(100, "99 more problems"), (101, "more"), (250, "more")])
    def test_at_most_100_problems_are_listed_and_counted(self, ann: Tenant, bad: int, more: str) -> None:
        documents = [page(1), *({"title": "t", "content": "c", "url": "/u"} for _ in range(bad))]

        body = assert_error(
            ann.private.post("/api/v1/index/bulk", json={"documents": documents}), 400, "validation_failed"
        )

        assert len(body["details"]) == 100
        assert body["message"] == f"documents[1].id is required (and {more})"
        assert body["details"][0] == {
            "field": "documents[1].id", "code": "required", "message": "id is required", "index": 1,
        }  # fmt: skip

    def test_unknown_field_name_is_truncated_in_the_error(self, ann: Tenant) -> None:
        body = assert_error(send(ann, b'{"q": "x", "' + b"n" * 100_000 + b'": 1}'), 400, "validation_failed")

        assert [detail["field"] for detail in body["details"]] == ["n" * 80]

    def test_problem_of_a_document_has_its_index_and_id(self, ann: Tenant) -> None:
        documents = [page(1), page(2, date="yesterday")]

        body = assert_error(
            ann.private.post("/api/v1/index/bulk", json={"documents": documents}), 400, "validation_failed"
        )

        (detail,) = body["details"]
        assert (detail["field"], detail["code"], detail["index"], detail["id"]) == (
            "documents[1].date", "invalid_date", 1, "page-2",
        )  # fmt: skip


class TestContentTypes:
    """Bodies without a JSON content type."""

    @pytest.mark.parametrize(
        "content_type",
        [None, "", "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
         "application/octet-stream", "json", "application/xml"],
    )  # fmt: skip
    def test_other_content_types_are_rejected_with_the_required_header(
        self, ann: Tenant, content_type: str | None
    ) -> None:
        body = assert_error(send(ann, b'{"q": "x"}', content_type), 415, "unsupported_media_type")

        assert "Content-Type: application/json" in body["message"]

    @pytest.mark.parametrize("content_type", [JSON, "application/json; charset=utf-8", "Application/JSON"])
    def test_json_content_type_is_accepted_with_parameters_and_in_any_case(
        self, ann: Tenant, content_type: str
    ) -> None:
        assert_ok(send(ann, b'{"q": "x"}', content_type))

    @pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, identity"])
    def test_encoded_request_body_is_rejected(self, ann: Tenant, encoding: str) -> None:
        response = send(ann, b'{"q": "x"}', headers={"Content-Encoding": encoding})

        assert_error(response, 415, "unsupported_media_type")

    def test_form_with_a_bearer_token_is_rejected_on_page_routes(self, ann: Tenant) -> None:
        response = ann.private.post("/sites", data={"name": "x", "url": "https://x.example/"})

        assert_error(response, 415, "unsupported_media_type")


class TestSizes:
    """Bodies over the limit: 16 MiB for bulk requests, 1 MiB for others."""

    @pytest.mark.parametrize(
        ("path", "size"),
        [("/v1/search", MIB), ("/sites", MIB), ("/api/v1/search-log", MIB), ("/api/v1/index/bulk", 16 * MIB)],
    )
    def test_body_one_byte_above_the_limit_is_rejected(self, ann: Tenant, path: str, size: int) -> None:
        largest = b'{"' + b"x" * (size - 6) + b'":1}'
        assert len(largest) == size

        assert send(ann, largest, path=path).status_code in (200, 400)
        assert_error(send(ann, largest + b" ", path=path), 413, "payload_too_large")

    def test_forty_mebibyte_body_is_rejected(self, ann: Tenant) -> None:
        assert_error(send(ann, b"x" * (40 * MIB), path="/api/v1/index/bulk"), 413, "payload_too_large")

    def test_body_limit_applies_without_a_content_length(self, ann: Tenant) -> None:
        def chunked(size: int) -> TestResponse:
            stream = io.BytesIO(b'{"q": "' + b"x" * size + b'"}')
            return ann.private.post(
                "/v1/search", input_stream=stream, content_type=JSON, environ_overrides={"wsgi.input_terminated": True}
            )

        assert_ok(chunked(500))
        assert_error(chunked(2 * MIB), 413, "payload_too_large")

    def test_chunked_body_is_not_truncated_at_the_limit(self, ann: Tenant) -> None:
        class Chunks:
            """A stream like gunicorn's: without a length or a position."""

            def __init__(self, body: bytes):
                self.read = io.BytesIO(body).read

        def chunked(body: bytes) -> TestResponse:
            environ = {"wsgi.input": Chunks(body), "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
            return ann.private.post("/v1/search", content_type=JSON, environ_overrides=environ)

        whole = b'{"q": "x"}'.ljust(MIB)
        assert_ok(chunked(whole))
        assert_error(chunked(whole + b" and more"), 413, "payload_too_large")

    @pytest.mark.parametrize("broken", [InvalidChunkSize(b"zz"), ChunkMissingTerminator(b"zz"), NoMoreData(b"")])
    def test_malformed_chunked_encoding_returns_400(self, ann: Tenant, broken: Exception) -> None:
        class Broken:
            def read(self, size: int = -1) -> bytes:
                raise broken

        environ = {"wsgi.input": Broken(), "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
        form = "application/x-www-form-urlencoded"
        for client, path, content_type in (
            (ann.private, "/v1/search", JSON),
            (ann.browser, "/sites", form),
            (Browser(ann.browser.client, ""), "/sites", form),
            (ApiClient(ann.app), "/login", form),
        ):
            response = client.post(path, content_type=content_type, environ_overrides=environ)
            assert response.status_code == 400, (path, response.text)

    def test_payload_too_large_message_states_the_limit(self, ann: Tenant) -> None:
        assert str(MIB) in assert_error(send(ann, b" " * (MIB + 1)), 413, "payload_too_large")["message"]

    def test_both_body_limits_are_configurable(self, tmp_path: Path) -> None:
        app = make_app(make_settings(tmp_path, max_body_bytes=300, max_bulk_body_bytes=1000))
        tenant = register_tenant(app, "ann@example.com")

        assert_error(send(tenant, b" " * 301), 413, "payload_too_large")
        assert_ok(send(tenant, json.dumps({"documents": [page(1)]}).encode() + b" " * 300, path="/api/v1/index/bulk"))
        assert_error(send(tenant, b" " * 1001, path="/api/v1/index/bulk"), 413, "payload_too_large")
        close_app(app)


class TestRoutes:
    """Unknown paths and methods."""

    @pytest.mark.parametrize(
        "path",
        ["/nowhere", "/v1/search/", "/sites/", "//v1/search", "/v1//search", "/V1/search", "/v1/nowhere", "/sites/abc",
         "/sites/1.5", "/sites/1e3", "/sites/%D9%A3", "/api/keys//toggle", "/v1/search%00", "/%ff", "/engine2"],
    )  # fmt: skip
    @pytest.mark.parametrize("known", [True, False])
    def test_unknown_path_returns_404(self, ann: Tenant, path: str, known: bool) -> None:
        client = ann.private if known else ApiClient(ann.app)

        assert_error(client.get(path), 404, "not_found")

    @pytest.mark.parametrize(
        ("path", "nearest"),
        [
            ("/v1/serach", "/v1/search"),
            ("/v1/search/", "/v1/search"),
            ("/api/v1/search", "/v1/search"),
            ("/api/v1/suggest", "/v1/suggest"),
            ("/v1/index/bulk", "/api/v1/index/bulk"),
            ("/api/v1/document", "/api/v1/documents"),
            ("/api/v1/client_info", "/v1/client-info"),
            ("/v1/sites", "/sites"),
            ("/api/v1/sites/5/keys", "/api/sites/{site_id}/keys"),
            ("/api/sites/5/key", "/api/sites/{site_id}/keys"),
            ("/api/sites/5/source/src_0/runs", "/api/sites/{site_id}/sources/{source_id}/runs"),
            ("/api/v1/billing/invoices", None),
            ("/v1/" + "search/" * 1000, None),
            ("/wp-login.php", None),
            ("/serach", None),
        ],
    )
    def test_unknown_api_path_names_the_nearest_route(self, ann: Tenant, path: str, nearest: str | None) -> None:
        for client in (ann.private, ApiClient(ann.app)):
            body = assert_error(client.get(path), 404, "not_found")
            hint = "." if nearest is None else f"; did you mean {nearest}?"
            assert body["message"] == f"This URL does not exist{hint}"

    @pytest.mark.parametrize("site_id", ["0", "-1", "9223372036854775807", "9223372036854775808", "9" * 30, "9" * 5000])
    def test_unknown_site_id_returns_404(self, ann: Tenant, site_id: str) -> None:
        response = ann.private.get(f"/sites/{site_id}")

        assert response.status_code == 404
        assert response.get_json()["error"] in ("site_not_found", "not_found")

    @pytest.mark.parametrize("key_id", ["key_", "x", "key_AAAAAAAAAA", "%00", "a" * 4000, "%F0%9F%94%91"])
    def test_unknown_key_id_returns_404(self, ann: Tenant, key_id: str) -> None:
        assert_error(ann.private.post(f"/api/keys/{key_id}/toggle"), 404, "key_not_found")

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("DELETE", "/v1/search", {"GET", "HEAD", "OPTIONS", "POST"}),
            ("GET", "/api/v1/index/bulk", {"OPTIONS", "POST"}),
            ("HEAD", "/api/v1/index/bulk", {"OPTIONS", "POST"}),
            ("PUT", "/dashboard", {"GET", "HEAD", "OPTIONS"}),
            ("BREW", "/dashboard", {"GET", "HEAD", "OPTIONS"}),
        ],
    )
    def test_unsupported_method_returns_405_with_the_allowed_methods(
        self, ann: Tenant, method: str, path: str, allowed: set[str]
    ) -> None:
        response = ApiClient(ann.app).call(method, path)

        assert response.status_code == 405
        assert allowed <= {name.strip() for name in response.headers["Allow"].split(",")}
        if method != "HEAD":
            assert_error(response, 405, "method_not_allowed")

    @pytest.mark.parametrize("path", ["/sites", "/dashboard", "/v1/client-info", "/api/analytics", "/healthz"])
    def test_head_returns_the_headers_of_get_without_a_body(self, ann: Tenant, path: str) -> None:
        got, headed = ann.private.get(path), ann.private.call("HEAD", path)

        assert headed.status_code == got.status_code == 200
        assert headed.data == b""
        assert headed.headers["Content-Type"] == got.headers["Content-Type"]

    def test_head_of_an_error_has_no_body(self, ann: Tenant) -> None:
        response = ApiClient(ann.app).call("HEAD", "/sites")

        assert response.status_code == 401
        assert response.data == b""


class TestRequestIds:
    """The caller's request ID, if it is safe to log."""

    @pytest.mark.parametrize("sent", ["a", "A-z.9_:+/=", "x" * 128])
    def test_valid_request_id_is_echoed(self, ann: Tenant, sent: str) -> None:
        for client in (ann.private, ApiClient(ann.app)):
            assert client.get("/sites", headers={"X-Request-Id": sent}).headers["X-Request-Id"] == sent

    @pytest.mark.parametrize("sent", ["", "x" * 129, "a b", "a\u00fc", "a;b", "<b>"])
    def test_invalid_request_id_is_replaced(self, ann: Tenant, sent: str) -> None:
        given = ann.private.get("/sites", headers={"X-Request-Id": sent.encode().decode("latin-1")}).headers[
            "X-Request-Id"
        ]

        assert given != sent
        assert len(given) >= 16

    def test_generated_request_ids_are_unique(self, ann: Tenant) -> None:
        assert len({ann.private.get("/sites").headers["X-Request-Id"] for _ in range(5)}) == 5

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_request_ids_differ_between_forked_processes(self, ann: Tenant) -> None:
        here = ann.private.get("/sites").headers["X-Request-Id"]
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            there = pool.submit(make_request_id).result()
        assert len(there) == len(here) == 32
        assert there[:16] != here[:16]


class BrokenSearcher(Searcher):
    """Raises an unexpected exception."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError("SELECT password FROM accounts -- tantivy said no")


def test_unexpected_exception_returns_500_without_details_and_without_charge(
    app: Flask, tenant: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    part = app.extensions["runtime"]
    working = part.searcher
    part.searcher = BrokenSearcher(part.engines, part.indexer, part.events, MIB)

    response = tenant.search.get("/v1/search?q=x", headers={"X-Request-Id": "find-me"})

    body = assert_error(response, 500, "internal_error")
    assert set(body) == {"error", "message"}
    assert "ZeroDivisionError" in caplog.text
    part.searcher = working
    assert tenant.search.get("/v1/search?q=x").get_json()["remaining_quota"]["used_today"] == 1


def test_every_error_code_is_documented(shared_app: Flask) -> None:
    from app.apidoc.openapi import document

    with shared_app.app_context():
        text = json.dumps(document())

    unspecific = {ErrorCode.NOT_FOUND, ErrorCode.METHOD_NOT_ALLOWED, ErrorCode.IDENTITY_PROVIDER_UNAVAILABLE}
    unspecific |= {ErrorCode.URI_TOO_LONG, ErrorCode.HEADERS_TOO_LARGE}  # Rejected before the operation is determined.
    assert {code for code in ErrorCode if f"`{code}`" not in text} <= unspecific


class TestAPartIsAway:
    """503 responses name the unavailable dependency."""

    def test_unavailable_search_engine_returns_503_and_management_continues(self, tmp_path: Path) -> None:
        app = make_app(make_settings(tmp_path, search_url=f"typesense://:key@127.0.0.1:{free_port()}"))
        tenant = register_tenant(app, "ann@example.com")

        for response in (
            tenant.search.get("/v1/search?q=x"),
            tenant.private.post("/api/v1/index/bulk", json={"documents": [page(1)]}),
            ApiClient(app).get("/readyz"),
        ):
            assert_error(response, 503, "search_engine_unavailable")
        assert_ok(ApiClient(app).get("/healthz"))
        info = assert_ok(tenant.search.get("/v1/client-info"))
        assert info["limits"]["used_today"] == 0
        assert_ok(tenant.private.get("/dashboard"))
        assert_ok(tenant.browser.delete(f"/sites/{tenant.site_id}?purge=true"))
        close_app(app)

    @pytest.fixture
    def database_is_away(self, app: Flask, tenant: Tenant) -> Iterator[None]:
        with database_away(app):
            yield

    def test_unavailable_database_returns_503(self, app: Flask, tenant: Tenant, database_is_away: None) -> None:
        for response in (
            tenant.private.get("/sites"),
            tenant.browser.get("/dashboard"),
            tenant.private.post("/sites", json={"name": "x", "url": "https://x.example/"}),
            ApiClient(app).post("/login", json={"email": "a@b.example", "password": "x" * 10}),
            ApiClient(app).get("/readyz"),
        ):
            assert_error(response, 503, "database_unavailable")
        assert_ok(ApiClient(app).get("/healthz"))

    def test_search_with_a_cached_key_works_without_the_database(self, app: Flask, tenant: Tenant) -> None:
        tenant.index(page(1))
        assert tenant.found_ids("page") == ["page-1"]

        with database_away(app):
            assert tenant.found_ids("page") == ["page-1"]

    @pytest.fixture
    def counters_are_away(self, app: Flask, tenant: Tenant) -> Iterator[None]:
        tenant.index(page(1))
        with counters_away(app):
            yield

    def test_unavailable_counters_reject_writes_while_reads_and_searches_continue(
        self, app: Flask, tenant: Tenant, counters_are_away: None, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert tenant.found_ids("page") == ["page-1"]
        assert_ok(tenant.search.post("/v1/search", json={"q": "page"}))
        assert "counter store is unavailable" in caplog.text
        assert_ok(tenant.private.get("/sites"))
        assert_ok(tenant.browser.get(f"/sites/{tenant.site_id}"))
        for response in (
            tenant.private.post("/api/v1/index/bulk", json={"documents": [page(2)]}),
            tenant.private.post("/sites", json={"name": "x", "url": "https://x.example/"}),
            tenant.browser.post(f"/api/keys/{tenant.keys['search']['id']}/toggle"),
            tenant.public.post("/v1/report-usage", json={"operation": "search", "count": 1, "index": "x"}),
            ApiClient(app).post("/login", json={"email": tenant.email, "password": "x" * 10}),
            ApiClient(app).get("/readyz"),
        ):
            assert_error(response, 503, "counters_unavailable")


@pytest.mark.parametrize("body", [b"null", b"[]", b"5", b"true", b'"x"', b"[null]"])
def test_optional_body_may_be_absent_but_must_be_an_object(ann: Tenant, body: bytes) -> None:
    key = ann.browser.post(f"/api/sites/{ann.site_id}/keys", json={"name": "x"}).get_json()["key"]
    address = f"/api/sites/{ann.site_id}/keys/{key['id']}"
    writes = (("POST", f"/api/keys/{key['id']}/toggle"), ("POST", f"{address}/rotate"), ("POST", "/logout"))

    for method, path in writes:
        rejected = ann.browser.call(method, path, data=body, content_type="application/json")
        assert_error(rejected, 400, "validation_failed", field="body")
    assert assert_ok(ann.browser.get(address))["key"] == key

    for method, path in writes[:-1]:
        assert_ok(ann.browser.call(method, path))
        assert_ok(ann.browser.call(method, path, data=b"{}", content_type="application/json"))
