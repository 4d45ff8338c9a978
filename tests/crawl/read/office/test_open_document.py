"""Reads OpenDocument texts, presentations, and spreadsheets."""

from __future__ import annotations

import pytest

from app.crawl.read.office.office_files import read_office_file
from tests.crawl.read.office.builders import open_document


def read(body: str, kind: str = "text") -> str:
    [text] = read_office_file(open_document(kind, body)).pages
    return text


def cells(*texts: str) -> str:
    listed = "".join(f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in texts)
    return f"<table:table-row>{listed}</table:table-row>"


def test_odt_paragraphs_are_lines_and_headings_are_separate_blocks() -> None:
    body = "<text:h>Harbor</text:h><text:p>Boats <text:span>leave</text:span>.</text:p>\n<text:p>At ten.</text:p>"

    assert read(body) == "Harbor\n\nBoats leave.\nAt ten."
    assert read_office_file(open_document("text", body)).title == "Harbor"


def test_odt_spaces_tabs_and_breaks_are_normalized() -> None:
    assert read('<text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d\n  e</text:p>') == "a b c\nd e"


def test_odt_lists_and_tables_are_separate_blocks() -> None:
    items = "<text:list><text:list-item><text:p>a</text:p></text:list-item></text:list>"
    table = f'<table:table table:name="Table1">{cells("b", "c")}{cells("d", "")}</table:table>'

    assert read(f"{items}{table}<text:p>e</text:p>") == "a\n\nb\tc\nd\n\ne"


@pytest.mark.parametrize(
    "unread",
    [
        "<text:tracked-changes><text:p>x</text:p></text:tracked-changes>",
        "<office:annotation><text:p>x</text:p></office:annotation>",
        "<text:note><text:note-citation>1</text:note-citation></text:note>",
    ],
)
def test_odt_tracked_changes_comments_and_citations_are_not_read(unread: str) -> None:
    assert read(f"<text:p>a{unread}b</text:p>") == "ab"


def test_odt_footnote_is_read_where_it_is_anchored() -> None:
    note = "<text:note><text:note-body><text:p>Note</text:p></text:note-body></text:note>"

    assert read(f"<text:p>a{note}b</text:p>") == "a\nNote\nb"


def test_odp_slides_are_pages_without_speaker_notes() -> None:
    title = '<draw:frame presentation:class="title"><draw:text-box><text:p>Harbor</text:p></draw:text-box></draw:frame>'
    box = "<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    notes = f"<presentation:notes>{box.format('secret')}</presentation:notes>"
    slides = [title + box.format("Boats") + notes, "", box.format("Way")]
    read = read_office_file(
        open_document("presentation", "".join(f"<draw:page>{slide}</draw:page>" for slide in slides))
    )

    assert (read.pages, read.title) == (["Harbor\n\nBoats", "", "Way"], "Harbor")


def test_ods_sheets_start_with_their_names() -> None:
    sheets = [f'<table:table table:name="{name}">{cells("a", "b")}</table:table>' for name in ("Tides", "Fish")]

    assert read("".join(sheets), "spreadsheet") == "Tides\na\tb\n\nFish\na\tb"
