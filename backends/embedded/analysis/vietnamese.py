"""Tones of Vietnamese words, which folding would otherwise lose.

Vietnamese writes the tone of a syllable as an accent: *ca*, *cà*, *cá*, *cả*, *cã*, and *cạ* are six words. The text
fields index all of them as ``ca``, so a query without tones matches each. A query with tones ranks equal tones first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from backends.languages import LANGUAGES
from backends.text import beyond_ascii, normalized

TONAL = frozenset(code for code, language in LANGUAGES.items() if language.tonal)
"""ISO 639-1 codes of the languages with tones."""

_TONES = {"\u0300": "_1", "\u0301": "_2", "\u0303": "_3", "\u0309": "_4", "\u0323": "_5"}
_OF_TONAL_TEXTS = re.compile("[\u01a0\u01a1\u01af\u01b0\u0309\u031b\u0323\u1ea0-\u1ef9]")
"""Letters and decomposed marks that few languages except Vietnamese use; in other texts they occur in names."""

_ACCENTED = frozenset("àáảãạăằắẳẵặâầấẩẫậđèéẻẽẹêềếểễệìíỉĩịòóỏõọôồốổỗộơờớởỡợùúủũụưừứửữựỳýỷỹỵ")
"""Every accented letter of Vietnamese words."""

_MIN_TONAL_SHARE = 0.01
"""Minimum share of these letters in a text; Vietnamese texts have a tenth or more."""

_MAX_WORD_LETTERS = 40
"""Maximum length, in letters, of a word of a language with tones."""

_WORD = re.compile(r"[^\W_]+")


def has_tones(text: str) -> bool:
    """Whether a text is, at least in part, in a language that writes tones."""
    return len(_OF_TONAL_TEXTS.findall(beyond_ascii(text))) > _MIN_TONAL_SHARE * len(text)


def may_have_tones(words: Iterable[str]) -> bool:
    """Whether lower-case query words may carry tones: they have accents, and only Vietnamese ones."""
    accented = frozenset("".join(map(beyond_ascii, words)))
    return bool(accented) and accented <= _ACCENTED


def toned_words(text: str) -> str:
    """The words of a text in the form of :func:`toned`, separated by spaces."""
    words = _WORD.findall(normalized("NFC", text).lower())
    return " ".join([toned(word) for word in words if len(word) <= _MAX_WORD_LETTERS])


@lru_cache(maxsize=16384)
def toned(word: str) -> str:
    """A lower-case word with its tone moved to the end as a number, whichever vowel carries it (*hoà* and *hòa*)."""
    letters = normalized("NFD", word)
    tones = [_TONES[char] for char in letters if char in _TONES]
    plain = "".join([char for char in letters if char not in _TONES])
    return normalized("NFC", plain) + "".join(tones)
