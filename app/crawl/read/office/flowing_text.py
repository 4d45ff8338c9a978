"""Text as it is gathered from the elements of an office file, with the breaks between its pieces."""

from __future__ import annotations

import re

from app.crawl.read.bounds import MAX_TEXT_BYTES, cut_line

NONE, WORD, LINE_IN_CELL, CELL, LINE, BLOCK = range(6)
"""Breaks between two pieces of text; the strongest one wins. The paragraphs of a cell are lines, but where its last one
ends, the cell does."""
WRITTEN = ("", " ", "\n", "\t", "\n", "\n\n")

BLANKS = re.compile(r"[ \t\r\n]+")
SEVERAL_BLANKS = re.compile(" {2,}")
AROUND_BREAKS = re.compile(r" ?([\t\n]+) ?")


class TextIsFull(Exception):
    """There is as much text as a document takes. The rest of the file need not be read."""


class FlowingText:
    """Gathers the text of a file.

    Attributes:
        pages: The text of each page that ended.
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
        """The first heading that is the title of all, else the first one; empty if there is none."""
        return self._titles.get(True) or self._titles.get(False, "")

    def add(self, text: str) -> None:
        """Add a piece of text, in which line breaks and tabs are blanks.

        Raises:
            TextIsFull: There was room for no more.
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
        """A break: what follows is another word, line, cell, or block."""
        if self._cells and strength != CELL:
            strength = min(strength, LINE_IN_CELL)
        self._pending = max(self._pending, strength)
        if self._heading is not None:
            self._heading.append(" ")

    def begin_cell(self) -> None:
        """A cell of a table begins."""
        self._cells += 1

    def end_cell(self) -> None:
        """It ends."""
        self._cells -= 1
        self.end(CELL)

    def begin_heading(self, *, is_title: bool = False) -> None:
        """A heading begins; ``is_title`` if it is that of all."""
        self.end(BLOCK)
        self._heading, self._is_title = [], is_title

    def end_paragraph(self) -> None:
        """A paragraph ends, or a heading if one began."""
        if self._heading is not None:
            if heading := cut_line("".join(self._heading)):
                self._titles.setdefault(self._is_title, heading)
            self._heading = None
            self.end(BLOCK)
        else:
            self.end(LINE)

    def finish(self) -> None:
        """The text ends, and with it the page that is not ended."""
        if self._parts or not self.pages:
            self.end_page()

    def end_page(self) -> None:
        """A page ends."""
        text = SEVERAL_BLANKS.sub(" ", "".join(self._parts))
        self.pages.append(AROUND_BREAKS.sub(r"\1", text).strip())
        self._parts.clear()
        self._pending, self._cells, self._heading = NONE, 0, None
