"""The other forms of words made of parts."""

from __future__ import annotations

import random
import re

import pytest

from backends.text import (
    MAX_JOINED_CHARS,
    MAX_PARTED_WORDS,
    MAX_PARTS,
    _parted_words,
    forms_of,
    word_parts,
    words_with_forms,
)


@pytest.mark.parametrize(("word", "forms"), [
    ("U-Bahn", {"UBahn"}),
    ("T-Shirt-Größe", {"TShirtGröße", "TShirt"}),
    ("TextDrawHideForPlayer", {"Text Draw Hide For Player"}),
    ("XMLHttpRequest", {"XML Http Request"}),
    ("KT-INS114-DRE", {"KTINS114DRE", "KT INS 114 DRE"}),
    ("nike7055", {"nike 7055"}),
    ("NOR.0707-60", {"NOR070760"}), ("00:1A:2B:3C:4D:5E", {"001A2B3C4D5E"}), ("978-3-16-148410-0", {"9783161484100"}),
    ("1,000", {"1000"}), ("don't", {"dont"}), ("O'Reilly", {"OReilly"}), ("Hawai\u02bci", {"Hawaii"}),
    ("AT&T", {"ATT"}), ("п'ять", {"пять"}),
])  # fmt: skip
def test_words_made_of_parts_have_other_forms(word: str, forms: set[str]) -> None:
    assert set(words_with_forms(f"see {word}, here")[word]) == forms


@pytest.mark.parametrize("word", [
    "word", "Word", "WORD", "1.5", "3.11.7", "10:30", "and/or", "Apple's", "URLs",
    "mp3", "H2O", "1990s", "500g", "東京タワー", "12",
])  # fmt: skip
def test_other_words_have_no_other_forms(word: str) -> None:
    assert words_with_forms(f"see {word}, here") == {}


def test_numbers_in_groups_are_joined() -> None:
    text = "Pay to DE89 3704 0044 0532 0130 00 or call +49 (30) 123 4567; the book is 978 3 16 148410 0."
    forms = {form for word in words_with_forms(text).values() for form in word}
    assert forms >= {"DE89370400440532013000", "49301234567", "9783161484100"}


def test_long_words_are_not_joined() -> None:
    assert forms_of("-".join(["abcdef"] * (MAX_JOINED_CHARS // 6 + 1))) == ()
    assert forms_of("-".join(["ab"] * (MAX_PARTS + 1))) == ()


def test_joined_parts_equal_the_word() -> None:
    for word in ("TextDrawHideForPlayer", "KB5034441", "getHTTPResponseCode200", "ÄrgerÜberÖl"):
        assert "".join(word_parts(word)) == word
        assert len(word_parts(word)) > 1


def test_scanning_a_text_finds_the_same_words_as_checking_each_word() -> None:
    """The fast search for uneven words misses none."""
    random.seed(5)
    letters = "abAB019-_./:&'’‐ \n,()é中"
    for _ in range(300):
        text = "".join(random.choices(letters, k=60))
        for written in text.split():
            for match in re.finditer(r"[^\W_中]+(?:[-_./:&'’‐][^\W_中]+)*", written.strip("(),")):
                if forms_of(match[0]):
                    assert match[0] in words_with_forms(text), (text, match[0])


def test_number_of_words_with_other_forms_is_bounded() -> None:
    text = " ".join(f"part-{at}x" for at in range(3 * MAX_PARTED_WORDS))
    assert len(words_with_forms(text)) == MAX_PARTED_WORDS


def test_text_without_spaces_is_searched_for_short_words_only() -> None:
    assert set(words_with_forms("、".join(["U-Bahn", "-".join(["part"] * 100)] * 500))) == {"U-Bahn"}
    assert _parted_words.cache_info().maxsize is not None
    assert words_with_forms("a" * 400_000 + "B" + "-c" * 1000) == {}


@pytest.mark.parametrize(("number", "forms"), [
    ("079 123 45 67", {"0791234567"}), ("030 12345678", {"03012345678"}), ("030/123 45-678", {"03012345678"}),
    ("(415) 555-2671", {"4155552671"}), ("+41 79 123 45 67", {"41791234567", "791234567"}),
    ("+49 (0)30 12345678", {"493012345678", "3012345678"}), ("+493012345678", {"493012345678", "3012345678"}),
    ("+1 415 555 2671", {"14155552671", "4155552671"}), ("01 23 45 67 89", {"0123456789"}),
    ("+358 40 123 4567", {"358401234567", "401234567"}), ("12 34 56 78", {"12345678"}),
])  # fmt: skip
def test_phone_numbers_are_joined(number: str, forms: set[str]) -> None:
    assert forms <= {form for forms in words_with_forms(f"Call {number}, please").values() for form in forms}


@pytest.mark.parametrize("text", ["Room 10 20", "2024 10", "from 0 to 10", "+1 million", "(0) 12", "0 " * 40, "+" * 99])
def test_other_numbers_are_not_phone_numbers(text: str) -> None:
    assert words_with_forms(text) == {}
