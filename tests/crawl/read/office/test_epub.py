"""Reads the main text of an e-book's chapters in the book's order."""

from __future__ import annotations

from app.crawl.read.office.office_files import read_office_file
from app.crawl.read.text import MAX_TEXT_BYTES
from tests.crawl.read.office.builders import epub

TYPE = '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://127.0.0.1/xhtml11.dtd">'
CHAPTERS = {
    "text/c%201.xhtml": f"{TYPE}<html><body><nav>Back</nav><h1>Boats</h1><p>F&#228;hre</p></body></html>",
    "text/c2.xhtml": "<html><body><h1>Way</h1></body></html>",
}


def test_epub_chapters_follow_the_spine_without_navigation() -> None:
    spine = '<itemref idref="c1"/><itemref idref="c0"/><itemref idref="c1"/><itemref idref="gone"/>'

    assert read_office_file(epub(CHAPTERS)).pages == ["Boats\n\nFähre\n\nWay"]
    assert read_office_file(epub(CHAPTERS, spine=spine)).pages == ["Way\n\nBoats\n\nFähre"]
    assert read_office_file(epub(CHAPTERS, spine='<itemref idref="c0" linear="no"/>')).pages == [""]


def test_epub_chapters_are_read_by_the_rules_of_xml() -> None:
    head = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="a.js"/></head>'
    chapter = f"{TYPE}{head}<body><h1>Boats</h1><p>leave&nbsp;at ten</p></body></html>"

    assert read_office_file(epub({"c.xhtml": chapter})).pages == ["Boats\n\nleave at ten"]


def test_epub_title_authors_date_and_language_are_read() -> None:
    read = read_office_file(
        epub(
            CHAPTERS,
            "<dc:title>Harbor</dc:title><dc:title>Another</dc:title><dc:creator>Ann</dc:creator>"
            '<dc:creator>Bob</dc:creator><dc:language>de</dc:language><meta property="dcterms:modified">2024-05-01'
            "</meta>",
        )
    )

    assert (read.title, read.author, read.date, read.lang) == ("Harbor", "Ann, Bob", "2024-05-01", "de")


def test_epub_publication_date_takes_precedence_over_modified_date() -> None:
    metadata = '<meta property="dcterms:modified">2024-05-01</meta><dc:date>1999-01-01</dc:date>'

    assert read_office_file(epub(CHAPTERS, metadata)).date == "1999-01-01"


def test_epub_with_encrypted_fonts_only_is_read() -> None:
    assert read_office_file(epub(CHAPTERS, encrypted="book/font.otf")).pages == ["Boats\n\nFähre\n\nWay"]


def test_epub_chapters_beyond_the_text_limit_are_not_read() -> None:
    chapters = {f"{name}.xhtml": "<p>" + "harbor " * 100_000 for name in "abc"}
    [text] = read_office_file(epub(chapters)).pages

    assert MAX_TEXT_BYTES < len(text) < 2 * MAX_TEXT_BYTES
