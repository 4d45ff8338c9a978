"""Splitting, matching, dropping, and ranking of words in the fake Meilisearch, as far as the adapter relies on 1.50.

As recorded from a real server, it does not split at ``$ < = > ^ | ~``, at non-mathematical symbols, or at a no-break
space unless the index's ``separatorTokens`` contain them; a typo in the first letter counts as two.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from tests.backends.fakes.typesense_text import distance

_QUERY = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')
_KEEPS_MARKS = re.compile("[\u0400-\u052f\u0900-\u097f]")
_NO_SEPARATORS = frozenset("$<=>^|~\u00a0\u202f\u2011")
_MOST_TERMS = 10
Words = Mapping[str, Sequence[str]]
"""The folded words of a document, by field."""


@cache
def is_separator(char: str) -> bool:
    """Whether the server splits at a character by default."""
    kind = unicodedata.category(char)
    splits = kind[0] in "PZ" or char in "\n\r\t`+" or (kind == "Sm" and "\u2200" <= char <= "\u22ff")
    return splits and char not in _NO_SEPARATORS


def fold(word: str) -> str:
    """Fold a word as charabia does without language packs: strokes, hooks, and ß stay."""
    letters = unicodedata.normalize("NFKD", word).lower().replace("æ", "ae").replace("œ", "oe")
    if _KEEPS_MARKS.search(letters):
        return letters
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")


@lru_cache(maxsize=4096)
def words_of(text: str, separators: frozenset[str]) -> tuple[str, ...]:
    """Return the folded words of a text."""
    spaced = "".join(" " if char in separators or is_separator(char) else char for char in text)
    return tuple(filter(None, map(fold, spaced.split(" "))))


def words_in(value: Any, separators: frozenset[str]) -> list[str]:
    """Return the folded words of a text or of the members of a list."""
    return [
        word for text in (value if isinstance(value, list) else [value]) for word in words_of(str(text), separators)
    ]


@dataclass(frozen=True)
class Term:
    """A word or a phrase of a query."""

    words: tuple[str, ...]
    is_phrase: bool = False
    is_excluded: bool = False
    is_prefix: bool = False


def terms_of(text: str, separators: frozenset[str]) -> list[Term]:
    """Return the first ten terms of a query and all excluded terms; the last word matches as a prefix."""
    terms: list[Term] = []
    for minus, phrase, plain in _QUERY.findall(text):
        words = words_of(phrase or plain, separators)
        if words and (phrase or minus):
            terms.append(Term(words, is_phrase=True, is_excluded=bool(minus)))
        else:
            terms += [Term((word,)) for word in words]
    if terms and not (terms[-1].is_phrase or text[-1].isspace()):
        terms[-1] = Term(terms[-1].words, is_prefix=True)
    searched = [term for term in terms if not term.is_excluded]
    return searched[:_MOST_TERMS] + [term for term in terms if term.is_excluded]


def most_errors(word: str, one_from: int, two_from: int) -> int:
    return 0 if len(word) < one_from else 1 if len(word) < two_from else 2


@dataclass(frozen=True)
class Matching:
    """The rules for matching terms."""

    fields: Sequence[str]
    one_error_from: int
    two_errors_from: int

    def errors(self, term: Term, words: Words) -> tuple[int, int, str] | None:
        """Return the typos, the field position, and the word of the best match of a term, or ``None``."""
        found: list[tuple[int, int, str]] = []
        for place, name in enumerate(self.fields):
            there = words.get(name, ())
            if term.is_phrase:
                size = len(term.words)
                if any(tuple(there[at : at + size]) == term.words for at in range(len(there) - size + 1)):
                    found.append((0, place, " ".join(term.words)))
                continue
            most = most_errors(term.words[0], self.one_error_from, self.two_errors_from)
            for word in dict.fromkeys(there):
                errors = _errors(term, word, most)
                if errors is not None:
                    found.append((errors, place, word))
            if split := next((pair for pair in pairwise(there) if "".join(pair) == term.words[0]), None):
                first = next(
                    at for at, each in enumerate(self.fields) if not set(split).isdisjoint(words.get(each, ()))
                )
                found.append((1, first, term.words[0]))
        return min(found, default=None)

    def joined(self, terms: Sequence[Term], words: Words) -> dict[Term, tuple[int, int, str]]:
        """Return neighboring terms that the document contains as one word."""
        found = {}
        for left, right in pairwise(terms):
            word = left.words[0] + right.words[0]
            for place, name in enumerate(self.fields):
                if not (left.is_phrase or right.is_phrase) and word in words.get(name, ()):
                    found |= {left: (1, place, word), right: (1, place, word)}
        return found


def _errors(term: Term, word: str, most: int) -> int | None:
    (wanted,) = term.words
    if word == wanted or (term.is_prefix and word.startswith(wanted)):
        return 0
    if not most or (abs(len(word) - len(wanted)) > most and not term.is_prefix):
        return None
    shapes = {word, *(word[: len(wanted) + more] for more in range(-most, most + 1) if term.is_prefix)}
    errors = min(distance(wanted, shape) + (shape[:1] != wanted[0]) for shape in shapes)
    return errors if errors <= most else None


def left_out(terms: Sequence[Term], strategy: str, frequencies: Mapping[Term, int]) -> list[list[Term]]:
    """Return groups of terms that may be dropped, in dropping order; the last group stays.

    ``frequency`` drops terms that no document contains first, then the most frequent terms. Equally frequent terms form
    one group.
    """
    if strategy == "all":
        return []
    optional = [term for term in terms if not term.is_phrase]
    groups = [[term] for term in reversed(optional)]
    if strategy == "frequency":
        by_frequency: dict[float, list[Term]] = {}
        for term in optional:
            by_frequency.setdefault(frequencies[term] or float("inf"), []).append(term)
        groups = [by_frequency[count] for count in sorted(by_frequency, reverse=True)]
    return groups if len(optional) < len(terms) else groups[:-1]


def ranked(
    documents: Iterable[tuple[Any, Words]], text: str, strategy: str, separators: frozenset[str], rules: Matching,
    universe: Sequence[Words],
) -> list[tuple[Any, float]]:  # fmt: skip
    """Return the matching documents, each with its ranking score, the best first.

    Args:
        documents: The candidate documents.
        universe: All documents of the index, for term frequencies.
    """
    terms = terms_of(text, separators)
    searched = list(dict.fromkeys(term for term in terms if not term.is_excluded))
    excluded = [term for term in terms if term.is_excluded]
    frequencies = {term: sum(rules.errors(term, words) is not None for words in universe) for term in searched}
    groups = left_out(searched, strategy, frequencies)
    found: list[tuple[Any, float]] = []
    for document, words in documents:
        if any(_has_exactly(words, term, rules.fields) for term in excluded):
            continue
        hits = rules.joined(searched, words)
        hits |= {term: hit for term in searched if (hit := rules.errors(term, words)) is not None}
        for level in range(len(groups) + 1):
            needed = set(searched) - {term for group in groups[:level] for term in group}
            if needed <= hits.keys():
                found.append((document, _score(searched, needed, hits, words, rules)))
                break
    return sorted(found, key=lambda each: -each[1])


def _has_exactly(words: Words, term: Term, fields: Sequence[str]) -> bool:
    size = len(term.words)
    return any(
        tuple(words.get(name, ())[at : at + size]) == term.words
        for name in fields
        for at in range(len(words.get(name, ())) - size + 1)
    )


def _size(terms: Iterable[Term]) -> int:
    return sum(len(term.words) for term in terms)


def _score(
    searched: Sequence[Term],
    needed: set[Term],
    hits: Mapping[Term, tuple[int, int, str]],
    words: Words,
    rules: Matching,
) -> float:
    """Combine the rules words, typo, attribute, and exactness, each refining the rules before it."""
    plain = [term.words[0] for term in needed if not term.is_phrase]
    most = max(1, sum(most_errors(word, rules.one_error_from, rules.two_errors_from) for word in plain)) if plain else 0
    errors = min(most, sum(hits[term][0] for term in needed))
    fields = len(rules.fields) * max(1, len(needed))
    typed = [word for term in searched for word in term.words]
    is_exact = any(list(words.get(name, ())) == typed for name in rules.fields)
    exact = sum(hits[term][2] in (term.words[0], " ".join(term.words)) for term in needed)
    ranks = [
        (_size(needed), max(1, _size(searched))), (most + 1 - errors, most + 1),
        (fields - sum(hits[term][1] for term in needed), fields), (3 if is_exact else 1, 3),
        (exact + 1, len(needed) + 1),
    ]  # fmt: skip
    rank, steps = 1, 1
    for each, of in ranks:
        rank, steps = (rank - 1) * of + each, steps * of
    return rank / steps
