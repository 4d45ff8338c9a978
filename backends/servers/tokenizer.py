"""Splitting texts and queries into words, where the splitting of server engines falls short.

Typesense reads text without spaces (Chinese, Japanese, Korean, Thai, …) as one word per sentence, and folds only some
Latin letters; Meilisearch folds different ones. Both get queries folded by :func:`fold_word`. A text with a letter that
the engine folds differently, or with a sign at which it does not split, therefore gets a list of its words: every pair
of neighboring letters of an unspaced run, every single letter, and the other words, folded. The text itself is sent to
the engine unchanged, for filters in its own syntax and for clients that query it directly.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache

from backends.analysis.normalization import fold
from backends.languages import LANGUAGES
from backends.query import SearchSettings
from backends.text import (
    ABBREVIATION,
    QUOTE_IN_WORD,
    UNSPACED_RUN,
    WORD,
    forms_of,
    normalized,
    straight_quotes,
    word_boundaries,
    words_with_forms,
)

_BLOCKS = (
    range(0xC0, 0x2B0), range(0x1D00, 0x1DC0), range(0x1E00, 0x1F00), range(0x2071, 0x209D), range(0x2132, 0x2185),
    range(0x2C60, 0x2C80), range(0xA722, 0xA800), range(0xAB30, 0xAB70), range(0xFB00, 0xFB07), range(0xFF21, 0xFF5B),
    range(0x10780, 0x107BB), range(0x1DF00, 0x1DF2B),
)  # fmt: skip
_LETTERS = [
    char for block in _BLOCKS for char in map(chr, block) if char.isalpha() and "LATIN " in unicodedata.name(char, "")
]

FOLDS = {letter: fold(letter) for letter in _LETTERS}
"""Every non-ASCII Latin letter to the letters under which the embedded engine indexes it."""

_AS_IN_TYPESENSE = re.compile("[\xc0-\u0137\u0139-\u0149\u014c-\u017f\u0218-\u021b\ufb00-\ufb04\ufb06]")


def _in_meilisearch(letter: str) -> str:
    letters = normalized("NFKD", letter).lower().replace("æ", "ae").replace("œ", "oe")
    return "".join(char for char in letters if unicodedata.category(char) != "Mn")


def _ranges(letters: Iterable[str]) -> str:
    """``"abcx"`` -> ``"a-cx"``: the inside of a character class."""
    ranges: list[list[str]] = []
    for letter in letters:
        if ranges and ord(letter) == ord(ranges[-1][-1]) + 1:
            ranges[-1][1:] = [letter]
        else:
            ranges.append([letter])
    return "".join(map("-".join, ranges))


OTHER_IN_TYPESENSE = re.compile(
    f"[{_ranges(letter for letter in _LETTERS if not _AS_IN_TYPESENSE.match(letter))}"
    "\u0300-\u1dff\u20d0-\u20ff\u212a\u212b\u2c00-\ufaff\ufb1d-\ufdff\ufe20-\ufe2f\ufe70-\uffff"
    "\U00010000-\U0001efff\U0001fb00-\U0010ffff]"
)
"""Characters that Typesense 0.24.1 folds differently or not at all: some Latin letters, marks, and other scripts."""

OTHER_IN_MEILISEARCH = re.compile(
    f"[{_ranges(letter for letter in _LETTERS if _in_meilisearch(letter) != FOLDS[letter])}\uff21-\uff5aЁё]"
)
"""Letters that Meilisearch 1.50 folds differently without its language packs; it takes full-width ones for Chinese.

In scripts other than Latin it gets words as typed, and folds them in the same way as the words of texts.
"""


_TYPOGRAPHIC = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"',
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2015": "-", "\u2026": ".",
    "\u00b7": "-", "\u2022": "-", "\u00bf": "?", "\u00a1": "!",
})  # fmt: skip
_RARE_SEPARATORS = "\t\n\r\u037e\u0387\u061d\u066b\u066c"
Fold = Callable[[str], str]
"""Converts a word to the form in which it is searched."""

_LATIN: Mapping[int, str] = {ord(letter): folded for letter, folded in FOLDS.items()}
_LATIN_BEFORE = str.maketrans({"ł": "l", "đ": "d", "ø": "o", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
SIGNED = re.compile(r"(?<![^\W_])[^\W\d_](?:\+\+|#)(?![^\W_])")
"""Names that differ only in symbols, such as C++ and C#."""

_VERSION = re.compile(r"v?\d+(?:\.\d+)+")
_WITH_INITIAL = re.compile(r"[^\W\d_][-\u2010\u2011][^\W\d_]{2,}")
"""A letter, a hyphen, and a word."""

MAX_WORD_BYTES = 100
"""Maximum length of a word in bytes; longer words are cut, because Typesense 0.24 crashes on very long ones."""

_QUERY_PART = re.compile(
    r'(?P<minus>(?:(?<=\s)|^)-(?=["\w]))?'
    rf'(?:"(?P<phrase>(?:[^"]|{QUOTE_IN_WORD})*)"|(?P<plain>(?:[^\s"]|{QUOTE_IN_WORD})+))'
)
_TIGHT = re.compile(rf"{_VERSION.pattern}|.*{ABBREVIATION}.*")
"""Text that counts as one word although the engine splits it."""


@dataclass(frozen=True, slots=True)
class QueryPart:
    """Words that belong together.

    Attributes:
        words: Folded words and runs, in order.
        typed: The same words as typed.
        phrase: Whether they must be consecutive.
        excluded: Whether documents with them are excluded.
    """

    words: tuple[str, ...]
    typed: tuple[str, ...] = ()
    phrase: bool = False
    excluded: bool = False


def fold_word(word: str) -> str:
    """Remove case, accents, and compatibility forms from a word, and strokes and hooks from Latin letters."""
    if word.isascii():
        return word.lower()
    return _folded(normalized("NFC", word).translate(_LATIN)).translate(_LATIN)


def fold_word_as_before(word: str) -> str:
    """Fold a word as earlier releases did, which did not fold every Latin letter; for indexes that they created."""
    return _folded(word).translate(_LATIN_BEFORE)


def _folded(word: str) -> str:
    decomposed = normalized("NFKD", word.casefold())
    if decomposed.isascii():
        return decomposed
    # Hangul syllables and Thai vowels count as letters here: only marks on top of a letter are removed.
    bare = "".join(c for c in decomposed if not (unicodedata.combining(c) and not UNSPACED_RUN.match(c)))
    return normalized("NFC", bare)


def plain_punctuation(text: str) -> str:
    """Replace boundaries at which Typesense does not split with others at which it does; the length stays the same."""
    return text.translate(_plain_boundaries())


@cache
def _plain_boundaries() -> Mapping[int, str]:
    others = (char for char in word_boundaries() if char != "\n" and not (char.isascii() and char.isprintable()))
    return {**dict.fromkeys(map(ord, others), " "), **_TYPOGRAPHIC}


@cache
def _unsplit_in_meilisearch() -> re.Pattern[str]:
    """Pattern for symbols beside words at which Meilisearch does not split words, except the configured separators."""
    separators = {*meilisearch_separators()}
    others = "".join(
        char for char in word_boundaries() if char not in separators and unicodedata.category(char)[0] in "SC"
    )
    signs = f"[{re.escape(others)}]"
    return re.compile(f"(?<=\\w){signs}|{signs}(?=\\w)")


@cache
def meilisearch_separators() -> tuple[str, ...]:
    """Return only the frequent word boundaries, since Meilisearch compares every word of a text with each separator."""
    return tuple(
        char
        for char in word_boundaries()
        if char in _RARE_SEPARATORS or " " <= char <= "\xff" or "\u2000" <= char < "\u2300"
    )


def split_words(text: str, fold: Fold = fold_word) -> list[str]:
    """Return the folded words of a text, and its runs of unspaced scripts, in order."""
    return [word for word, _ in _words_as_typed(text, fold)]


def _words_as_typed(text: str, fold: Fold) -> list[tuple[str, str]]:
    return [(word, match[0]) for match in WORD.finditer(text) if (word := fold(match[0]))]


def has_signs(text: str) -> bool:
    """Whether a text contains names such as C++ and C#, in which symbols are part of the word."""
    return ("+" in text or "#" in text) and SIGNED.search(text) is not None


def spell_signs(text: str) -> str:
    """Replace the symbols in names such as C++ with letters: ``C++`` -> ``Cplusplus``, ``C#`` -> ``Csharp``."""
    return SIGNED.sub(lambda match: match[0].replace("+", "plus").replace("#", "sharp"), text)


def cut_word(word: str) -> str:
    """Return the beginning of a word of at most :data:`MAX_WORD_BYTES` bytes in UTF-8, in whole characters."""
    data = word.encode()
    return word if len(data) <= MAX_WORD_BYTES else data[:MAX_WORD_BYTES].decode(errors="ignore")


def query_parts(text: str, fold: Fold = fold_word) -> list[QueryPart]:
    """Parse a query into words, "phrases", and -exclusions. Parts without a letter or digit are skipped."""
    parts = []
    for match in _QUERY_PART.finditer(straight_quotes(text)):
        quoted = match["phrase"] is not None
        written = match["phrase"] if quoted else match["plain"]
        pairs = [(cut_word(word), cut_word(typed)) for word, typed in _words_as_typed(spell_signs(written), fold)]
        if pairs:
            words, typed_words = zip(*pairs, strict=True)
            together = quoted or _TIGHT.fullmatch(written) is not None
            parts.append(QueryPart(words, typed_words, together, match["minus"] is not None))
    return parts


def query_stop_words(parts: Sequence[QueryPart], settings: SearchSettings) -> frozenset[str]:
    """Return the folded stop words for a query: the site's own, or else its language's.

    For a site without a language, at least two stop words of one language decide that the query is in it.
    """
    if settings.stop_words is not None:
        return frozenset(map(fold_word, settings.stop_words))
    if settings.language is not None:
        return stop_words(settings.language)
    words = {word for part in parts for word in part.words}
    by_language = [stop_words(language) & words for language in LANGUAGES]
    highest_count = max(map(len, by_language))
    # One word is not enough: "war" and "hat" are stop words only in German.
    return (
        frozenset.intersection(*(matching for matching in by_language if len(matching) == highest_count))
        if highest_count > 1
        else frozenset()
    )


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the folded stop words of a language; empty for an unknown language."""
    record = LANGUAGES.get(language)
    return frozenset() if record is None else frozenset(map(fold_word, record.stop_words.split()))


def without_stop_words(parts: Sequence[QueryPart], stops: Set[str]) -> tuple[QueryPart, ...]:
    """Return the parts without single stop words; all parts if nothing else is searched for."""
    remaining = [
        part for part in parts if part.phrase or part.excluded or not (len(part.words) == 1 and part.words[0] in stops)
    ]
    return tuple(remaining if any(not part.excluded for part in remaining) else parts)


def grams(run: str, *, single: bool) -> list[str]:
    """Return ASCII tokens for an unspaced run: ``東京`` -> ``u6771u4eac``, one for each pair of neighbors.

    Args:
        single: Whether to add one for each letter, as for a run of one letter.
    """
    codes = [f"u{ord(letter):x}" for letter in run]
    pairs = [first + second for first, second in itertools.pairwise(codes)]
    return pairs + codes if single or not pairs else pairs


def extra_words(text: str) -> str:
    """Return the words to index in addition to a text: words that Typesense folds differently, names such as C++, and
    the other forms of words made of parts.
    """
    signed = [*_signed_names(text), *other_forms(text)]
    if text.isascii() or OTHER_IN_TYPESENSE.search(text) is None:
        return " ".join(signed)
    tokens: list[str] = signed
    singles: list[str] = []
    for word in split_words(text):
        if UNSPACED_RUN.match(word):
            pairs = grams(word, single=False)
            tokens += pairs
            if len(word) > 1:
                singles += grams(word, single=True)[len(pairs) :]
        else:
            tokens.append(word)
    return " ".join(tokens + list(dict.fromkeys(singles)))


def folded_words(text: str) -> str:
    """Return the words to index beside a text: words that Meilisearch folds or splits differently, names such as C++,
    and the other forms of words made of parts.
    """
    other = not text.isascii() and (OTHER_IN_MEILISEARCH.search(text) or _unsplit_in_meilisearch().search(text))
    return " ".join([*_signed_names(text), *other_forms(text), *(split_words(text) if other else ())])


def other_forms(text: str) -> list[str]:
    """Return the folded other forms of a text's words, each once."""
    return sorted({form for word in words_with_forms(text) for form in folded_forms(word)})


@lru_cache(maxsize=16384)
def folded_forms(word: str) -> tuple[str, ...]:
    """Return the words under which a word made of parts is also found: joined, its parts, and the ends of its parts.

    The engines complete words, so that the ends (``hideforplayer`` of ``TextDrawHideForPlayer``) stand for all
    consecutive parts typed as one word. Typesense allows no typing errors in these words, so the plural of a word
    like *E-book* is among them.
    """
    forms: dict[str, None] = {}
    if _WITH_INITIAL.fullmatch(word):
        forms[f"{fold_word(word[0] + word[2:])}s"] = None
    for form in forms_of(word):
        parts = [fold_word(part) for part in form.split()]
        forms |= dict.fromkeys(parts)
        forms |= dict.fromkeys("".join(parts[index:]) for index in range(1, len(parts) - 1))
    return tuple(forms)


def _signed_names(text: str) -> list[str]:
    return [fold_word(spell_signs(name)) for name in dict.fromkeys(SIGNED.findall(text))] if has_signs(text) else []
