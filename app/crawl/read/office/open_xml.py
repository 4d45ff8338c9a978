"""Text from Microsoft's office files (Office Open XML): their parts and properties, Word, and PowerPoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from app.crawl.read.bounds import cut_line
from app.crawl.read.office.archive import TEXT, Archive, broken_file
from app.crawl.read.office.flowing_text import BLOCK, LINE, WORD, FlowingText

MAIN = "officeDocument"
PROPERTIES = "core-properties"

_ROOT_RELATIONSHIPS = "_rels/.rels"
KINDS = {"document": "docx", "presentation": "pptx", "workbook": "xlsx"}
"""Maps the root element of a file's main part to the kind of file."""


@dataclass(frozen=True, slots=True)
class Relationship:
    """A reference from one part to another.

    Attributes:
        type: The last segment of the relationship's type, such as ``slide`` or ``styles``.
        target: Name of the other part in the archive.
    """

    type: str
    target: str


def relationships(archive: Archive, part: str = "") -> dict[str, Relationship]:
    """The relationships of a part, or of the whole file, by ID."""
    folder, _, name = part.rpartition("/")
    listed = join(folder, "_rels", f"{name}.rels") if part else _ROOT_RELATIONSHIPS
    return {
        attributes.get("Id", ""): Relationship(
            attributes.get("Type", "").rpartition("/")[2], resolve(part, attributes.get("Target", ""))
        )
        for tag, attributes in archive.elements(listed)
        if tag == "Relationship" and attributes.get("TargetMode") != "External"
    }


def resolve(part: str, target: str) -> str:
    """Return the name of the part at ``target``, a URL relative to ``part``."""
    path = unquote(target.partition("#")[0])
    return path.lstrip("/") if path.startswith("/") else normpath(join(dirname(part), path))


def targets(archive: Archive, part: str, kind: str) -> Iterator[str]:
    """Yield the names of the parts to which ``part`` has relationships of type ``kind``."""
    return (item.target for item in relationships(archive, part).values() if item.type == kind)


def main_part(archive: Archive) -> tuple[str, str]:
    """The kind of a file, and the name of its main part.

    Raises:
        NotIndexed: The archive is not an office file.
    """
    for name in targets(archive, "", MAIN):
        for tag, _ in archive.elements(name):
            if tag in KINDS:
                return KINDS[tag], name
            break
    raise broken_file()


def is_on(attributes: dict[str, str], name: str = "val") -> bool:
    """Whether a Boolean attribute is true, which is its default."""
    return attributes.get(name, "1") not in ("0", "false", "off")


def properties(archive: Archive, part: str) -> dict[str, str]:
    """Return the properties in a part by element name: the first of several values, but all authors.

    An element ``meta`` of an e-book is listed under the name in its ``property`` attribute.
    """
    values: dict[str, list[str]] = {}
    pieces: list[str] = []
    name = ""
    for tag, value in archive.elements(part):
        if tag == TEXT:
            pieces.append(value)
            continue
        if tag.startswith("/"):
            if text := cut_line("".join(pieces)):
                values.setdefault(name, []).append(text)
        else:
            name = value.get("property", "").rpartition(":")[2] or tag if tag == "meta" else tag
        pieces.clear()
    return {name: ", ".join(texts) if name == "creator" else texts[0] for name, texts in values.items()}


DOCX_SKIPPED = frozenset(("Fallback", "del", "moveFrom"))
"""Skipped elements: alternative renderings, and deleted text."""
MAX_BASE_STYLES = 10
TITLE = "title"
HEADING = "heading "
BODY_LEVEL = "9"
"""The outline level of body text."""


def read_docx(archive: Archive, part: str, text: FlowingText) -> None:
    """Read a document, then its footnotes and endnotes.

    Raises:
        NotIndexed: A part is broken or too large.
        TextIsFull: The text has reached the limit.
    """
    headings = _headings(archive, part)
    _read_docx_part(archive, part, text, headings)
    for kind in ("footnotes", "endnotes"):
        for notes in targets(archive, part, kind):
            text.end(BLOCK)
            _read_docx_part(archive, notes, text, headings)


def _read_docx_part(archive: Archive, part: str, text: FlowingText, headings: dict[str, bool]) -> None:
    is_text = is_hidden = False
    for tag, value in archive.elements(part, DOCX_SKIPPED):
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
    """Map the ID of each heading style to whether it is the style of the document's title.

    The names of these styles are in English in every localization.
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
    return {
        style: is_title
        for style in own.keys() | above.keys()
        if (is_title := _inherited(style, own, above)) is not None
    }


def _inherited(style: str, own: dict[str, bool], above: dict[str, str]) -> bool | None:
    for _ in range(MAX_BASE_STYLES):
        if style in own:
            return own[style]
        style = above.get(style, "")
    return None


PPTX_SKIPPED = frozenset(("Fallback",))
TITLES = ("title", "ctrTitle")
REPEATED_PLACEHOLDERS = ("dt", "ftr", "hdr", "sldNum")


def read_pptx(archive: Archive, part: str, text: FlowingText) -> None:
    """Read the slides in the order of the presentation, each as a page. A hidden slide is an empty page.

    Raises:
        NotIndexed: A part is broken or too large.
        TextIsFull: The text has reached the limit.
    """
    parts = relationships(archive, part)
    ids = [value.get("r:id", "") for tag, value in archive.elements(part) if tag == "sldId"]
    for slide in (parts[id].target for id in ids if id in parts):
        _read_slide(archive, slide, text)
        text.end_page()


def _read_slide(archive: Archive, part: str, text: FlowingText) -> None:
    is_text = is_repeated = False
    for tag, value in archive.elements(part, PPTX_SKIPPED):
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
                is_repeated = kind in REPEATED_PLACEHOLDERS
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
