"""PDFs are read by their text; broken ones are refused."""

from __future__ import annotations

import pytest

from app.crawler.reading.pdf import read_pdf
from app.crawler.values import NotIndexed
from tests.crawler.reading.samples import pdf


def test_the_text_of_all_pages_and_the_title() -> None:
    assert read_pdf(pdf("Boats leave at ten.", "Back at six.", title="Harbor")) == (
        "Harbor",
        "Boats leave at ten.\n\nBack at six.",
    )


@pytest.mark.parametrize("title", ["", "Untitled", "Microsoft Word - draft3.doc"])
def test_a_title_that_nobody_gave_is_none(title: str) -> None:
    assert read_pdf(pdf("Boats", title=title))[0] == ""


def test_dots_that_lead_to_a_page_number_are_no_text() -> None:
    assert read_pdf(pdf("Harbor . . . . . . . . . 7"))[1] == "Harbor … 7"


def test_a_pdf_of_pictures_has_no_text() -> None:
    assert read_pdf(pdf("")) == ("", "")


@pytest.mark.parametrize("body", [b"", b"%PDF-1.4", b"%PDF-1.4\n" + b"\0" * 1_000, pdf("Boats")[:200]])
def test_a_broken_pdf_is_refused(body: bytes) -> None:
    with pytest.raises(NotIndexed) as refusal:
        read_pdf(body)

    assert refusal.value.reason == "not_text"
