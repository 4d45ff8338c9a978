"""Detecting the language of a text, stemming its words, and keeping the tones of Vietnamese words.

Vietnamese writes the tone of a syllable as an accent: *ca*, *cà*, *cá*, *cả*, *cã*, and *cạ* are six words. The text
fields index all of them as ``ca``, so a query without tones matches each. A query with tones ranks equal tones first.
"""

from __future__ import annotations

import math
import re
import struct
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from itertools import chain

import Stemmer

from backends.analysis.normalization import fold
from backends.languages import LANGUAGES, Language
from backends.text import INDIAN, beyond_ascii, normalized

TONAL = frozenset(code for code, language in LANGUAGES.items() if language.tonal)
"""ISO 639-1 codes of the languages with tones."""

_TONES = {"\u0300": "_1", "\u0301": "_2", "\u0303": "_3", "\u0309": "_4", "\u0323": "_5"}
_OF_TONAL_TEXTS = re.compile("[\u01a0\u01a1\u01af\u01b0\u0309\u031b\u0323\u1ea0-\u1ef9]")
"""Letters and decomposed marks that few languages except Vietnamese use; in other texts they occur in names."""

_ACCENTED = frozenset("àáảãạăằắẳẵặâầấẩẫậđèéẻẽẹêềếểễệìíỉĩịòóỏõọôồốổỗộơờớởỡợùúủũụưừứửữựỳýỷỹỵ")
"""Every accented letter that occurs in Vietnamese words."""

_MIN_TONAL_SHARE = 0.01
"""Minimum share of :data:`_OF_TONAL_TEXTS` in a tonal text; in Vietnamese texts, it is a tenth or more."""

_MAX_WORD_LETTERS = 40
"""Maximum length, in letters, of a word of a language with tones."""

_TONED_WORD = re.compile(r"[^\W_]+")


def has_tones(text: str, foreign: str | None = None) -> bool:
    """Whether at least part of a text is in a language that writes tones.

    Args:
        foreign: The text's non-ASCII characters, if they were computed already.
    """
    foreign = beyond_ascii(text) if foreign is None else foreign
    return bool(foreign) and len(_OF_TONAL_TEXTS.findall(foreign)) > _MIN_TONAL_SHARE * len(text)


def may_have_tones(words: Iterable[str]) -> bool:
    """Whether lower-case query words may carry tones: they contain accented letters, all of them Vietnamese."""
    accented = frozenset("".join(map(beyond_ascii, words)))
    return bool(accented) and accented <= _ACCENTED


def toned_words(text: str) -> str:
    """Return the words of a text in the form of :func:`toned`, separated by spaces."""
    words = _TONED_WORD.findall(normalized("NFC", text).lower())
    return " ".join([toned(word) for word in words if len(word) <= _MAX_WORD_LETTERS])


@lru_cache(maxsize=16384)
def toned(word: str) -> str:
    """Return a lower-case word with its tone at its end: ``hoà`` and ``hòa`` -> ``hoa_1``."""
    letters = normalized("NFD", word)
    tones = [_TONES[char] for char in letters if char in _TONES]
    plain = "".join([char for char in letters if char not in _TONES])
    return normalized("NFC", plain) + "".join(tones)


UNKNOWN = "und"
"""The code of a text whose language was not detected."""

_NO_LANGUAGE = Language("")
_ELISIONS = frozenset("cdjlmnst")
"""Letters left over from words that lose their vowel (*l'eau*); too ambiguous for detecting a language."""

_VOTES_OF_LETTERS = 3
"""Minimum divisor of a one-letter word's vote, even if it is a stop word of fewer languages."""

_RARE_SHARE, _DOUBTFUL_SHARE = 0.04, 0.005
"""Shares of a site's documents: below the first, a language is rare; below the second, detection may be wrong."""

_MAX_LIKELY_LANGUAGES = 5
_LETTERS_OF_ENDING = 6
_MIN_STEM_LETTERS = 3
"""Minimum length, in letters, of a noun's stem without its article."""

_VOWELS = frozenset("aeiouy")
_SAMPLE_CHARS = 600
_LETTERS = tuple(
    (code, re.compile(f"[{record.letters}]"), record.letters_share)
    for code, record in LANGUAGES.items()
    if record.letters
)
_BEYOND_LATIN = re.compile("[\u0370-\u1dff\u1ea0-\u1ef9\u2e80-\ud7ff]")
_WORD = re.compile(rf"(?:[^\W\d_]+|[{INDIAN}]+)+")
"""Letters, and the vowel signs of Indian scripts."""

_LOWER_OR_SPACE = bytes(
    code if code >= 128 else ord(chr(code).lower()) if chr(code).isalpha() else 32 for code in range(256)
)
"""Translation table for UTF-8: ASCII letters become lower case, other ASCII characters become spaces."""


def _language(code: str) -> Language:
    return LANGUAGES.get(code, _NO_LANGUAGE)


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the folded stop words of a language; empty for an unknown language."""
    return frozenset(filter(None, (fold(word) for word in _language(language).stop_words.split())))


@cache
def _votes() -> dict[str, tuple[tuple[str, ...], int]]:
    """Map each stop word to its languages and the divisor of its vote for each of them."""
    languages_by_word: dict[str, list[str]] = {}
    for code, language in LANGUAGES.items():
        for word in set(language.stop_words.split()).difference(_ELISIONS if language.elides else ()):
            languages_by_word.setdefault(word, []).append(code)
    return {
        word: (tuple(languages), max(len(languages), _VOTES_OF_LETTERS if len(word) == 1 else 1))
        for word, languages in languages_by_word.items()
    }


def detect_language(text: str) -> str:
    """Detect the language of a text: an ISO 639-1 code, or :data:`UNKNOWN`."""
    written = text[:_SAMPLE_CHARS]
    foreign = beyond_ascii(written)
    sample = normalized("NFC", written, foreign)
    if sample is not written:
        foreign = beyond_ascii(sample)
    if _BEYOND_LATIN.search(foreign):
        letters = max(1, len(sample) - len(_WORD.sub("", sample)))
        for language, letters_pattern, share in _LETTERS:
            if len(letters_pattern.findall(foreign)) > letters * share:
                return language
    words = _words(sample, foreign)
    ballots = _ballots()
    counts = ballots.count(words)
    highest = max(counts)
    if not highest:
        return UNKNOWN
    if counts.count(highest) == 1:
        return ballots.languages[counts.index(highest)]
    scores = language_votes(words)
    return max(scores, key=scores.__getitem__)


def _words(text: str, foreign: str) -> list[str]:
    """``"Où est-il?"``, ``"ù"`` -> ``["où", "est", "il"]``; ``foreign`` contains the non-ASCII characters."""
    if foreign.lower() != foreign:
        text = text.lower()
        foreign = beyond_ascii(text)
    for char in set(foreign):
        if not char.isalpha() and _WORD.match(char) is None:
            text = text.replace(char, " ")
    return text.encode("utf-8", "surrogatepass").translate(_LOWER_OR_SPACE).decode("utf-8", "surrogatepass").split()


def language_votes(words: Iterable[str]) -> dict[str, float]:
    """Count the votes of lower-case words for each language; a stop word's vote is divided among its languages."""
    votes = _votes()
    scores: dict[str, float] = defaultdict(float)
    for word in words:
        vote = votes.get(word)
        if vote is not None:
            languages, part = vote
            for language in languages:
                scores[language] += 1 / part
    return scores


def likely_languages(words: Sequence[str], shares: Mapping[str, float]) -> tuple[str, ...]:
    """Return the languages that a query may be in, the most frequent first.

    Distinctive letters or stop words decide; votes for a language that is rare among the documents count half.
    If the query has neither, all frequent languages written in its script are likely.

    Args:
        words: Words of the query, in lower case.
        shares: Each language's share of the site's documents, the most frequent first.
    """
    present = {
        language: share for language, share in shares.items() if language != UNKNOWN and share >= _DOUBTFUL_SHARE
    }
    undetected = shares.get(UNKNOWN, 0.0)
    if undetected >= sum(present.values()):  # Short titles, of which most are English.
        present["en"] = present.get("en", 0.0) + undetected
    if len(present) > 1:
        if has_tones(" ".join(words)) and not TONAL.isdisjoint(present):
            return tuple(TONAL.intersection(present))
        votes = language_votes(words)
        weighed = {name: votes.get(name, 0.0) * (1 if share >= _RARE_SHARE else 0.5) for name, share in present.items()}
        best = max(weighed.values())
        if best >= 1:
            return tuple(name for name, vote in weighed.items() if vote == best)
    written = {_script_of(word) for word in words}
    usual = [name for name, share in present.items() if share >= _RARE_SHARE]
    return (*[name for name in usual if _script(name) in written][:_MAX_LIKELY_LANGUAGES], *TONAL.intersection(usual))


@cache
def _script(language: str) -> str:
    """Return the script of a language's stop words."""
    return _script_of(_language(language).stop_words)


def _script_of(text: str) -> str:
    """Return the script of a text's first letter, by its Unicode name."""
    return next((unicodedata.name(char, "").partition(" ")[0] for char in text if char.isalpha()), "")


class _Ballots:
    """Vote counter that packs a word's votes for all languages into one integer, so that one addition counts them all.

    Each language occupies 32 bits. Votes are in units that make every share a whole number.
    """

    def __init__(self) -> None:
        votes = _votes()
        unit = math.lcm(*{part for _, part in votes.values()})
        self.languages = tuple(dict.fromkeys(language for languages, _ in votes.values() for language in languages))
        bit = {language: 32 * index for index, language in enumerate(self.languages)}
        self._by_word = {
            word: sum((unit // part) << bit[language] for language in languages)
            for word, (languages, part) in votes.items()
        }
        self._counts = struct.Struct(f"<{len(self.languages)}I")

    def count(self, words: Iterable[str]) -> tuple[int, ...]:
        """Count the votes of up to a thousand lower-case words for each of :attr:`languages`."""
        total = sum(filter(None, map(self._by_word.get, words)))
        counts: tuple[int, ...] = self._counts.unpack(total.to_bytes(self._counts.size, "little"))
        return counts


@cache
def _ballots() -> _Ballots:
    return _Ballots()


class _Stemmers(threading.local):
    """Snowball stemmers of one thread; they are not thread-safe."""

    def __init__(self) -> None:
        self.by_algorithm: dict[str, Stemmer.Stemmer] = {}

    def get(self, algorithm: str) -> Stemmer.Stemmer:
        stemmer = self.by_algorithm.get(algorithm)
        if stemmer is None:
            stemmer = self.by_algorithm[algorithm] = Stemmer.Stemmer(algorithm, 0)
        return stemmer


_STEMMERS = _Stemmers()


@lru_cache(maxsize=65536)
def stem(language: str, word: str) -> str:
    """Return the folded stem of a lower-case word, or the folded word itself if the language has no stemmer."""
    algorithm = _language(language).stemmer
    return fold(_STEMMERS.get(algorithm).stemWord(word) if algorithm else word)


@lru_cache(maxsize=8192)
def stems(language: str, term: str) -> frozenset[str]:
    """Return the possible stems of a folded term: of the term itself, of its spellings with an accent, of its genitive,
    and each of these without an article.
    """
    algorithm = _language(language).stemmer
    if not algorithm:
        return frozenset((stem(language, term),))
    possible = set(map(fold, _STEMMERS.get(algorithm).stemWords(_spellings(language, term))))
    return frozenset(possible.union(*(_without_article(language, stemmed) for stemmed in possible)))


def stem_with_articles(language: str, noun_stem: str) -> list[str]:
    """Return a noun's stem, and the stem followed by each article of the language: ``rut`` -> ``rut``, ``rutan``, …"""
    return [noun_stem, *[noun_stem + article for article in _articles(language)]]


def stems_of_terms(language: str, terms: Sequence[str]) -> Sequence[str]:
    """Return the stem of each folded term, as if no letter had had an accent before folding."""
    algorithm = _language(language).stemmer
    return _STEMMERS.get(algorithm).stemWords(terms) if algorithm else terms


def prefixes(language: str) -> tuple[str, ...]:
    """Return the prefixes that stemming removes from a language's words."""
    return _language(language).prefixes


def terms_with_stem(language: str, stems_to_match: Set[str], terms: Sequence[str]) -> list[str]:
    """Return the folded terms that have at least one of the given stems (see :func:`stems`), in order.

    Takes all terms in one call, because a search may have to check hundreds of them.
    """
    algorithm = _language(language).stemmer
    if not algorithm:
        return [term for term in terms if not stems_to_match.isdisjoint(stems(language, term))]
    owners, spellings = terms, terms
    if _variants(language):
        written = [_spellings(language, term) for term in terms]
        owners = [term for term, variants in zip(terms, written, strict=True) for _ in variants]
        spellings = list(chain.from_iterable(written))
    stemmed = _STEMMERS.get(algorithm).stemWords(spellings)
    # An accented letter folds to a single letter, so only stems of equal length need to be folded.
    sizes = set(map(len, stems_to_match))
    articles = _articles(language)
    return list(
        dict.fromkeys(
            owner
            for owner, stemmed_spelling in zip(owners, stemmed, strict=True)
            if stemmed_spelling in stems_to_match
            or (articles and not stems_to_match.isdisjoint(_without_article(language, fold(stemmed_spelling))))
            or (
                len(stemmed_spelling) in sizes
                and not stemmed_spelling.isascii()
                and fold(stemmed_spelling) in stems_to_match
            )
        )
    )


def _spellings(language: str, term: str) -> list[str]:
    """``"fr"``, ``"ecole"`` -> ``["ecole", "école", "ècole", "ecolé", "ecolè"]``; some languages add a genitive."""
    start, ending = term[:-_LETTERS_OF_ENDING], term[-_LETTERS_OF_ENDING:]
    spellings = [term, *[start + accented for accented in _accented(language, ending)]]
    genitive = _language(language).genitive
    if genitive and term[-1:] in _VOWELS:
        spellings.append(term + genitive)
    return spellings


def _without_article(language: str, stemmed: str) -> Iterator[str]:
    """``"sv"``, ``"rutan"`` -> ``"rut"``, ``"ruta"``; a one-letter article follows a vowel."""
    for article in _articles(language):
        if stemmed.endswith(article):
            shorter = stemmed.removesuffix(article)
            if len(shorter) >= _MIN_STEM_LETTERS and (len(article) > 1 or shorter[-1] in _VOWELS):
                yield shorter


@cache
def _articles(language: str) -> tuple[str, ...]:
    return tuple(_language(language).articles.split())


@lru_cache(maxsize=16384)
def _accented(language: str, ending: str) -> tuple[str, ...]:
    """``"fr"``, ``"te"`` -> ``("té", "tè")``."""
    variants = _variants(language)
    return tuple(
        ending[:index] + variant + ending[index + 1 :]
        for index, letter in enumerate(ending)
        for variant in variants.get(letter, "")
    )


@cache
def _variants(language: str) -> Mapping[str, str]:
    """``"fr"`` -> ``{"e": "éè"}``."""
    by_plain_letter: dict[str, str] = {}
    for letter in _language(language).accents:
        plain = fold(letter)
        if plain != letter:
            by_plain_letter[plain] = by_plain_letter.get(plain, "") + letter
    return by_plain_letter
