"""Text out of PDFs."""

from __future__ import annotations

import re

import pypdfium2

from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.read.bounds import MAX_TEXT_BYTES, cut_line
from app.crawl.read.files import ReadFile, given_title
from app.crawl.read.metadata import iso_date

SOFT_HYPHEN_BREAK = "\ufffe"
"""Written by PDFium for the hyphen at the end of a line."""
LEADERS = re.compile(r"\.(?: ?\.){3,}")
"""Dots that lead to a page's number in a table of contents."""
DATE = re.compile(
    r"(?:D:)?([0-9]{4})([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?(?:(Z)|([+-][0-9]{2})'?([0-9]{2})?)?.*",
    re.ASCII,
)
"""A date as PDFs have it: ``D:20240501093000+02'00'``, of which only the year is required."""


def read_pdf(body: bytes) -> ReadFile:
    """Read a PDF: the text of its pages, as many as are kept, and what it says of itself.

    PDFium is not safe from every hostile file: call it in a process of its own, see :mod:`.reader`.

    Raises:
        NotIndexed: The PDF is broken, or behind a password.
    """
    texts: list[str] = []
    room = MAX_TEXT_BYTES
    try:
        with pypdfium2.PdfDocument(body) as document:
            title, author = (cut_line(document.get_metadata_value(name)) for name in ("Title", "Author"))
            dates = [document.get_metadata_value(name) for name in ("ModDate", "CreationDate")]
            for number in range(len(document)):
                if room <= 0:
                    break
                text = _page_text(document, number)
                room -= len(text)
                texts.append(text)
    except pypdfium2.PdfiumError as error:
        raise NotIndexed(Reason.NOT_TEXT, "The PDF is broken or behind a password.") from error
    date = next((date for text in dates if (date := _date(text)) is not None), None)
    return ReadFile("pdf", texts, title=given_title(title), author=author or None, date=date)


def _date(text: str) -> str | None:
    """The ISO 8601 date or date-time that a PDF's date is, ``None`` if it is none."""
    match = DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, utc, hours, minutes = match.groups()
    date = f"{year}-{month or '01'}-{day or '01'}"
    if hour is None:
        return iso_date(date)
    zone = "+00:00" if utc else f"{hours}:{minutes or '00'}" if hours else ""
    return iso_date(f"{date}T{hour}:{minute or '00'}:{second or '00'}{zone}")


def _page_text(document: pypdfium2.PdfDocument, number: int) -> str:
    """The text of a page; words that a line end has hyphenated are whole again."""
    page = document[number]
    words = page.get_textpage()
    try:
        text: str = words.get_text_range(errors="replace")
    finally:
        words.close()
        page.close()
    return LEADERS.sub("…", text.replace(SOFT_HYPHEN_BREAK, "").replace("\r\n", "\n")).strip()
