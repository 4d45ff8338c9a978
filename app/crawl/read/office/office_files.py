"""Text from office files and e-books: detection of the kind, OpenDocument, and EPUB."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from app.crawl.fetch.values import NotIndexed, Reason
from app.crawl.read.file_titles import meaningful_title
from app.crawl.read.files import ReadFile
from app.crawl.read.main_text import main_text
from app.crawl.read.metadata import LANGUAGE, iso_date
from app.crawl.read.office import open_xml
from app.crawl.read.office.open_xml import read_docx, read_pptx, read_xlsx, resolve
from app.crawl.read.office.streams import BLOCK, LINE, WORD, Archive, FlowingText, TextIsFull, broken_file
from app.crawl.read.text import MAX_TEXT_BYTES, decode
from app.texts.formats import parse_xhtml

_TYPE = "mimetype"
_READERS = {"docx": read_docx, "pptx": read_pptx, "xlsx": read_xlsx}


def read_office_file(body: bytes) -> ReadFile:
    """Read an office file or an e-book; its content, not its name, determines the kind.

    Reading stops when the text has reached the limit of a document. Call this in a separate process; see
    :mod:`app.crawl.read.reader`.

    Raises:
        NotIndexed: The file is broken, needs a password, or is of another kind (``not_text``); or it has too many or
            too large parts (``too_large``).
    """
    archive = Archive(body)
    # Some programs write a line break after the type.
    kind = archive.read(_TYPE).decode("latin-1").strip()
    if kind == EPUB_TYPE:
        package = _package_of(archive)
        return _make_file("epub", [read_epub(archive, package)], open_xml.properties(archive, package))
    text = FlowingText()
    if kind in OPEN_DOCUMENT_KINDS:
        kind = OPEN_DOCUMENT_KINDS[kind]
        properties = open_xml.properties(archive, OPEN_DOCUMENT_PROPERTIES)
        # A longer file is indexed up to the limit.
        with suppress(TextIsFull):
            read_open_document(archive, kind, text)
    else:
        kind, part = open_xml.main_part(archive)
        properties = {}
        for name in open_xml.targets(archive, "", open_xml.PROPERTIES):
            properties |= open_xml.properties(archive, name)
        with suppress(TextIsFull):
            _READERS[kind](archive, part, text)
    text.finish()
    return _make_file(kind, text.pages, properties, text.title)


def _make_file(kind: str, pages: Sequence[str], properties: dict[str, str], heading: str = "") -> ReadFile:
    dates = [properties.get(name, "") for name in ("date", "modified", "created", "creation-date")]
    language = properties.get("language", "")
    return ReadFile(
        kind,
        pages,
        title=meaningful_title(properties.get("title", "")) or heading,
        author=properties.get("initial-creator") or properties.get("creator"),
        date=next((date for text in dates if (date := iso_date(text)) is not None), None),
        lang=language if LANGUAGE.fullmatch(language) else None,
    )


OPEN_DOCUMENT_KINDS = {
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
}
OPEN_DOCUMENT_CONTENT = "content.xml"
OPEN_DOCUMENT_PROPERTIES = "meta.xml"

OPEN_DOCUMENT_SKIPPED = frozenset(("annotation", "note-citation", "notes", "ruby-text", "tracked-changes"))
"""Skipped elements: comments, footnote numbers, speaker notes, pronunciations, and deleted text."""


def read_open_document(archive: Archive, kind: str, text: FlowingText) -> None:
    """Read a text document, the slides of a presentation as pages, or the sheets of a spreadsheet with their names.

    Raises:
        NotIndexed: A part is broken or too large.
        TextIsFull: The text has reached the limit.
    """
    paragraphs = 0
    in_title = False
    for tag, value in archive.elements(OPEN_DOCUMENT_CONTENT, OPEN_DOCUMENT_SKIPPED):
        match tag:
            case "#text" if paragraphs:
                text.add(value)
            case "h":
                paragraphs += 1
                text.begin_heading()
            case "p":
                paragraphs += 1
                if in_title:
                    text.begin_heading()
            case "/p" | "/h":
                paragraphs -= 1
                text.end_paragraph()
            case "frame":
                in_title = value.get("class") == "title"
            case "s":
                text.add(" ")
            case "tab":
                text.end(WORD)
            case "line-break" | "text-box" | "note-body":
                text.end(LINE)
            case "table" | "/table":
                text.end(BLOCK)
                if kind == "ods" and value:
                    text.add(value.get("name", ""))
                    text.end(LINE)
            case "table-cell" | "covered-table-cell":
                text.begin_cell()
            case "/table-cell" | "/covered-table-cell":
                text.end_cell()
            case "/table-row":
                text.end(LINE)
            case "/page":
                text.end_page()


EPUB_TYPE = "application/epub+zip"

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_XHTML = "application/xhtml+xml"


def _package_of(archive: Archive) -> str:
    """Return the name of the part that describes the book and lists its parts.

    Raises:
        NotIndexed: The book is broken.
    """
    for tag, value in archive.elements(_CONTAINER):
        if tag == "rootfile" and value.get("full-path") in archive:
            return str(value["full-path"])
    raise broken_file()


def read_epub(archive: Archive, package: str) -> str:
    """Return the main text of a book's chapters in order, without the table of contents.

    Raises:
        NotIndexed: A part is broken, encrypted, or too large.
    """
    hrefs: dict[str, str] = {}
    order: list[str] = []
    for tag, value in archive.elements(package):
        if tag == "item" and value.get("media-type") == _XHTML and "nav" not in value.get("properties", "").split():
            hrefs[value.get("id", "")] = resolve(package, value.get("href", ""))
        elif tag == "itemref" and value.get("linear") != "no":
            order.append(value.get("idref", ""))
    chapters = dict.fromkeys(hrefs[id] for id in order if id in hrefs)
    encrypted = {
        resolve("", value.get("URI", "")) for tag, value in archive.elements(_ENCRYPTION) if tag == "CipherReference"
    }
    if not encrypted.isdisjoint(chapters):
        raise NotIndexed(Reason.NOT_TEXT, "The book is encrypted.")
    texts: list[str] = []
    remaining_characters = MAX_TEXT_BYTES
    for chapter in chapters:
        if remaining_characters <= 0:
            break
        text = main_text(parse_xhtml(decode(archive.read(chapter), _XHTML)))
        remaining_characters -= len(text)
        texts.append(text)
    return "\n\n".join(filter(None, texts))
