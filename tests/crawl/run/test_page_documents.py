"""Pages become documents within the documents' limits."""

from __future__ import annotations

import pytest

from app.crawl.fetch.values import Page
from app.crawl.run.page_documents import clean_title, document_id, make_document, retitle, without_fields
from backends.sections import Section
from schemas.validation.documents import MAX_CUSTOM_FIELDS, MAX_DOCUMENT_BYTES, MAX_ID_LENGTH

ADDRESS = "https://example.com/a"


def test_document_id_is_the_id_that_the_page_declares_or_its_url() -> None:
    assert document_id(Page("T", "C", id="mine"), ADDRESS) == "mine"
    assert document_id(Page("T", "C"), ADDRESS) == ADDRESS
    assert document_id(Page("T", "C", id="x" * (MAX_ID_LENGTH + 1)), ADDRESS) == ADDRESS


def test_long_urls_get_distinct_ids() -> None:
    long = [f"https://example.com/{'a' * 600}{end}" for end in "xy"]
    ids = {document_id(Page("T", "C"), address) for address in long}

    assert len(ids) == 2
    assert {len(identifier) for identifier in ids} == {MAX_ID_LENGTH}


def test_page_sections_become_document_sections() -> None:
    page = Page("T", "One\n\nTwo", sections=(Section("a", "One", 2, 0), Section("b", "Two\ud800", 2, 5)))

    assert make_document(page, ADDRESS, "T").fields["sections"] == [
        {"anchor": "a", "title": "One", "level": 2, "start": 0},
        {"anchor": "b", "title": "Two", "level": 2, "start": 5},
    ]


def test_sections_beyond_the_cut_text_are_dropped() -> None:
    text = '"' * MAX_DOCUMENT_BYTES
    page = Page("T", text, sections=(Section("a", "One", 2, 0), Section("b", "Two", 2, len(text))))

    document = make_document(page, ADDRESS, "T").fields

    assert len(document["content"]) < len(text)
    assert [section["anchor"] for section in document["sections"]] == ["a"]


def test_document_contains_the_pages_text_metadata_and_fields() -> None:
    page = Page(
        "Title | Site",
        "Text",
        excerpt="Summary",
        author="Ann",
        date="2025-01-02",
        lang="de",
        fields={"section": "News"},
    )

    assert make_document(page, ADDRESS, "Title").fields == {
        "id": ADDRESS, "title": "Title", "content": "Text", "url": ADDRESS, "excerpt": "Summary", "author": "Ann",
        "date": "2025-01-02", "section": "News", "lang": "de",
    }  # fmt: skip


def test_only_invalid_fields_are_dropped() -> None:
    page = Page(
        "T", "C", date="yesterday", author="Ann", fields={"no name": "x", "section": "News", "nested": {"a": 1}}
    )

    assert make_document(page, ADDRESS, "T").fields == {
        "id": ADDRESS, "title": "T", "content": "C", "url": ADDRESS, "author": "Ann", "section": "News",
    }  # fmt: skip


def test_retitling_a_document_with_invalid_sections_drops_only_the_sections() -> None:
    stored = {"id": "a", "title": "A", "content": "Text", "url": "/a", "sections": "here"}
    assert retitle(stored, "B").fields == {"id": "a", "title": "B", "content": "Text", "url": "/a"}


def test_fields_beyond_the_limit_are_dropped() -> None:
    page = Page("T", "C", fields={f"f{number}": "x" for number in range(MAX_CUSTOM_FIELDS + 5)})

    assert len(make_document(page, ADDRESS, "T").kinds) == MAX_CUSTOM_FIELDS


@pytest.mark.parametrize("text", ["word " * 400_000, '"' * 1_048_570, "\n\\" * 500_000, "\N{SNOWMAN}" * 400_000])
def test_text_is_cut_to_the_maximum_document_size(text: str) -> None:
    document = make_document(Page("T", text), ADDRESS, "T")

    assert len(document.body) <= MAX_DOCUMENT_BYTES
    assert text.startswith(document.fields["content"])


def test_null_characters_and_surrogates_are_removed() -> None:
    document = make_document(
        Page("A\0B\ud800", "C\0D", fields={"list": ["a\0", "b"]}), ADDRESS, clean_title("A\0B\ud800")
    )

    assert (document.fields["title"], document.fields["content"]) == ("AB", "CD")
    assert document.fields["list"] == ["a", "b"]


def test_retitling_changes_only_the_title() -> None:
    document = make_document(Page("T | Site", "C", fields={"section": "News"}), ADDRESS, "T | Site")

    assert retitle(document.fields, "T").fields == {**document.fields, "title": "T"}


def test_only_allowed_fields_stay_in_the_document() -> None:
    document = make_document(Page("T", "C", fields={"a": "1", "b": "2"}), ADDRESS, "T")

    assert without_fields(document, {"b"}).kinds.keys() == {"b"}
