"""Which language a text is in, and what that language does to words."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache

import Stemmer

from backends.embedded.folding import fold
from backends.embedded.stop_words import STOP_WORDS

STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""ISO 639-1 code to the Snowball algorithm of the language."""

UNKNOWN = "und"
"""The code of a text whose language was not recognised."""

_ACCENTS = {
    "es": "aáeéiíoóuú", "pt": "aáâãeéêiíoóôõuú", "it": "aàeèéiìoòuù", "fr": "eéèê", "ca": "aàeèéiíoòóuú",
    "hu": "aáeéiíoóöuúü", "ro": "aăâiîsștț", "de": "aäoöuü", "sv": "aåäoö", "fi": "aäoö", "et": "aäoõöuü",
    "pl": "aąeęlłoósśzżź", "cs": "aáeéěiíouůúsšcčrřzžyý", "tr": "gğiıosşuüoöcç", "lt": "aąeęėiįuųūsšzž",
    "el": "αάεέηήιίοόυύωώ", "ga": "aáeéiíoóuú", "da": "aåoø", "no": "aåoø",
}  # fmt: skip
"""Letters that folding has made one, first the plain one; stems may differ by them."""

_SAMPLE = 600
_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30ff]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("th", re.compile("[\u0e01-\u0e5b]")),
    ("hy", re.compile("[\u0531-\u0587]")),
    ("ta", re.compile("[\u0b80-\u0bff]")),
    ("el", re.compile("[\u0370-\u03ff\u1f00-\u1fff]")),
)
_BEYOND_LATIN = re.compile("[\u0370-\u1dff\u2e80-\ud7ff]")
_WORD = re.compile(r"[^\W\d_]+")


@cache
def stop_words(language: str) -> frozenset[str]:
    """The folded stop words of a language; empty for an unknown one."""
    return frozenset(filter(None, (fold(word) for word in STOP_WORDS.get(language, "").split())))


@cache
def _votes() -> dict[str, tuple[str, ...]]:
    """Every stop word to the languages that have it."""
    found: dict[str, list[str]] = {}
    for language, words in STOP_WORDS.items():
        for word in set(words.split()):
            found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}


def recognise(text: str) -> str:
    """The language of a text as ISO 639-1 code, :data:`UNKNOWN` if nothing tells."""
    sample = text[:_SAMPLE]
    if not sample.isascii() and _BEYOND_LATIN.search(sample):
        letters = len(_WORD.sub("", sample))
        written = max(1, len(sample) - letters)
        for language, script in _SCRIPTS:
            if len(script.findall(sample)) > written * (0.1 if language == "ja" else 0.3):
                return language
    scores = language_votes(_WORD.findall(sample.lower()))
    return max(scores, key=scores.__getitem__) if scores else UNKNOWN


def language_votes(words: Iterable[str]) -> dict[str, float]:
    """How strongly lower-case words speak for each language: a stop word shared by many counts little for each."""
    votes = _votes()
    scores: dict[str, float] = {}
    for word in words:
        languages = votes.get(word)
        if languages is not None:
            share = 1 / len(languages)
            for language in languages:
                scores[language] = scores.get(language, 0.0) + share
    return scores


class _Stemmers(threading.local):
    """Snowball stemmers are not to be shared by threads."""

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
    """The folded stem of one word in lower case; the word itself where the language has no stemmer."""
    algorithm = STEMMERS.get(language)
    return fold(_STEMMERS.get(algorithm).stemWord(word)) if algorithm else fold(word)


@lru_cache(maxsize=65536)
def stems(language: str, term: str) -> frozenset[str]:
    """The stems a folded term may have: of itself, and of what it may have been before its accents were folded."""
    found = {stem(language, term)}
    accents = _ACCENTS.get(language)
    if accents is not None:
        for at in range(max(0, len(term) - 6), len(term)):
            for variant in _variants(accents, term[at]):
                found.add(stem(language, term[:at] + variant + term[at + 1 :]))
    return frozenset(found)


@lru_cache(maxsize=1024)
def _variants(accents: str, letter: str) -> str:
    return "".join(other for other in accents if other != letter and unicodedata.normalize("NFD", other)[0] == letter)
