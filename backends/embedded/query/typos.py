"""Terms of the index that a mistyped word may mean.

One error is an insertion, a deletion, a substitution or a transposition of neighbours (optimal string alignment).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import tantivy
from rapidfuzz.distance import OSA

from backends.embedded.analysis.normalization import terms_of
from backends.embedded.index.documents import LONGEST_INDEXED_TEXT
from backends.embedded.index.snapshots import Snapshot, keep_most
from backends.field_rules import ONE_ERROR_FROM, TWO_ERRORS_FROM

LONGEST_CHECKED = 40
_MOST_SCANNED = 4000
_MOST_SCANNED_AGAIN = 1000
_MOST_COMPLETED = 3
_FEWEST_LETTERS = 3

_ALPHABETS = (
    (re.compile("[a-z]"), "abcdefghijklmnopqrstuvwxyz"),
    (re.compile("[а-я]"), "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
    (re.compile("[α-ω]"), "αβγδεζηθικλμνξοπρστυφχψω"),
    (re.compile("[\u0621-\u064a]"), "ابتثجحخدذرزسشصضطظعغفقكلمنهويء"),
    (re.compile("[\u05d0-\u05ea]"), "אבגדהוזחטיךכלםמןנסעףפץצקרשת"),
    (re.compile("[\u0561-\u0587]"), "".join(map(chr, range(0x561, 0x588)))),
    (re.compile("[\u10d0-\u10f0]"), "".join(map(chr, range(0x10D0, 0x10F1)))),
    (re.compile("[\u0905-\u094c]"), "".join(map(chr, (*range(0x905, 0x93A), *range(0x93E, 0x94D))))),
    (re.compile("[\u0b85-\u0bcc]"), "".join(map(chr, (*range(0xB85, 0xBBA), *range(0xBBE, 0xBCD))))),
)


def may_be_mistyped(word: str) -> bool:
    """Tell whether a word is one that people mistype: not too long, and without digits."""
    return len(word) <= LONGEST_CHECKED and not any(char.isdigit() for char in word)


def errors_allowed(word: str) -> int:
    """Number of typing errors that a word of this length is forgiven; words with digits none."""
    if len(word) < ONE_ERROR_FROM or not may_be_mistyped(word):
        return 0
    return 2 if len(word) >= TWO_ERRORS_FROM else 1


def corrections(snapshot: Snapshot, fields: tuple[str, ...], word: str, as_prefix: bool) -> list[tuple[str, int]]:
    """Terms within the errors the word is forgiven, with their distance, the nearest and most frequent first.

    With ``as_prefix``, a term also counts whose beginning is within them (at distance 1).
    """
    allowed = errors_allowed(word)
    if not allowed:
        return []
    known = known_start(snapshot, fields, word)
    one_error = _one_error_prefixes if as_prefix else _one_error
    found = one_error(snapshot, fields, word, known)
    if found or allowed == 1:
        return [(term, 1) for term in _most_frequent(found)]
    return [(term, 2) for term in _most_frequent(_two_errors(snapshot, fields, word))]


def one_error_away(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> list[tuple[str, int]]:
    """Terms one error away from a word of any length, with that distance, the most frequent first."""
    return [(term, 1) for term in _most_frequent(_those_known(snapshot, fields, edits(word)))]


def swapped(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> list[str]:
    """Terms that are the word with two neighbours in each other's place, the most frequent first."""
    candidates = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)} - {word}
    return _most_frequent(_those_known(snapshot, fields, candidates))


def known_start(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> int:
    """With how many letters of the word some term begins, and 3 at least: no error comes later than after them."""
    if snapshot.max_doc_frequency(fields, word):
        return len(word)
    low, high = min(_FEWEST_LETTERS, len(word)), len(word)
    while low < high:
        middle = (low + high + 1) // 2
        if any(snapshot.terms(field, word[:middle], 1) for field in fields):
            low = middle
        else:
            high = middle - 1
    return low


def edits(word: str, start: int = 0, end: int | None = None) -> set[str]:
    """Every string one error away whose error lies between two places of the word."""
    alphabet = next((letters for script, letters in _ALPHABETS if script.search(word)), "")
    end = len(word) if end is None else end
    found: set[str] = set()
    for at in range(start, end):
        left, right = word[:at], word[at:]
        found.add(left + right[1:])
        if len(right) > 1:
            found.add(left + right[1] + right[0] + right[2:])
        for letter in alphabet:
            found.add(left + letter + right[1:])
            found.add(left + letter + right)
    if end == len(word):
        found.update(word + letter for letter in alphabet)
    found.discard(word)
    return found


def _one_error(snapshot: Snapshot, fields: tuple[str, ...], word: str, known: int) -> dict[str, int]:
    return _those_known(snapshot, fields, edits(word, 0, min(known + 1, len(word))))


def _those_known(snapshot: Snapshot, fields: tuple[str, ...], candidates: Iterable[str]) -> dict[str, int]:
    """Those of the candidates that are terms, with their frequencies."""
    found = ((candidate, snapshot.max_doc_frequency(fields, candidate)) for candidate in candidates)
    return {candidate: count for candidate, count in found if count}


def _one_error_prefixes(snapshot: Snapshot, fields: tuple[str, ...], word: str, known: int) -> dict[str, int]:
    """Terms that are, or begin with, the word but for one error: its first half is right, or its second is."""
    half = (len(word) + 1) // 2
    found: dict[str, int] = {}
    unsure: set[str] = set()
    for field in fields:
        listed = snapshot.terms(field, word[:half], _MOST_SCANNED)
        nearly = (each for each in listed if len(each[0]) >= len(word) - 1 and _begins_nearly(word, each[0], half))
        keep_most(found, nearly)
        if len(listed) == _MOST_SCANNED:
            unsure |= edits(word, half, min(known + 1, len(word)))
    for candidate in edits(word, 0, min(known + 1, half)):
        for field in fields:
            listed = snapshot.terms(field, candidate, _MOST_COMPLETED)
            keep_most(found, listed)
            if len(listed) == _MOST_COMPLETED:
                unsure.add(candidate)
    found |= _those_known(snapshot, fields, unsure)
    found.pop(word, None)
    return found


def _begins_nearly(word: str, term: str, known: int) -> bool:
    """Tell whether a term that shares the first ``known`` letters begins with the word but for one error."""
    size = len(word)
    at = known
    while at < size and at < len(term) and word[at] == term[at]:
        at += 1
    rest = word[at + 1 :]
    return (
        at >= size
        or term.startswith(rest, at + 1)
        or term.startswith(word[at:], at + 1)
        or term.startswith(rest, at)
        or (at + 1 < size and term[at : at + 2] == word[at + 1] + word[at] and term.startswith(word[at + 2 :], at + 2))
    )


def _two_errors(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> dict[str, int]:
    """Terms two errors away: those that begin alike, or else with one error in the first letters, or else with two."""
    start = word[: _FEWEST_LETTERS + 1]
    return (
        _alike(snapshot, fields, word, [word[:_FEWEST_LETTERS]], _MOST_SCANNED)
        or _alike(snapshot, fields, word, edits(start, 0, _FEWEST_LETTERS), _MOST_SCANNED_AGAIN)
        or _automaton(snapshot, fields, word)
    )


def _alike(
    snapshot: Snapshot, fields: tuple[str, ...], word: str, beginnings: Iterable[str], most: int
) -> dict[str, int]:
    """Terms at most two errors away, of those with some beginnings."""
    found: dict[str, int] = {}
    for beginning in beginnings:
        for field in fields:
            for term, count in snapshot.terms(field, beginning, most):
                if OSA.distance(word, term, score_cutoff=2) <= 2:
                    keep_most(found, [(term, count)])
    return found


def _automaton(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> dict[str, int]:
    """Terms two errors away by tantivy's automaton, which finds documents; their words are then looked through.

    It walks through all terms of the index: with 100,000 pages that takes ten times as long as all else.
    """
    found: dict[str, int] = {}
    for field in fields:
        query = tantivy.Query.fuzzy_term_query(snapshot.schema, field, word, 2, True)
        for _, address in snapshot.searcher.search(query, limit=2, count=False).hits:
            for term in set(terms_of(snapshot.searched_text(field, address)[:LONGEST_INDEXED_TEXT])):
                if OSA.distance(word, term, score_cutoff=2) <= 2:
                    found[term] = snapshot.frequency(field, term)
    return found


def _most_frequent(found: dict[str, int]) -> list[str]:
    """The same ones in every process, whatever order they were found in."""
    return sorted(found, key=lambda term: (-found[term], term))
