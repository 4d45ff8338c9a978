"""Queries that are sentences, such as questions, rather than a few words to look for."""

from __future__ import annotations

from backends.embedded.analysis.languages import recognise, stop_words
from backends.embedded.analysis.normalization import terms_of
from backends.embedded.query.parser import parse_query
from backends.embedded.query.ranking import RANKING


def is_sentence(text: str, language: str | None) -> bool:
    """Tell whether a query is a sentence: of four words or more, two of them stop words, without quotes and minus.

    Languages without a list of stop words have no sentences.

    Args:
        language: ISO 639-1 code of the site's language; ``None`` to recognise the query's.
    """
    words = terms_of(text)
    if len(words) < RANKING.sentence_terms:
        return False
    stops = stop_words(language or recognise(text))
    if sum(word in stops for word in words) < RANKING.sentence_stop_words:
        return False
    parsed = parse_query(text)
    return not parsed.phrases and not parsed.excluded
