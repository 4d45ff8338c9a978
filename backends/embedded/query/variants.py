"""The index terms a word of a query may stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import itemgetter
from os.path import commonprefix

from backends.embedded.analysis.languages import PREFIXES, sharing_stem, stem, stems
from backends.embedded.index.snapshots import Snapshot, keep_most
from backends.embedded.query.parser import Unit, UnitKind
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.typos import corrections, errors_allowed, known_start

_MOST_LOOKED_AT = 200
_FEW = 3
_SHORTEST_JOINED = 5
"""Letters of two words written together from which longer words are looked for: there are too many for fewer."""

_SHORTEST_STEMMED = 3
_MOST_PARTS = 8
_LETTERS_OR_DIGITS = re.compile(r"\d+|\D+")
_VERSION = re.compile(r"(?P<sign>v?)(?P<number>\d+)")
"""The first part of a version such as ``2.0.1``, which may be written ``v2.0.1``."""


_Listing = Callable[[tuple[str, ...], str], Mapping[str, int]]
"""The terms of some fields that begin with something, the most frequent first, and in how many documents each is."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way a word may stand in a document.

    Attributes:
        terms: One term, or several that must follow each other.
        worth: 1.0 for the word as typed, less for other forms.
        errors: 0 for the word or its stem, 1 for a longer word, 2 and more for typing errors.
        words: The terms as they are marked, if that is not as they are found.
    """

    terms: tuple[str, ...]
    worth: float
    errors: int = 0
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Expansion:
    """All forms of a word, the best first; none when the index has nothing like it.

    Attributes:
        completed: The beginning that the longer ones of them share, if the word may not be finished.
        halves: The one of them that is the word in two, if there is such.
        guessed: Whether finding them was dear, or searching them is: there is nothing like the word but with typing
            errors, or one of them is the word cut where letters and digits meet.
    """

    forms: tuple[Form, ...]
    frequency: int
    completed: str | None = None
    halves: tuple[str, str] | None = None
    guessed: bool = False


def expand(
    snapshot: Snapshot, unit: Unit, fields: tuple[str, ...], languages: tuple[str, ...], is_last: bool,
    with_guesses: bool, ranking: Ranking,
) -> Expansion:  # fmt: skip
    """Look up what a word may stand for; remembered for the life of the snapshot."""
    key = (unit, fields, languages, is_last, with_guesses)
    known = snapshot.remembered(key)
    if known is None:
        known = _expand(snapshot, unit, fields, languages, is_last, with_guesses, ranking)
        snapshot.remember(key, known)
    assert isinstance(known, Expansion)
    return known


def written_together(
    snapshot: Snapshot, fields: tuple[str, ...], left: Unit, right: Unit, is_open: bool, ranking: Ranking
) -> list[Form]:
    """The word or compound that two are when written together (``log in``: ``login``), if there is one.

    Args:
        is_open: Whether the second may not be finished.
    """
    word = left.term + right.term
    terms = (word, *right.terms[1:])
    forms = [Form(terms, ranking.joined, 1)] if _are_together(snapshot, terms, fields) else []
    if is_open and len(terms) == 1 and len(word) >= _SHORTEST_JOINED:
        key = (word, fields)
        longer = snapshot.remembered(key)
        if longer is None:
            longer = _completions(_listing(snapshot), word, fields, ranking)[:_FEW]
            snapshot.remember(key, longer)
        forms += [Form((term,), ranking.joined * ranking.prefix, 1) for term in longer]
    return forms


def _expand(
    snapshot: Snapshot, unit: Unit, fields: tuple[str, ...], languages: tuple[str, ...], is_last: bool,
    with_guesses: bool, ranking: Ranking,
) -> Expansion:  # fmt: skip
    listed = _listing(snapshot)
    if unit.kind is UnitKind.COMPOUND:
        return _expand_compound(snapshot, listed, unit, fields, is_last, with_guesses, ranking)
    word = unit.term
    found: dict[str, Form] = {}
    counts: dict[str, int] = {}

    def add(term: str, worth: float, errors: int) -> None:
        if term not in found:
            count = snapshot.most_frequency(fields, term)
            if count:
                found[term] = Form((term,), worth, errors)
                counts[term] = count

    add(word, 1.0, 0)
    if unit.kind is not UnitKind.WORD:
        return Expansion(tuple(found.values()), sum(counts.values()))
    if len(word) >= _SHORTEST_STEMMED:
        for relative in _relatives(listed, unit, fields, languages, ranking):
            add(relative, ranking.stem, 0)
    frequency = sum(counts.values())
    if is_last:
        for term in _completions(listed, word, fields, ranking):
            add(term, ranking.prefix, 1)
    known = sum(counts.values())
    if with_guesses and known < ranking.well_known and errors_allowed(word):
        for term, errors in corrections(snapshot, fields, word, is_last):
            add(term, ranking.typo if errors == 1 else ranking.far_typo, 1 + errors)
    forms = list(found.values())
    guessed = not forms or forms[0].errors > 1
    halves = _split_in_two(snapshot, word, fields, 1 if not forms else 2) if known < ranking.well_known else None
    if halves is not None:
        forms.append(Form(halves, ranking.joined, 1))
    parts = _letters_and_digits(snapshot, unit, fields) if with_guesses else None
    if parts is not None and parts != halves:
        forms.append(Form(parts, ranking.joined, 1))
        guessed = True
    frequency = min(snapshot.total, frequency or sum(counts.values()) or len(forms))
    return Expansion(tuple(forms), frequency, word if is_last else None, halves, guessed)


def _listing(snapshot: Snapshot) -> _Listing:
    # The terms of a short beginning take milliseconds to list, and may be asked for twice.
    @cache
    def listed(fields: tuple[str, ...], start: str) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for field in fields:
            keep_most(found, snapshot.terms(field, start, _MOST_LOOKED_AT))
        return dict(sorted(found.items(), key=itemgetter(1), reverse=True)[:_MOST_LOOKED_AT])

    return listed


def _relatives(
    listed: _Listing, unit: Unit, fields: tuple[str, ...], languages: tuple[str, ...], ranking: Ranking
) -> list[str]:
    """Terms that share a stem with the word in one of the languages, the most frequent first."""
    word = unit.term
    found: dict[str, int] = {}
    for language in languages:
        wanted = stems(language, word) | {stem(language, unit.surface)}
        counts: dict[str, int] = {}
        for start in _starts(language, word, wanted):
            counts |= listed(fields, start)
        counts.pop(word, None)
        found |= {term: counts[term] for term in sharing_stem(language, wanted, list(counts))}
    return sorted(found, key=lambda term: -found[term])[: ranking.most_stems]


def _starts(language: str, word: str, wanted: Set[str]) -> Iterator[str]:
    """What terms begin with that have the stem of a word, long enough to list them."""
    start = commonprefix([word, *wanted])  # noqa: RUF071 - of characters, as wanted
    if len(start) >= min(_SHORTEST_STEMMED, len(word)):
        yield start
    rest = commonprefix(list(wanted))  # noqa: RUF071
    if len(rest) >= _SHORTEST_STEMMED:
        yield from (prefix + rest for prefix in ("", *PREFIXES.get(language, ())) if prefix + rest != start)


def _completions(listed: _Listing, word: str, fields: tuple[str, ...], ranking: Ranking) -> list[str]:
    most = ranking.most_completions if len(word) > 2 else ranking.most_completions // 3
    found = islice(listed(fields if len(word) > 1 else fields[:1], word), most)
    return [term for term in found if term != word]


def _expand_compound(
    snapshot: Snapshot, listed: _Listing, unit: Unit, fields: tuple[str, ...], is_last: bool, with_guesses: bool,
    ranking: Ranking,
) -> Expansion:  # fmt: skip
    """A compound is found as written, or as one word; its last part may not be finished."""
    forms = [Form(unit.terms, 1.0)]
    version = _VERSION.fullmatch(unit.term)
    if version is not None:
        number = (version["number"] if version["sign"] else f"v{unit.term}", *unit.terms[1:])
        if _are_together(snapshot, number, fields):
            forms.append(Form(number, ranking.synonym))
    known = min(snapshot.most_frequency(fields, term) for term in unit.terms)
    if is_last:
        head, tail = unit.terms[:-1], unit.terms[-1]
        for term in _completions(listed, tail, fields, ranking)[:10]:
            forms.append(Form((*head, term), ranking.prefix, 1))
    joined = "".join(unit.terms)
    if snapshot.most_frequency(fields, joined):
        forms.append(Form((joined,), ranking.synonym))
    parts = _letters_and_digits(snapshot, unit, fields) if with_guesses else None
    if parts is not None:
        forms.append(Form(parts, ranking.joined, 1))
    return Expansion(tuple(forms), known, unit.terms[-1] if is_last else None, guessed=parts is not None)


def _letters_and_digits(snapshot: Snapshot, unit: Unit, fields: tuple[str, ...]) -> tuple[str, ...] | None:
    """A word or compound cut where letters and digits meet (``256gb``: ``256 gb``), if a field has all the parts."""
    parts = tuple(part for term in unit.terms for part in _LETTERS_OR_DIGITS.findall(term))
    if not len(unit.terms) < len(parts) <= _MOST_PARTS:
        return None
    return parts if _are_together(snapshot, parts, fields) else None


def _are_together(snapshot: Snapshot, terms: tuple[str, ...], fields: tuple[str, ...]) -> bool:
    """Whether a field has all of some terms."""
    return any(min([snapshot.frequency(field, term) for term in terms]) for field in fields)


def _split_in_two(snapshot: Snapshot, word: str, fields: tuple[str, ...], shortest: int) -> tuple[str, str] | None:
    """A rare word as two known ones that follow each other (``setup``: ``set up``), if there are such: the best two."""
    frequency = snapshot.searcher.doc_freq
    best: tuple[int, tuple[str, str]] | None = None
    for at in range(shortest, min(known_start(snapshot, fields, word), len(word) - shortest) + 1):
        parts = (word[:at], word[at:])
        count = 0
        for field in fields:
            first = frequency(field, parts[0])
            if first > count:
                count = max(count, min(first, frequency(field, parts[1])))
        if count and (best is None or count > best[0]):
            best = (count, parts)
    return None if best is None else best[1]
