"""Text collected from the elements of an office file, with the breaks between its pieces."""

from __future__ import annotations

import re

from app.crawl.read.bounds import MAX_TEXT_BYTES, cut_line

NONE, WORD, LINE_IN_CELL, CELL, LINE, BLOCK = range(6)
"""Breaks between two pieces of text, weakest first; the strongest one wins.

The paragraphs of a cell are separated by line breaks, but the last paragraph is followed by the break of the cell.
"""
WRITTEN = ("", " ", "\n", "\t", "\n", "\n\n")

BLANKS = re.compile(r"[ \t\r\n]+")
SEVERAL_BLANKS = re.compile(" {2,}")
AROUND_BREAKS = re.compile(r" ?([\t\n]+) ?")


class TextIsFull(Exception):
    """The text has reached the limit of a document. The rest of the file need not be read."""


class FlowingText:
    """Collects the text of a file.

    Attributes:
        pages: The text of each finished page.
    """

    def __init__(self) -> None:
        self.pages: list[str] = []
        self._room = MAX_TEXT_BYTES
        self._parts: list[str] = []
        self._pending = NONE
        self._cells = 0
        self._heading: list[str] | None = None
        self._is_title = False
        self._titles: dict[bool, str] = {}

    @property
    def title(self) -> str:
        """The first heading marked as the title, otherwise the first heading; empty without headings."""
        return self._titles.get(True) or self._titles.get(False, "")

    def add(self, text: str) -> None:
        """Add a piece of text. Its line breaks and tabs count as blanks.

        Raises:
            TextIsFull: The text has reached the limit.
        """
        text = BLANKS.sub(" ", text)
        if not text or (text == " " and self._pending > WORD):
            return
        if self._room <= 0:
            raise TextIsFull
        if self._pending:
            if self._parts:
                self._parts.append(WRITTEN[self._pending])
                self._room -= len(WRITTEN[self._pending])
            self._pending = NONE
        self._parts.append(text)
        self._room -= len(text)
        if self._heading is not None:
            self._heading.append(text)

    def end(self, strength: int) -> None:
        """End a word, line, cell, or block."""
        if self._cells and strength != CELL:
            strength = min(strength, LINE_IN_CELL)
        self._pending = max(self._pending, strength)
        if self._heading is not None:
            self._heading.append(" ")

    def begin_cell(self) -> None:
        """Begin a cell of a table."""
        self._cells += 1

    def end_cell(self) -> None:
        """End a cell of a table."""
        self._cells -= 1
        self.end(CELL)

    def begin_heading(self, *, is_title: bool = False) -> None:
        """Begin a heading; ``is_title`` marks the title of the document."""
        self.end(BLOCK)
        self._heading, self._is_title = [], is_title

    def end_paragraph(self) -> None:
        """End the current heading or paragraph."""
        if self._heading is not None:
            if heading := cut_line("".join(self._heading)):
                self._titles.setdefault(self._is_title, heading)
            self._heading = None
            self.end(BLOCK)
        else:
            self.end(LINE)

    def finish(self) -> None:
        """End the text and its last page."""
        if self._parts or not self.pages:
            self.end_page()

    def end_page(self) -> None:
        """End a page."""
        text = SEVERAL_BLANKS.sub(" ", "".join(self._parts))
        self.pages.append(AROUND_BREAKS.sub(r"\1", text).strip())
        self._parts.clear()
        self._pending, self._cells, self._heading = NONE, 0, None
