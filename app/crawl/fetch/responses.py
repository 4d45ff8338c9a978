"""Parts of HTTP responses: media types and their detection, compression, and cookies."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar
from threading import Lock
from urllib.request import Request

HEAD_BYTES = 1_024
"""Number of leading bytes of a body from which its type is detected."""

OFFICE_TYPES = (
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.oasis.opendocument.presentation",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/epub+zip",
)
"""Media types of office files and e-books, which are archives of XML. The content alone determines a file's kind."""

_ARCHIVE_TYPE = "application/zip"
_ARCHIVE = b"PK\x03\x04"
_OFFICE_PARTS = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"customXml/", b"word/", b"ppt/", b"xl/", b"mimetype")
"""Prefixes of part names. The name of an office file's first part has one of them."""
_NAME_LENGTH_AT = 26
_NAME_AT = 30

_FILES = {"application/pdf", "application/x-pdf", *OFFICE_TYPES}
_PAGES = {*_FILES, "application/xhtml+xml", "application/xml", "text/xml"}
_NOT_PAGES = {
    "text/calendar",
    "text/css",
    "text/ecmascript",
    "text/event-stream",
    "text/javascript",
    "text/vcard",
}
_UNTYPED = {
    "",
    "*/*",
    "application/octet-stream",
    "application/unknown",
    "binary/octet-stream",
    "unknown/unknown",
}
"""Types that servers send for files of unknown type."""
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_BYTES_PER_STRAY = 20
"""Minimum bytes of text for each accepted control character, since some programs leave a few of them behind."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]{1,64})", re.IGNORECASE)
_COMMA = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
# The binary data bytes of the MIME Sniffing standard.
_CONTROL_CHARACTERS = bytes(byte for byte in range(32) if byte not in b"\t\n\f\r\x1b")


def media_type(content_type: str) -> str:
    """Return the media type from a ``Content-Type`` header in lower case, without parameters; empty without a type."""
    return content_type.partition(";")[0].strip().lower()


def effective_content_type(values: Iterable[str]) -> str:
    """Return the last valid value of one or several headers ``Content-Type``, as browsers do; empty without any.

    ``"text/html; charset=utf-8, text/html" -> "text/html; charset=utf-8"``
    """
    effective = ""
    for value in values:
        for part in _COMMA.split(value):
            is_repeated = media_type(part) == media_type(effective) and not charset_of(part)
            if _MEDIA_TYPE.fullmatch(media_type(part)) and not is_repeated:
                effective = part.strip()
    return effective


def charset_of(content_type: str) -> str | None:
    """Return the ``charset`` of a ``Content-Type`` header as written, or ``None``."""
    match = _CHARSET.search(content_type)
    return match[1] if match else None


def parse_http_date(value: str) -> datetime | None:
    """Return the time in a header, in UTC unless it names a time zone; ``None`` if it is not a date."""
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # An offset of many digits overflows.
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def is_page(content_type: str) -> bool:
    """Whether a body with a ``Content-Type`` may be text, a PDF, or an office file; true for unknown types."""
    kind = media_type(content_type)
    return kind in _PAGES or kind in _UNTYPED or (kind.startswith("text/") and kind not in _NOT_PAGES)


def is_archive(head: bytes) -> bool:
    """Whether a body with this beginning is a ZIP archive."""
    return head.startswith(_ARCHIVE)


def sniff(content_type: str, head: bytes) -> str | None:
    """Detect the type of a page from the server's ``Content-Type`` and the beginning of the body.

    Args:
        content_type: The server's ``Content-Type``; empty if there is none.
        head: The first :data:`HEAD_BYTES` of the body, or all of it.

    Returns:
        The server's type if it is specific, otherwise the detected one; ``None`` if the body is neither
        text, a PDF, nor an office file.
    """
    start = head.lstrip()
    if start.startswith(b"%PDF-"):
        return "application/pdf"
    kind = media_type(content_type)
    if is_archive(head) and (kind in OFFICE_TYPES or _begins_office_file(head)):
        return content_type if kind in OFFICE_TYPES else _ARCHIVE_TYPE
    if kind in _FILES:
        return None
    # In UTF-16 and UTF-32, plain letters contain zero bytes.
    wide = "utf-16" in content_type.lower() or "utf-32" in content_type.lower()
    if not (wide or head.startswith(_BYTE_ORDER_MARKS)):
        stray = len(head) - len(head.translate(None, _CONTROL_CHARACTERS))
        if stray > (max(1, len(head) // _BYTES_PER_STRAY) if is_page(content_type) and kind not in _UNTYPED else 0):
            return None
    if kind not in _UNTYPED:
        return content_type
    if start.startswith(b"<?xml"):
        return "application/xml"
    return "text/html" if start.startswith(b"<") else "text/plain"


def _begins_office_file(head: bytes) -> bool:
    # The name's length takes two bytes; the other two are the length of the extra field.
    length = int.from_bytes(head[_NAME_LENGTH_AT:_NAME_AT], "little") & 0xFFFF
    return head[_NAME_AT : _NAME_AT + length].startswith(_OFFICE_PARTS)


PACKED = "gzip, deflate"
"""The ``Accept-Encoding`` of a client that reads bodies with :func:`unpack`."""

_UNPACKED_PIECE_BYTES = 65_536
# With 32 added, zlib detects the kind of header itself.
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_MAX_ENCODINGS = 2


class UnpackingError(Exception):
    """A body is not compressed as declared, or uses a compression method that was not offered."""


_GZIP = {"gzip", "x-gzip"}
_UNPACKED = {*_GZIP, "deflate"}
_COMPRESSIONS = {"br", "bzip2", "compress", "dcb", "dcz", "exi", "lzma", "x-bzip2", "x-compress", "xz", "zstd"}
"""Compression methods that the crawler does not request."""
_END = re.compile(rb"</(?:html|feed|rss|sitemapindex|urlset)\s*>(?:\s|<!--(?:[^-]|-(?!->))*+-->)*+\Z", re.IGNORECASE)
_END_BYTES = 4_096


def is_complete(content_type: str, body: bytes | bytearray) -> bool:
    """Whether a body seems complete: pages and lists end with their last tag, and plain text with a line break."""
    if media_type(content_type) == "text/plain":
        return body.endswith(b"\n")
    return _END.search(body[-_END_BYTES:]) is not None


def unpack(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Decompress a body into pieces of at most 64 KiB, so that a decompression bomb takes little memory.

    Values that are not compression methods, such as ``utf-8``, are ignored, as in browsers.

    Pieces may be empty: even if a body decompresses to nothing for a long time, the caller can stop in between.

    Args:
        pieces: The body as transferred.
        encoding: The value of ``Content-Encoding``; empty for none.

    Raises:
        UnpackingError: The body is not compressed with this method or ends too early, or the method was not requested.
    """
    names = [name.strip().lower() for name in encoding.split(",")]
    layers = [name for name in names if name in _UNPACKED or name in _COMPRESSIONS]
    if len(layers) > _MAX_ENCODINGS:
        raise UnpackingError("compressed too many times")
    for name in reversed(layers):
        if name in _GZIP:
            pieces = _inflate(pieces, _GZIP_OR_ZLIB)
        elif name == "deflate":
            pieces = _inflate(pieces, None)
        else:
            raise UnpackingError(f"compressed with {name}, which was not requested")
    yield from pieces


def _inflate(pieces: Iterable[bytes], wbits: int | None) -> Iterator[bytes]:
    """Decompress gzip members or zlib streams; if ``wbits`` is ``None``, detect whether it is zlib or raw deflate."""
    inflater: zlib._Decompress | None = None
    has_started = False
    for piece in pieces:
        packed = piece
        while packed or inflater is not None:
            if inflater is None:
                if has_started and not packed.startswith(b"\x1f"):
                    return  # Some servers pad the end with zeros.
                # A new object for each member: gzip files may consist of several, one after the other.
                inflater = zlib.decompressobj(wbits or _deflate_wbits(packed))
                has_started = True
            try:
                unpacked = inflater.decompress(packed, _UNPACKED_PIECE_BYTES)
            except zlib.error as error:
                raise UnpackingError(str(error)) from error
            yield unpacked
            if inflater.eof:
                packed = inflater.unused_data
                inflater = None
            else:
                packed = inflater.unconsumed_tail
                # A full piece means that zlib may hold back more output, even if all input is consumed.
                if not packed and len(unpacked) < _UNPACKED_PIECE_BYTES:
                    break
    if inflater is not None:
        raise UnpackingError("the body ends too early")


def _deflate_wbits(packed: bytes) -> int:
    """Detect the format of deflate: some servers omit the zlib header that RFC 9110 requires."""
    return zlib.MAX_WBITS if packed[0] & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS


_MAX_COOKIES = 100
_MAX_COOKIE_BYTES = 8_192


class Cookies:
    """The cookies of one run, in memory: at most 100, of which at most 8 KiB are sent with a request."""

    def __init__(self) -> None:
        self._jar = CookieJar()
        self._lock = Lock()

    def header(self, url: str) -> str:
        """Return the value of the header ``Cookie`` for a request; empty without cookies."""
        request = Request(url)  # noqa: S310  The request is not opened.
        with self._lock:
            self._jar.add_cookie_header(request)
        cookies = str(request.get_header("Cookie", ""))
        return cookies if len(cookies) <= _MAX_COOKIE_BYTES else ""

    def store(self, url: str, set_cookies: list[str]) -> None:
        """Store the cookies of a response.

        Args:
            url: The URL of the response.
            set_cookies: The values of its ``Set-Cookie`` headers.
        """
        if not set_cookies:
            return
        headers = Message()
        for value in set_cookies[:_MAX_COOKIES]:
            headers["Set-Cookie"] = value
        with self._lock:
            self._jar.extract_cookies(_Response(headers), Request(url))  # type: ignore[arg-type]  # noqa: S310
            # The jar has no way to remove the oldest cookies. A site with so many does not depend on them.
            if len(self._jar) > _MAX_COOKIES:
                self._jar.clear()


class _Response:
    """The part of a response that :meth:`CookieJar.extract_cookies` reads."""

    def __init__(self, headers: Message):
        self._headers = headers

    def info(self) -> Message:
        return self._headers
