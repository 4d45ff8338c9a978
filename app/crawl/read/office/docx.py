"""Text out of Word's documents."""

from __future__ import annotations

from app.crawl.read.office.archive import Archive
from app.crawl.read.office.flowing_text import BLOCK, LINE, WORD, FlowingText
from app.crawl.read.office.open_xml import is_on, targets

UNREAD = frozenset(("Fallback", "del", "moveFrom"))
"""A second rendering of what stands before, and what was deleted."""
MAX_STYLES_ABOVE = 10
TITLE = "title"
HEADING = "heading "
BODY_LEVEL = "9"
"""The outline level of text that is no heading."""


def read_docx(archive: Archive, part: str, text: FlowingText) -> None:
    """Read a document, then its footnotes and endnotes.

    Raises:
        NotIndexed: A part is broken or too large.
        TextIsFull: There is more text than is kept.
    """
    headings = _headings(archive, part)
    _read_part(archive, part, text, headings)
    for kind in ("footnotes", "endnotes"):
        for notes in targets(archive, part, kind):
            text.end(BLOCK)
            _read_part(archive, notes, text, headings)


def _read_part(archive: Archive, part: str, text: FlowingText, headings: dict[str, bool]) -> None:
    is_text = is_hidden = False
    for tag, value in archive.elements(part, UNREAD):
        match tag:
            case "#text" if is_text and not is_hidden:
                text.add(value)
            case "t":
                is_text = True
            case "/t":
                is_text = False
            case "pStyle":
                if (is_title := headings.get(value.get("val", ""))) is not None:
                    text.begin_heading(is_title=is_title)
            case "/p":
                text.end_paragraph()
            case "r":
                is_hidden = False
            case "vanish":
                is_hidden = is_on(value)
            case "br" | "cr" | "txbxContent":
                text.end(LINE)
            case "tab" | "ptab":
                text.end(WORD)
            case "noBreakHyphen":
                text.add("-")
            case "tbl" | "/tbl":
                text.end(BLOCK)
            case "tc":
                text.begin_cell()
            case "/tc":
                text.end_cell()
            case "/tr":
                text.end(LINE)


def _headings(archive: Archive, part: str) -> dict[str, bool]:
    """The ids of styles of headings, each with whether it is of the document's title.

    The names of these styles are English in every language.
    """
    own: dict[str, bool] = {}
    above: dict[str, str] = {}
    style = ""
    for styles in targets(archive, part, "styles"):
        for tag, value in archive.elements(styles):
            match tag:
                case "style":
                    style = value.get("styleId", "")
                case "name" if (name := value.get("val", "").lower()) == TITLE or name.startswith(HEADING):
                    own[style] = name == TITLE
                case "basedOn":
                    above[style] = value.get("val", "")
                case "outlineLvl" if value.get("val") != BODY_LEVEL:
                    own.setdefault(style, False)
    return {style: found for style in own.keys() | above.keys() if (found := _inherited(style, own, above)) is not None}


def _inherited(style: str, own: dict[str, bool], above: dict[str, str]) -> bool | None:
    for _ in range(MAX_STYLES_ABOVE):
        if style in own:
            return own[style]
        style = above.get(style, "")
    return None
