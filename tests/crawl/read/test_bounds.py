"""What is kept of a page fits into a document."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.crawl.read.bounds import MAX_LINE_CHARACTERS, MAX_TEXT_BYTES, cut_line, cut_text


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["word ", "wörd ", "漢字", '"quoted" ', "line\n", "\\", "𝒳"])
def test_a_long_text_is_cut_to_what_a_document_takes(piece: str) -> None:
    text = cut_text(piece * (2 * MAX_TEXT_BYTES // len(piece)))

    size = len(orjson.dumps(text))
    assert MAX_TEXT_BYTES * 0.95 < size <= MAX_TEXT_BYTES + 2


def test_a_short_text_stays() -> None:
    assert cut_text("Boats leave at ten.\n\nEvery day.") == "Boats leave at ten.\n\nEvery day."


def test_a_cut_text_ends_with_a_word() -> None:
    assert cut_text("harbor " * 200_000).endswith("harbor")


def test_a_line_is_one_and_bounded() -> None:
    assert cut_line("  Boats\n leave\tat \x00ten ") == "Boats leave at ten"
    assert len(cut_line("harbor " * 10_000)) <= MAX_LINE_CHARACTERS


@given(st.text(max_size=200))
def test_any_text_is_kept_but_for_control_characters(text: str) -> None:
    kept = cut_text(text)

    assert [c for c in kept if c.isprintable()] == [c for c in text if c.isprintable()]
    assert b"\\u00" not in orjson.dumps(kept)
