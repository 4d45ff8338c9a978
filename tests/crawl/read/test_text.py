"""Text is decoded correctly if its encoding is missing or wrong, and cut to fit into a document."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crawl.read.text import MAX_LINE_CHARACTERS, MAX_TEXT_BYTES, cut_line, cut_text, decode

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
def test_text_is_decoded_despite_a_missing_or_wrong_charset(body: bytes, content_type: str, text: str) -> None:
    assert decode(body, content_type) == text


@pytest.mark.parametrize(
    "declaration",
    ['<meta charset="windows-1251">', '<meta http-equiv=Content-Type content="text/html; charset=windows-1251">'],
)
def test_charset_declared_in_the_page_is_used(declaration: str) -> None:
    assert decode(f"{declaration}<p>{RUSSIAN}".encode("windows-1251"), "text/html").endswith(RUSSIAN)


@pytest.mark.parametrize("declaration", ['<meta charset="utf-8">', '<?xml version="1.0" encoding="utf-8"?>', ""])
@pytest.mark.parametrize("content_type", ["text/html", "text/html; charset=utf-8"])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "windows-1252"),
        ("Café", "windows-1252"),
        ("naïve", "windows-1252"),
        ("It’s so – we…", "windows-1252"),
        (RUSSIAN, "windows-1251"),
        ("Zażółć gęślą jaźń", "iso-8859-2"),
        ("İstanbul'da güneş çok sıcak, şimdi yağmur", "windows-1254"),
        (JAPANESE, "shift_jis"),
    ],
)
def test_impossible_declared_charset_is_ignored(text: str, encoding: str, content_type: str, declaration: str) -> None:
    assert decode(f"{declaration}<p>{text}".encode(encoding), content_type) == f"{declaration}<p>{text}"


def test_possible_charset_wins_over_an_impossible_one() -> None:
    body = f'<meta charset="utf-8"><p>{RUSSIAN}'.encode("koi8-r")

    assert decode(body, "text/html; charset=koi8-r").endswith(RUSSIAN)
    assert decode(body.replace(b"utf-8", b"koi8-r"), "text/html; charset=utf-8").endswith(RUSSIAN)


@pytest.mark.parametrize("label", ["utf-16", "UTF-16LE", "ucs-2", "unicode", "utf-32"])
@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252"])
def test_single_byte_page_declared_as_utf_16_is_not_decoded_as_utf_16(label: str, encoding: str) -> None:
    declared = f"<meta charset={label}>\0<p>{GERMAN}"

    assert decode(f"<p>{GERMAN}".encode(encoding), f"text/html; charset={label}") == f"<p>{GERMAN}"
    assert decode(declared.encode(encoding), "text/html") == declared


def test_truncated_utf_8_character_does_not_change_the_detected_encoding() -> None:
    assert decode(RUSSIAN.encode()[:-2] + b"\xd0", "text/html; charset=utf-8").startswith(RUSSIAN[:-2])


@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "utf-16", "shift_jis", "utf-7", "idna", "x" * 100, "\\"]))
def test_arbitrary_bytes_decode_to_valid_text(body: bytes, charset: str) -> None:
    decode(body, f"text/html; charset={charset}").encode()


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["word ", "wörd ", "漢字", '"quoted" ', "line\n", "\\", "𝒳"])
def test_long_text_is_cut_to_the_document_limit(piece: str) -> None:
    text = cut_text(piece * (2 * MAX_TEXT_BYTES // len(piece)))

    size = len(orjson.dumps(text))
    assert MAX_TEXT_BYTES * 0.95 < size <= MAX_TEXT_BYTES + 2


def test_short_text_is_unchanged() -> None:
    assert cut_text("Boats leave at ten.\n\nEvery day.") == "Boats leave at ten.\n\nEvery day."


def test_cut_text_ends_at_a_word_boundary() -> None:
    assert cut_text("harbor " * 200_000).endswith("harbor")


def test_cut_line_joins_whitespace_and_limits_the_length() -> None:
    assert cut_line("  Boats\n leave\tat \x00ten ") == "Boats leave at ten"
    assert len(cut_line("harbor " * 10_000)) <= MAX_LINE_CHARACTERS


@given(st.text(max_size=200))
def test_cut_text_removes_only_control_characters(text: str) -> None:
    kept = cut_text(text)

    assert [c for c in kept if c.isprintable()] == [c for c in text if c.isprintable()]
    assert b"\\u00" not in orjson.dumps(kept)
