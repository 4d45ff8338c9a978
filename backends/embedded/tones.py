"""Words with their tones, for the language in which folding makes many words one.

Vietnamese writes the tone of a syllable as an accent: *ca*, *cà*, *cá*, *cả*, *cã* and *cạ* are six words. The text
fields have them all as ``ca``, so whoever types no tones finds each; whoever types them finds first what has the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import tantivy

from backends.embedded.ranking import Ranking
from backends.embedded.schema import toned_column
from backends.embedded.snapshots import Snapshot
from backends.text import beyond_ascii

TONAL = frozenset({"vi"})
"""The languages with tones, as ISO 639-1 codes."""

_TONES = {"\u0300": "1", "\u0301": "2", "\u0303": "3", "\u0309": "4", "\u0323": "5"}
_OF_TONAL_TEXTS = re.compile("[\u01a0\u01a1\u01af\u01b0\u0309\u031b\u0323\u1ea0-\u1ef9]")
"""Letters and, in decomposed text, marks that are frequent in Vietnamese only; elsewhere they are in names."""

_ENOUGH = 0.01
"""Share of a text's characters; in Vietnamese alone a tenth and more are among them."""


_WORD = re.compile(r"[^\W_]+")
_Query = tantivy.Query


@dataclass(frozen=True, slots=True)
class ToneMatches:
    """Documents that have a word with its tone, and how many at most in one field."""

    query: tantivy.Query
    frequency: int


def has_tones(text: str) -> bool:
    """Whether a text is, at least in part, in a language that writes tones."""
    return len(_OF_TONAL_TEXTS.findall(beyond_ascii(text))) > _ENOUGH * len(text)


def toned_words(text: str) -> str:
    """The words of a text, each as :func:`toned` gives it, with spaces between them."""
    return " ".join([toned(word) for word in _WORD.findall(unicodedata.normalize("NFC", text).lower())])


@lru_cache(maxsize=16384)
def toned(word: str) -> str:
    """A word in lower case with its tone as a digit at the end, whichever vowel carries it (*hoà* and *hòa*)."""
    letters = unicodedata.normalize("NFD", word)
    tones = [_TONES[char] for char in letters if char in _TONES]
    plain = "".join([char for char in letters if char not in _TONES])
    return unicodedata.normalize("NFC", plain) + "".join(tones)


def find_toned(snapshot: Snapshot, word: str, weights: Mapping[str, float], ranking: Ranking) -> ToneMatches | None:
    """Documents that have a word as typed, in lower case, if it was indexed with tones anywhere.

    Args:
        weights: The text fields that are searched, and the worth of each.
    """
    term = toned(word)
    counts = {name: snapshot.frequency(toned_column(name), term) for name in weights}
    frequency = max(counts.values())
    if not frequency:
        return None
    choices = [
        _Query.boost_query(
            _Query.term_query(snapshot.schema, toned_column(name), term),
            weights[name] * ranking.balance(snapshot.rarity(frequency), snapshot.rarity(count)),
        )
        for name, count in counts.items()
        if count
    ]
    return ToneMatches(_Query.disjunction_max_query(choices, ranking.field_tie), frequency)
