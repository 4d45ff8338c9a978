"""Text normalization shared by the engines and the analytics, and the other forms of words made of parts.

Every engine splits texts at separators and nowhere else. Their indexes therefore also contain the other forms of words
made of parts: joined (``KTINS114DRE`` for ``KT-INS114-DRE``) and apart (``Hide For Player``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal

QUOTE_IN_WORD = '(?<=[א-ת\u05b0-\u05c2])"(?=[א-ת](?![א-ת]))'
"""Pattern for the quote that marks a Hebrew abbreviation, before its last letter."""

ABBREVIATION = QUOTE_IN_WORD.replace('"', '["\u05f4]')
"""Pattern for a Hebrew abbreviation mark in any typed form."""

INDIAN = "\u0900-\u0963\u0971-\u0dff"
"""Letters and vowel signs of Indian scripts, as the inside of a character class."""

MAX_MARKS_IN_A_ROW = 30
"""Maximum number of consecutive marks in normalized text, as in Unicode's Stream-Safe Text Format (UAX #15)."""


def _is_mark(char: str) -> bool:
    """Whether a character is a combining mark, or decomposes into nothing but marks."""
    if unicodedata.combining(char):
        return True
    return bool(unicodedata.decomposition(char)) and all(
        map(unicodedata.combining, unicodedata.normalize("NFKD", char))
    )


_MARKS = "".join(filter(_is_mark, map(chr, (*range(0x300, 0xD800), *range(0xF900, 0x1F000)))))
_MANY_MARKS = re.compile(f"([{_MARKS}]{{{MAX_MARKS_IN_A_ROW}}})[{_MARKS}]+")
_LAST_OF_16_BITS = "\uffff"
_BEYOND_16_BITS = [char for char in _MARKS if char > _LAST_OF_16_BITS]
# Beyond 16 bits, a single range that also includes letters: a class with every mark takes twenty times as long.
_POSSIBLY_MANY_MARKS = re.compile(
    f"[{_MARKS.rstrip(''.join(_BEYOND_16_BITS))}{_BEYOND_16_BITS[0]}-{_BEYOND_16_BITS[-1]}]{{{MAX_MARKS_IN_A_ROW + 1}}}"
)

_ASCII = bytes(range(128))
_CURLY_QUOTES = str.maketrans("“”„", '"""')


def normal_form(query: str) -> str:
    """Normalize a query for counting and pinning: trimmed, lower case, NFC, single spaces."""
    return normalized("NFC", " ".join(query.lower().split()))


def in_case_of(typed: str, word: str) -> str:
    """Return a lower-case word in the case of a typed word: ``Opning``, ``opening`` -> ``Opening``."""
    if len(typed) > 1 and typed.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if typed[:1].isupper() else word


def straight_quotes(query: str) -> str:
    """Replace the curly quotes that phones type by ``"``."""
    return query.translate(_CURLY_QUOTES)


def beyond_ascii(text: str) -> str:
    """Return the non-ASCII characters of a text, in order, which are usually few and faster to scan than the text."""
    return "" if text.isascii() else without_ascii(text.encode("utf-8", "surrogatepass"))


def few_marks(text: str, foreign: str | None = None) -> str:
    """Limit runs of consecutive marks to :data:`MAX_MARKS_IN_A_ROW`, keeping the first ones.

    Args:
        foreign: The text's non-ASCII characters, if they were computed already.
    """
    if _POSSIBLY_MANY_MARKS.search(beyond_ascii(text) if foreign is None else foreign) is None:
        return text
    return _MANY_MARKS.sub(r"\1", text)


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str, foreign: str | None = None) -> str:
    """Convert a text to a Unicode normal form after limiting its runs of marks.

    Sorting marks takes time quadratic in their number, so text from callers must only be normalized with this
    function.

    Args:
        foreign: The text's non-ASCII characters, if they were computed already.
    """
    return text if text.isascii() else unicodedata.normalize(form, few_marks(text, foreign))


def without_ascii(encoded: bytes) -> str:
    """Return the non-ASCII characters of a UTF-8 text, in order."""
    return encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass")


UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003134f"
)
_MARKS_IN_WORDS = (
    "\u1ab0-\u1aff\u1dc0-\u1dff\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    f"{INDIAN}\u20d0-\u20ff\ufe20-\ufe2f"
)
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
WORD = re.compile(rf"[{UNSPACED}]+|(?:(?![{UNSPACED}])(?:[^\W_]|[{_MARKS_IN_WORDS}]))+")
"""A word, or a run of letters of a script without spaces."""


_INSIDE_WORDS = re.compile(
    "[\xad\u200c-\u200f\ufeff\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]"
)
"""Characters that are neither letters nor boundaries: invisible joiners, and letters in circles and squares."""

_EMOJI_STYLES = "".join(map(chr, range(0xFE00, 0xFE10)))


@cache
def word_boundaries() -> str:
    """Return the characters at which words end in the embedded engine, in order, as a setting for the other engines.

    Blocks whose signs never stand beside words (such as Braille and SignWriting) are left out.
    """
    blocks = ((0, 0x2800), (0x2900, 0x3400), (0xA000, 0xAC00), (0xF900, 0x10000), (0x1F000, 0x1FB00))
    return "".join(char for first, end in blocks for char in map(chr, range(first, end)) if _ends_words(char))


def _ends_words(char: str) -> bool:
    kind = unicodedata.category(char)
    is_sign = kind[0] in "PSZ" or kind in ("Cc", "Cf") or char in _EMOJI_STYLES
    return is_sign and not (WORD.match(char) or _INSIDE_WORDS.match(char))


MAX_PARTED_WORDS = 1000
"""Maximum number of words of one text that are indexed in other forms."""

MAX_PARTED_CHARS = 120
"""Maximum length, in characters, of a word that has other forms."""

MAX_JOINED_CHARS = 40
"""Maximum length, in characters, of a joined form. Longer words are mostly URLs and hashes."""

MAX_PARTS = 12
"""Maximum number of parts of a word that has other forms."""

MIN_NUMBER_DIGITS = 3
"""Minimum length, in digits, of a number that is separated from the letters beside it (``nike 7055``)."""

MAX_SUFFIX_LETTERS = 3
"""Maximum number of letters after the dot of a name without digits that is joined."""

MIN_JOINED_DIGITS = 6
"""Minimum number of digits at which groups of digits are joined, as in a phone number; 15 is not 1.5."""

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
_NUMBER_IN_GROUPS = re.compile(r"(?<![^\W_])(?:[A-Z]{2}\d{2}(?: [A-Z\d]{2,4}){3,8}|97[89](?: \d+){4})(?![^\W_])")
"""A bank account number (ISO 13616) or an ISBN written with spaces."""

_PHONE_NUMBER = re.compile(
    r"(?<![^\W_])(?:\+(?=\d)|0(?=[\d)])|\((?=\d{2,5}\)))(?:[ ./()\u2011-]{0,3}\d++){2,8}(?![^\W_])"
    r"|(?<![^\W_])(?:\+\d{8,15}|\d{2,3}(?:[ .]\d{2,3}){2,4})(?![^\W_])"
)
"""A phone number: international, with an area code that begins with 0 or is in parentheses, or in groups of two or
three digits."""

_COUNTRY_CODE = re.compile("[17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|\\d{3}")
"""Country codes of phone numbers (ITU-T E.164) by their length."""

MIN_PHONE_DIGITS, MAX_PHONE_DIGITS = 7, 15
_DIGITS_WITH_PREFIX = 11
"""Number of digits of an American number after 1, and of a Russian one after 8."""

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_TYPOGRAPHIC_SIGNS = "\u200b\u2010\u2011\u2013\u2019\u02bb\u02bc\u02bd\u02be\u02bf"
_KINDS = bytes(
    ord(" ") if chr(code).isspace()
    else ord("0") if chr(code).isdigit() and code < 128
    else ord("A") if chr(code).isupper()
    else ord("a") if chr(code).isalnum() or code == ord("?")
    else ord("+") if code == ord("+")
    else ord("-") if chr(code) in "-\xb7_./:&'," else ord("=")
    for code in range(256)
)  # fmt: skip
"""Kind of each character: space, digit, capital, other letter, sign inside words, or other sign. Characters beyond
Latin-1 count as letters."""

# Each pattern begins with its rarest kind, which the engine finds many times faster than words in a text, and ends with
# the word.
_UNEVEN = (
    re.compile(rb"-[aA0](?<=[aA0]-.)[^ ]*"),
    re.compile(rb"A(?:(?<=aA)|(?<=AA)a)[^ ]*"),
    re.compile(rb"0(?:(?<=[aA]0)00|00[aA])[^ ]*"),
)
"""Signs between letters or digits, capitals inside, and digits beside letters, in the kinds of a text."""

_MAY_BE_IN_GROUPS = re.compile(rb"0(?:(?<=AA0)0 |(?<=\+0)|00 0|[-= ]{1,3}00)")
"""Kinds of neighboring characters without which a text has no number in groups."""

_AROUND_WORDS = '()[]{}<>"“”„«»‚‘,;!?…*|=`'


def word_parts(word: str) -> list[str]:
    """Split a word without separators where its case changes, and around longer numbers.

    ``HideForPlayer`` -> ``Hide``, ``For``, ``Player``; ``nike7055`` -> ``nike``, ``7055``.
    """
    if word.isdecimal() or (word.isalpha() and word[1:].islower()):
        return [word]  # Most words, for which the patterns take ten times as long.
    pieces = [word] if word.isalpha() else _NUMBER.split(word)
    return [part for piece in pieces for part in _CASE_CHANGE.split(piece) if part]


def words_with_forms(text: str, foreign: str | None = None) -> dict[str, tuple[str, ...]]:
    """Return the words of a text that have other forms, each with these forms: ``{"U-Bahn": ("UBahn",)}``.

    A form is one word, or several words separated by spaces.

    Args:
        foreign: The text's non-ASCII characters, if they were computed already.
    """
    foreign = beyond_ascii(text) if foreign is None else foreign
    plain = text
    for sign in _TYPOGRAPHIC_SIGNS if foreign else ():
        if sign in foreign:
            plain = plain.replace(sign, "-")
    # The space ends the last word.
    kinds = plain.encode("latin-1", "replace").translate(_KINDS) + b" "
    spans = [match.span() for pattern in _UNEVEN for match in pattern.finditer(kinds)]
    forms: dict[str, tuple[str, ...]] = {}
    for chunk in dict.fromkeys([text[kinds.rfind(b" ", 0, start) + 1 : end] for start, end in spans]):
        # A text without spaces is one long word; the cache holds only short ones.
        find = _parted_words if len(chunk) <= MAX_PARTED_CHARS else _parted_words.__wrapped__
        forms |= find(chunk)
        if len(forms) >= MAX_PARTED_WORDS:
            break
    if _MAY_BE_IN_GROUPS.search(kinds):
        for match in _NUMBER_IN_GROUPS.finditer(text):
            forms[match[0]] = forms_of(match[0])
        for match in _PHONE_NUMBER.finditer(text):
            if numbers := _phone_forms(match[0]):
                forms[match[0]] = numbers
    return forms


@lru_cache(maxsize=16384)
def _parted_words(written: str) -> Mapping[str, tuple[str, ...]]:
    """``"(node.js),"`` -> ``{"node.js": ("nodejs",)}``."""
    word = written.strip(_AROUND_WORDS)
    words = (word,) if "," in word and _THOUSANDS.fullmatch(word) else _CHAIN.findall(word)
    return {word: forms for word in words if len(word) <= MAX_PARTED_CHARS and (forms := forms_of(word))}


@lru_cache(maxsize=16384)
def forms_of(word: str) -> tuple[str, ...]:
    """Return the other forms of one word: ``KT-INS114-DRE`` -> ``KTINS114DRE``, ``KT INS 114 DRE``."""
    if word[:1] in "+(0" or " " in word:
        numbers = _phone_forms(word)
        if numbers:
            return numbers
    groups = _GROUP.findall(word)
    if " " in word or ("," in word and _THOUSANDS.fullmatch(word)):
        return ("".join(groups),)
    if len(groups) > MAX_PARTS:
        return ()
    forms: list[str] = []
    if len(groups) > 1 and len(word) < MAX_JOINED_CHARS + len(groups) and _may_be_joined(word, groups):
        forms.append("".join(groups))
        if len(groups) > 2:
            # The short form of a longer word: T-Shirt in T-Shirt-Größe.
            forms += [
                first + second
                for first, second in pairwise(groups)
                if (len(first) == 1) != (len(second) == 1) and (first + second).isalpha()
            ]
    parts = [part for group in groups for part in word_parts(group)]
    if len(groups) < len(parts) <= MAX_PARTS:
        forms.append(" ".join(parts))
    return tuple(forms)


def _phone_forms(written: str) -> tuple[str, ...]:
    """``"+41 79 123 45 67"`` -> ``"41791234567", "791234567"``, and ``"079 123 45 67"`` -> ``"0791234567"``."""
    if _PHONE_NUMBER.fullmatch(written) is None:
        return ()
    international = written.startswith("+")
    digits = "".join(_GROUP.findall(written.replace("(0)", "") if international else written))
    if not MIN_PHONE_DIGITS <= len(digits) <= MAX_PHONE_DIGITS:
        return ()
    return (digits, without_country_code(digits)) if international else (digits,)


def without_country_code(digits: str) -> str:
    """Return the digits of an international phone number without its country code: ``41791234567`` -> ``791234567``."""
    return _COUNTRY_CODE.sub("", digits, count=1)


def other_phone_numbers(digits: str, *, international: bool) -> list[str]:
    """Return the digits by which pages may have a phone number: with or without a country code, and a 0.

    Args:
        international: Whether the number begins with a country code.
    """
    if not MIN_PHONE_DIGITS <= len(digits) <= MAX_PHONE_DIGITS or not digits.isdecimal():
        return []
    if digits.startswith("00"):
        digits, international = digits[2:], True
    if international:
        national = without_country_code(digits)
        return [digits, national, f"0{national}"]
    has_prefix = digits[0] == "0" or (digits[0] in "18" and len(digits) == _DIGITS_WITH_PREFIX)
    return [digits[1:]] if has_prefix else []


def _may_be_joined(word: str, groups: Sequence[str]) -> bool:
    """``"e-mail"``, ``["e", "mail"]`` -> true; ``"and/or"``, ``"Ann's"``, and ``"1.5"`` -> false."""
    if all(map(str.isdigit, groups)):
        return sum(map(len, groups)) >= MIN_JOINED_DIGITS
    if _HAS_APOSTROPHE.search(word):
        # Ukrainian and Belarusian write it inside words; elsewhere it mostly separates words.
        return (
            (len(groups[-1]) == 1 and groups[-1] not in "sdm") or groups[0] in "Oo" or bool(_HAS_CYRILLIC.search(word))
        )
    if any(map(str.isdigit, word)):
        return True
    if "." in word:
        # Names such as node.js and U.S., but not paths such as limits.max_sites and sentences without a space.
        return "_" not in word and len(groups[-1]) <= MAX_SUFFIX_LETTERS
    return not ("/" in word or ":" in word)
