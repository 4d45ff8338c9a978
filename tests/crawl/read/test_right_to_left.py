"""Orders the characters of a line by their positions."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.crawl.read.right_to_left import Character, have_baseline, reading_order

POSITIONS = st.floats(0, 600, allow_nan=False) | st.sampled_from([0.0, float("inf"), float("nan")])
CHARACTERS = st.builds(
    Character, st.sampled_from("مرحبا لا 12.5 Py() \u064e\n"), POSITIONS, POSITIONS, POSITIONS, POSITIONS, POSITIONS
)
LETTER = Character("م", 10.0, 20.0, 10.0, 700.0, 10.0)


@given(st.lists(CHARACTERS, max_size=30))
def test_reordering_loses_and_adds_no_character(line: list[Character]) -> None:
    text = reading_order([LETTER, *line])

    expected = "".join(character.text for character in [LETTER, *line]).replace(")", "(")
    assert Counter("".join(text.replace(")", "(").split())) == Counter("".join(expected.split()))


def test_rotated_glyphs_do_not_form_a_horizontal_line() -> None:
    assert have_baseline([LETTER, LETTER._replace(baseline=703.0), LETTER._replace(text=" ", baseline=0.0, height=0.0)])
    assert not have_baseline([LETTER, LETTER._replace(baseline=705.0)])
    assert have_baseline([])
