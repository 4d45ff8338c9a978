"""PDFs are read by their text; broken ones are refused."""

from __future__ import annotations

import pytest

from app.crawl.fetch.values import NotIndexed
from app.crawl.read.files import read_pdf
from tests.crawl.read.samples import pdf


def test_the_text_of_each_page_and_the_title() -> None:
    read = read_pdf(pdf("Boats leave at ten.", "", "Back at six.", title="Harbor"))

    assert (read.kind, read.title, read.pages) == ("pdf", "Harbor", ["Boats leave at ten.", "", "Back at six."])


def test_its_author_and_the_date_of_its_last_change() -> None:
    dates = {"CreationDate": "D:20230101", "ModDate": "D:20240501093000+02'00'"}
    read = read_pdf(pdf("Boats", Author="Ann", **dates))

    assert (read.author, read.date) == ("Ann", "2024-05-01T09:30:00+02:00")
    assert (read_pdf(pdf("Boats")).author, read_pdf(pdf("Boats")).date) == (None, None)


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("D:20240501", "2024-05-01"),
        ("20240501", "2024-05-01"),
        ("D:2024", "2024-01-01"),
        ("D:202405010930", "2024-05-01T09:30:00"),
        ("D:20240501093000Z", "2024-05-01T09:30:00+00:00"),
        ("D:20240501093000Z00'00'", "2024-05-01T09:30:00+00:00"),
        ("D:20240501093000-0530", "2024-05-01T09:30:00-05:30"),
        ("D:20241399", None),
        ("D:00010101", None),
        ("May 2024", None),
        ("", None),
    ],
)
def test_a_date_is_one_or_none(written: str, date: str | None) -> None:
    assert read_pdf(pdf("Boats", CreationDate=written)).date == date


@pytest.mark.parametrize("title", ["", "Untitled", "Microsoft Word - draft3.doc"])
def test_a_title_that_nobody_gave_is_none(title: str) -> None:
    assert read_pdf(pdf("Boats", title=title)).title == ""


def test_dots_that_lead_to_a_page_number_are_no_text() -> None:
    assert read_pdf(pdf("Harbor . . . . . . . . . 7")).pages == ["Harbor … 7"]


def test_a_pdf_of_pictures_has_no_text() -> None:
    assert (read_pdf(pdf("")).title, read_pdf(pdf("")).pages) == ("", [""])


@pytest.mark.parametrize("body", [b"", b"%PDF-1.4", b"%PDF-1.4\n" + b"\0" * 1_000, pdf("Boats")[:200]])
def test_a_broken_pdf_is_refused(body: bytes) -> None:
    with pytest.raises(NotIndexed) as refusal:
        read_pdf(body)

    assert refusal.value.reason == "not_text"
