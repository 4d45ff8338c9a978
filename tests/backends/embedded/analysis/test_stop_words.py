"""Stop words, of every language with a stemmer."""

from __future__ import annotations

from backends.embedded.analysis.languages import STEMMERS, stem, stop_words
from backends.embedded.analysis.stop_words import STOP_WORDS


def test_every_language_with_a_stemmer_has_stop_words() -> None:
    assert set(STEMMERS) == set(STOP_WORDS)
    for language in STEMMERS:
        assert len(stop_words(language)) > 25, language
        assert stem(language, "abc")
