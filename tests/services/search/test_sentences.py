"""Detection of sentences among queries."""

from __future__ import annotations

import pytest

from backends.analysis.sentence_queries import is_sentence


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("how do I reset my password", None),
        ("Wie setze ich mein Passwort zurück?", None),
        ("Wie setze ich mein Passwort zurück?", "de"),
        ("what is the refund policy", "en"),
        ("is it refunded", None),
    ],
)
def test_questions_with_at_least_four_words_are_sentences(text: str, language: str | None) -> None:
    assert is_sentence(text, language) is (text != "is it refunded")


@pytest.mark.parametrize(
    "text",
    [
        "refund day ticket price",  # No stop word.
        "refund of day tickets",  # One.
        'how do I reset "my password"',
        "how do I reset -password",
        "",
        "* * * *",
        "如何重置我的密码",
    ],
)
def test_word_lists_quotes_and_exclusions_are_not_sentences(text: str) -> None:
    assert not is_sentence(text, None)


def test_sentence_detection_uses_stop_words_of_the_sites_language() -> None:
    assert not is_sentence("how do I reset my password", "de")
