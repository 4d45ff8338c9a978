"""ZIP archives of XML: their parts by name, unpacked piece by piece within bounds."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from app.crawl.fetch.values import MAX_PAGE_BYTES, NotIndexed, Reason

MAX_ENTRIES = 10_000
MAX_UNPACKED_BYTES = 128 * 1_048_576
"""Bytes of all parts that are read together."""
MAX_ELEMENTS = 2_000_000
"""Elements of all parts that are read together."""

TEXT = "#text"
"""The tag of a piece of text."""

_ENTRY = b"PK\x01\x02"
"""Begins each entry of an archive's directory."""
_PIECE_BYTES = 16_384
"""How much is unpacked at a time. The more, the more objects live at once, which costs the garbage collector time; the
less, the more often a very long tag is looked at."""
_RELATIONSHIPS = "/relationships"


class Archive:
    """The parts of a file.

    Args:
        body: The file.

    Raises:
        NotIndexed: It is broken (``not_text``), or has too many parts (``too_large``).
    """

    def __init__(self, body: bytes):
        # The directory is read into an object per entry, so they are counted before.
        if body.count(_ENTRY) > MAX_ENTRIES:
            raise _too_large()
        with _broken():
            self._zip = ZipFile(BytesIO(body))
        self._bytes_left = MAX_UNPACKED_BYTES
        self._elements_left = MAX_ELEMENTS

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """All of a part; empty if there is none.

        Raises:
            NotIndexed: It is broken or behind a password (``not_text``), or too large (``too_large``).
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
        """The elements and texts of a part of XML in their order; none if there is no such part.

        Each is a tag and a value: ``p`` and its attributes where an element begins, ``/p`` where it ends, and
        :data:`TEXT` with the text. Names are without their namespaces, but attributes that name a relationship begin
        with ``r:``. Nothing is looked up, and a type declaration, which could declare entities, is refused.

        Args:
            skipped: Elements that are left out with all in them.

        Raises:
            NotIndexed: As :meth:`read`; also if it is no XML (``not_text``).
        """
        if name not in self:
            return
        events = _Events(skipped)
        for piece in self._pieces(name):
            found = events.of(piece)
            self._elements_left -= events.take_count()
            if self._elements_left < 0:
                raise _too_large()
            yield from found
        yield from events.of(b"", is_last=True)

    def _pieces(self, name: str) -> Iterator[bytes]:
        with _broken():
            info = self._zip.getinfo(name)
            if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise BadZipFile("it is packed in a way that no office file is")
            with self._zip.open(info) as part:
                while piece := part.read(_PIECE_BYTES):
                    self._bytes_left -= len(piece)
                    if self._bytes_left < 0:
                        raise _too_large()
                    yield piece


class _Events:
    """A parser's target: gathers elements and texts."""

    def __init__(self, skipped: Collection[str]):
        self._skipped = skipped
        self._found: list[tuple[str, Any]] = []
        self._count = 0
        self._depth_of_skipped = 0
        self._tags: dict[str, tuple[str, str]] = {}
        self._names: dict[str, str] = {}
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_type
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def of(self, piece: bytes, *, is_last: bool = False) -> list[tuple[str, Any]]:
        """The content of a piece of the file."""
        self._found = []
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            raise broken_file() from error
        return self._found

    def take_count(self) -> int:
        """Elements since the last time."""
        count, self._count = self._count, 0
        return count

    def _refuse_type(self, *_declared: object) -> None:
        raise NotIndexed(Reason.NOT_TEXT, "The file declares a document type, which no office file does.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._depth_of_skipped:
            self._depth_of_skipped += 1
            return
        tags = self._tags.get(name)
        if tags is None:
            local = name.rpartition(" ")[2]
            tags = self._tags[name] = (local, f"/{local}")
        if tags[0] in self._skipped:
            self._depth_of_skipped = 1
            return
        self._found.append((tags[0], self._named(attributes) if attributes else attributes))

    def _end(self, name: str) -> None:
        if self._depth_of_skipped:
            self._depth_of_skipped -= 1
        else:
            self._found.append((self._tags[name][1], None))

    def _text(self, text: str) -> None:
        if not self._depth_of_skipped:
            self._found.append((TEXT, text))

    def _named(self, attributes: Mapping[str, str]) -> dict[str, str]:
        return {self._names.get(name) or self._name(name): value for name, value in attributes.items()}

    def _name(self, name: str) -> str:
        namespace, _, local = name.rpartition(" ")
        self._names[name] = shown = f"r:{local}" if namespace.endswith(_RELATIONSHIPS) else local
        return shown


@contextmanager
def _broken() -> Iterator[None]:
    """Translate whatever :mod:`zipfile` raises for a hostile file. For one with a password that is a RuntimeError."""
    try:
        yield
    except (BadZipFile, zlib.error, struct.error, RuntimeError, EOFError, ValueError, OSError, OverflowError) as error:
        raise broken_file() from error


def broken_file() -> NotIndexed:
    """The refusal of a file that cannot be read."""
    return NotIndexed(Reason.NOT_TEXT, "The file is broken, behind a password, or no office file.")


def _too_large() -> NotIndexed:
    return NotIndexed(Reason.TOO_LARGE, "The file unpacks to more than is read of one.")
