"""Allowed origins: valid notations, and the Origin headers they match."""

from __future__ import annotations

import pytest

from schemas.validation.keys import normalize_allowed_origin, read_allowed_origins


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("https://example.com", "https://example.com"),
        ("HTTPS://Example.COM", "https://example.com"),
        ("https://example.com/", "https://example.com"),
        ("https://example.com:443", "https://example.com"),
        ("http://example.com:80/", "http://example.com"),
        ("http://example.com:443", "http://example.com:443"),
        ("https://example.com:8443", "https://example.com:8443"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("https://STRASSE.example", "https://strasse.example"),
        ("https://straße.example", "https://xn--strae-oqa.example"),
        ("https://*.example.com", "https://*.example.com"),
        ("https://*.Bücher.example:8443", "https://*.xn--bcher-kva.example:8443"),
        ("http://*.localhost:3000", "http://*.localhost:3000"),
        ("https://my_shop.example", "https://my_shop.example"),
    ],
)
def test_origin_is_normalized_as_browsers_send_it(typed: str, kept: str) -> None:
    assert normalize_allowed_origin(typed) == kept
    assert normalize_allowed_origin(kept) == kept


@pytest.mark.parametrize(
    "typed",
    [
        "", "null", "*", "https://", "https:///", "example.com", "//example.com", "ftp://example.com", "file://x",
        "https://*", "https://*.", "https://*example.com", "https://shop.*.com", "https://*.*.example.com",
        "https://example.com/shop", "https://example.com//", "https://example.com?x", "https://example.com#x",
        "https://user@example.com", "https://user:secret@example.com", "https://example.com.", "https://*.example.com.",
        "https://.example.com", "https://example..com", "https://exa mple.com", " https://example.com",
        "https://example.com\n", "https://exam\tple.com", "https:\\\\example.com", "https://example.com\\@evil.com",
        "https://exa%6dple.com", "https://example.com:0x50", "https://example.com:99999", "https://example.com,x.com",
        "https://*.127.0.0.1", "https://1.2.3.4.5", "https://[::1", "https://" + "x" * 64 + ".com",
        "https://" + "a." * 150 + "com", "javascript://example.com", "https://example.com\x00",
    ],
)  # fmt: skip
def test_invalid_origin_is_rejected(typed: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        normalize_allowed_origin(typed)


ALLOWED = read_allowed_origins(
    ["https://example.com", "https://*.example.com", "http://localhost:3000", "https://*.shop.example:8443"]
)


@pytest.mark.parametrize(
    "sent",
    [
        "https://example.com", "https://www.example.com", "https://a.b.c.example.com", "http://localhost:3000",
        "https://x.shop.example:8443", "https://example.com:443", "https://www.example.com:443", "HTTPS://Example.com",
        "https://WWW.EXAMPLE.COM",
    ],
)  # fmt: skip
def test_matching_origin_header_is_allowed(sent: str) -> None:
    assert ALLOWED.allow(sent)


@pytest.mark.parametrize(
    "sent",
    [
        "", "null", "https://", "*", "https://*", "https://*.example.com", "http://example.com", "https://example.com:80",
        "https://example.com:8443", "https://evilexample.com", "https://example.com.evil.com",
        "https://www.example.com.evil.com", "https://example.com.", "https://www.example.com.", "https://.example.com",
        "https://example.com/", "https://example.com/x", "https://evil.com/.example.com", "https://evil.com#.example.com",
        "https://evil.com?.example.com", "https://user@example.com", "https://evil.com@www.example.com",
        "https://evil.com\\.example.com", "https://evil.com:80.example.com", "https://evil.com, https://example.com",
        "https://example.com,https://evil.com", "http://localhost", "http://localhost:3001", "https://localhost:3000",
        "https://shop.example:8443", "https://x.shop.example", "https://x.shop.example:443", "chrome-extension://abc",
        "https://exämple.com", "https://www.example.com\n", " https://example.com", "ftp://www.example.com",
    ],
)  # fmt: skip
def test_other_origin_headers_are_not_allowed(sent: str) -> None:
    assert not ALLOWED.allow(sent)


def test_empty_list_allows_no_origin() -> None:
    assert not read_allowed_origins([]).allow("https://example.com")
