"""PowerPoint's presentations: slides in their order, each a page."""

from __future__ import annotations

from app.crawl.read.office.office_files import read_office_file
from tests.crawl.read.office.builders import pptx, shape


def test_slides_are_pages_in_the_order_of_the_presentation() -> None:
    read = read_office_file(pptx(shape("Harbor", kind="title") + shape("One", "Two"), "", shape("Three")))

    assert read.pages == ["Harbor\n\nOne\nTwo", "", "Three"]
    assert read.title == "Harbor"


def test_a_hidden_slide_keeps_its_number_but_has_no_text() -> None:
    assert read_office_file(pptx(shape("a"), shape("secret"), shape("b"), hidden=1)).pages == ["a", "", "b"]


def test_what_stands_on_every_slide_is_not_read() -> None:
    shapes = shape("7", kind="sldNum") + shape("ACME", kind="ftr") + shape("2024", kind="dt") + shape("Boats")

    assert read_office_file(pptx(shapes)).pages == ["Boats"]


def test_a_title_without_text_leaves_the_next_shape_what_it_is() -> None:
    assert read_office_file(pptx(shape(kind="title") + shape("Boats"))).title == ""


def test_tables_are_read_by_rows() -> None:
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    rows = "".join(f"<a:tr>{''.join(map(cell.format, names))}</a:tr>" for names in ("ab", "cd"))

    assert read_office_file(pptx(shape("x") + f"<a:tbl>{rows}</a:tbl>")).pages == ["x\n\na\tb\nc\td"]


def test_a_slide_that_is_not_there_is_passed_over() -> None:
    body = pptx(shape("Boats"), shape("Harbor")).replace(b"ppt/slides/slide1.xml", b"ppt/slides/slide9.xml")

    assert read_office_file(body).pages == ["Boats", ""]
