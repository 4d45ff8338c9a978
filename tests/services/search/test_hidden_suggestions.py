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
def test_star_matches_any_text_and_other_characters_match_literally(patterns: list[str], text: str) -> None:
    wanted = any(fnmatchcase(text, pattern.replace("[", "[[]")) for pattern in patterns)

    assert (text in HiddenSuggestions(patterns)) is wanted


def test_hidden_suggestions_match_normalized_text() -> None:
    hidden = HiddenSuggestions(["evil corp", "*casino*"])

    assert "  Evil   CORP" in hidden
    assert "The CASINO of the town" in hidden
    assert "evil corporation" not in hidden
    assert not HiddenSuggestions([])


@pytest.mark.slow
def test_patterns_with_many_stars_match_in_linear_time() -> None:
    hidden = HiddenSuggestions([f"*{'a*' * 200}b{number}" for number in range(500)])
    started = time.process_time()

    assert "a" * 100 not in hidden

    assert time.process_time() - started < 1
