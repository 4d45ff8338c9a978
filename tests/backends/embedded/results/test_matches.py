"""Matches in a text agree with matches in the index."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from backends.analysis.normalization import terms_of
from backends.embedded.results.folding import fold_text
from backends.embedded.results.matches import MatchTerms, find_matches, first_matches
from tests.backends.embedded.results.highlighted import texts


@settings(max_examples=200)
@given(texts)
def test_every_word_of_a_text_matches_in_the_text(text: str) -> None:
    for word in text.split():
        terms = terms_of(word)
        if len(terms) == 1 and any(char.isalpha() for char in word):
            assert find_matches(text, MatchTerms.of(dict.fromkeys(terms, 0), {}, {}))


@settings(max_examples=300)
@given(texts)
def test_letters_fold_identically_in_any_context(text: str) -> None:
    folded, offsets = fold_text(text)
    if offsets is None:
        alone = [fold_text(char)[0] for char in text]
        for char, there, here in zip(text, folded, alone, strict=True):
            assert there == here or not char.isalnum()


@pytest.mark.parametrize(("typed", "of_the_last"), [({"harbor"}, [22, 37]), ({"harb"}, [22]), (set(), [22])])
def test_each_part_of_a_text_has_its_first_match_and_its_first_exact_match(
    typed: set[str], of_the_last: list[int]
) -> None:
    text = "A harbor, a harbor. | Harbors, and a harbor"

    found = first_matches(text, MatchTerms.of({}, {"harbor": 0}, {}), [0, 12, 22], typed)

    assert [start for start, _, _ in found] == [2, 12, *of_the_last]
