"""Detects the bodies that can be read as pages."""

from __future__ import annotations

import pytest

from app.crawl.fetch.responses import OFFICE_TYPES, is_page, sniff


def entry(name: bytes) -> bytes:
    """Return the first bytes of a ZIP archive whose first entry has this name."""
    return b"PK\3\4" + bytes(22) + len(name).to_bytes(2, "little") + bytes(2) + name + b"\1\2\3"


@pytest.mark.parametrize(
    "content_type",
    [
        *("text/html; charset=utf-8", "TEXT/HTML", "application/xhtml+xml", "text/plain", "text/markdown", "text/csv"),
        *("application/pdf", "application/xml", "", "application/octet-stream", *OFFICE_TYPES),
    ],
)
def test_text_pdf_office_and_unspecified_media_types_can_be_pages(content_type: str) -> None:
    assert is_page(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        *("image/png", "image/svg+xml", "video/mp4", "application/zip", "application/json", "font/woff2"),
        *("text/css", "text/javascript", "application/javascript", "text/event-stream", "audio/mpeg"),
    ],
)
def test_image_video_archive_script_and_style_types_are_not_pages(content_type: str) -> None:
    assert not is_page(content_type)


@pytest.mark.parametrize(
    ("content_type", "head", "kind"),
    [
        ("", b"\n <!doctype html><p>x", "text/html"),
        ("", b"<p>x", "text/html"),
        ("", b" <?xml version='1.0'?><html/>", "application/xml"),
        ("", b"plain words", "text/plain"),
        ("", "wörter".encode(), "text/plain"),
        ("", b"", "text/plain"),
        ("", b"%PDF-1.7\n\0\1", "application/pdf"),
        ("application/octet-stream", b"%PDF-1.7", "application/pdf"),
        ("text/html; charset=x", b"%PDF-1.7", "application/pdf"),
        ("text/html; charset=x", b"<p>x", "text/html; charset=x"),
        ("text/plain; charset=utf-16le", "wide".encode("utf-16-le"), "text/plain; charset=utf-16le"),
        ("text/html", "<p>wide".encode("utf-16"), "text/html"),
        ("text/plain; charset=iso-2022-jp", "日本".encode("iso-2022-jp"), "text/plain; charset=iso-2022-jp"),
        *(("text/html", b"<p>Boats leave" + stray, "text/html") for stray in (b"\0", b"\7", b"\b", b"\x0b")),
        ("application/xhtml+xml", b"<p>Boats\0 leave\0" + b" at ten" * 10, "application/xhtml+xml"),
        ("text/plain", b"Boats leave\x0b", "text/plain"),
        ("text/html", b"<p>\0\1" + bytes(range(256)) * 3, None),
        ("text/html", b"<\0p\0>\0x\0", None),
        ("", b"Boats leave\0", None),
        ("", b"GIF89a\1\0\1\0", None),
        (OFFICE_TYPES[0], entry(b"other"), OFFICE_TYPES[0]),
        *((kind, entry(b"[Content_Types].xml"), "application/zip") for kind in ("", "application/octet-stream")),
        *(("", entry(name), "application/zip") for name in (b"_rels/.rels", b"docProps/app.xml", b"xl/a", b"mimetype")),
        ("text/html", entry(b"mimetype"), "application/zip"),
        ("", entry(b"photo.jpg"), None),
        ("", entry(b""), None),
        (OFFICE_TYPES[0], b"<html>Not found", None),
        (OFFICE_TYPES[0], b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None),
        ("application/octet-stream", b"PK\3\4\0", None),
        ("text/plain", b"\x7fELF\1\0", None),
        ("application/pdf", b"<html>Not found", None),
    ],
)
def test_media_type_is_detected_from_the_first_bytes_of_the_body(
    content_type: str, head: bytes, kind: str | None
) -> None:
    assert sniff(content_type, head) == kind
