"""Text out of bytes whose encoding is not told, or told wrongly."""

from __future__ import annotations

import codecs
import re

from turbohtml.detect import detect

from app.crawl.fetch.media_types import charset_of

BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
META_CHARSET = re.compile(
    rb"<(?:meta\b[^>]*?charset|\?xml\b[^>]*?encoding)\s*=\s*[\"']?\s*([^\s\"'/>;]{1,64})", re.IGNORECASE
)
META_BYTES = 4_096
DETECTION_BYTES = 65_536
WESTERN = "whatwg-windows-1252"
"""What browsers take a page for that says nothing."""
MAX_GUESS = 0.5
"""How sure the detector may be of an encoding of several languages and still only guess."""
GOOD_PER_BAD = 4
"""Characters beyond ASCII that must come out right for each that does not, for an encoding to be believed."""

_WIDE = ("utf-16", "utf16", "utf-32", "utf32", "ucs-2", "iso-10646-ucs-2", "csunicode", "unicode")
"""How the labels begin of encodings with several bytes a character."""


def decode(body: bytes, content_type: str = "") -> str:
    """The text of a body.

    A byte order mark decides; then UTF-8, if the body is UTF-8, since hardly a text in another encoding is so by
    chance; then what the header and the page itself say, unless hardly anything comes out right; then what the bytes
    look like. Two bytes a character are only believed where there are NUL bytes, which any such page has, and never of
    a page that says so in one byte a character. What cannot be decoded becomes U+FFFD.

    Args:
        body: The bytes.
        content_type: The header ``Content-Type``.
    """
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    header, meta = charset_of(content_type), _meta_label(body)
    told = [label for label in (header, meta) if label and not _is_wide(label)]
    if header and _is_wide(header) and b"\0" in body:
        told.insert(0, header)
    elif b"\x1b" not in body:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass
    for label in told:
        text = _decode_as(body, label)
        if text is not None and _is_credible(text):
            return text
    # The detector would believe what the page says of itself, which was just found to be wrong.
    match = detect(META_CHARSET.sub(b"<", body[:META_BYTES]) + body[META_BYTES:DETECTION_BYTES])
    is_guess = match.language is None and match.confidence <= MAX_GUESS
    return body.decode(WESTERN if is_guess else match.codec or WESTERN, "replace")


def _meta_label(body: bytes) -> str | None:
    match = META_CHARSET.search(body[:META_BYTES])
    return match[1].decode("ascii", "replace") if match else None


def _is_wide(label: str) -> bool:
    return label.lower().startswith(_WIDE)


def _is_credible(text: str) -> bool:
    bad = text.count("\N{REPLACEMENT CHARACTER}")
    return not bad or len(text) - len(text.encode("ascii", "ignore")) - bad >= GOOD_PER_BAD * bad


def _decode_as(body: bytes, label: str) -> str | None:
    """The text by an encoding's label as browsers know it, ``None`` if they know none of this name."""
    try:
        return body.decode(f"whatwg-{label.lower()}", "replace")
    except (LookupError, UnicodeError):
        return None
