"""Words of texts and queries, for server engines whose own splitting falls short.

Typesense reads text that has no spaces (Chinese, Japanese, Korean, Thai, …) as one word per sentence, and folds only
some Latin letters; Meilisearch folds some others. Queries reach both folded by :func:`fold_word`. Texts with a letter
that the engine folds otherwise, or a sign at which it does not split, therefore carry their own list of words: every
two neighbouring letters of a run without spaces, every single one, and the other words folded. The texts themselves are
given to the engine as they are, for filters in its own syntax and for clients that ask it directly.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache

from backends.base import SearchSettings
from backends.languages import LANGUAGES
from backends.servers.latin import FOLDS, OTHER_IN_MEILISEARCH, OTHER_IN_TYPESENSE
from backends.text import (
    ABBREVIATION,
    QUOTE_IN_WORD,
    UNSPACED_RUN,
    WORD,
    normalized,
    straight_quotes,
    word_boundaries,
)

_TYPOGRAPHIC = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"',
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2015": "-", "\u2026": ".",
    "\u00b7": "-", "\u2022": "-", "\u00bf": "?", "\u00a1": "!",
})  # fmt: skip
_UNUSUAL = "\t\n\r\u037e\u0387\u061d\u066b\u066c"
Fold = Callable[[str], str]
"""What makes of a word the word that is searched."""

_LATIN: Mapping[int, str] = {ord(letter): folded for letter, folded in FOLDS.items()}
_LATIN_BEFORE = str.maketrans({"ł": "l", "đ": "d", "ø": "o", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
SIGNED = re.compile(r"(?<![^\W_])[^\W\d_](?:\+\+|#)(?![^\W_])")
"""Names that are told apart by signs only, such as C++ and C#."""

_VERSION = re.compile(r"v?\d+(?:\.\d+)+")
MAX_WORD_BYTES = 100
"""Longer words are cut: Typesense 0.24 crashes on very long ones."""

_QUERY_PART = re.compile(
    r'(?P<minus>(?:(?<=\s)|^)-(?=["\w]))?'
    rf'(?:"(?P<phrase>(?:[^"]|{QUOTE_IN_WORD})*)"|(?P<plain>(?:[^\s"]|{QUOTE_IN_WORD})+))'
)
_TIGHT = re.compile(rf"{_VERSION.pattern}|.*{ABBREVIATION}.*")
"""What is one word, though the engine splits it."""


@dataclass(frozen=True, slots=True)
class QueryPart:
    """Words that belong together.

    Attributes:
        words: Folded words and runs, in order.
        typed: The same as they were typed.
        phrase: Whether they must follow each other.
        excluded: Whether documents with them are left out.
    """

    words: tuple[str, ...]
    typed: tuple[str, ...] = ()
    phrase: bool = False
    excluded: bool = False


def fold_word(word: str) -> str:
    """A word without case, accents and compatibility forms; Latin letters without strokes and hooks, too."""
    if word.isascii():
        return word.lower()
    return _folded(normalized("NFC", word).translate(_LATIN)).translate(_LATIN)


def fold_word_as_before(word: str) -> str:
    """A word as it was folded before every Latin letter was: for indexes that were made then."""
    return _folded(word).translate(_LATIN_BEFORE)


def _folded(word: str) -> str:
    decomposed = normalized("NFKD", word.casefold())
    if decomposed.isascii():
        return decomposed
    # Hangul syllables and Thai vowels are letters here: only what sits on top of a letter goes.
    bare = "".join(c for c in decomposed if not (unicodedata.combining(c) and not UNSPACED_RUN.match(c)))
    return normalized("NFC", bare)


def plain_punctuation(text: str) -> str:
    """``text`` with other word boundaries than Typesense can split at as some that it can; its length is kept."""
    return text.translate(_plain_boundaries())


@cache
def _plain_boundaries() -> Mapping[int, str]:
    others = (char for char in word_boundaries() if char != "\n" and not (char.isascii() and char.isprintable()))
    return {**dict.fromkeys(map(ord, others), " "), **_TYPOGRAPHIC}


@cache
def _unsplit_in_meilisearch() -> re.Pattern[str]:
    """A sign beside a word at which Meilisearch does not split, though it is told of the frequent ones."""
    told = {*meilisearch_separators()}
    others = "".join(char for char in word_boundaries() if char not in told and unicodedata.category(char)[0] in "SC")
    signs = f"[{re.escape(others)}]"
    return re.compile(f"(?<=\\w){signs}|{signs}(?=\\w)")


@cache
def meilisearch_separators() -> tuple[str, ...]:
    """Returns the frequent word boundaries; Meilisearch compares every word of a text with each that it is told of."""
    return tuple(
        char for char in word_boundaries() if char in _UNUSUAL or " " <= char <= "\xff" or "\u2000" <= char < "\u2300"
    )


def split_words(text: str, fold: Fold = fold_word) -> list[str]:
    """Folded words and runs of a text, in order; empty ones left out."""
    return [word for word, _ in _words_as_typed(text, fold)]


def _words_as_typed(text: str, fold: Fold) -> list[tuple[str, str]]:
    return [(word, match[0]) for match in WORD.finditer(text) if (word := fold(match[0]))]


def has_signs(text: str) -> bool:
    """Tell whether a text has names such as C++ and C#, whose signs belong to them."""
    return ("+" in text or "#" in text) and SIGNED.search(text) is not None


def spell_signs(text: str) -> str:
    """``text`` with the signs of names such as C++ as letters."""
    return SIGNED.sub(lambda match: match[0].replace("+", "plus").replace("#", "sharp"), text)


def cut_word(word: str) -> str:
    """``word``, at most :data:`MAX_WORD_BYTES` of it."""
    data = word.encode()
    return word if len(data) <= MAX_WORD_BYTES else data[:MAX_WORD_BYTES].decode(errors="ignore")


def query_parts(text: str, fold: Fold = fold_word) -> list[QueryPart]:
    """Take a typed query apart: words, "phrases", and -excluded ones. A part without a letter or digit is none."""
    parts = []
    for match in _QUERY_PART.finditer(straight_quotes(text)):
        quoted = match["phrase"] is not None
        written = match["phrase"] if quoted else match["plain"]
        found = [(cut_word(word), cut_word(typed)) for word, typed in _words_as_typed(spell_signs(written), fold)]
        if found:
            words, typed_words = zip(*found, strict=True)
            together = quoted or _TIGHT.fullmatch(written) is not None
            parts.append(QueryPart(words, typed_words, together, match["minus"] is not None))
    return parts


def query_stop_words(parts: Sequence[QueryPart], settings: SearchSettings) -> frozenset[str]:
    """The folded stop words for a query: those that the site names, or else those of its language.

    Where the site has no language, at least two stop words of one language tell that the query is in it.
    """
    if settings.stop_words is not None:
        return frozenset(map(fold_word, settings.stop_words))
    if settings.language is not None:
        return stop_words(settings.language)
    words = {word for part in parts for word in part.words}
    known = [stop_words(language) & words for language in LANGUAGES]
    most = max(map(len, known))
    # One word is not enough: "war" and "hat" are stop words in German only.
    return frozenset.intersection(*(each for each in known if len(each) == most)) if most > 1 else frozenset()


@cache
def stop_words(language: str) -> frozenset[str]:
    """The folded stop words of a language; none of an unknown one."""
    known = LANGUAGES.get(language)
    return frozenset() if known is None else frozenset(map(fold_word, known.stop_words.split()))


def without_stop_words(parts: Sequence[QueryPart], stops: Set[str]) -> tuple[QueryPart, ...]:
    """The parts but for single stop words; all where nothing else is searched for."""
    kept = [
        part for part in parts if part.phrase or part.excluded or not (len(part.words) == 1 and part.words[0] in stops)
    ]
    return tuple(kept if any(not part.excluded for part in kept) else parts)


def grams(run: str, *, single: bool) -> list[str]:
    """ASCII tokens of a run without spaces: one for every two neighbours, and, with ``single``, for every letter."""
    codes = [f"u{ord(letter):x}" for letter in run]
    pairs = [first + second for first, second in itertools.pairwise(codes)]
    return pairs + codes if single or not pairs else pairs


def extra_words(text: str) -> str:
    """The words of a text that Typesense folds otherwise, and names such as C++, for a field beside the text."""
    signed = _signed_names(text)
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
    """The words of a text that Meilisearch folds or splits otherwise, and names such as C++, for a field beside it."""
    other = not text.isascii() and (OTHER_IN_MEILISEARCH.search(text) or _unsplit_in_meilisearch().search(text))
    return " ".join([*_signed_names(text), *(split_words(text) if other else ())])


def _signed_names(text: str) -> list[str]:
    return [fold_word(spell_signs(name)) for name in dict.fromkeys(SIGNED.findall(text))] if has_signs(text) else []
