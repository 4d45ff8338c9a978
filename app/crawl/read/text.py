"""Text of pages: decoding bytes whose encoding is undeclared or declared wrongly, and limits to fit into a document."""

from __future__ import annotations

import codecs
import re

from turbohtml.detect import detect

from app.crawl.fetch.responses import charset_of

MAX_TEXT_BYTES = 1_048_576 - 131_072
"""Maximum bytes of a page's text in JSON. A document may have 1 MiB; the rest is for its other fields."""
MAX_LINE_CHARACTERS = 1_000
"""Maximum number of characters in a title, an excerpt, or a value."""

ESCAPED = re.compile(r'["\\\n\r\t\b\f]')
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")
"""Invisible characters, each of which takes six bytes in JSON."""


def cut_text(text: str) -> str:
    """Truncate a text at the end of a word so that it fits into a document, and remove control characters."""
    text = CONTROL.sub("", text[: MAX_TEXT_BYTES + 1])
    if _json_bytes(text) <= MAX_TEXT_BYTES:
        return text
    while (excess := _json_bytes(text) - MAX_TEXT_BYTES) > 0:
        # A character takes up to four bytes.
        text = text[: -max(1, excess // 4)]
    return _to_word_end(text)


def cut_line(text: str) -> str:
    """Join a text into one line, and truncate it at the end of a word."""
    line = " ".join(CONTROL.sub("", text[: MAX_LINE_CHARACTERS * 10]).split())
    return line if len(line) <= MAX_LINE_CHARACTERS else _to_word_end(line[:MAX_LINE_CHARACTERS])


def _json_bytes(text: str) -> int:
    return len(text.encode()) + len(ESCAPED.findall(text))


def _to_word_end(text: str) -> str:
    blank = max(text.rfind(" ", -100), text.rfind("\n", -100))
    return text[:blank] if blank > 0 else text


BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
META_CHARSET = re.compile(
    rb"<(?:meta\b[^>]*?charset|\?xml\b[^>]*?encoding)\s*=\s*[\"']?\s*([^\s\"'/>;]{1,64})", re.IGNORECASE
)
META_BYTES = 4_096
DETECTION_BYTES = 65_536
WESTERN = "whatwg-windows-1252"
"""The encoding that browsers assume for a page that declares none."""
MAX_GUESS = 0.5
"""Confidence up to which a detected encoding counts as a guess if the detector finds no language."""
GOOD_PER_BAD = 4
"""Correctly decoded characters beyond ASCII for each replacement character that make a declared encoding credible."""

_WIDE = ("utf-16", "utf16", "utf-32", "utf32", "ucs-2", "iso-10646-ucs-2", "csunicode", "unicode")
"""Prefixes of the labels of encodings with several bytes per character."""


def decode(body: bytes, content_type: str = "") -> str:
    """Decode a body. Invalid bytes become U+FFFD.

    The encoding is determined by, in this order: a byte order mark; a test for valid UTF-8, since text in another
    encoding is hardly ever valid UTF-8; the encodings that the header and the page declare, unless most characters come
    out wrong; and detection from the bytes. UTF-16 is credible only if the header declares it and the body contains NUL
    bytes, as any page in UTF-16 does. A page that declares UTF-16 in ASCII characters is not in UTF-16.

    Args:
        content_type: The header ``Content-Type``.
    """
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    header, meta = charset_of(content_type), _meta_label(body)
    labels = [label for label in (header, meta) if label and not _is_wide(label)]
    if header and _is_wide(header) and b"\0" in body:
        labels.insert(0, header)
    # Escape characters occur in ISO-2022 encodings, whose bytes would also be valid UTF-8.
    elif b"\x1b" not in body:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass
    for label in labels:
        text = _decode_as(body, label)
        if text is not None and _is_credible(text):
            return text
    # The detector would trust the page's declaration, which has just turned out to be wrong.
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
    """Decode by a label from the WHATWG encoding standard; ``None`` for an unknown label."""
    try:
        return body.decode(f"whatwg-{label.lower()}", "replace")
    except (LookupError, UnicodeError):
        return None
