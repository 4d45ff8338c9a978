"""Closed compounds: words written as one, whose last part names their kind (*Geschenkgutschein* is a *Gutschein*).

An index can find terms only by their beginning. Therefore a document's long words are also indexed in reverse,
so that the compounds that end with a word can be listed. The reversed stem and the ending are separated
(``niehcstugknehcseg|e`` for *Geschenkgutscheine*), because both words may be inflected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cache, lru_cache

from backends.analysis.languages import UNKNOWN, stem, stem_with_articles, stems, stems_of_terms, stop_words
from backends.analysis.normalization import ANALYZER
from backends.languages import LANGUAGES

MIN_PART_LETTERS = 3
"""Minimum length of the word that a compound ends with, and of its head: the part before that word."""

MIN_LONG_PART_LETTERS = 4
"""Minimum length of the word that a compound ends with if it need not be a noun; shorter words end too many words."""

MIN_CUT_HEAD_LETTERS = 4
"""Minimum length of a head that lost its ending (*Schul-buch*, *Trenn-zeichen*); shorter heads are rarely words."""

MIN_UNKNOWN_HEAD_LETTERS = 6
"""Minimum length of a head that no document contains as a word; shorter ones are often prefixes (*Ver-wendung*)."""

MIN_LAST_STEM_LETTERS = 5
"""Minimum length of the stem after a head that no document contains; shorter ones are often suffixes."""

_NOUN_FORMS = ("en", "et")
"""Endings of definite or plural nouns in these languages that few verbs have (unlike *-er*)."""

_ANY_HEAD = "tatata"
"""Stands for the head when a word is stemmed: stemmers remove more endings from long words than from short ones."""

_PREFIXES = ("dar", "emp", "ent", "fest", "her", "hinzu", "miss", "ont", "toe", "ver", "weer", "zer", "zuruck")
"""Verb prefixes that may also be words, or beginnings of words; most other verb prefixes are stop words."""

_SUFFIXES = ("aard", "ell", "end", "halb", "ing", "lig", "lijk", "ling", "nativ")
"""Stems of words that are mostly endings of other words (*standaard*, *innerhalb*, *markeringen*)."""

_MIN_LETTERS = MIN_PART_LETTERS + MIN_LONG_PART_LETTERS
_MAX_LETTERS = 40
_LONG_WORD = re.compile(rf"[^\W\d_]{{{_MIN_LETTERS},{_MAX_LETTERS}}}(?![^\W_])")
_WORD = re.compile(rf"[^\W_]{{{_MIN_LETTERS},}}")
_WITHOUT_SIGNS = bytes(code if code >= 128 or chr(code).isalnum() else 32 for code in range(256))
"""Translation table for UTF-8: ASCII signs become spaces."""
_WRITTEN = re.compile(rb"[^ ]{%d,}" % _MIN_LETTERS)
_LINKING_LETTERS = {
    code: tuple(language.linking_letters.split()) for code, language in LANGUAGES.items() if language.linking_letters
}


def compound_languages(languages: Iterable[str]) -> Sequence[str]:
    """Return the document languages in which a query can find closed compounds.

    ``["de", "en"]`` -> ``("de", UNKNOWN)``; ``["en"]`` -> ``()``, because English has no closed compounds.
    """
    all_languages = tuple(languages)
    compounding = tuple(code for code in all_languages if code in _LINKING_LETTERS)
    return (*compounding, UNKNOWN) if compounding or not all_languages else ()


def compound_keys(language: str, texts: Iterable[str]) -> list[str]:
    """Return the keys to index for the long words of a document, sorted; empty for languages without compounds."""
    if language not in _LINKING_LETTERS and language != UNKNOWN:
        return []
    text = " ".join(texts).lower().encode("utf-8", "surrogatepass").translate(_WITHOUT_SIGNS)
    keys: set[str] = set()
    for written in set(_WRITTEN.findall(text)):
        # A text without spaces is one long word; the cache holds only short ones.
        find = _keys if len(written) <= 2 * _MAX_LETTERS else _keys.__wrapped__
        keys.update(find(language, written))
    return sorted(keys)


@lru_cache(maxsize=16384)  # Most words of a text are in the texts indexed before it, too.
def _keys(language: str, written: bytes) -> tuple[str, ...]:
    """``b"schulhefte"`` -> ``("tfehluhcs|e",)``."""
    terms = _terms(written.decode("utf-8", "surrogatepass"))
    return tuple(map(_key, terms, stems_of_terms(language, terms)))


def _terms(written: str) -> Sequence[str]:
    if len(written) <= _MAX_LETTERS and written.isascii() and written.isalpha():
        return (written,)
    if len(written) > 2 * _MAX_LETTERS:
        # Only the ends of words are needed, and the next pattern would look at each letter of a word 40 times.
        written = " ".join(word[-_MAX_LETTERS:] for word in _WORD.findall(written))
    words = " ".join(_LONG_WORD.findall(written))
    # In these languages, every letter folds to plain ones.
    return [term for term in ANALYZER.analyze(words) if term.isascii() and term.isalpha()] if words else ()


def _key(term: str, stemmed: str) -> str:
    base = stemmed if term.startswith(stemmed) else term
    return f"{base[::-1]}|{term[len(base) :]}"


def compounds_of(
    language: str,
    term: str,
    surface: str,
    list_keys: Callable[[str], Iterable[tuple[str, int]]],
    is_word: Callable[[str], bool],
) -> Iterator[tuple[str, int]]:
    """Yield the compounds that end with a word, and the number of documents that contain each of them.

    The last part must be the word with or without an ending, or a word itself. A common stem alone would also split
    *best-immen* for *immer*. A word of three letters must be a noun and follow a word: *Datei-typ*.

    Args:
        term: The word, folded.
        surface: The word in lower case, as typed.
        list_keys: Lists the keys of the index with a prefix, with their document frequencies.
        is_word: Whether documents contain a word.
    """
    own_stems = stems(language, term) | {stem(language, surface)}
    is_long = len(term) >= MIN_LONG_PART_LETTERS
    if (
        len(term) < MIN_PART_LETTERS
        or not (is_long or any(is_word(term + ending) for ending in _NOUN_FORMS))
        or not own_stems.isdisjoint(_SUFFIXES)
    ):
        return
    # A key begins with the whole word if the word does not begin with its stem (*ikkuna*: *iku*).
    within = {_ANY_HEAD + term, *stems(language, _ANY_HEAD + term), stem(language, _ANY_HEAD + surface)}
    endings = {form[len(_ANY_HEAD) :][::-1] for stemmed in within for form in stem_with_articles(language, stemmed)}
    for ending in sorted(endings):
        for key, count in list_keys(ending):
            base, _, inflection = key.partition("|")
            head, last = base[len(ending) :][::-1], base[: len(ending)][::-1]
            part = last + inflection
            if (
                _ends_with(language, head, last, part, term, is_word)
                if is_long
                else _ends_with_noun(language, head, part, term, is_word)
            ) and not own_stems.isdisjoint(stems(language, part)):
                yield head + part, count


def may_begin_with(start: str, word: str) -> bool:
    """Whether a word that begins with a stem may be a compound of it and another word."""
    return len(start) >= MIN_LAST_STEM_LETTERS and len(word) >= len(start) + MIN_LONG_PART_LETTERS


def last_parts(language: str, term: str, is_word: Callable[[str], object]) -> Iterator[str]:
    """Yield the words that a compound may end with, the longest first: *Quelle* for *Fehlerquelle*."""
    for offset in range(MIN_PART_LETTERS, len(term) - MIN_LONG_PART_LETTERS + 1 if term.isalpha() else 0):
        head, part = term[:offset], term[offset:]
        if is_word(part) and part not in stop_words(language) and _may_be_head(language, head, part, is_word):
            yield part


def _ends_with(language: str, head: str, last_stem: str, part: str, term: str, is_word: Callable[[str], bool]) -> bool:
    return (
        len(part) >= MIN_LONG_PART_LETTERS
        and _may_be_head(language, head, last_stem, is_word)
        and (_is_inflected(language, part, term) or is_word(part))
    )


def _ends_with_noun(language: str, head: str, part: str, noun: str, is_word: Callable[[str], bool]) -> bool:
    return (
        len(head) >= MIN_PART_LETTERS
        and head not in _excluded_heads(language)
        and part.startswith(noun)
        and (part == noun or part.removeprefix(noun) in _noun_endings(language))
        and is_word(head)
    )


def _is_inflected(language: str, part: str, term: str) -> bool:
    """``"hefte"``, ``"heft"`` -> true; ``"heftig"``, ``"heftige"`` -> true only if *e* is an ending of nouns."""
    return part.startswith(term) or (term.startswith(part) and term[len(part) :] in _noun_endings(language))


@cache
def _noun_endings(language: str) -> Set[str]:
    record = LANGUAGES.get(language)
    return frozenset(f"{record.endings} {record.articles}".split()) if record else frozenset()


def _may_be_head(language: str, head: str, last_stem: str, is_word: Callable[[str], object]) -> bool:
    """``"schul"`` -> true if documents contain *schule*: whether the beginning of a long word may be a word."""
    if len(head) < MIN_PART_LETTERS or head in _excluded_heads(language):
        return False
    if len(head) >= MIN_UNKNOWN_HEAD_LETTERS and len(last_stem) >= MIN_LAST_STEM_LETTERS:
        return True
    words = [head]
    if len(head) >= MIN_CUT_HEAD_LETTERS:
        words += [f"{head}e", f"{head}n", f"{head}en"]
    words += [
        head[: -len(letters)]
        for letters in _LINKING_LETTERS.get(language, ())
        if head.endswith(letters) and len(head) - len(letters) >= MIN_PART_LETTERS
    ]
    return any(map(is_word, words))


@cache
def _excluded_heads(language: str) -> Set[str]:
    return stop_words(language).union(_PREFIXES)
