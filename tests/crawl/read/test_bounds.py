"""The extracted text of a page is cut to fit into a document."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crawl.read.bounds import MAX_LINE_CHARACTERS, MAX_TEXT_BYTES, cut_line, cut_text


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
