"""Reads PowerPoint presentations: each slide is a page, in order."""

from __future__ import annotations

from app.crawl.read.office.office_files import read_office_file
from tests.crawl.read.office.builders import pptx, shape


def test_pptx_slides_are_pages_in_presentation_order() -> None:
    read = read_office_file(pptx(shape("Harbor", kind="title") + shape("One", "Two"), "", shape("Three")))

    assert read.pages == ["Harbor\n\nOne\nTwo", "", "Three"]
    assert read.title == "Harbor"


def test_hidden_slide_is_an_empty_page() -> None:
    assert read_office_file(pptx(shape("a"), shape("secret"), shape("b"), hidden=1)).pages == ["a", "", "b"]


def test_slide_numbers_footers_and_dates_are_not_read() -> None:
    shapes = shape("7", kind="sldNum") + shape("ACME", kind="ftr") + shape("2024", kind="dt") + shape("Boats")

    assert read_office_file(pptx(shapes)).pages == ["Boats"]


def test_shape_after_an_empty_title_is_not_the_title() -> None:
    assert read_office_file(pptx(shape(kind="title") + shape("Boats"))).title == ""


def test_pptx_tables_are_read_row_by_row() -> None:
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    rows = "".join(f"<a:tr>{''.join(map(cell.format, names))}</a:tr>" for names in ("ab", "cd"))

    assert read_office_file(pptx(shape("x") + f"<a:tbl>{rows}</a:tbl>")).pages == ["x\n\na\tb\nc\td"]


def test_missing_slide_is_an_empty_page() -> None:
    body = pptx(shape("Boats"), shape("Harbor")).replace(b"ppt/slides/slide1.xml", b"ppt/slides/slide9.xml")

    assert read_office_file(body).pages == ["Boats", ""]
