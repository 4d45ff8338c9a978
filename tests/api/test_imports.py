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
from tests.answers import assert_error
from tests.callers import ApiClient, Tenant, page
from tests.crawl.read.office.builders import docx, w_p, xlsx
from tests.crawl.read.samples import pdf
from tests.importers.exports import wxr, wxr_item

CSV = "id,title,content,url,price\n1,Opening hours,We open at nine.,/hours,5\n2,Getting here,By tram.,/way,\n"


def send(
    tenant: Tenant, text: str | bytes, form: str | None = "csv", kind: str = "text/csv", **query: Any
) -> TestResponse:
    path = f"/api/sites/{tenant.site_id}/import"
    named = query if form is None else {"format": form, **query}
    return tenant.private.post(path, data=text, query_string=named, headers={"Content-Type": kind})


def test_the_formats_of_the_api_are_those_that_can_be_read() -> None:
    assert tuple(FORMATS) == (*formats.FORMATS, imports.ONE_PAGE)


def test_a_file_is_indexed_and_found(tenant: Tenant) -> None:
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
def test_each_format_is_taken(tenant: Tenant, form: str, kind: str, text: str | bytes) -> None:
    response = send(tenant, text, form, kind)

    assert response.get_json()["indexed"] == 1
    assert tenant.find("opening")["estimatedTotalHits"] == 1


def test_columns_are_mapped(tenant: Tenant) -> None:
    text = "Nr,Headline,Text,Link,Notes\n1,Opening hours,Nine.,/hours,secret\n"

    response = send(tenant, text, map="id=Nr,title=Headline,content=Text,url=Link,=Notes")

    assert response.get_json()["indexed"] == 1
    (hit,) = tenant.find("nine")["hits"]
    assert "Notes" not in hit


def test_bad_lines_are_named_and_left_out(tenant: Tenant) -> None:
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


def test_bad_records_of_an_array_on_one_line_are_named_by_their_numbers(tenant: Tenant) -> None:
    records = [page(1), {"id": "x", "title": "X", "content": "", "url": "ftp://x"}, page(2), 7]

    answer = send(tenant, json.dumps(records), "jsonl", "application/json").get_json()

    assert (answer["indexed"], answer["skipped"]) == (2, 2)
    assert answer["problems"] == [
        {"line": 1, "record": 2, "field": "url", "code": "invalid_url",
         "message": "url must be an http or https URL, or a path that starts with one /"},
        {"line": 1, "record": 4, "field": None, "code": "type", "message": "document must be a JSON object"},
    ]  # fmt: skip


def test_as_many_problems_are_listed_as_an_answer_holds(tenant: Tenant) -> None:
    answer = send(tenant, "{}\n" * 40 + json.dumps(page(1)), "jsonl", "application/x-ndjson").get_json()

    assert (answer["indexed"], answer["skipped"], len(answer["problems"])) == (1, 40, 100)


def test_of_an_id_that_is_there_twice_the_last_one_counts(tenant: Tenant) -> None:
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
def test_what_cannot_be_read_at_all_is_told(tenant: Tenant, query: dict[str, Any], field: str, code: str) -> None:
    response = send(tenant, **{"text": CSV, **query})

    error = assert_error(response, 400, "validation_failed")
    assert [(detail["field"], detail["code"]) for detail in error["details"]] == [(field, code)]
    assert tenant.site_id
    assert tenant.find("*")["estimatedTotalHits"] == 0


@pytest.mark.parametrize(
    "kind", ["", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "image/png"]
)
def test_a_file_says_what_it_is(tenant: Tenant, kind: str) -> None:
    error = assert_error(send(tenant, CSV, kind=kind), 415, "unsupported_media_type")

    assert "text/csv" in error["message"]


def test_the_site_is_the_callers_own_and_active(tenant: Tenant, app: Flask) -> None:
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


def test_what_was_indexed_before_the_plan_was_full_is_told(tenant: Tenant) -> None:
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


def test_a_file_of_bad_lines_is_given_up(tenant: Tenant) -> None:
    text = json.dumps(page(1)) + "\n" + "5\n" * (imports.MAX_SKIPPED_LINES + 1)

    error = assert_error(send(tenant, text, "jsonl", "text/plain"), 400, "validation_failed")

    assert error["message"] == (
        "More than 10,000 lines cannot be imported; check the format. The first one is line 2: document must be a JSON "
        "object."
    )


def test_a_file_may_be_as_large_as_a_batch(tenant: Tenant) -> None:
    limit = tenant.app.config["BODY_LIMITS"]["imports.import_file"]
    assert limit == tenant.app.config["BODY_LIMITS"]["documents.index_documents"]

    assert send(tenant, b"x" * (2 * 1024 * 1024), "jsonl", "text/plain").status_code == 200
    assert_error(send(tenant, b"x" * (limit + 1), "jsonl", "text/plain"), 413, "payload_too_large")


def test_an_import_counts_as_indexing_and_as_no_search(tenant: Tenant) -> None:
    send(tenant, CSV)

    usage = tenant.private.get("/dashboard").get_json()["usage"]
    assert usage["indexing_operations_this_month"] == 2
    assert tenant.public.get("/v1/client-info").get_json()["limits"]["used_today"] == 0


def test_an_engine_that_goes_away_half_way_is_told_with_what_was_indexed(
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
        ("# Way\n\nBoats leave at ten.", "text/markdown", "boats"),
        ("<title>Harbor</title><p>Boats leave at ten.", "text/html", "Harbor"),
    ],
)
def test_a_file_that_is_one_page_becomes_the_document_of_its_address(
    tenant: Tenant, body: str | bytes, kind: str, title: str
) -> None:
    address = "https://www.example.com/files/boats"

    answers = [send(tenant, body, "file", kind, url=f"{address}?utm_source=x#top").get_json() for _ in range(2)]

    assert [(answer["created"], answer["updated"]) for answer in answers] == [(1, 0), (0, 1)]
    (hit,) = tenant.find("ten")["hits"]
    assert (hit["id"], hit["url"], hit["title"]) == (address, address, title)


def test_a_file_that_is_one_page_brings_its_author_and_date_and_may_be_at_a_path(tenant: Tenant) -> None:
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
def test_a_file_that_gives_no_page_says_why(tenant: Tenant, body: bytes, url: str, field: str, code: str) -> None:
    error = assert_error(send(tenant, body, "file", OCTETS, url=url), 400, "validation_failed")

    assert [(detail["field"], detail["code"]) for detail in error["details"]] == [(field, code)]
    assert tenant.find("*")["estimatedTotalHits"] == 0


def test_pages_that_are_sent_or_previewed_are_limited_per_minute(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "READ_PAGES_LIMIT", 2)
    preview = f"/api/sites/{tenant.site_id}/sources/preview"
    elsewhere = {"url": "https://elsewhere.example/"}

    assert send(tenant, b"a" * (10 * 1_048_576 + 1), "file", OCTETS, url="/a.txt").status_code == 400
    assert_error(tenant.private.post(preview, json=elsewhere), 400, "validation_failed")

    assert_error(send(tenant, "<p>Boats", "file", "text/html", url="/a.html"), 429, "rate_limit_exceeded")
    assert_error(tenant.private.post(preview, json=elsewhere), 429, "rate_limit_exceeded")
    assert send(tenant, CSV, "csv", "text/csv").status_code == 200


def test_the_types_of_pages_are_those_of_one_page_alone(tenant: Tenant) -> None:
    assert_error(send(tenant, CSV, "csv", "application/pdf"), 415, "unsupported_media_type")
    assert_error(send(tenant, b"GIF89a", "file", "image/gif", url="/a.gif"), 415, "unsupported_media_type")
