"""The import formats, with files as each system writes them."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from app.documentation import documentation_files
from app.importers import formats
from app.importers.fields import ColumnMap
from app.importers.formats import FORMATS, JsonFormat, guess_format, read_file
from app.importers.records import Record
from schemas.imports import FORMATS as LABELS
from schemas.validation.documents import read_document
from tests.importers.exports import wxr, wxr_item

PAGE = {"id": "1", "title": "Title", "content": "Text", "url": "/1"}

ALGOLIA = {
    "objectID": "1", "title": "Title", "content": "Text", "url": "/1", "date": 1700000000, "_tags": ["x"],
    "_geoloc": {"lat": 48.1, "lng": 11.5}, "prices": {"eur": 5}, "author": None,
    "_highlightResult": {"title": {"value": "Title", "matchLevel": "none", "matchedWords": []}},
    "_snippetResult": {}, "_rankingInfo": {"nbTypos": 0}, "_distinctSeqID": 0,
}  # fmt: skip
ALGOLIA_READ = {
    **PAGE, "date": "2023-11-14T22:13:20Z", "tags": ["x"], "geoloc_lat": 48.1, "geoloc_lng": 11.5, "prices_eur": 5,
}  # fmt: skip
DOCSEARCH = {
    "version": "1.0", "tags": [], "url": "/1#on-linux", "url_without_anchor": "/1", "content": None, "type": "lvl2",
    "hierarchy": {"lvl0": "Guide", "lvl1": "Install", "lvl2": "On Linux", "lvl3": None}, "anchor": "on-linux",
    "hierarchy_radio": {"lvl2": "On Linux"}, "weight": {"pageRank": 0, "level": 70, "position": 3}, "objectID": "g-1",
}  # fmt: skip
MEILISEARCH = {**PAGE, "id": 1, "_geo": {"lat": 1, "lng": 2}, "_vectors": {"default": [0.1, 0.2]}, "genres": ["a", "b"]}
TYPESENSE = {**PAGE, "date": 1700000000, "location": [48.1, 11.5], "author.name": "Ann", "ratings": [5, 4]}
APPSEARCH = {
    name: {"raw": value, "snippet": None} for name, value in {**PAGE, "tags": ["x"], "author": None}.items()
} | {"_meta": {"id": "1", "engine": "pages", "score": 1.5}}
CRAWLED = {
    "id": "1", "title": "Title", "body_content": "Text", "url": "/1", "meta_description": "Short",
    "headings": ["A", "B"], "last_crawled_at": "2023-11-14T22:13:20Z", "url_path_dir1": "1",
}  # fmt: skip

EXPORTS: list[tuple[str, Any, dict[str, Any]]] = [
    ("algolia", [ALGOLIA], ALGOLIA_READ),
    ("algolia", {"hits": [ALGOLIA], "cursor": "abc", "nbHits": 1}, ALGOLIA_READ),
    ("algolia", DOCSEARCH, {
        "id": "g-1", "url": "/1#on-linux", "title": "Install › On Linux", "content": "", "version": "1.0",
        "type": "lvl2", "url_without_anchor": "/1", "anchor": "on-linux",
        "hierarchy_lvl0": "Guide", "hierarchy_lvl1": "Install",
        "hierarchy_lvl2": "On Linux", "hierarchy_radio_lvl2": "On Linux", "weight_pageRank": 0, "weight_level": 70,
        "weight_position": 3,
    }),
    ("meilisearch", {"results": [MEILISEARCH], "offset": 0, "limit": 20, "total": 1},
     {**PAGE, "geo_lat": 1, "geo_lng": 2, "genres": ["a", "b"]}),
    ("meilisearch", [{**PAGE, "id": None, "objectID": "1"}], PAGE),
    ("typesense", TYPESENSE,
     {**PAGE, "date": "2023-11-14T22:13:20Z", "location": [48.1, 11.5], "author_name": "Ann", "ratings": [5, 4]}),
    ("appsearch", {"meta": {"page": {"size": 1}, "alerts": []}, "results": [APPSEARCH]}, {**PAGE, "tags": ["x"]}),
    ("appsearch", CRAWLED, {
        **PAGE, "excerpt": "Short", "headings": ["A", "B"], "last_crawled_at": "2023-11-14T22:13:20Z",
        "url_path_dir1": "1",
    }),
    ("jsonl", {**PAGE, "_source": "api", "_updated_at": "2024-05-01T00:00:00.000Z"}, PAGE),
    ("jsonl", {"documents": [PAGE], "total": 1, "next_cursor": None}, PAGE),
]  # fmt: skip


def read(text: bytes, name: str, **columns: str) -> list[dict[str, Any]]:
    """Return the validated documents of a file."""
    reads = read_file(BytesIO(text), name, ColumnMap(columns))
    return [read_document(found.value).fields for found in reads if isinstance(found, Record)]


@pytest.mark.parametrize(("name", "export", "document"), EXPORTS)
@pytest.mark.parametrize("indent", [None, 2])
def test_export_of_each_system_is_read(name: str, export: Any, document: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(export, indent=indent).encode()

    assert read(text, name) == [document]
    assert read(text + b"\n" + text, name) == [document] * 2


def test_format_converts_its_html_columns_and_skips_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    blog = JsonFormat(aliases={"content": ("html",)}, html=("html",), rows={"status": "published"})
    monkeypatch.setitem(formats._JSON_FORMATS, "blog", blog)
    post = {"id": "1", "title": "Title", "url": "/1", "html": "<p>Tea &amp; <b>cake</b></p>", "status": "published"}
    export = [post, {**post, "id": "2", "status": "draft"}, {**post, "id": "3", "html": None}, {"db": []}]

    reads = read_file(BytesIO(json.dumps(export).encode()), "blog", ColumnMap())
    first, third, unknown = [found.value for found in reads if isinstance(found, Record)]

    assert first == {**PAGE, "content": "Tea & cake", "status": "published"}
    assert (third["id"], "content" in third) == ("3", False)
    assert unknown == {}, "the validator reports it"


@pytest.mark.parametrize("name", LABELS)
def test_every_format_has_a_row_in_the_documentation(name: str) -> None:
    assert f"\n| `{name}` | " in documentation_files()["import"].read_text(encoding="utf-8")


def test_wordpress_export_is_read_with_mapped_columns() -> None:
    (document,) = read(wxr(wxr_item(7, "Title")), "wxr", id="post_id")

    assert (document["id"], document["title"], document["type"]) == ("7", "Title", "page")
    assert "post_id" not in document


def test_csv_file_is_read_with_mapped_columns() -> None:
    text = b"Nr,Headline,Content,URL,Date,Price\n1,Title,Text,/1,1700000000,5\n"

    assert read(text, "csv", id="Nr", title="Headline") == [{**PAGE, "date": "2023-11-14T22:13:20Z", "Price": 5}]


def test_records_that_are_not_objects_are_left_to_the_validator() -> None:
    assert list(read_file(BytesIO(b'["text", 5]'), "jsonl", ColumnMap())) == [
        Record(1, "text", 1),
        Record(1, 5, 2),
    ]


@pytest.mark.parametrize(
    ("text", "file_name", "name"),
    [
        (b"id,title\n", "pages.csv", "csv"), (b"id,title\n", "PAGES.CSV", "csv"), (b"<rss/>", "export.xml", "wxr"),
        (b"\xef\xbb\xbf <?xml", "export", "wxr"), (b"[{}]", "pages.json", "jsonl"),
        (b"{}", "pages", "jsonl"), (b"", "x", "jsonl"),
    ],
)  # fmt: skip
def test_format_is_guessed_without_consuming_the_file(text: bytes, file_name: str, name: str) -> None:
    stream = BytesIO(text)

    assert guess_format(stream, file_name) == name
    assert name in FORMATS
    assert stream.read() == text
