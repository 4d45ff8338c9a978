"""Text out of PowerPoint's presentations."""

from __future__ import annotations

from app.crawl.read.office.archive import Archive
from app.crawl.read.office.flowing_text import BLOCK, LINE, FlowingText
from app.crawl.read.office.open_xml import is_on, relationships

UNREAD = frozenset(("Fallback",))
TITLES = ("title", "ctrTitle")
ON_EVERY_SLIDE = ("dt", "ftr", "hdr", "sldNum")


def read_pptx(archive: Archive, part: str, text: FlowingText) -> None:
    """Read the slides in the order of the presentation, each as a page; a hidden one has no text.

    Raises:
        NotIndexed: A part is broken or too large.
        TextIsFull: There is more text than is kept.
    """
    parts = relationships(archive, part)
    ids = [value.get("r:id", "") for tag, value in archive.elements(part) if tag == "sldId"]
    for slide in (parts[id].target for id in ids if id in parts):
        _read_slide(archive, slide, text)
        text.end_page()


def _read_slide(archive: Archive, part: str, text: FlowingText) -> None:
    is_text = is_repeated = False
    for tag, value in archive.elements(part, UNREAD):
        match tag:
            case "#text" if is_text and not is_repeated:
                text.add(value)
            case "t":
                is_text = True
            case "/t":
                is_text = False
            case "sld" if not is_on(value, "show"):
                return
            case "ph":
                kind = value.get("type")
                is_repeated = kind in ON_EVERY_SLIDE
                if kind in TITLES:
                    text.begin_heading()
            case "/p":
                text.end(LINE)
            case "br":
                text.end(LINE)
            case "/sp":
                is_repeated = False
                text.end_paragraph()
            case "tbl" | "/tbl":
                text.end(BLOCK)
            case "tc":
                text.begin_cell()
            case "/tc":
                text.end_cell()
            case "/tr":
                text.end(LINE)
