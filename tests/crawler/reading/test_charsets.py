"""Text survives encodings that are not told, or told wrongly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crawler.reading.charsets import decode

RUSSIAN = "Корабли выходят из гавани каждое утро, если погода позволяет это сделать."
GERMAN = "Die Fähre fährt täglich über den großen See."
JAPANESE = "船は毎朝港を出ます。天気がよければ島まで行きます。"


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (GERMAN.encode(), "text/html", GERMAN),
        (GERMAN.encode(), "text/html; charset=utf-8", GERMAN),
        (GERMAN.encode(), "text/html; charset=iso-8859-1", GERMAN),
        (GERMAN.encode("latin-1"), "text/html; charset=iso-8859-1", GERMAN),
        (GERMAN.encode("latin-1"), "text/html; charset=utf-8", GERMAN),
        (GERMAN.encode("latin-1"), "text/html", GERMAN),
        (GERMAN.encode("latin-1"), "text/html; charset=no-such", GERMAN),
        (RUSSIAN.encode("windows-1251"), 'text/html; charset="Windows-1251"', RUSSIAN),
        (RUSSIAN.encode("koi8-r"), "text/html", RUSSIAN),
        (RUSSIAN.encode("windows-1251"), "text/html; charset=utf-8", RUSSIAN),
        (JAPANESE.encode("shift_jis"), "text/html; charset=Shift_JIS", JAPANESE),
        (JAPANESE.encode("euc-jp"), "text/html", JAPANESE),
        (JAPANESE.encode("iso-2022-jp"), "text/html; charset=iso-2022-jp", JAPANESE),
        (JAPANESE.encode("iso-2022-jp"), "text/html", JAPANESE),
        (GERMAN.encode("utf-16"), "text/html; charset=utf-8", GERMAN),
        (GERMAN.encode("utf-16-le"), "text/html; charset=utf-16le", GERMAN),
        (b"\xef\xbb\xbf" + GERMAN.encode(), "text/html; charset=koi8-r", GERMAN),
        (b"", "text/html", ""),
    ],
)
def test_a_text_is_decoded_whatever_is_told(body: bytes, content_type: str, text: str) -> None:
    assert decode(body, content_type) == text


@pytest.mark.parametrize(
    "declaration",
    ['<meta charset="windows-1251">', '<meta http-equiv=Content-Type content="text/html; charset=windows-1251">'],
)
def test_a_page_tells_its_own_charset(declaration: str) -> None:
    assert decode(f"{declaration}<p>{RUSSIAN}".encode("windows-1251"), "text/html").endswith(RUSSIAN)


def test_broken_characters_do_not_change_the_encoding_of_the_rest() -> None:
    assert decode(RUSSIAN.encode()[:-2] + b"\xd0", "text/html; charset=utf-8").startswith(RUSSIAN[:-2])


@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "utf-16", "shift_jis", "utf-7", "idna", "x" * 100, "\\"]))
def test_any_bytes_become_text(body: bytes, charset: str) -> None:
    decode(body, f"text/html; charset={charset}").encode()
