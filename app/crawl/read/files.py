"""Files that are no web pages, as they are read: PDFs, office files, e-books."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.crawl.read.bounds import CONTROL, cut_line
from backends.sections import Section
from schemas.validation.documents import MAX_SECTIONS

PAGED_KINDS = frozenset(("pdf", "pptx", "odp"))
"""Kinds of files with pages, or slides, that an address can lead to by number."""

MAX_PAGE_TITLE = 100
"""Characters that are taken of a page's first line, which may be a paragraph."""

NO_TITLES = ("untitled", "microsoft word - ", "microsoft powerpoint - ", "slide 1", "powerpoint presentation")
"""Beginnings of titles that programs give to a document nobody has named, in lower case."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file as it was read.

    Attributes:
        kind: ``pdf``, ``docx``, ``pptx``, ``xlsx``, ``odt``, ``odp``, ``ods``, or ``epub``, by what the file is.
        pages: The text of each page or slide, also of those without any; of other kinds one text.
        title: As the file names itself, else its first heading; empty if it has neither.
        author, lang: As the file says, or ``None``.
        date: Of the last change, else of the creation, in ISO 8601.
    """

    kind: str
    pages: Sequence[str]
    title: str = ""
    author: str | None = None
    date: str | None = None
    lang: str | None = None


def join_pages(pages: Sequence[str]) -> tuple[str, tuple[Section, ...]]:
    """The text of all pages, blank lines between them, and each page with text as a section named by its first line."""
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


def given_title(title: str) -> str:
    """A title that somebody gave; empty for one that a program did."""
    return "" if title.lower().startswith(NO_TITLES) else title
