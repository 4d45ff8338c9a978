"""Office files and e-books are read by their content, within bounds; other files are rejected."""

from __future__ import annotations

import struct
from contextlib import suppress
from io import BytesIO
from zipfile import ZIP_LZMA, ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crawl.fetch.values import NotIndexed
from app.crawl.read.office import streams as bounds
from app.crawl.read.office.office_files import read_office_file
from app.crawl.read.text import MAX_TEXT_BYTES
from tests.crawl.read.office.builders import W, archive, docx, epub, open_document, open_xml, pptx, shape, w_p, xlsx

BOMB_TYPE = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
PROPERTIES = {
    "dc:title": "Harbor",
    "dc:creator": "Ann",
    "dcterms:created": "2023-01-01T00:00:00Z",
    "dcterms:modified": "2024-05-01T09:30:00Z",
}
OPEN_PROPERTIES = (
    "<dc:title>Harbor</dc:title><meta:initial-creator>Ann</meta:initial-creator><dc:creator>Bob</dc:creator>"
    "<meta:creation-date>2023-01-01T00:00:00</meta:creation-date><dc:date>2024-05-01T09:30:00Z</dc:date>"
)
FILES = {
    "docx": docx(w_p("Boats"), PROPERTIES),
    "pptx": pptx(shape("Boats"), properties=PROPERTIES),
    "xlsx": xlsx({"Boats": ""}, properties=PROPERTIES),
    "odt": open_document("text", "<text:p>Boats</text:p>", OPEN_PROPERTIES),
    "odp": open_document("presentation", "<draw:page><text:p>Boats</text:p></draw:page>", OPEN_PROPERTIES),
    "ods": open_document("spreadsheet", '<table:table table:name="Boats"/>', OPEN_PROPERTIES),
    "epub": epub(
        {"c.xhtml": "<p>Boats</p>"},
        "<dc:title>Harbor</dc:title><dc:creator>Ann</dc:creator><dc:date>2024-05-01T09:30:00Z</dc:date>",
    ),
}


def refused(body: bytes) -> str:
    with pytest.raises(NotIndexed) as refusal:
        read_office_file(body)
    return refusal.value.reason


@pytest.mark.parametrize("kind", FILES)
def test_file_format_is_detected_and_title_author_and_date_are_read(kind: str) -> None:
    read = read_office_file(FILES[kind])

    assert (read.kind, read.pages, read.title, read.author) == (kind, ["Boats"], "Harbor", "Ann")
    assert read.date == "2024-05-01T09:30:00+00:00"


def test_default_title_of_a_program_is_ignored() -> None:
    assert read_office_file(pptx(shape("Boats"), properties={"dc:title": "PowerPoint Presentation"})).title == ""


def test_file_without_author_and_valid_date_has_neither() -> None:
    read = read_office_file(docx(w_p("Boats"), {"dcterms:modified": "some day"}))

    assert (read.author, read.date) == (None, None)


EMPTY = {
    "docx": docx(""),
    "pptx": pptx(),
    "xlsx": xlsx({}),
    "odt": open_document("text", ""),
    "odp": open_document("presentation", ""),
    "ods": open_document("spreadsheet", ""),
    "epub": epub({}),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_empty_office_file_has_no_text(kind: str) -> None:
    assert "".join(read_office_file(EMPTY[kind]).pages) == ""


NONE = {
    "nothing": b"",
    "cut off": FILES["docx"][:200],
    "garbage": b"PK\x03\x04" + b"\0" * 1_000,
    "another archive": archive({"a.txt": "Boats"}),
    "no main part": open_xml("word/document.xml", {}),
    "no XML": open_xml("word/document.xml", {"word/document.xml": "Boats"}),
    "cut XML": open_xml("word/document.xml", {"word/document.xml": f"<w:document {W}><w:body>"}),
    "a binary workbook": open_xml("xl/workbook.bin", {"xl/workbook.bin": b"\x83\1\0"}),
    "a drawing": archive({"mimetype": "application/vnd.oasis.opendocument.graphics", "content.xml": "<a/>"}),
    "a book without package": archive({"mimetype": "application/epub+zip"}),
    "an encrypted book": epub({"c 1.xhtml": "<p>Boats"}, encrypted="book/c%201.xhtml"),
    "behind a password": FILES["docx"].replace(b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0"),
    "an old or encrypted file": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 1_000,
    "entities": docx("<w:p><w:r><w:t>&e11;</w:t></w:r></w:p>", head=f'<!DOCTYPE w [<!ENTITY e0 "boom">{BOMB_TYPE}]>'),
    "an outer entity": docx("&e;", head='<!DOCTYPE w [<!ENTITY e SYSTEM "file:///etc/passwd">]>'),
    "an outer type": docx(w_p("Boats"), head='<!DOCTYPE w SYSTEM "http://127.0.0.1/w.dtd">'),
}


@pytest.mark.parametrize("name", NONE)
def test_file_that_is_not_a_readable_office_file_is_rejected(name: str) -> None:
    assert refused(NONE[name]) == "not_text"


def test_unsupported_zip_compression_is_rejected() -> None:
    file = BytesIO()
    with ZipFile(file, "w", ZIP_LZMA) as packed:
        packed.writestr("mimetype", "application/epub+zip")

    assert refused(file.getvalue()) == "not_text"


def test_zip_entry_longer_than_its_declared_size_is_rejected() -> None:
    body = bytearray(archive({"mimetype": b"application/epub+zip", "a": "b" * 100}))
    entry = body.index(b"PK\1\2")
    body[entry + 24 : entry + 28] = struct.pack("<I", 3)

    assert refused(bytes(body)) == "not_text"


def test_zip_bomb_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_UNPACKED_BYTES", 1_000_000)

    assert refused(open_document("text", f"<text:p>{' ' * 1_000_000}</text:p>")) == "too_large"


def test_epub_chapter_longer_than_a_page_is_too_large() -> None:
    assert refused(epub({"c.xhtml": "<p>" + " " * 11_000_000})) == "too_large"


def test_archive_with_too_many_entries_is_too_large() -> None:
    body = FILES["docx"]
    begin, end = body.index(b"PK\1\2"), body.index(b"PK\5\6")
    entries = body[begin:end] * (100_000 // body.count(b"PK\1\2"))
    tail = body[end : end + 12] + struct.pack("<I", len(entries)) + body[end + 16 :]

    assert refused(body[:begin] + entries + tail) == "too_large"
    assert read_office_file(
        body[:begin] + entries[: 2 * (end - begin)] + tail[:12] + struct.pack("<I", 2 * (end - begin)) + tail[16:]
    ).pages == ["Boats"]


def test_file_with_too_many_elements_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_ELEMENTS", 1_000)

    assert refused(docx("<w:p/>" * 1_001)) == "too_large"


def test_very_deeply_nested_elements_are_read() -> None:
    nested = "<w:sdt>" * 100_000 + w_p("Boats") + "</w:sdt>" * 100_000

    assert read_office_file(docx(nested)).pages == ["Boats"]


def test_very_deeply_nested_tables_are_read() -> None:
    nested = "<w:tbl><w:tr><w:tc>" * 30_000 + w_p("Boats") + "</w:tc></w:tr></w:tbl>" * 30_000

    assert read_office_file(docx(nested)).pages == ["Boats"]


def test_office_text_is_cut_at_the_text_limit() -> None:
    cells = f'<row><c t="inlineStr"><is><t>{"harbor " * 100}</t></is></c><c><v>1</v></c></row>' * 5_000
    [text] = read_office_file(xlsx({"Boats": cells})).pages

    assert 0.99 * MAX_TEXT_BYTES < len(text) < 1.01 * MAX_TEXT_BYTES
    assert text.startswith("Boats\nharbor harbor")


def test_repeated_spreadsheet_cells_are_read_once() -> None:
    cell = '<table:table-cell table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'

    assert read_office_file(open_document("spreadsheet", f"<table:table>{row}</table:table>")).pages == ["x"]


@given(st.sampled_from(sorted(FILES)), st.integers(0, 5_000), st.binary(min_size=1, max_size=20))
def test_damaged_office_file_is_read_or_rejected(kind: str, place: int, damage: bytes) -> None:
    body = bytearray(FILES[kind])
    body[place % len(body) : place % len(body) + len(damage)] = damage
    with suppress(NotIndexed):
        read_office_file(bytes(body))
