"""Media types: which bodies can be read as pages."""

from __future__ import annotations

HEAD_BYTES = 1_024
"""How much of a body tells what it is."""

_PAGES = {"application/pdf", "application/x-pdf", "application/xhtml+xml", "application/xml", "text/xml"}
_NO_PAGES = {"text/calendar", "text/css", "text/ecmascript", "text/event-stream", "text/javascript", "text/vcard"}
_UNTOLD = {"", "*/*", "application/octet-stream", "application/unknown", "binary/octet-stream", "unknown/unknown"}
"""What servers send for files whose type they do not know."""
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_CONTROL_CHARACTERS = bytes(byte for byte in range(32) if byte not in b"\t\n\f\r\x1b")


def media_type(content_type: str) -> str:
    """The media type of a header ``Content-Type``: lower case, without parameters; empty if there is none."""
    return content_type.partition(";")[0].strip().lower()


def is_page(content_type: str) -> bool:
    """Tell whether a body of a ``Content-Type`` may be text or a PDF: what is not told may."""
    kind = media_type(content_type)
    return kind in _PAGES or kind in _UNTOLD or (kind.startswith("text/") and kind not in _NO_PAGES)


def sniff(content_type: str, head: bytes) -> str | None:
    """The ``Content-Type`` of a page, by what its server says and by how it begins.

    Args:
        content_type: As the server says; empty if it says none.
        head: The first :data:`HEAD_BYTES` of the body, or all of it.

    Returns:
        What the server says, if it says; ``None`` if the body is neither text nor a PDF.
    """
    start = head.lstrip()
    if start.startswith(b"%PDF-"):
        return "application/pdf"
    kind = media_type(content_type)
    if kind in _PAGES and kind.endswith("pdf"):
        return None
    wide = "utf-16" in content_type.lower() or "utf-32" in content_type.lower()
    if not (wide or head.startswith(_BYTE_ORDER_MARKS)) and head.translate(None, _CONTROL_CHARACTERS) != head:
        return None
    if kind not in _UNTOLD:
        return content_type
    return "text/html" if start.startswith(b"<") else "text/plain"
