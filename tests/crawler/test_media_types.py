"""Which bodies can be read as pages."""

from __future__ import annotations

import pytest

from app.crawler.media_types import is_page, sniff


@pytest.mark.parametrize(
    "content_type",
    [
        *("text/html; charset=utf-8", "TEXT/HTML", "application/xhtml+xml", "text/plain", "text/markdown", "text/csv"),
        *("application/pdf", "application/xml", "", "application/octet-stream"),
    ],
)
def test_text_and_pdfs_and_what_is_not_told_may_be_pages(content_type: str) -> None:
    assert is_page(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        *("image/png", "image/svg+xml", "video/mp4", "application/zip", "application/json", "font/woff2"),
        *("text/css", "text/javascript", "application/javascript", "text/event-stream", "audio/mpeg"),
    ],
)
def test_other_types_are_no_pages(content_type: str) -> None:
    assert not is_page(content_type)


@pytest.mark.parametrize(
    ("content_type", "head", "kind"),
    [
        ("", b"\n <!doctype html><p>x", "text/html"),
        ("", b"<p>x", "text/html"),
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
        ("", b"GIF89a\1\0\1\0", None),
        ("application/octet-stream", b"PK\3\4\0", None),
        ("text/plain", b"\x7fELF\1\0", None),
        ("application/pdf", b"<html>Not found", None),
    ],
)
def test_the_beginning_of_a_body_tells_what_its_server_does_not(
    content_type: str, head: bytes, kind: str | None
) -> None:
    assert sniff(content_type, head) == kind
