"""Queries that are sentences."""

from __future__ import annotations

from backends.analysis.languages import detect_language, stop_words
from backends.analysis.normalization import terms_of
from backends.analysis.parser import parse_query

SENTENCE_TERMS, SENTENCE_STOP_WORDS = 4, 2
"""Minimum numbers of words, and of stop words among them, that make a query a sentence."""


def is_sentence(text: str, language: str | None) -> bool:
    """Whether a query is a sentence: at least four words, including two stop words, without quotes or minus signs.

    In languages without stop words, no query is a sentence.

    Args:
        language: ISO 639-1 code of the site's language; ``None`` to detect the query's.
    """
    words = terms_of(text)
    if len(words) < SENTENCE_TERMS:
        return False
    stops = stop_words(language or detect_language(text))
    if sum(word in stops for word in words) < SENTENCE_STOP_WORDS:
        return False
    parsed = parse_query(text)
    return not parsed.phrases and not parsed.excluded
