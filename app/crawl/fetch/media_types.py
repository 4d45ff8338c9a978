"""Media types: which bodies can be read as pages."""

from __future__ import annotations

import re

HEAD_BYTES = 1_024
"""How much of a body tells what it is."""

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
"""Office files and e-books: archives of XML. Which of them one is, and whether it is one, is told by what is in it."""

_ARCHIVE_TYPE = "application/zip"
_ARCHIVE = b"PK\x03\x04"
_OFFICE_PARTS = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"customXml/", b"word/", b"ppt/", b"xl/", b"mimetype")
"""How the names of the parts begin of which one comes first in an office file."""
_NAME_LENGTH_AT = 26
_NAME_AT = 30

_FILES = {"application/pdf", "application/x-pdf", *OFFICE_TYPES}
_PAGES = {*_FILES, "application/xhtml+xml", "application/xml", "text/xml"}
_NO_PAGES = {"text/calendar", "text/css", "text/ecmascript", "text/event-stream", "text/javascript", "text/vcard"}
_UNTOLD = {"", "*/*", "application/octet-stream", "application/unknown", "binary/octet-stream", "unknown/unknown"}
"""What servers send for files whose type they do not know."""
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_STRAY_SHARE = 20
"""In a text one of so many bytes may be a control character that no text has: some programs leave them behind."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]{1,64})", re.IGNORECASE)
_CONTROL_CHARACTERS = bytes(byte for byte in range(32) if byte not in b"\t\n\f\r\x1b")


def media_type(content_type: str) -> str:
    """The media type of a header ``Content-Type``: lower case, without parameters; empty if there is none."""
    return content_type.partition(";")[0].strip().lower()


def charset_of(content_type: str) -> str | None:
    """The encoding that a header ``Content-Type`` names, as it is written; ``None`` if it names none."""
    match = _CHARSET.search(content_type)
    return match[1] if match else None


def is_page(content_type: str) -> bool:
    """Tell whether a body of a ``Content-Type`` may be text, a PDF, or an office file: what is not told may."""
    kind = media_type(content_type)
    return kind in _PAGES or kind in _UNTOLD or (kind.startswith("text/") and kind not in _NO_PAGES)


def is_archive(head: bytes) -> bool:
    """Tell whether a body that begins so is a ZIP archive."""
    return head.startswith(_ARCHIVE)


def sniff(content_type: str, head: bytes) -> str | None:
    """The ``Content-Type`` of a page, by what its server says and by how it begins.

    Args:
        content_type: As the server says; empty if it says none.
        head: The first :data:`HEAD_BYTES` of the body, or all of it.

    Returns:
        What the server says, if it says; ``None`` if the body is neither text, a PDF, nor an office file.
    """
    start = head.lstrip()
    if start.startswith(b"%PDF-"):
        return "application/pdf"
    kind = media_type(content_type)
    if is_archive(head) and (kind in OFFICE_TYPES or _begins_office_file(head)):
        return content_type if kind in OFFICE_TYPES else _ARCHIVE_TYPE
    if kind in _FILES:
        return None
    wide = "utf-16" in content_type.lower() or "utf-32" in content_type.lower()
    if not (wide or head.startswith(_BYTE_ORDER_MARKS)):
        stray = len(head) - len(head.translate(None, _CONTROL_CHARACTERS))
        if stray > (max(1, len(head) // _STRAY_SHARE) if is_page(content_type) and kind not in _UNTOLD else 0):
            return None
    if kind not in _UNTOLD:
        return content_type
    return "text/html" if start.startswith(b"<") else "text/plain"


def _begins_office_file(head: bytes) -> bool:
    length = int.from_bytes(head[_NAME_LENGTH_AT:_NAME_AT], "little") & 0xFFFF
    return head[_NAME_AT : _NAME_AT + length].startswith(_OFFICE_PARTS)
