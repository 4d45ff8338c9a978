"""The content of files other than web pages, and the text of PDFs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ctypes import c_double
from dataclasses import dataclass

import pypdfium2
from pypdfium2 import raw

from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.read.file_titles import meaningful_title
from app.crawl.read.metadata import iso_date
from app.crawl.read.right_to_left import SCRIPT, Character, have_baseline, is_script, reading_order
from app.crawl.read.text import CONTROL, MAX_TEXT_BYTES, cut_line
from backends.sections import Section
from schemas.validation.documents import MAX_SECTIONS

PAGED_KINDS = frozenset(("pdf", "pptx", "odp"))
"""Kinds of files whose pages or slides a URL can address by number."""

MAX_PAGE_TITLE = 100
"""Maximum number of characters in a page's heading, which is its first line and may be a whole paragraph."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """The content of a file.

    Attributes:
        kind: ``pdf``, ``docx``, ``pptx``, ``xlsx``, ``odt``, ``odp``, ``ods``, or ``epub``, detected from the content.
        pages: The text of each page or slide, including empty ones; a single text for other kinds.
        title: The title in the file's metadata, otherwise its first heading; empty if it has neither.
        author, lang: From the metadata, or ``None``.
        date: The date of the last change, otherwise of creation, in ISO 8601.
    """

    kind: str
    pages: Sequence[str]
    title: str = ""
    author: str | None = None
    date: str | None = None
    lang: str | None = None


def join_pages(pages: Sequence[str]) -> tuple[str, tuple[Section, ...]]:
    """Join the pages' texts with blank lines. Each page with text becomes a section named after its first line."""
    texts: list[str] = []
    sections: list[Section] = []
    position = 0
    for number, page in enumerate(pages, start=1):
        if text := CONTROL.sub("", page.replace("\r\n", "\n")).strip():
            title = cut_line(text.partition("\n")[0])[:MAX_PAGE_TITLE].strip()
            if title and len(sections) < MAX_SECTIONS:
                sections.append(Section(f"page={number}", title, 1, position))
            texts.append(text)
            position += len(text) + len("\n\n")
    return "\n\n".join(texts), tuple(sections)


SOFT_HYPHEN_BREAK = "\ufffe"
"""PDFium's replacement for a hyphen at the end of a line."""
MAX_COMPARED_CHARACTERS = 100
"""Maximum number of characters at the end of a line whose baselines are compared with those of the next line."""
CARRIAGE_RETURN, LINE_FEED = 0x0D, 0x0A
SURROGATES = range(0xD800, 0xE000)
LEADERS = re.compile(r"\.(?: ?\.){3,}")
"""Dots before a page number in a table of contents."""
DATE = re.compile(
    r"(?:D:)?([0-9]{4})([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?(?:(Z)|([+-][0-9]{2})'?([0-9]{2})?)?.*",
    re.ASCII,
)
"""The format of dates in PDFs: ``D:20240501093000+02'00'``, of which only the year is required."""


def read_pdf(body: bytes) -> ReadFile:
    """Read the text of a PDF's pages, up to the limit of a document's text, and its metadata.

    A hostile file may crash PDFium, so call this in a separate process; see :mod:`.reader`.

    Raises:
        NotIndexed: The PDF is broken or needs a password.
    """
    texts: list[str] = []
    remaining_bytes = MAX_TEXT_BYTES
    try:
        with pypdfium2.PdfDocument(body) as document:
            title, author = (cut_line(document.get_metadata_value(name)) for name in ("Title", "Author"))
            dates = [document.get_metadata_value(name) for name in ("ModDate", "CreationDate")]
            for number in range(len(document)):
                if remaining_bytes <= 0:
                    break
                text = _page_text(document, number)
                remaining_bytes -= len(text.encode(errors="replace"))
                texts.append(text)
    except pypdfium2.PdfiumError as error:
        raise NotIndexed(Reason.NOT_TEXT, "The PDF is damaged or needs a password.") from error
    date = next((date for text in dates if (date := _date(text)) is not None), None)
    return ReadFile("pdf", texts, title=meaningful_title(title), author=author or None, date=date)


def _date(text: str) -> str | None:
    """Convert a PDF's date to ISO 8601; ``None`` if it is not valid."""
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
    """Return the text of a page, with hyphenated words rejoined."""
    page = document[number]
    words = page.get_textpage()
    try:
        text: str = words.get_text_range(errors="replace")
        if SCRIPT.search(text):
            text = "\n".join(_lines(words))
    finally:
        words.close()
        page.close()
    return LEADERS.sub("…", text.replace(SOFT_HYPHEN_BREAK, "").replace("\r\n", "\n")).strip()


def _lines(words: pypdfium2.PdfTextPage) -> Iterator[str]:
    """Iterate over the lines of a page with Arabic script."""
    pending: list[Character] = []
    for line in _drawn_lines(words):
        # PDFium also breaks lines at shifted vowel signs.
        end = pending[-MAX_COMPARED_CHARACTERS:]
        if is_script(end) and is_script(line) and have_baseline(end + line):
            pending += line
        else:
            yield _line_text(pending)
            pending = line
    yield _line_text(pending)


def _drawn_lines(words: pypdfium2.PdfTextPage) -> Iterator[list[Character]]:
    line: list[Character] = []
    handle, box, x, y = words.raw, raw.FS_RECTF(), c_double(), c_double()
    for index in range(words.count_chars()):
        code = raw.FPDFText_GetUnicode(handle, index)
        if code not in (CARRIAGE_RETURN, 0):
            raw.FPDFText_GetLooseCharBox(handle, index, box)
            raw.FPDFText_GetCharOrigin(handle, index, x, y)
            text = "\N{REPLACEMENT CHARACTER}" if SURROGATES.start <= code < SURROGATES.stop else chr(code)
            line.append(Character(text, box.left, box.right, x.value, y.value, box.top - box.bottom))
        if code == LINE_FEED:
            yield line
            line = []
    yield line


def _line_text(line: Sequence[Character]) -> str:
    # Only horizontal lines whose glyphs have positions.
    if is_script(line) and have_baseline(line) and line[0].x_min != line[-1].x_min:
        return reading_order(line)
    return "".join(character.text for character in line).rstrip()
