"""Other forms of words made of parts: joined (``KTINS114DRE`` for ``KT-INS114-DRE``) and apart (``Hide For Player``).

Every engine splits texts at separators and nowhere else. Their indexes therefore also contain the other forms, so that
a word is found however it is typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from backends.text import UNSPACED

MAX_JOINED_CHARS = 40
"""Maximum length, in characters, of a joined form. Longer words are mostly URLs and hashes."""

MAX_PARTS = 12
"""Maximum number of parts of a word that has other forms."""

MIN_NUMBER_DIGITS = 3
"""Minimum length, in digits, of a number that is separated from the letters beside it (``nike 7055``)."""

MIN_JOINED_DIGITS = 6
"""Minimum number of digits at which numbers are joined, such as those of a phone number; 15 is not 1.5."""

_APOSTROPHES = "'\u2019\u02bb-\u02bf"
_LETTER = f"[^\\W_{UNSPACED}{_APOSTROPHES}]"
_CHAIN = re.compile(f"{_LETTER}+(?:[-\u200b\u2010\u2011\u2013\xb7_./:&{_APOSTROPHES}]{_LETTER}+)*")
_GROUP = re.compile(f"{_LETTER}+")
_HAS_APOSTROPHE = re.compile(f"[{_APOSTROPHES}]")
_HAS_CYRILLIC = re.compile("[\u0400-\u052f]")
_NUMBER = re.compile(rf"(?<!\d)(\d{{{MIN_NUMBER_DIGITS},}})(?!\d|[^\W\d_](?![^\W_]))")
"""A number to separate; not one followed by a single letter, as in 1990s and 500g."""

_CASE_CHANGE = re.compile(
    "(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-ZÀ-ÖØ-Þ])(?=[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ])(?!.s(?![a-zß-öø-ÿ]))"
)
_NUMBER_IN_GROUPS = re.compile(
    r"(?<![^\W_])(?:[A-Z]{2}\d{2}(?: [A-Z\d]{2,4}){3,8}|\+\d{1,3}(?:[ ./()-]{1,3}\d+){2,8}|97[89](?: \d+){4})(?![^\W_])"
)
"""A bank account number (ISO 13616), an international phone number, or an ISBN written with spaces."""

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_TYPOGRAPHIC_SIGNS = "\u200b\u2010\u2011\u2013\u2019\u02bb\u02bc\u02bd\u02be\u02bf"
_KINDS = bytes(
    ord(" ") if chr(code).isspace()
    else ord("0") if chr(code).isdigit() and code < 128
    else ord("A") if chr(code).isupper()
    else ord("a") if chr(code).isalnum() or code == ord("?")
    else ord("+") if code == ord("+")
    else ord("-")
    for code in range(256)
)  # fmt: skip
"""Kind of each character: space, digit, capital, other letter, or sign. Characters beyond Latin-1 count as letters."""

_ALIKE = bytes.maketrans(b"A0", b"aa")
_UNEVEN = (b"aA", b"AAa", b"a000", b"A000", b"000a", b"000A")
"""Kinds of neighboring characters where a word may be cut. Finding them is many times faster than splitting texts."""

_GROUPS = (b"AA00 ", b"+0", b"000 0")

_AROUND_WORDS = '()[]{}<>"“”„«»‚‘,;!?…*|=`'


def word_parts(word: str) -> list[str]:
    """The parts of a word without separators: cut where its case changes, and around longer numbers."""
    parts: list[str] = []
    for piece in _NUMBER.split(word):
        parts += _CASE_CHANGE.split(piece)
    return [part for part in parts if part]


def words_with_forms(text: str) -> dict[str, tuple[str, ...]]:
    """The words of a text that have other forms; a form is one word, or several separated by spaces."""
    plain = text
    if not text.isascii():
        for sign in _TYPOGRAPHIC_SIGNS:
            plain = plain.replace(sign, "-")
    kinds = plain.encode("latin-1", "replace").translate(_KINDS)
    forms: dict[str, tuple[str, ...]] = {}
    for written in {text[start:end] for start, end in _uneven_words(kinds)}:
        for word in _parted_words(written):
            forms[word] = forms_of(word)
    if any(pattern in kinds for pattern in _GROUPS):
        for match in _NUMBER_IN_GROUPS.finditer(text):
            forms[match[0]] = forms_of(match[0])
    return forms


def _uneven_words(kinds: bytes) -> Iterator[tuple[int, int]]:
    """Spans of what is written between two spaces and may consist of parts."""
    for text, patterns in ((kinds.translate(_ALIKE), (b"a-a",)), (kinds, _UNEVEN)):
        for pattern in patterns:
            at = text.find(pattern)
            while at >= 0:
                end = text.find(b" ", at)
                if end < 0:
                    end = len(text)
                yield text.rfind(b" ", 0, at) + 1, end
                at = text.find(pattern, end)


@lru_cache(maxsize=65536)
def _parted_words(written: str) -> tuple[str, ...]:
    """The words with other forms in what is written between two spaces."""
    word = written.strip(_AROUND_WORDS)
    if _THOUSANDS.fullmatch(word):
        return (word,)
    return tuple(match[0] for match in _CHAIN.finditer(word) if forms_of(match[0]))


@lru_cache(maxsize=65536)
def forms_of(word: str) -> tuple[str, ...]:
    """The other forms of one word."""
    groups = _GROUP.findall(word)
    if " " in word or _THOUSANDS.fullmatch(word):
        return ("".join(groups),)
    if len(groups) > MAX_PARTS:
        return ()
    forms: list[str] = []
    if len(groups) > 1 and len(word) < MAX_JOINED_CHARS + len(groups) and _may_be_joined(word, groups):
        forms.append("".join(groups))
        # The short form of a longer word: T-Shirt in T-Shirt-Größe.
        forms += [
            first + second
            for first, second in pairwise(groups if len(groups) > 2 else ())
            if (len(first) == 1) != (len(second) == 1) and (first + second).isalpha()
        ]
    parts = [part for group in groups for part in word_parts(group)]
    if len(groups) < len(parts) <= MAX_PARTS:
        forms.append(" ".join(parts))
    return tuple(forms)


def _may_be_joined(word: str, groups: Sequence[str]) -> bool:
    """Whether people may write the parts as one word; not for alternatives, possessives, and decimals."""
    if all(map(str.isdigit, groups)):
        return sum(map(len, groups)) >= MIN_JOINED_DIGITS
    if _HAS_APOSTROPHE.search(word):
        # Ukrainian and Belarusian write it inside words; elsewhere it mostly separates words.
        return (
            (len(groups[-1]) == 1 and groups[-1] not in "sdm") or groups[0] in "Oo" or bool(_HAS_CYRILLIC.search(word))
        )
    return not ("/" in word or ":" in word) or any(map(str.isdigit, word))
