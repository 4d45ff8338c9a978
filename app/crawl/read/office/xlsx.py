"""Text from Excel workbooks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.crawl.read.office.archive import Archive
from app.crawl.read.office.flowing_text import BLOCK, CELL, LINE, FlowingText
from app.crawl.read.office.open_xml import is_on, relationships, targets

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
    """Read the visible sheets in their order: the name of each, then its rows.

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
    """The text of a cell."""
    match kind:
        case "s":
            place = _number(value)
            return workbook.strings[place] if place is not None and place < len(workbook.strings) else ""
        case "b":
            return "TRUE" if value.strip() == "1" else "FALSE"
        case "e":
            return ""
        case "n":
            place = _number(style)
            is_date = place is not None and place < len(workbook.dates) and workbook.dates[place]
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
    """The shared strings, which cells refer to by number."""
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
