"""Text out of OpenDocument files: texts, presentations, and spreadsheets."""

from __future__ import annotations

from app.crawl.read.office.archive import Archive
from app.crawl.read.office.flowing_text import BLOCK, LINE, WORD, FlowingText

KINDS = {
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
}
CONTENT = "content.xml"
PROPERTIES = "meta.xml"

UNREAD = frozenset(("annotation", "note-citation", "notes", "ruby-text", "tracked-changes"))
"""Comments, the numbers of footnotes, what a speaker notes, how a word is spoken, and what was deleted."""


def read_open_document(archive: Archive, kind: str, text: FlowingText) -> None:
    """Read a text, the slides of a presentation as pages, or the sheets of a spreadsheet with their names.

    Raises:
        NotIndexed: A part is broken or too large.
        TextIsFull: There is more text than is kept.
    """
    paragraphs = 0
    in_title = False
    for tag, value in archive.elements(CONTENT, UNREAD):
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
