"""Text out of PDFs."""

from __future__ import annotations

import re

import pypdfium2

from app.crawler.reading.bounds import MAX_TEXT_BYTES, cut_line
from app.crawler.values import NotIndexed, Reason

SOFT_HYPHEN_BREAK = "\ufffe"
"""Written by PDFium for the hyphen at the end of a line."""
LEADERS = re.compile(r"\.(?: ?\.){3,}")
"""Dots that lead to a page's number in a table of contents."""
NO_TITLES = ("untitled", "microsoft word - ", "microsoft powerpoint - ", "slide 1", "powerpoint presentation")
"""Beginnings of titles that programs give to a document nobody has named, in lower case."""


def read_pdf(body: bytes) -> tuple[str, str]:
    """The title that a PDF names, empty if none, and its text, pages apart by blank lines.

    PDFium is not safe from every hostile file: call it in a process of its own, see :mod:`.reader`.

    Raises:
        NotIndexed: The PDF is broken, or behind a password.
    """
    texts: list[str] = []
    room = MAX_TEXT_BYTES
    try:
        with pypdfium2.PdfDocument(body) as document:
            title = cut_line(document.get_metadata_value("Title"))
            for number in range(len(document)):
                if room <= 0:
                    break
                text = _page_text(document, number)
                room -= len(text)
                texts.append(text)
    except pypdfium2.PdfiumError as error:
        raise NotIndexed(Reason.NOT_TEXT, "The PDF is broken or behind a password.") from error
    named = not title.lower().startswith(NO_TITLES)
    return title if named else "", "\n\n".join(filter(None, texts))


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
