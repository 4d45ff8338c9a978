"""Words with their tones, for the language in which folding makes many words one.

Vietnamese writes the tone of a syllable as an accent: *ca*, *cà*, *cá*, *cả*, *cã* and *cạ* are six words. The text
fields have them all as ``ca``, so whoever types no tones finds each; whoever types them finds first what has the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from backends.languages import LANGUAGES
from backends.text import beyond_ascii, normalized

TONAL = frozenset(code for code, language in LANGUAGES.items() if language.tonal)
"""The languages with tones, as ISO 639-1 codes."""

_TONES = {"\u0300": "_1", "\u0301": "_2", "\u0303": "_3", "\u0309": "_4", "\u0323": "_5"}
_OF_TONAL_TEXTS = re.compile("[\u01a0\u01a1\u01af\u01b0\u0309\u031b\u0323\u1ea0-\u1ef9]")
"""Letters and, in decomposed text, marks that few languages but Vietnamese have; elsewhere they are in names."""

_ACCENTED = frozenset("àáảãạăằắẳẵặâầấẩẫậđèéẻẽẹêềếểễệìíỉĩịòóỏõọôồốổỗộơờớởỡợùúủũụưừứửữựỳýỷỹỵ")
"""Every letter with an accent that a Vietnamese word may have."""

_ENOUGH = 0.01
"""Share of a text's characters; in Vietnamese alone a tenth and more are among them."""

_LONGEST = 40
"""Letters of a word; what is longer is no word of a language with tones."""

_WORD = re.compile(r"[^\W_]+")


def has_tones(text: str) -> bool:
    """Tell whether a text is, at least in part, in a language that writes tones."""
    return len(_OF_TONAL_TEXTS.findall(beyond_ascii(text))) > _ENOUGH * len(text)


def may_have_tones(words: Iterable[str]) -> bool:
    """Tell whether some words of a query, in lower case, may be typed with tones: with accents, and no foreign ones."""
    accented = frozenset("".join(map(beyond_ascii, words)))
    return bool(accented) and accented <= _ACCENTED


def toned_words(text: str) -> str:
    """The words of a text, each as :func:`toned` gives it, with spaces between them."""
    words = _WORD.findall(normalized("NFC", text).lower())
    return " ".join([toned(word) for word in words if len(word) <= _LONGEST])


@lru_cache(maxsize=16384)
def toned(word: str) -> str:
    """A word in lower case with its tone as a number at the end, whichever vowel carries it (*hoà* and *hòa*)."""
    letters = normalized("NFD", word)
    tones = [_TONES[char] for char in letters if char in _TONES]
    plain = "".join([char for char in letters if char not in _TONES])
    return normalized("NFC", plain) + "".join(tones)
