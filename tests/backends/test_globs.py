"""Globs match as fnmatch's stars do, in linear time."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.globs import Glob, star_count

URL = "/" + "a" * 2_047


@given(st.text(st.sampled_from("ab*.[\\?"), max_size=9), st.text(st.sampled_from("ab.[\\?\n"), max_size=9))
def test_star_matches_any_text_and_other_characters_match_literally(pattern: str, text: str) -> None:
    expected = fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))

    assert Glob(pattern).matches(text) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        "/*a*a*a*b",
        "*a" * 249 + "b",
        f"*{'a' * 249}b{'a' * 249}*",
        f"*{'a' * 498}b*",
        f"*b{'a' * 498}*",
        f"*{'aab' * 160}*",
    ],
)
def test_hostile_globs_match_in_linear_time(pattern: str) -> None:
    glob = Glob(pattern)
    begun = time.process_time()

    for _ in range(5_000):
        assert not glob.matches(URL)
    assert time.process_time() - begun < 1


def test_stars_in_a_row_count_as_one() -> None:
    assert (star_count("/a"), star_count("/**a*"), star_count("***")) == (0, 2, 1)
