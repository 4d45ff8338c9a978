"""WordPress exports (WXR): RSS with the posts and pages of a blog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from xml.parsers import expat

from app.bounded_process import Bound, BoundedProcess, BoundExceeded, Source
from app.importers.records import MAX_RECORD_BYTES, TOO_LONG, BadLine, ByteStream, Read, Record, UnreadableFile
from app.texts.formats import html_to_text
from schemas.validation.problems import Problem

CHUNK_BYTES = 65_536

_WORDPRESS = "http://wordpress.org/export/"
_CONTENT = "http://purl.org/rss/1.0/modules/content/ encoded"
_CREATOR = "http://purl.org/dc/elements/1.1/ creator"
MAX_DEPTH = 100
"""Maximum depth of nested elements; fields have depth 4."""
_FIELD_DEPTH = len(("rss", "channel", "item", "title"))
_TAXONOMIES = {"category": "categories", "post_tag": "tags", "tag": "tags"}
_INDEXED_TYPES = frozenset(("post", "page"))

_CONTROL = bytes.maketrans(bytes(range(9)) + b"\x0b\x0c" + bytes(range(14, 32)), b" " * 29)
"""Replaces characters that are not allowed in XML but occur in exports."""

_SHORTCODE = re.compile(
    r"\[/?(?:caption|wp_caption|gallery|audio|video|playlist|embed)\b[^\]\[]*\]"
    r"|\[/[a-z][\w-]*\]|\[[a-z][\w-]*(?:\s+[\w-]+=(?:\"[^\"]*\"|'[^']*'|[^\s\[\]\"']+))+\s*/?\]"
)
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


def read_wxr(stream: ByteStream) -> Iterator[Read]:
    """Read the published posts and pages without a password, in a separate process. Their URLs are their IDs.

    Raises:
        UnreadableFile: The file is not a WordPress export, or takes too much time or memory to read.
    """
    with closing(BoundedProcess()) as process:
        try:
            for read in process.stream(_read_until_unreadable, stream):
                if isinstance(read, Problem):
                    raise UnreadableFile(read)
                yield read
        except BoundExceeded as error:
            raise UnreadableFile(Problem(str(error), _EXCEEDED[error.bound])) from error


def _read_until_unreadable(stream: Source) -> Iterator[Read | Problem]:
    try:
        yield from read_items(stream)
    # The error is yielded, because a task that raises counts as a crash of the process.
    except UnreadableFile as error:
        yield error.problem


def read_items(stream: Source) -> Iterator[Read]:
    """Do the work of :func:`read_wxr` in this process.

    Raises:
        UnreadableFile: The file is not a WordPress export, or its elements are nested too deeply.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    export = _Export(parser)
    try:
        while chunk := stream.read(CHUNK_BYTES):
            parser.Parse(chunk.translate(_CONTROL), False)
            yield from export.read_items()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        if not export.is_wordpress:
            raise UnreadableFile(_NOT_AN_EXPORT) from error
        yield from export.read_items()
        problem = f"is not well-formed XML: {expat.errors.messages[error.code]}; the rest was not read"
        yield BadLine(error.lineno, Problem(problem, "invalid_xml"))
        return
    yield from export.read_items()
    if not export.is_wordpress:
        raise UnreadableFile(_NOT_AN_EXPORT)


_NOT_AN_EXPORT = Problem("is not a WordPress export", "invalid_xml")
_TOO_DEEP = Problem(f"has elements nested more than {MAX_DEPTH} levels deep", "invalid_xml")
_EXCEEDED = {
    Bound.TIME: "timeout",
    Bound.MEMORY: "too_large",
    Bound.BROKEN: "invalid_xml",
    Bound.CRASHED: "invalid_xml",
}
_TYPE_DECLARATION = Problem("must not declare a document type", "invalid_xml")


class _Export:
    """The items of an export that have been read so far.

    Attributes:
        is_wordpress: Whether the file declares WordPress's namespace.
    """

    def __init__(self, parser: expat.XMLParserType):
        self._parser = parser
        self.is_wordpress = False
        self._path: list[str] = []
        self._authors: dict[str, str] = {}
        self._login = ""
        self._read: list[Read] = []
        self._line = 0
        self._item: dict[str, str] = {}
        self._terms: dict[str, list[str]] = {}
        self._taxonomy = ""
        self._text: list[str] = []
        self._size = 0
        parser.StartNamespaceDeclHandler = self._declare_namespace
        parser.StartDoctypeDeclHandler = self._reject_type
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text

    def read_items(self) -> Iterator[Read]:
        """Yield the items that were read since the last call."""
        yield from self._read
        self._read.clear()

    def _declare_namespace(self, _prefix: str | None, uri: str | None) -> None:
        self.is_wordpress = self.is_wordpress or (uri or "").startswith(_WORDPRESS)

    def _reject_type(self, *_declared: object) -> None:
        # Only a document type can declare entities, which could be bombs or URLs to fetch.
        raise UnreadableFile(_TYPE_DECLARATION)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(_short(name))
        if len(self._path) > MAX_DEPTH:
            raise UnreadableFile(_TOO_DEEP)
        self._text.clear()
        path = self._channel_path()
        if path == ["item"]:
            self._line = self._parser.CurrentLineNumber
            self._item, self._terms, self._size = {}, {}, 0
        elif path == ["item", "category"]:
            self._taxonomy = _TAXONOMIES.get(attributes.get("domain", ""), "")

    def _channel_path(self) -> list[str]:
        """Return the path within the channel, up to one element below a field."""
        return self._path[2 : _FIELD_DEPTH + 1]

    def _add_text(self, text: str) -> None:
        if len(self._path) != _FIELD_DEPTH:
            return
        self._size += len(text)
        if self._size <= MAX_RECORD_BYTES:
            self._text.append(text)

    def _end(self, _name: str) -> None:
        path = self._channel_path()
        self._path.pop()
        text = "".join(self._text)
        self._text.clear()
        match path:
            case ["item", "category"]:
                if self._taxonomy and (term := html_to_text(text)):
                    self._terms.setdefault(self._taxonomy, []).append(term)
            case ["item", field]:
                self._item.setdefault(field, text)
            case ["item"]:
                self._finish_item()
            case ["wp:author", "wp:author_login"]:
                self._login = text.strip()
            case ["wp:author", "wp:author_display_name"]:
                self._authors[self._login] = text.strip()

    def _finish_item(self) -> None:
        item = self._item
        if self._size > MAX_RECORD_BYTES:
            self._read.append(BadLine(self._line, TOO_LONG))
        elif (
            item.get("wp:status") == "publish"
            and item.get("wp:post_type") in _INDEXED_TYPES
            and not item.get("wp:post_password")
        ):
            self._read.append(Record(self._line, self._document()))

    def _document(self) -> dict[str, object]:
        item = self._item
        url = item.get("link", "").strip()
        login = item.get("author", "").strip()
        return {
            "id": url.partition("#")[0] or None,
            "url": url or None,
            "title": html_to_text(item.get("title", "")),
            "content": _text_of(item.get("content", "")),
            "excerpt": _text_of(item.get("excerpt", "")) or None,
            "author": self._authors.get(login) or login or None,
            "date": _date_of(item),
            "type": item["wp:post_type"],
            "post_id": _number_of(item.get("wp:post_id", "")),
            **self._terms,
        }


def _short(name: str) -> str:
    """``"http://wordpress.org/export/1.2/ status" -> "wp:status"``"""
    if name == _CONTENT:
        return "content"
    if name == _CREATOR:
        return "author"
    if name.startswith(_WORDPRESS):
        return "excerpt" if name.endswith("/excerpt/ encoded") else "wp:" + name.rpartition(" ")[2]
    return name


def _text_of(content: str) -> str:
    """Convert a post's content to text. It is HTML with shortcodes, in which blank lines may separate paragraphs."""
    return html_to_text(_BLANK_LINE.sub("\n<p>", _SHORTCODE.sub(" ", content)))


def _date_of(item: dict[str, str]) -> str | None:
    """Return the time of publication, in UTC if the export contains it, otherwise in the blog's local time."""
    for name, zone in (("wp:post_date_gmt", "Z"), ("wp:post_date", "")):
        with suppress(ValueError):  # It is 0000-00-00 for an unpublished post.
            return datetime.fromisoformat(item.get(name, "").strip()).isoformat() + zone
    with suppress(ValueError, OverflowError):  # An offset of many digits overflows.
        return parsedate_to_datetime(item.get("pubDate", "")).isoformat()
    return None


def _number_of(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
