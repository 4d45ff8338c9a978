"""Spelling correction: index terms that a mistyped word may mean.

One error is an insertion, deletion, substitution, or transposition of neighbors (optimal string alignment).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import tantivy
from rapidfuzz.distance import OSA

from backends.analysis.normalization import terms_of
from backends.embedded.index.documents import MAX_INDEXED_CHARS
from backends.embedded.index.snapshots import Snapshot, add_highest_counts
from backends.field_rules import ONE_ERROR_FROM, TWO_ERRORS_FROM

MAX_CHECKED_LETTERS = 40
"""Maximum length of a word, in letters, that is checked for typing errors or split into terms."""

_MAX_SCANNED = 4000
"""Maximum number of terms scanned per prefix and field."""

_MAX_SCANNED_PER_EDIT = 1000
"""Maximum number of terms scanned per prefix and field when the first letters may be wrong."""

_MAX_COMPLETED = 3
"""Number of completions of a corrected prefix that are listed."""

_MIN_PREFIX_LETTERS = 3
"""Minimum number of letters of a prefix whose terms are scanned."""

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


_SPELLED_OUT = re.compile("[a-z]?plusplus|[a-z]sharp")
"""The index terms of names such as ``C++`` and ``C#``, of which ``g++`` and ``F#`` are others."""


def may_be_mistyped(word: str) -> bool:
    """Whether a word may contain typing errors: it is not too long, has no digits, and is not a name such as ``C#``."""
    return len(word) <= MAX_CHECKED_LETTERS and not any(char.isdigit() for char in word) and may_be_split(word)


def may_be_split(word: str) -> bool:
    """Whether a word may be several words written as one; not ``C++``."""
    return _SPELLED_OUT.fullmatch(word) is None


def errors_allowed(word: str) -> int:
    """Return the number of typing errors that a word may have: 0, 1, or 2, by its length; 0 for words with digits."""
    if len(word) < ONE_ERROR_FROM or not may_be_mistyped(word):
        return 0
    return 2 if len(word) >= TWO_ERRORS_FROM else 1


def corrections(snapshot: Snapshot, fields: tuple[str, ...], word: str, as_prefix: bool) -> list[tuple[str, int]]:
    """Return the terms with the fewest typing errors, each with that number, most frequent first.

    Terms with two errors are returned only if the word allows two and no term has one. Returns nothing if the word
    allows none; see :func:`errors_allowed`.

    Args:
        as_prefix: Whether terms that only begin with the word, except for one error, are returned, too.
    """
    allowed = errors_allowed(word)
    if not allowed:
        return []
    prefix_length = existing_prefix_length(snapshot, fields, word)
    one_error = _one_error_prefixes if as_prefix else _one_error
    candidates = one_error(snapshot, fields, word, prefix_length)
    if candidates or allowed == 1:
        return [(term, 1) for term in _by_frequency(candidates)]
    return [(term, 2) for term in _by_frequency(_two_errors(snapshot, fields, word))]


def one_error_away(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> list[tuple[str, int]]:
    """Return the terms one error away from a word, however short, each with the number 1; most frequent first."""
    return [(term, 1) for term in _by_frequency(_existing_terms(snapshot, fields, edits(word)))]


def swapped(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> list[str]:
    """Return the terms that equal the word with two neighboring letters swapped, most frequent first."""
    candidates = {
        word[:start] + word[start + 1] + word[start] + word[start + 2 :] for start in range(len(word) - 1)
    } - {word}
    return _by_frequency(_existing_terms(snapshot, fields, candidates))


def existing_prefix_length(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> int:
    """Return the length of the longest prefix of a word with which a term begins, at least 3.

    The first error of a mistyped word is at or before the end of this prefix.
    """
    if snapshot.max_doc_frequency(fields, word):
        return len(word)
    low, high = min(_MIN_PREFIX_LETTERS, len(word)), len(word)
    while low < high:
        middle = (low + high + 1) // 2
        if any(snapshot.terms(field, word[:middle], 1) for field in fields):
            low = middle
        else:
            high = middle - 1
    return low


def split_in_two(snapshot: Snapshot, word: str, fields: tuple[str, ...], shortest: int) -> tuple[str, str] | None:
    """Return the split of a word into two words of the index whose rarer one is most frequent: ``setup`` -> ``set up``.

    ``None`` if there is no such split.

    Args:
        shortest: Minimum length of each word, in letters.
    """
    frequency = snapshot.searcher.doc_freq
    best: tuple[int, tuple[str, str]] | None = None
    for offset in range(shortest, min(existing_prefix_length(snapshot, fields, word), len(word) - shortest) + 1):
        parts = (word[:offset], word[offset:])
        count = 0
        for field in fields:
            first = frequency(field, parts[0])
            if first > count:
                count = max(count, min(first, frequency(field, parts[1])))
        if count and (best is None or count > best[0]):
            best = (count, parts)
    return None if best is None else best[1]


def split_before_form(
    snapshot: Snapshot, word: str, fields: tuple[str, ...], forms_of: Callable[[str], Iterable[str]]
) -> tuple[str, str] | None:
    """Return the best split into a word of the index and another form of the rest: ``timezones`` -> ``time zone``.

    Both are consecutive in a document. ``None`` if there is no such split.

    Args:
        forms_of: Returns the words of the index of which a word may be another form.
    """
    counts: dict[tuple[str, str], int] = {}
    for offset in range(2, min(existing_prefix_length(snapshot, fields, word), len(word) - 2) + 1):
        first = word[:offset]
        if snapshot.max_doc_frequency(fields, first):
            for pair in ((first, form) for form in forms_of(word[offset:])):
                if follow_each_other(snapshot, pair, fields):
                    counts[pair] = min(snapshot.max_doc_frequency(fields, part) for part in pair)
    return max(counts, key=counts.__getitem__, default=None)


def split_in_terms(snapshot: Snapshot, word: str, field: str, limit: int) -> tuple[str, ...] | None:
    """Split a word into consecutive terms of a document, as few as possible (``elementbyid``: ``element by id``).

    ``None`` without such terms, if there are more than ``limit``, or for words of more than
    :data:`MAX_CHECKED_LETTERS` letters.
    """
    if len(word) > MAX_CHECKED_LETTERS:
        return None
    frequency = snapshot.searcher.doc_freq
    shortest: dict[int, tuple[str, ...]] = {0: ()}
    for start in range(len(word)):
        terms = shortest.get(start)
        if terms is None or len(terms) == limit:
            continue
        for end in range(start + 1, len(word) + 1):
            if (end not in shortest or len(terms) + 1 < len(shortest[end])) and frequency(field, word[start:end]):
                shortest[end] = (*terms, word[start:end])
    split = shortest.get(len(word), ())
    return split if len(split) > 1 and follow_each_other(snapshot, split, (field,)) else None


def follow_each_other(snapshot: Snapshot, terms: tuple[str, ...], fields: tuple[str, ...]) -> bool:
    """Whether the terms are consecutive in a field of any document."""
    return any(
        snapshot.count(tantivy.Query.phrase_query(snapshot.schema, field, list(terms)))
        for field in fields
        if min([snapshot.frequency(field, term) for term in terms])
    )


def edits(word: str, start: int = 0, end: int | None = None) -> set[str]:
    """Return every string that differs from a word by one error between two offsets of the word."""
    alphabet = next((letters for script, letters in _ALPHABETS if script.search(word)), "")
    end = len(word) if end is None else end
    edited: set[str] = set()
    for offset in range(start, end):
        head, tail = word[:offset], word[offset:]
        edited.add(head + tail[1:])
        if len(tail) > 1:
            edited.add(head + tail[1] + tail[0] + tail[2:])
        for letter in alphabet:
            edited.add(head + letter + tail[1:])
            edited.add(head + letter + tail)
    if end == len(word):
        edited.update(word + letter for letter in alphabet)
    edited.discard(word)
    return edited


def _one_error(snapshot: Snapshot, fields: tuple[str, ...], word: str, prefix_length: int) -> dict[str, int]:
    return _existing_terms(snapshot, fields, edits(word, 0, min(prefix_length + 1, len(word))))


def _existing_terms(snapshot: Snapshot, fields: tuple[str, ...], candidates: Iterable[str]) -> dict[str, int]:
    """Return the candidates that are terms of the index, with their frequencies."""
    frequencies = ((candidate, snapshot.max_doc_frequency(fields, candidate)) for candidate in candidates)
    return {candidate: count for candidate, count in frequencies if count}


def _one_error_prefixes(snapshot: Snapshot, fields: tuple[str, ...], word: str, prefix_length: int) -> dict[str, int]:
    """Return terms that equal or begin with the word except for one error, in its first half or in its second half."""
    half = (len(word) + 1) // 2
    matches: dict[str, int] = {}
    to_check: set[str] = set()
    for field in fields:
        listed = snapshot.terms(field, word[:half], _MAX_SCANNED)
        nearly = (entry for entry in listed if len(entry[0]) >= len(word) - 1 and _begins_nearly(word, entry[0], half))
        add_highest_counts(matches, nearly)
        if len(listed) == _MAX_SCANNED:
            to_check |= edits(word, half, min(prefix_length + 1, len(word)))
    for candidate in edits(word, 0, min(prefix_length + 1, half)):
        for field in fields:
            listed = snapshot.terms(field, candidate, _MAX_COMPLETED)
            add_highest_counts(matches, listed)
            if len(listed) == _MAX_COMPLETED:
                to_check.add(candidate)
    matches |= _existing_terms(snapshot, fields, to_check)
    matches.pop(word, None)
    return matches


def _begins_nearly(word: str, term: str, shared: int) -> bool:
    """``"harbuor"``, ``"harbours"``, 4 -> true: whether a term begins with the word except for one error.

    The first ``shared`` letters of both are equal.
    """
    size = len(word)
    end = shared
    while end < size and end < len(term) and word[end] == term[end]:
        end += 1
    rest = word[end + 1 :]
    return (
        end >= size
        or term.startswith(rest, end + 1)
        or term.startswith(word[end:], end + 1)
        or term.startswith(rest, end)
        or (
            end + 1 < size
            and term[end : end + 2] == word[end + 1] + word[end]
            and term.startswith(word[end + 2 :], end + 2)
        )
    )


def _two_errors(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> dict[str, int]:
    """Return terms two errors away: with the same first letters, else with one error in these, else with two."""
    start = word[: _MIN_PREFIX_LETTERS + 1]
    return (
        _with_prefixes(snapshot, fields, word, [word[:_MIN_PREFIX_LETTERS]], _MAX_SCANNED)
        or _with_prefixes(snapshot, fields, word, edits(start, 0, _MIN_PREFIX_LETTERS), _MAX_SCANNED_PER_EDIT)
        or _automaton(snapshot, fields, word)
    )


def _with_prefixes(
    snapshot: Snapshot, fields: tuple[str, ...], word: str, prefixes: Iterable[str], limit: int
) -> dict[str, int]:
    """Return terms that begin with any of the prefixes and are at most two errors away."""
    matches: dict[str, int] = {}
    for prefix in prefixes:
        for field in fields:
            for term, count in snapshot.terms(field, prefix, limit):
                if OSA.distance(word, term, score_cutoff=2) <= 2:
                    add_highest_counts(matches, [(term, count)])
    return matches


def _automaton(snapshot: Snapshot, fields: tuple[str, ...], word: str) -> dict[str, int]:
    """Return terms two errors away by tantivy's automaton, which finds documents whose words must then be compared.

    It walks all terms of the index: with 100,000 pages, that takes ten times as long as everything else.
    """
    matches: dict[str, int] = {}
    for field in fields:
        query = tantivy.Query.fuzzy_term_query(snapshot.schema, field, word, 2, True)
        for _, address in snapshot.searcher.search(query, limit=2, count=False).hits:
            for term in set(terms_of(snapshot.searched_text(field, address)[:MAX_INDEXED_CHARS])):
                if OSA.distance(word, term, score_cutoff=2) <= 2:
                    matches[term] = snapshot.frequency(field, term)
    return matches


def _by_frequency(frequencies: dict[str, int]) -> list[str]:
    """Sort terms by frequency, then by name, so that every process has the same order."""
    return sorted(frequencies, key=lambda term: (-frequencies[term], term))
