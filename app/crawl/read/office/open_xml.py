"""Text from Microsoft's office files (Office Open XML): their parts and properties, Word, PowerPoint, and Excel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from app.crawl.read.office.streams import BLOCK, CELL, LINE, TEXT, WORD, Archive, FlowingText, broken_file
from app.crawl.read.text import cut_line

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
    """Return the relationships of a part, or of the whole file, by ID."""
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
    """Return the kind of a file, and the name of its main part.

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
    is_title_by_style: dict[str, bool] = {}
    base_styles: dict[str, str] = {}
    style = ""
    for styles in targets(archive, part, "styles"):
        for tag, value in archive.elements(styles):
            match tag:
                case "style":
                    style = value.get("styleId", "")
                case "name" if (name := value.get("val", "").lower()) == TITLE or name.startswith(HEADING):
                    is_title_by_style[style] = name == TITLE
                case "basedOn":
                    base_styles[style] = value.get("val", "")
                case "outlineLvl" if value.get("val") != BODY_LEVEL:
                    is_title_by_style.setdefault(style, False)
    return {
        style: is_title
        for style in is_title_by_style.keys() | base_styles.keys()
        if (is_title := _inherited(style, is_title_by_style, base_styles)) is not None
    }


def _inherited(style: str, is_title_by_style: dict[str, bool], base_styles: dict[str, str]) -> bool | None:
    for _ in range(MAX_BASE_STYLES):
        if style in is_title_by_style:
            return is_title_by_style[style]
        style = base_styles.get(style, "")
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


PHONETIC = frozenset(("rPh",))
"""Skipped elements: pronunciations beside words."""
BUILT_IN_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
"""Numbers of the built-in formats for dates and times, which files do not define."""
LITERALS = re.compile(r'"[^"]*"|\\.|\[(?!h+\]|m+\]|s+\])[^\]]*\]|[_*].', re.IGNORECASE)
DATE_CODES = re.compile("[dmyhs]", re.IGNORECASE)
FIRST_DAY = datetime(1899, 12, 30, tzinfo=UTC)
"""Day 0, correct for dates since March 1900, as Excel counts 29 February 1900. Cells and text have no time zone."""
FIRST_DAY_OF_1904 = datetime(1904, 1, 1, tzinfo=UTC)
LAST_DAY = 2_958_465
"""31 December 9999."""


@dataclass(frozen=True, slots=True)
class Workbook:
    """Strings and formats that the cells of all sheets refer to.

    Attributes:
        strings: The shared strings.
        dates: For each style, whether its numbers are dates.
        first_day: Day 0 of dates.
    """

    strings: Sequence[str]
    dates: Sequence[bool]
    first_day: datetime


def read_xlsx(archive: Archive, part: str, text: FlowingText) -> None:
    """Read the visible sheets in order: each sheet's name, then its rows.

    Raises:
        NotIndexed: A part is broken or too large.
        TextIsFull: The text has reached the limit.
    """
    parts = relationships(archive, part)
    sheets: list[tuple[str, str]] = []
    first_day = FIRST_DAY
    for tag, value in archive.elements(part):
        if tag == "sheet" and value.get("state", "visible") == "visible" and value.get("r:id") in parts:
            sheets.append((value.get("name", ""), parts[value["r:id"]].target))
        elif tag == "workbookPr" and "date1904" in value and is_on(value, "date1904"):
            first_day = FIRST_DAY_OF_1904
    workbook = Workbook(_strings(archive, part), _dates(archive, part), first_day)
    for name, sheet in sheets:
        text.end(BLOCK)
        text.add(name)
        text.end(LINE)
        _read_sheet(archive, sheet, text, workbook)


def _read_sheet(archive: Archive, part: str, text: FlowingText, workbook: Workbook) -> None:
    kind = style = ""
    is_value = False
    pieces: list[str] = []
    for tag, value in archive.elements(part, PHONETIC):
        match tag:
            case "c":
                kind, style = value.get("t", "n"), value.get("s", "")
            case "#text" if is_value:
                pieces.append(value)
            case "v" | "t":
                is_value = True
            case "/v" | "/t":
                is_value = False
            case "/c":
                if pieces:
                    text.add(_cell_text("".join(pieces), kind, style, workbook))
                    pieces.clear()
                    text.end(CELL)
            case "/row":
                text.end(LINE)


def _cell_text(value: str, kind: str, style: str, workbook: Workbook) -> str:
    match kind:
        case "s":
            index = _number(value)
            return workbook.strings[index] if index is not None and index < len(workbook.strings) else ""
        case "b":
            return "TRUE" if value.strip() == "1" else "FALSE"
        case "e":
            return ""
        case "n":
            index = _number(style)
            is_date = index is not None and index < len(workbook.dates) and workbook.dates[index]
            return _number_text(value, workbook.first_day if is_date else None)
    return value


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _number_text(text: str, first_day: datetime | None) -> str:
    """Format a number with the 15 digits of Excel's precision, or as a date or time in ISO 8601."""
    try:
        number = float(text)
    except ValueError:
        return text
    if first_day is None or not 0 <= number <= LAST_DAY:
        return f"{number:.15g}"
    moment = first_day + timedelta(seconds=round(number * 86_400))
    if number < 1:
        return f"{moment:%H:%M:%S}".removesuffix(":00")
    day = moment.date().isoformat()
    return day if number.is_integer() else f"{day} {moment:%H:%M:%S}".removesuffix(":00")


def _strings(archive: Archive, part: str) -> list[str]:
    """Return the shared strings, which cells refer to by number."""
    strings: list[str] = []
    pieces: list[str] = []
    is_text = False
    for shared in targets(archive, part, "sharedStrings"):
        for tag, value in archive.elements(shared, PHONETIC):
            match tag:
                case "#text" if is_text:
                    pieces.append(value)
                case "t":
                    is_text = True
                case "/t":
                    is_text = False
                case "/si":
                    strings.append("".join(pieces))
                    pieces.clear()
    return strings


def _dates(archive: Archive, part: str) -> list[bool]:
    """Return, for each cell style by number, whether it displays a date or a time."""
    formats: dict[str, str] = {}
    dates: list[bool] = []
    is_used = False
    for styles in targets(archive, part, "styles"):
        for tag, value in archive.elements(styles):
            match tag:
                case "numFmt":
                    formats[value.get("numFmtId", "")] = value.get("formatCode", "")
                case "cellXfs":
                    is_used = True
                case "/cellXfs":
                    is_used = False
                case "xf" if is_used:
                    dates.append(_is_date(value.get("numFmtId", ""), formats))
    return dates


def _is_date(number: str, formats: dict[str, str]) -> bool:
    if number in formats:
        return DATE_CODES.search(LITERALS.sub("", formats[number])) is not None
    return _number(number) in BUILT_IN_DATE_FORMATS
