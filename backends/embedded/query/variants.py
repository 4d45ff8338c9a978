"""The index terms a word of a query may stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import itemgetter
from os.path import commonprefix

import tantivy

from backends.embedded.analysis.languages import prefixes, sharing_stem, stem, stems
from backends.embedded.index.snapshots import Snapshot, keep_most
from backends.embedded.query.parser import QueryTerm, TermKind
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.typos import (
    corrections,
    errors_allowed,
    known_start,
    may_be_mistyped,
    one_error_away,
    swapped,
)

_MOST_LOOKED_AT = 200
_MOST_CORRECTIONS = 8
_FEW = 3
_SHORTEST_CONCATENATED = 5
"""Letters of two words written together from which longer words are looked for: there are too many for fewer."""

_SHORTEST_STEMMED = 3
_MOST_PARTS = 8
_LETTERS_OR_DIGITS = re.compile(r"\d+|\D+")
_VERSION = re.compile(r"(?P<sign>v?)(?P<number>\d+)")
"""The first part of a version such as ``2.0.1``, which may be written ``v2.0.1``."""


_Listing = Callable[[tuple[str, ...], str], Mapping[str, int]]
"""The terms of some fields that begin with something, the most frequent first, and in how many documents each is."""


@dataclass(frozen=True, slots=True)
class TermVariant:
    """One way a word may stand in a document.

    Attributes:
        terms: One term, or several that must follow each other.
        boost: 1.0 for the word as typed, less for other forms.
        errors: 0 for the word or its stem, 1 for a longer word, 2 and more for typing errors.
        words: The terms as they are marked, if that is not as they are found.
    """

    terms: tuple[str, ...]
    boost: float
    errors: int = 0
    words: tuple[str, ...] = ()

    @property
    def is_correction(self) -> bool:
        """Tell whether the word was mistyped if this is what was meant."""
        return self.errors > 1


@dataclass(frozen=True, slots=True)
class Expansion:
    """All forms of a word, the best first; none when the index has nothing like it.

    Attributes:
        completed: The beginning that the longer ones of them share, if the word may not be finished.
        split: The one of them that is the word in two, if there is such.
        expensive: Whether finding them was dear, or searching them is: there is nothing like the word but with typing
            errors, or one of them is the word cut where letters and digits meet.
    """

    variants: tuple[TermVariant, ...]
    frequency: int
    completed: str | None = None
    split: tuple[str, str] | None = None
    expensive: bool = False


def expand(
    snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...], languages: tuple[str, ...], is_last: bool,
    allow_expensive: bool, ranking: Ranking,
) -> Expansion:  # fmt: skip
    """Look up what a word may stand for; remembered for the life of the snapshot."""
    key = (query_term, fields, languages, is_last, allow_expensive)
    known = snapshot.cached(key)
    if known is None:
        known = _expand(snapshot, query_term, fields, languages, is_last, allow_expensive, ranking)
        snapshot.cache(key, known)
    assert isinstance(known, Expansion)
    return known


def concatenated_variants(
    snapshot: Snapshot, fields: tuple[str, ...], left: QueryTerm, right: QueryTerm, is_open: bool, ranking: Ranking
) -> list[TermVariant]:
    """The word or compound that two are when written together (``log in``: ``login``), if there is one.

    Args:
        is_open: Whether the second may not be finished.
    """
    word = left.term + right.term
    terms = (word, *right.terms[1:])
    variants = [TermVariant(terms, ranking.concatenated, 1)] if _are_together(snapshot, terms, fields) else []
    if is_open and len(terms) == 1 and len(word) >= _SHORTEST_CONCATENATED:
        key = (word, fields)
        longer = snapshot.cached(key)
        if longer is None:
            longer = _completions(_listing(snapshot), word, fields, ranking)[:_FEW]
            snapshot.cache(key, longer)
        variants += [TermVariant((term,), ranking.concatenated * ranking.prefix, 1) for term in longer]
    return variants


def _expand(
    snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...], languages: tuple[str, ...], is_last: bool,
    allow_expensive: bool, ranking: Ranking,
) -> Expansion:  # fmt: skip
    listed = _listing(snapshot)
    if query_term.kind is TermKind.COMPOUND:
        return _expand_compound(snapshot, listed, query_term, fields, is_last, allow_expensive, ranking)
    word = query_term.term
    found: dict[str, TermVariant] = {}
    counts: dict[str, int] = {}

    def add(term: str, boost: float, errors: int) -> None:
        if term not in found:
            count = snapshot.max_doc_frequency(fields, term)
            if count:
                found[term] = TermVariant((term,), boost, errors)
                counts[term] = count

    add(word, 1.0, 0)
    if query_term.kind is not TermKind.WORD:
        return Expansion(tuple(found.values()), sum(counts.values()))
    if len(word) >= _SHORTEST_STEMMED:
        for relative in _relatives(listed, query_term, fields, languages, ranking):
            add(relative, ranking.stem, 0)
    frequency = sum(counts.values())
    if is_last:
        for term in _completions(listed, word, fields, ranking):
            add(term, ranking.prefix, 1)
    known = sum(counts.values())
    if allow_expensive and known < ranking.typo_max_doc_freq and errors_allowed(word):
        near = ranking.typo if known else ranking.unknown_typo
        for term, errors in corrections(snapshot, fields, word, is_last)[:_MOST_CORRECTIONS]:
            add(term, near if errors == 1 else ranking.far_typo, 1 + errors)
    elif allow_expensive and not known and len(word) >= ranking.swapped_from and may_be_mistyped(word):
        for term in swapped(snapshot, fields, word):
            add(term, ranking.unknown_typo, 2)
    variants = list(found.values())
    expensive = not variants or variants[0].errors > 1
    split = (
        _split_in_two(snapshot, word, fields, 1 if not variants else 2) if known < ranking.typo_max_doc_freq else None
    )
    if split is not None:
        variants.append(TermVariant(split, ranking.concatenated, 1))
    parts = _letters_and_digits(snapshot, query_term, fields) if allow_expensive else None
    if parts is not None and parts != split:
        variants.append(TermVariant(parts, ranking.concatenated, 1))
        expensive = True
    frequency = min(snapshot.total, frequency or sum(counts.values()) or len(variants))
    return Expansion(tuple(variants), frequency, word if is_last else None, split, expensive)


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
    listed: _Listing, query_term: QueryTerm, fields: tuple[str, ...], languages: tuple[str, ...], ranking: Ranking
) -> list[str]:
    """Terms that share a stem with the word in one of the languages, the most frequent first."""
    word = query_term.term
    found: dict[str, int] = {}
    for language in languages:
        wanted = stems(language, word) | {stem(language, query_term.surface)}
        counts: dict[str, int] = {}
        for start in _starts(language, word, wanted):
            counts |= listed(fields, start)
        counts.pop(word, None)
        found |= {term: counts[term] for term in sharing_stem(language, wanted, list(counts))}
    return sorted(found, key=lambda term: -found[term])[: ranking.max_stems]


def _starts(language: str, word: str, wanted: Set[str]) -> Iterator[str]:
    """Beginnings of the terms that have the stem of a word, long enough to list them."""
    start = commonprefix([word, *wanted])  # noqa: RUF071 - of characters, as wanted
    if len(start) >= min(_SHORTEST_STEMMED, len(word)):
        yield start
    rest = commonprefix(list(wanted))  # noqa: RUF071
    if len(rest) >= _SHORTEST_STEMMED:
        yield from (prefix + rest for prefix in ("", *prefixes(language)) if prefix + rest != start)


def _completions(listed: _Listing, word: str, fields: tuple[str, ...], ranking: Ranking) -> list[str]:
    most = ranking.max_completions if len(word) > 2 else ranking.max_completions // 3
    found = islice(listed(fields if len(word) > 1 else fields[:1], word), most)
    return [term for term in found if term != word]


def _expand_compound(
    snapshot: Snapshot,
    listed: _Listing,
    query_term: QueryTerm,
    fields: tuple[str, ...],
    is_last: bool,
    allow_expensive: bool,
    ranking: Ranking,
) -> Expansion:
    """A compound is found as written, or as one word; its last part may not be finished, or one part mistyped."""
    variants = [TermVariant(query_term.terms, 1.0)]
    version = _VERSION.fullmatch(query_term.term)
    if version is not None:
        number = (version["number"] if version["sign"] else f"v{query_term.term}", *query_term.terms[1:])
        if _are_together(snapshot, number, fields):
            variants.append(TermVariant(number, ranking.synonym))
    known = min(snapshot.max_doc_frequency(fields, term) for term in query_term.terms)
    if is_last:
        *head, tail = query_term.terms
        longer = (term for term in listed(fields if len(tail) > 1 else fields[:1], tail) if term != tail)
        # The end of the head tells nearly as much as all of it, which may have forty parts.
        following = (term for term in longer if _follow_each_other(snapshot, (*head[-2:], term), fields))
        most = ranking.max_completions // 3
        variants += [TermVariant((*head, term), ranking.prefix, 1) for term in islice(following, most)]
    concatenated = "".join(query_term.terms)
    if snapshot.max_doc_frequency(fields, concatenated):
        variants.append(TermVariant((concatenated,), ranking.synonym))
    parts = _letters_and_digits(snapshot, query_term, fields) if allow_expensive else None
    if parts is not None:
        variants.append(TermVariant(parts, ranking.concatenated, 1))
    expensive = parts is not None
    mistyped = _mistyped_part(snapshot, query_term, fields, ranking) if allow_expensive and len(variants) == 1 else None
    if mistyped is not None:
        corrected = _corrected(snapshot, query_term, fields, mistyped, is_last, ranking)
        known = known or min(snapshot.total, sum(_most_together(snapshot, each.terms, fields) for each in corrected))
        variants += corrected
        expensive = True
    return Expansion(tuple(variants), known, query_term.terms[-1] if is_last else None, expensive=expensive)


def _mistyped_part(snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...], ranking: Ranking) -> int | None:
    """The part of a compound that may be mistyped: the rarest, if the others are known and none has it as written."""
    if query_term.strict:
        return None
    terms = query_term.terms
    counts = [snapshot.max_doc_frequency(fields, term) for term in terms]
    rare = [
        at
        for at, count in enumerate(counts)
        if count < ranking.typo_max_doc_freq
        and len(terms[at]) >= ranking.part_error_from
        and may_be_mistyped(terms[at])
    ]
    if not rare:
        return None
    rarest = min(rare, key=counts.__getitem__)
    others_known = all(count for at, count in enumerate(counts) if at != rarest)
    return rarest if others_known and not _follow_each_other(snapshot, terms, fields) else None


def _corrected(
    snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...], mistyped: int, is_last: bool, ranking: Ranking
) -> list[TermVariant]:
    """A compound with other terms for a mistyped part: those that stand between its other parts somewhere."""
    before, word, after = query_term.terms[:mistyped], query_term.terms[mistyped], query_term.terms[mistyped + 1 :]
    candidates = (
        corrections(snapshot, fields, word, is_last and not after)
        if errors_allowed(word)
        else one_error_away(snapshot, fields, word)
    )
    found = (
        TermVariant((*before, term, *after), ranking.typo if errors == 1 else ranking.far_typo, 1 + errors)
        for term, errors in candidates[:_MOST_LOOKED_AT]
        if _follow_each_other(snapshot, (*before, term, *after), fields)
    )
    return list(islice(found, ranking.max_completions // 3))


def _letters_and_digits(snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...]) -> tuple[str, ...] | None:
    """A word or compound cut where letters and digits meet (``256gb``: ``256 gb``), if a field has all the parts."""
    parts = tuple(part for term in query_term.terms for part in _LETTERS_OR_DIGITS.findall(term))
    if not len(query_term.terms) < len(parts) <= _MOST_PARTS:
        return None
    return parts if _are_together(snapshot, parts, fields) else None


def _are_together(snapshot: Snapshot, terms: tuple[str, ...], fields: tuple[str, ...]) -> bool:
    """Tell whether a field has all of some terms."""
    return _most_together(snapshot, terms, fields) > 0


def _most_together(snapshot: Snapshot, terms: tuple[str, ...], fields: tuple[str, ...]) -> int:
    """In how many documents one field may have all of some terms."""
    return max([min([snapshot.frequency(field, term) for term in terms]) for field in fields])


def _follow_each_other(snapshot: Snapshot, terms: tuple[str, ...], fields: tuple[str, ...]) -> bool:
    """Tell whether some terms follow each other in a field of a document."""
    return any(
        snapshot.count(tantivy.Query.phrase_query(snapshot.schema, field, list(terms)))
        for field in fields
        if min([snapshot.frequency(field, term) for term in terms])
    )


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
