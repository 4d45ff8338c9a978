"""The document that a page becomes, within the bounds of documents."""

from __future__ import annotations

import pytest

from app.crawl.fetch.values import Page
from app.crawl.run.page_documents import clean_title, document_id, make_document, retitle, without_fields
from backends.sections import Section
from schemas.validation.documents import MAX_DOCUMENT_BYTES, MAX_FURTHER_FIELDS, MAX_ID_LENGTH

ADDRESS = "https://example.com/a"


def test_a_page_is_known_by_its_own_id_or_its_address() -> None:
    assert document_id(Page("T", "C", id="mine"), ADDRESS) == "mine"
    assert document_id(Page("T", "C"), ADDRESS) == ADDRESS
    assert document_id(Page("T", "C", id="x" * (MAX_ID_LENGTH + 1)), ADDRESS) == ADDRESS


def test_long_addresses_have_ids_of_their_own() -> None:
    long = [f"https://example.com/{'a' * 600}{end}" for end in "xy"]
    ids = {document_id(Page("T", "C"), address) for address in long}

    assert len(ids) == 2
    assert {len(identifier) for identifier in ids} == {MAX_ID_LENGTH}


def test_sections_of_a_page_are_those_of_its_document() -> None:
    page = Page("T", "One\n\nTwo", sections=(Section("a", "One", 2, 0), Section("b", "Two\ud800", 2, 5)))

    assert make_document(page, ADDRESS, "T").fields["sections"] == [
        {"anchor": "a", "title": "One", "level": 2, "start": 0},
        {"anchor": "b", "title": "Two", "level": 2, "start": 5},
    ]


def test_sections_beyond_what_is_kept_of_a_text_are_left_out() -> None:
    text = '"' * MAX_DOCUMENT_BYTES
    page = Page("T", text, sections=(Section("a", "One", 2, 0), Section("b", "Two", 2, len(text))))

    document = make_document(page, ADDRESS, "T").fields

    assert len(document["content"]) < len(text)
    assert [section["anchor"] for section in document["sections"]] == ["a"]


def test_a_document_holds_what_its_page_says() -> None:
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


def test_a_field_that_is_not_valid_is_left_out_alone() -> None:
    page = Page(
        "T", "C", date="yesterday", author="Ann", fields={"no name": "x", "section": "News", "nested": {"a": 1}}
    )

    assert make_document(page, ADDRESS, "T").fields == {
        "id": ADDRESS, "title": "T", "content": "C", "url": ADDRESS, "author": "Ann", "section": "News",
    }  # fmt: skip


def test_a_stored_document_whose_sections_were_taken_before_they_were_checked_keeps_its_text() -> None:
    stored = {"id": "a", "title": "A", "content": "Text", "url": "/a", "sections": "here"}
    assert retitle(stored, "B").fields == {"id": "a", "title": "B", "content": "Text", "url": "/a"}


def test_more_fields_than_a_document_may_have_are_left_out() -> None:
    page = Page("T", "C", fields={f"f{number}": "x" for number in range(MAX_FURTHER_FIELDS + 5)})

    assert len(make_document(page, ADDRESS, "T").kinds) == MAX_FURTHER_FIELDS


@pytest.mark.parametrize("text", ["word " * 400_000, '"' * 1_048_570, "\n\\" * 500_000, "\N{SNOWMAN}" * 400_000])
def test_text_is_cut_so_that_the_document_is_as_large_as_it_may_be(text: str) -> None:
    document = make_document(Page("T", text), ADDRESS, "T")

    assert len(document.body) <= MAX_DOCUMENT_BYTES
    assert text.startswith(document.fields["content"])


def test_what_cannot_be_stored_is_taken_out() -> None:
    document = make_document(
        Page("A\0B\ud800", "C\0D", fields={"list": ["a\0", "b"]}), ADDRESS, clean_title("A\0B\ud800")
    )

    assert (document.fields["title"], document.fields["content"]) == ("AB", "CD")
    assert document.fields["list"] == ["a", "b"]


def test_a_title_changes_alone() -> None:
    document = make_document(Page("T | Site", "C", fields={"section": "News"}), ADDRESS, "T | Site")

    assert retitle(document.fields, "T").fields == {**document.fields, "title": "T"}


def test_fields_that_the_site_has_no_room_for_are_left_out() -> None:
    document = make_document(Page("T", "C", fields={"a": "1", "b": "2"}), ADDRESS, "T")

    assert without_fields(document, {"b"}).kinds.keys() == {"b"}
