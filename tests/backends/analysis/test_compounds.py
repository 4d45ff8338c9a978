"""The keys by which compounds are listed."""

from __future__ import annotations

import pytest

from backends.analysis.compounds import _keys, compound_keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Geschenkgutscheine,", ["niehcstugknehcseg|e"]),
        ("(Straßenbahn)", ["nhabnessarts|"]),
        ("Lese-Buchzeichen/Lesezeichen", ["hciezesel|en", "hciezhcub|en"]),
        ("2023Jahresbericht", ["thcirebserhaj|"]),
        ("Jahresbericht2023 Jahresbericht_2023 kurz", ["thcirebserhaj|"]),
        ("“Büchersendung”\u2028Büchersendung", ["dnesrehcub|ung"]),
        ("Kürze, kurz", []),
    ],
)
def test_long_words_have_keys_regardless_of_adjacent_signs(text: str, keys: list[str]) -> None:
    assert compound_keys("de", [text]) == keys


def test_texts_without_spaces_are_not_cached() -> None:
    cached = _keys.cache_info().currsize
    assert compound_keys("de", ["、".join(["Geschenkgutschein"] * 1000)]) == ["niehcstugknehcseg|"]
    assert _keys.cache_info().currsize == cached


def test_only_the_end_of_a_very_long_word_is_indexed() -> None:
    word = "x" * 1_000 + "geschenkgutschein"

    (key,) = compound_keys("de", [f"{word}, {word}2 {word}、{word}"])

    assert key == "niehcstugknehcseg" + "x" * 23 + "|"
