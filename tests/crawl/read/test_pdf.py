"""Reads the text of PDFs and rejects corrupt ones."""

from __future__ import annotations

import pytest

from app.crawl.fetch.values import NotIndexed
from app.crawl.read.files import read_pdf
from tests.crawl.read.samples import drawn_pdf, pdf


def test_pdf_page_texts_and_title_are_read() -> None:
    read = read_pdf(pdf("Boats leave at ten.", "", "Back at six.", title="Harbor"))

    assert (read.kind, read.title, read.pages) == ("pdf", "Harbor", ["Boats leave at ten.", "", "Back at six."])


def test_pdf_author_and_modification_date_are_read() -> None:
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
def test_pdf_dates_are_parsed_and_invalid_ones_ignored(written: str, date: str | None) -> None:
    assert read_pdf(pdf("Boats", CreationDate=written)).date == date


@pytest.mark.parametrize("title", ["", "Untitled", "Microsoft Word - draft3.doc"])
def test_default_pdf_titles_are_ignored(title: str) -> None:
    assert read_pdf(pdf("Boats", title=title)).title == ""


def test_dot_leaders_are_shortened() -> None:
    assert read_pdf(pdf("Harbor . . . . . . . . . 7")).pages == ["Harbor … 7"]


def test_pdf_without_text_has_an_empty_page() -> None:
    assert (read_pdf(pdf("")).title, read_pdf(pdf("")).pages) == ("", [""])


@pytest.mark.parametrize("body", [b"", b"%PDF-1.4", b"%PDF-1.4\n" + b"\0" * 1_000, pdf("Boats")[:200]])
def test_corrupt_pdf_is_rejected(body: bytes) -> None:
    with pytest.raises(NotIndexed) as refusal:
        read_pdf(body)

    assert refusal.value.reason == "not_text"


def shaped(*words: str) -> tuple[str, ...]:
    """Return the glyphs of words in Arabic script, from left to right, as browsers draw them."""
    return tuple(f"*{glyph}" if glyph.isalpha() else glyph for glyph in reversed(" ".join(words)))


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ([(300, 700, shaped("مرحبا", "بكم", "في", "ميناء", "المدينة"))], "مرحبا بكم في ميناء المدينة"),
        # Some letters have a code of their own.
        ([(300, 700, ("م", "*ك", "ب", " ", "*ا", "ب", "*ح", "ر", "*م"))], "مرحبا بكم"),
        ([(320, 700, tuple("مرحبا"[::-1])), (200, 700, shaped("خوش", "آمدید"))], "مرحبا خوش آمدید"),
        (
            [(100, 700, (*shaped("صدر", "في"), " ", *"Python 3.11", " ", *shaped("الإصدار"), " ", *"12.50"))],
            "12.50 الإصدار Python 3.11 صدر في",
        ),
        ([(100, 700, (".", *"(", *shaped("أكتوبر"), *")", " ", *"2022", " ", *shaped("عام")))], "عام 2022 (أكتوبر)."),
        (
            [(60, 700, (*"harbor is ", *shaped("ميناء", "القوارب"), *", or port."))],
            "harbor is ميناء القوارب, or port.",
        ),
        # A ligature, and a glyph with a letter and its vowel sign.
        ([(300, 700, ("*ة", "*أسئل", "ال", " ", "لا"))], "لا الأسئلة"),
        ([(300, 700, ("*بَ", "*تَ")), (320, 703, ("*كَ",))], "كَتَبَ"),
        # Cells of a row, and lines.
        (
            [
                *((400, 700, shaped("الاسم", "الكامل")), (100, 700, shaped("العمر", "الحالي"))),
                (300, 660, shaped("أحمد", "في", "المدينة")),
            ],
            "الاسم الكامل العمر الحالي\nأحمد في المدينة",
        ),
        ([(300, 700, ("ﺎ", "ﺒ", "ﺣ", "ﺮ", "ﻣ"))], "مرحبا"),
        ([(300, 700, tuple("ברוכים הבאים"[::-1])), (100, 600, tuple("office"))], "ברוכים הבאים\noffice"),
    ],
)
def test_text_in_arabic_script_is_read_in_reading_order(
    runs: list[tuple[float, float, tuple[str, ...]]], text: str
) -> None:
    assert read_pdf(drawn_pdf(*runs)).pages == [text]
