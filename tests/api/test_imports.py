"""POST /api/sites/{site}/import."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.importers import formats
from app.operations import imports
from app.services.usage import quota
from backends.errors import BackendUnavailable
from schemas.imports import FORMATS
from tests.callers import ApiClient, Tenant, page
from tests.crawl.read.office.builders import docx, w_p, xlsx
from tests.crawl.read.samples import pdf
from tests.importers.exports import wxr, wxr_item
from tests.responses import assert_error

CSV = "id,title,content,url,price\n1,Opening hours,We open at nine.,/hours,5\n2,Getting here,By tram.,/way,\n"


def send(
    tenant: Tenant, text: str | bytes, form: str | None = "csv", kind: str = "text/csv", **query: Any
) -> TestResponse:
    path = f"/api/sites/{tenant.site_id}/import"
    named = query if form is None else {"format": form, **query}
    return tenant.private.post(path, data=text, query_string=named, headers={"Content-Type": kind})


def test_api_formats_match_the_supported_formats() -> None:
    assert tuple(FORMATS) == (*formats.FORMATS, imports.ONE_PAGE)


def test_imported_file_is_indexed_and_searchable(tenant: Tenant) -> None:
    response = send(tenant, CSV)

    assert response.status_code == 200
    assert response.get_json() == {
        "success": True, "indexed": 2, "created": 2, "updated": 0, "skipped": 0, "problems": [],
    }  # fmt: skip
    (hit,) = tenant.find("nine")["hits"]
    assert (hit["id"], hit["price"]) == ("1", 5)
    assert send(tenant, CSV + "3,Way,,/,\n").get_json()["created"] == 1


@pytest.mark.parametrize(
    ("form", "kind", "text"),
    [
        ("wxr", "application/xml", wxr(wxr_item(1, "Opening hours"))),
        ("jsonl", "application/x-ndjson", json.dumps({**page(1), "title": "Opening hours"})),
        ("algolia", "application/json", json.dumps([{**page(1), "objectID": "x", "title": "Opening hours"}])),
        ("meilisearch", "application/json", json.dumps({"results": [{**page(1), "title": "Opening hours"}]})),
        ("typesense", "text/plain", json.dumps({**page(1), "title": "Opening hours", "date": 1700000000})),
        ("appsearch", "application/octet-stream",
         json.dumps({"results": [{n: {"raw": v} for n, v in {**page(1), "title": "Opening hours"}.items()}]})),
    ],
)  # fmt: skip
def test_import_accepts_each_format(tenant: Tenant, form: str, kind: str, text: str | bytes) -> None:
    response = send(tenant, text, form, kind)

    assert response.get_json()["indexed"] == 1
    assert tenant.find("opening")["estimatedTotalHits"] == 1


def test_column_mapping_renames_and_drops_columns(tenant: Tenant) -> None:
    text = "Nr,Headline,Text,Link,Notes\n1,Opening hours,Nine.,/hours,secret\n"

    response = send(tenant, text, map="id=Nr,title=Headline,content=Text,url=Link,=Notes")

    assert response.get_json()["indexed"] == 1
    (hit,) = tenant.find("nine")["hits"]
    assert "Notes" not in hit


def test_invalid_lines_are_reported_and_skipped(tenant: Tenant) -> None:
    lines = [
        json.dumps(page(1)),
        "{broken",
        json.dumps({"id": "x", "title": 7, "content": "", "url": "ftp://x"}),
        "[]",
        json.dumps(page(2)),
    ]

    response = send(tenant, "\n".join(lines), "jsonl", "application/x-ndjson")

    assert response.status_code == 200
    answer = response.get_json()
    assert (answer["indexed"], answer["skipped"]) == (2, 3)
    assert answer["problems"][1:] == [
        {"line": 3, "field": "url", "code": "invalid_url",
         "message": "url must be an http or https URL, or a path that starts with one /"},
        {"line": 4, "field": None, "code": "type", "message": "document must be a JSON object"},
    ]  # fmt: skip
    assert (answer["problems"][0]["line"], answer["problems"][0]["code"]) == (2, "invalid_json")
    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2"]


def test_invalid_records_of_a_one_line_array_are_reported_by_number(tenant: Tenant) -> None:
    records = [page(1), {"id": "x", "title": "X", "content": "", "url": "ftp://x"}, page(2), 7]

    answer = send(tenant, json.dumps(records), "jsonl", "application/json").get_json()

    assert (answer["indexed"], answer["skipped"]) == (2, 2)
    assert answer["problems"] == [
        {"line": 1, "record": 2, "field": "url", "code": "invalid_url",
         "message": "url must be an http or https URL, or a path that starts with one /"},
        {"line": 1, "record": 4, "field": None, "code": "type", "message": "document must be a JSON object"},
    ]  # fmt: skip


def test_reported_problems_are_limited_to_100(tenant: Tenant) -> None:
    answer = send(tenant, "{}\n" * 40 + json.dumps(page(1)), "jsonl", "application/x-ndjson").get_json()

    assert (answer["indexed"], answer["skipped"], len(answer["problems"])) == (1, 40, 100)


def test_last_record_with_the_same_id_wins(tenant: Tenant) -> None:
    text = "id,title,content,url\n1,First,x,/\n1,Second,x,/\n"

    assert send(tenant, text).get_json()["indexed"] == 1
    assert tenant.find("x")["hits"][0]["title"] == "Second"


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ({"form": None}, "format", "required"),
        ({"form": "excel"}, "format", "invalid_choice"),
        ({"map": "title"}, "map", "invalid"),
        ({"map": "title=Nothing"}, "map", "unknown_column"),
        ({"text": "id,title\n1,x\n"}, "file", "required"),
        ({"text": ""}, "file", "required"),
        ({"text": "<html>", "form": "wxr"}, "file", "invalid_xml"),
    ],
)
def test_unreadable_import_returns_400_and_indexes_nothing(
    tenant: Tenant, query: dict[str, Any], field: str, code: str
) -> None:
    response = send(tenant, **{"text": CSV, **query})

    error = assert_error(response, 400, "validation_failed")
    assert [(detail["field"], detail["code"]) for detail in error["details"]] == [(field, code)]
    assert tenant.site_id
    assert tenant.find("*")["estimatedTotalHits"] == 0


@pytest.mark.parametrize(
    "kind", ["", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "image/png"]
)
def test_unsupported_content_type_returns_415(tenant: Tenant, kind: str) -> None:
    error = assert_error(send(tenant, CSV, kind=kind), 415, "unsupported_media_type")

    assert "text/csv" in error["message"]


def test_import_requires_permission_and_an_active_site(tenant: Tenant, app: Flask) -> None:
    path = f"/api/sites/{tenant.site_id}/import?format=csv"
    headers = {"Content-Type": "text/csv"}

    assert_error(
        tenant.private.post("/api/sites/999/import?format=csv", data=CSV, headers=headers), 404, "site_not_found"
    )
    assert_error(ApiClient(app).post(path, data=CSV, headers=headers), 401, "missing_api_key")
    assert_error(tenant.search.post(path, data=CSV, headers=headers), 403, "insufficient_permission")
    assert tenant.browser.post(path, data=CSV, headers=headers).status_code == 200
    assert_error(tenant.browser.client.post(path, data=CSV, headers=headers), 403, "csrf_failed")
    tenant.private.put(f"/sites/{tenant.site_id}", json={"active": False})
    assert_error(tenant.private.post(path, data=CSV, headers=headers), 403, "site_inactive")


def test_import_over_the_document_limit_reports_how_many_were_indexed(tenant: Tenant) -> None:
    tenant.set_plan("free", documents=1500)
    lines = "\n".join(json.dumps(page(number)) for number in range(2500))

    response = send(tenant, lines, "jsonl", "application/x-ndjson")

    error = assert_error(response, 403, "document_limit_reached")
    assert error["message"] == (
        "The plan allows 1,500 documents; the account has 1,000, and this batch adds 1,000 new documents. None of the "
        "batch was indexed. Before that, 1,000 documents of the file were indexed; importing the file again replaces "
        "them."
    )
    assert tenant.find("*")["estimatedTotalHits"] == 1000


def test_import_is_aborted_after_too_many_invalid_lines(tenant: Tenant) -> None:
    text = json.dumps(page(1)) + "\n" + "5\n" * (imports.MAX_SKIPPED_LINES + 1)

    error = assert_error(send(tenant, text, "jsonl", "text/plain"), 400, "validation_failed")

    assert error["message"] == (
        "More than 10,000 lines cannot be imported; check the format. The first one is line 2: document must be a JSON "
        "object."
    )


def test_import_file_may_be_as_large_as_a_bulk_request(tenant: Tenant) -> None:
    limit = tenant.app.config["BODY_LIMITS"]["imports.import_file"]
    assert limit == tenant.app.config["BODY_LIMITS"]["documents.index_documents"]

    assert send(tenant, b"x" * (2 * 1024 * 1024), "jsonl", "text/plain").status_code == 200
    assert_error(send(tenant, b"x" * (limit + 1), "jsonl", "text/plain"), 413, "payload_too_large")


def test_import_counts_as_indexing_and_not_as_a_search(tenant: Tenant) -> None:
    send(tenant, CSV)

    usage = tenant.private.get("/dashboard").get_json()["usage"]
    assert usage["indexing_operations_this_month"] == 2
    assert tenant.public.get("/v1/client-info").get_json()["limits"]["used_today"] == 0


def test_engine_outage_during_an_import_reports_how_many_were_indexed(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = tenant.app.extensions["runtime"].writer
    put = writer.put
    outcomes = iter((put, None))

    def put_once(*args: Any) -> Any:
        if (found := next(outcomes)) is None:
            raise BackendUnavailable("away", retry_after=7)
        return found(*args)

    monkeypatch.setattr(writer, "put", put_once)
    lines = "\n".join(json.dumps(page(number)) for number in range(1200))

    error = assert_error(send(tenant, lines, "jsonl", "text/plain"), 503, "search_engine_unavailable")

    assert error["retry_after"] == 7
    assert error["message"].endswith(
        "Before that, 1,000 documents of the file were indexed; importing the file again replaces them."
    )


OCTETS = "application/octet-stream"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("body", "kind", "title"),
    [
        (docx(w_p("Boats leave at ten."), {"dc:title": "Harbor"}), OCTETS, "Harbor"),
        (docx(w_p("Boats leave at ten."), {"dc:title": "Harbor"}), WORD, "Harbor"),
        (pdf("Boats leave at ten.", title="Harbor"), OCTETS, "Harbor"),
        (pdf("Boats leave at ten.", title="Harbor"), "application/pdf", "Harbor"),
        ("# Way\n\nBoats leave at ten.", "text/markdown", "Way"),
        ("<title>Harbor</title><p>Boats leave at ten.", "text/html", "Harbor"),
    ],
)
def test_single_page_file_becomes_the_document_of_its_url(
    tenant: Tenant, body: str | bytes, kind: str, title: str
) -> None:
    address = "https://www.example.com/files/boats"

    answers = [send(tenant, body, "file", kind, url=f"{address}?utm_source=x#top").get_json() for _ in range(2)]

    assert [(answer["created"], answer["updated"]) for answer in answers] == [(1, 0), (0, 1)]
    (hit,) = tenant.find("ten")["hits"]
    assert (hit["id"], hit["url"], hit["title"]) == (address, address, title)


def test_single_page_file_keeps_author_and_date_and_accepts_a_path(tenant: Tenant) -> None:
    properties = {"dc:creator": "Ann", "dcterms:modified": "2024-05-01T09:30:00Z"}

    send(tenant, docx(w_p("Boats"), properties), "file", OCTETS, url="/files/a%20b.docx")

    (hit,) = tenant.find("boats")["hits"]
    site = tenant.private.get(f"/sites/{tenant.site_id}").get_json()["site"]["url"].rstrip("/")
    assert (hit["title"], hit["author"], hit["date"]) == ("a b.docx", "Ann", "2024-05-01T09:30:00+00:00")
    assert hit["url"] == f"{site}/files/a%20b.docx"


@pytest.mark.parametrize(
    ("body", "url", "field", "code"),
    [
        (docx(w_p("Boats")), "", "url", "required"),
        (docx(w_p("Boats")), "ftp://example.com/a", "url", "invalid_url"),
        (docx(w_p("Boats"))[:-30], "/a.docx", "file", "not_text"),
        (b"PK\3\4" + b"\0" * 100, "/a.zip", "file", "not_text"),
        (docx(""), "/a.docx", "file", "empty"),
        (xlsx({}), "/a.xlsx", "file", "empty"),
        (b"a" * (10 * 1_048_576 + 1), "/a.txt", "file", "too_large"),
        (b'<meta name="robots" content="noindex"><p>Boats', "/a.html", "file", "noindex"),
    ],
)
def test_single_page_file_without_usable_text_returns_400_with_the_reason(
    tenant: Tenant, body: bytes, url: str, field: str, code: str
) -> None:
    error = assert_error(send(tenant, body, "file", OCTETS, url=url), 400, "validation_failed")

    assert [(detail["field"], detail["code"]) for detail in error["details"]] == [(field, code)]
    assert tenant.find("*")["estimatedTotalHits"] == 0


def test_page_uploads_and_previews_share_a_limit_per_minute(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "READ_PAGES_LIMIT", 2)
    preview = f"/api/sites/{tenant.site_id}/sources/preview"
    elsewhere = {"url": "https://elsewhere.example/"}

    assert send(tenant, b"a" * (10 * 1_048_576 + 1), "file", OCTETS, url="/a.txt").status_code == 400
    assert_error(tenant.private.post(preview, json=elsewhere), 400, "validation_failed")

    assert_error(send(tenant, "<p>Boats", "file", "text/html", url="/a.html"), 429, "rate_limit_exceeded")
    assert_error(tenant.private.post(preview, json=elsewhere), 429, "rate_limit_exceeded")
    assert send(tenant, CSV, "csv", "text/csv").status_code == 200


def test_page_content_types_are_accepted_only_for_single_page_files(tenant: Tenant) -> None:
    assert_error(send(tenant, CSV, "csv", "application/pdf"), 415, "unsupported_media_type")
    assert_error(send(tenant, b"GIF89a", "file", "image/gif", url="/a.gif"), 415, "unsupported_media_type")
