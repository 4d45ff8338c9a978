"""Texts that are never suggested."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.search.suggestions import HiddenSuggestions
from backends.text import normal_form

texts = st.text(st.sampled_from("ab *.[\\é"), min_size=1, max_size=8).map(normal_form).filter(bool)


@given(st.lists(texts, max_size=4), texts)
def test_a_star_stands_for_any_text_and_nothing_else_for_more_than_itself(patterns: list[str], text: str) -> None:
    wanted = any(fnmatchcase(text, pattern.replace("[", "[[]")) for pattern in patterns)

    assert (text in HiddenSuggestions(patterns)) is wanted


def test_any_form_of_a_text_is_hidden() -> None:
    hidden = HiddenSuggestions(["evil corp", "*casino*"])

    assert "  Evil   CORP" in hidden
    assert "The CASINO of the town" in hidden
    assert "evil corporation" not in hidden
    assert not HiddenSuggestions([])


@pytest.mark.slow
def test_many_stars_take_no_longer() -> None:
    hidden = HiddenSuggestions([f"*{'a*' * 200}b{number}" for number in range(500)])
    started = time.process_time()

    assert "a" * 100 not in hidden

    assert time.process_time() - started < 1
