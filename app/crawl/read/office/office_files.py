"""Office files and e-books: what they are, and what is read of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from app.crawl.read.files import ReadFile, given_title
from app.crawl.read.metadata import LANGUAGE, iso_date
from app.crawl.read.office import epub, open_document, open_xml
from app.crawl.read.office.archive import Archive
from app.crawl.read.office.docx import read_docx
from app.crawl.read.office.flowing_text import FlowingText, TextIsFull
from app.crawl.read.office.pptx import read_pptx
from app.crawl.read.office.xlsx import read_xlsx

_TYPE = "mimetype"
_READERS = {"docx": read_docx, "pptx": read_pptx, "xlsx": read_xlsx}


def read_office_file(body: bytes) -> ReadFile:
    """Read an office file or an e-book by what it is, whatever it is called. Text beyond what is kept is not read.

    Call it in a process of its own, see :mod:`app.crawl.read.reader`.

    Raises:
        NotIndexed: It is none, broken, or behind a password (``not_text``), or has too many parts or too large ones
            (``too_large``).
    """
    archive = Archive(body)
    # Some programs end it with a line break.
    kind = archive.read(_TYPE).decode("latin-1").strip()
    if kind == epub.MEDIA_TYPE:
        package = epub.package_of(archive)
        return _made("epub", [epub.read_epub(archive, package)], open_xml.properties(archive, package))
    text = FlowingText()
    if kind in open_document.KINDS:
        kind = open_document.KINDS[kind]
        properties = open_xml.properties(archive, open_document.PROPERTIES)
        with suppress(TextIsFull):
            open_document.read_open_document(archive, kind, text)
    else:
        kind, part = open_xml.main_part(archive)
        properties = {}
        for name in open_xml.targets(archive, "", open_xml.PROPERTIES):
            properties |= open_xml.properties(archive, name)
        with suppress(TextIsFull):
            _READERS[kind](archive, part, text)
    text.finish()
    return _made(kind, text.pages, properties, text.title)


def _made(kind: str, pages: Sequence[str], properties: dict[str, str], heading: str = "") -> ReadFile:
    dates = [properties.get(name, "") for name in ("date", "modified", "created", "creation-date")]
    language = properties.get("language", "")
    return ReadFile(
        kind,
        pages,
        title=given_title(properties.get("title", "")) or heading,
        author=properties.get("initial-creator") or properties.get("creator"),
        date=next((date for text in dates if (date := iso_date(text)) is not None), None),
        lang=language if LANGUAGE.fullmatch(language) else None,
    )
