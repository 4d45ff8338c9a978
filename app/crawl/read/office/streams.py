"""Office files as streams: XML unpacked from ZIP archives within limits, and text collected from its elements."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from app.crawl.fetch.values import MAX_PAGE_BYTES, NotIndexed, Reason
from app.crawl.read.text import MAX_TEXT_BYTES, cut_line

MAX_ENTRIES = 10_000
MAX_UNPACKED_BYTES = 128 * 1_048_576
"""Maximum unpacked bytes of all parts together."""
MAX_ELEMENTS = 2_000_000
"""Maximum number of XML elements in all parts together."""

TEXT = "#text"
"""The tag of a piece of text."""

_ENTRY = b"PK\x01\x02"
"""Signature of each entry of an archive's directory."""
_PIECE_BYTES = 16_384
"""Bytes that are unpacked at once. With larger pieces more objects stay alive, which costs the garbage collector time;
with smaller pieces the parser scans a very long tag more often.
"""
_RELATIONSHIPS = "/relationships"


class Archive:
    """The parts of an office file or e-book.

    Args:
        body: The file's content.

    Raises:
        NotIndexed: The file is broken (``not_text``), or has too many parts (``too_large``).
    """

    def __init__(self, body: bytes):
        # ZipFile creates an object for each entry of the directory, so count the entries first.
        if body.count(_ENTRY) > MAX_ENTRIES:
            raise _too_large()
        with _broken():
            self._zip = ZipFile(BytesIO(body))
        self._bytes_left = MAX_UNPACKED_BYTES
        self._elements_left = MAX_ELEMENTS

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """Read a part; empty if it does not exist.

        Raises:
            NotIndexed: The part is broken or needs a password (``not_text``), or is too large (``too_large``).
        """
        if name not in self:
            return b""
        body = bytearray()
        for piece in self._pieces(name):
            body += piece
            if len(body) > MAX_PAGE_BYTES:
                raise _too_large()
        return bytes(body)

    def elements(self, name: str, skipped: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
        """Iterate over the tags and texts of an XML part; empty if it does not exist.

        Each item is a tag and a value: ``p`` and its attributes for a start tag, ``/p`` for an end tag, and
        :data:`TEXT` with the text. Names have no namespace, but attributes that refer to a relationship begin with
        ``r:``. A document type declaration is rejected, since it could declare entities.

        Args:
            skipped: Elements to skip with their content.

        Raises:
            NotIndexed: As :meth:`read`; also if the part is not XML (``not_text``).
        """
        if name not in self:
            return
        events = _Events(skipped)
        for piece in self._pieces(name):
            items = events.parse(piece)
            self._elements_left -= events.take_count()
            if self._elements_left < 0:
                raise _too_large()
            yield from items
        yield from events.parse(b"", is_last=True)

    def _pieces(self, name: str) -> Iterator[bytes]:
        with _broken():
            info = self._zip.getinfo(name)
            # The standards of both families, OPC and OpenDocument, allow no other methods.
            if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise BadZipFile("unexpected compression method")
            with self._zip.open(info) as part:
                while piece := part.read(_PIECE_BYTES):
                    self._bytes_left -= len(piece)
                    if self._bytes_left < 0:
                        raise _too_large()
                    yield piece


class _Events:
    """Collects tags and texts from an expat parser."""

    def __init__(self, skipped: Collection[str]):
        self._skipped = skipped
        self._items: list[tuple[str, Any]] = []
        self._count = 0
        self._skipped_depth = 0
        self._tags: dict[str, tuple[str, str]] = {}
        self._names: dict[str, str] = {}
        self._parser = expat.ParserCreate(namespace_separator=" ")
        # Otherwise expat reports every line, and every entity, as a text of its own.
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._reject_type
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def parse(self, piece: bytes, *, is_last: bool = False) -> list[tuple[str, Any]]:
        """Parse a piece of the file, and return the tags and texts in it."""
        self._items = []
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            raise broken_file() from error
        return self._items

    def take_count(self) -> int:
        """Return the number of elements since the last call."""
        count, self._count = self._count, 0
        return count

    def _reject_type(self, *_declared: object) -> None:
        raise NotIndexed(Reason.NOT_TEXT, "The file declares a document type, which office files must not do.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._skipped_depth:
            self._skipped_depth += 1
            return
        tags = self._tags.get(name)
        if tags is None:
            local = name.rpartition(" ")[2]
            tags = self._tags[name] = (local, f"/{local}")
        if tags[0] in self._skipped:
            self._skipped_depth = 1
            return
        self._items.append((tags[0], self._without_namespaces(attributes) if attributes else attributes))

    def _end(self, name: str) -> None:
        if self._skipped_depth:
            self._skipped_depth -= 1
        else:
            self._items.append((self._tags[name][1], None))

    def _text(self, text: str) -> None:
        if not self._skipped_depth:
            self._items.append((TEXT, text))

    def _without_namespaces(self, attributes: Mapping[str, str]) -> dict[str, str]:
        return {self._names.get(name) or self._name(name): value for name, value in attributes.items()}

    def _name(self, name: str) -> str:
        namespace, _, local = name.rpartition(" ")
        self._names[name] = short = f"r:{local}" if namespace.endswith(_RELATIONSHIPS) else local
        return short


@contextmanager
def _broken() -> Iterator[None]:
    """Translate the errors that :mod:`zipfile` raises for hostile or password-protected files."""
    try:
        yield
    except (BadZipFile, zlib.error, struct.error, RuntimeError, EOFError, ValueError, OSError, OverflowError) as error:
        raise broken_file() from error


def broken_file() -> NotIndexed:
    """Return the error for a file that cannot be read."""
    return NotIndexed(Reason.NOT_TEXT, "The file is damaged, needs a password, or is not an office file.")


def _too_large() -> NotIndexed:
    return NotIndexed(Reason.TOO_LARGE, "The unpacked file exceeds the size limit.")


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
        """Return the first heading marked as the title, otherwise the first heading; empty without headings."""
        return self._titles.get(True) or self._titles.get(False, "")

    def add(self, text: str) -> None:
        """Append text; line breaks and tabs become spaces.

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
        """End a word, line, cell, or block.

        Args:
            strength: The kind of separator, such as :data:`CELL`. The strongest separator between two texts is used.
        """
        if self._cells and strength != CELL:
            strength = min(strength, LINE_IN_CELL)
        self._pending = max(self._pending, strength)
        if self._heading is not None:
            self._heading.append(" ")

    def begin_cell(self) -> None:
        self._cells += 1

    def end_cell(self) -> None:
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
