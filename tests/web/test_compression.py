"""Compression: compressed responses, their clients, and responses that are never compressed."""

from __future__ import annotations

import gzip

import pytest
from flask import Flask, Response, request
from werkzeug.test import TestResponse

from app.web.admission import current_admission
from app.web.headers import compress
from tests.callers import Tenant, page
from tests.pages.people import BROWSER_ACCEPT

GZIP = {"Accept-Encoding": "gzip, deflate, br, zstd", "Accept": BROWSER_ACCEPT}
PLAIN = {"Accept": BROWSER_ACCEPT}
FOR_ALL = [
    "/docs",
    "/docs/engines",
    "/openapi.json",
    "/static/style.css",
    "/widget.js",
    "/widget-results.js",
    "/widget-texts.js",
    "/widget-ask.js",
    "/widget-related.js",
]
PERSONAL = [
    "/",
    "/dashboard",
    "/sites",
    "/sites/{site}",
    "/sites/{site}/try?q=page",
    "/api/sites/{site}/keys",
    "/api/analytics",
    "/profile/edit",
    "/nope",
    "/sites/999",
]


def _get(app: Flask, path: str, **headers: str) -> TestResponse:
    with app.test_client().get(path, headers={name.replace("_", "-"): text for name, text in headers.items()}) as found:
        found.get_data()
    return found


@pytest.mark.parametrize("path", ["/", "/login?next=/sites", "/register", "/nope", *FOR_ALL])
def test_gzip_is_sent_only_to_clients_that_accept_it_with_equal_content(app: Flask, path: str) -> None:
    packed, plain = _get(app, path, **GZIP), _get(app, path, **PLAIN)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert int(packed.headers["Content-Length"]) == len(packed.data) < len(plain.data)
    assert "Content-Encoding" not in plain.headers
    for answer in (packed, plain):
        assert "Accept-Encoding" in answer.vary
        assert len(answer.headers.getlist("Vary")) == 1
    assert packed.status_code == plain.status_code


@pytest.mark.parametrize("path", ["/", "/static/style.css", "/widget.js", "/openapi.json"])
def test_head_has_the_same_headers_as_get(app: Flask, path: str) -> None:
    asked = app.test_client().get(path, headers=GZIP)
    with asked, app.test_client().head(path, headers=GZIP) as told:
        assert told.data == b""
        for name in ("Content-Encoding", "Content-Length", "Content-Type", "ETag", "Vary"):
            assert told.headers.get(name) == asked.headers.get(name), name


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("*", "gzip"),
        ("gzip;q=0.5", "gzip"),
        ("br;q=1.0, gzip;q=0.8, identity;q=0.1", "gzip"),
        ("", None),
        ("identity", None),
        ("br", None),
        ("gzip;q=0", None),
        ("gzip;q=0, *", None),
        ("gzip;q=0.5, identity", None),
    ],
)
def test_accept_encoding_preference_decides_on_gzip(app: Flask, accepted: str, encoding: str | None) -> None:
    answer = _get(app, "/widget.js", Accept_Encoding=accepted)
    assert answer.headers.get("Content-Encoding") == encoding


@pytest.mark.parametrize("path", ["/static/icon.svg"])
def test_small_files_are_not_compressed(app: Flask, path: str) -> None:
    answer = _get(app, path, **GZIP)
    assert len(answer.data) < 1024
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("path", ["/llms.txt", "/docs/search.md", "/static/icon.svg", "/openapi.json"])
def test_304_has_the_etag_of_the_200(app: Flask, path: str) -> None:
    whole = _get(app, path, **GZIP)
    unchanged = _get(app, path, **GZIP, If_None_Match=whole.headers.get("ETag", ""))
    assert (whole.status_code, unchanged.headers.get("ETag")) == (200, whole.headers.get("ETag"))
    assert unchanged.status_code == (304 if "ETag" in whole.headers else 200)


@pytest.mark.parametrize("path", ["/static/style.css", "/widget.js", "/widget-results.js", "/widget-texts.js"])
def test_compressed_and_plain_forms_have_separate_etags(app: Flask, path: str) -> None:
    packed, plain = _get(app, path, **GZIP), _get(app, path)
    tags = packed.headers["ETag"], plain.headers["ETag"]
    assert tags[0] != tags[1]
    for headers, tag in ((GZIP, tags[0]), ({}, tags[1])):
        kept = _get(app, path, **headers, If_None_Match=tag)
        assert (kept.status_code, kept.data, kept.headers["ETag"]) == (304, b"", tag)
        assert "Accept-Encoding" in kept.vary
        assert "Content-Encoding" not in kept.headers
    assert _get(app, path, If_None_Match=tags[0]).status_code == 200
    assert _get(app, path, **GZIP, If_None_Match='"another"').status_code == 200


def test_range_request_returns_a_part_of_the_uncompressed_file(app: Flask) -> None:
    plain = _get(app, "/static/style.css")
    part = _get(app, "/static/style.css", **GZIP, Range="bytes=0-1999")
    assert (part.status_code, part.data) == (206, plain.data[:2000])
    assert "Content-Encoding" not in part.headers
    packed = _get(app, "/static/style.css", **GZIP)
    whole = _get(app, "/static/style.css", Range="bytes=0-1999", If_Range=packed.headers["ETag"])
    assert (whole.status_code, whole.data) == (200, plain.data), "they contain part of the other form"


@pytest.mark.parametrize("template", PERSONAL)
def test_pages_for_authenticated_callers_are_never_compressed(tenant: Tenant, template: str) -> None:
    tenant.index(*(page(number) for number in range(20)))
    path = template.format(site=tenant.site_id)
    for answer in (tenant.browser.get(path, headers=GZIP), tenant.private.get(path, headers=GZIP)):
        assert answer.mimetype == "text/html"
        assert len(answer.data) > 1024
        assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("path", FOR_ALL)
def test_pages_that_reflect_no_input_are_compressed_for_everyone(tenant: Tenant, path: str) -> None:
    asked = f"{path}?q=chosen-by-others&notice=chosen-by-others&next=/chosen-by-others"
    with tenant.browser.get(asked, headers=GZIP) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert b"chosen-by-others" not in gzip.decompress(answer.data)


def test_api_responses_are_not_compressed(tenant: Tenant) -> None:
    tenant.index(*(page(number, content="words " * 100) for number in range(20)))
    for answer in (
        tenant.search.get("/v1/search?q=page", headers={"Accept-Encoding": "gzip"}),
        tenant.private.get("/sites", headers={"Accept-Encoding": "gzip"}),
    ):
        assert answer.mimetype == "application/json"
        assert "Content-Encoding" not in answer.headers


def test_already_encoded_response_is_not_compressed_again(app: Flask) -> None:
    with app.test_request_context("/docs", headers=GZIP):
        app.preprocess_request()
        encoded = Response(b"x" * 5000, mimetype="text/html", headers={"Content-Encoding": "br"})
        answer = compress(request, current_admission(), encoded)
    assert (answer.headers["Content-Encoding"], answer.data) == ("br", b"x" * 5000)
