"""Variants: the index terms that a word of a query may match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product
from operator import itemgetter
from os.path import commonprefix

from backends.analysis.chinese import other_forms
from backends.analysis.compounds import compound_languages, compounds_of
from backends.analysis.languages import prefixes, stem, stems, terms_with_stem
from backends.analysis.parser import QueryTerm, TermKind
from backends.embedded.index.schema import COMPOUNDS, WORD_PARTS
from backends.embedded.index.snapshots import Snapshot, add_highest_counts
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.spellings import (
    spelled_out,
    suspended,
    with_accents,
    with_apostrophe,
    with_endings,
    within_part_numbers,
)
from backends.embedded.query.typos import (
    corrections,
    errors_allowed,
    follow_each_other,
    may_be_mistyped,
    may_be_split,
    one_error_away,
    split_before_form,
    split_in_terms,
    split_in_two,
    swapped,
)

_MAX_LISTED = 200
"""Maximum number of terms listed per prefix."""

_MAX_CORRECTIONS = 8
"""Maximum number of corrections per word."""

_MAX_JOINED_COMPLETIONS = 3
"""Maximum number of completions of two words written together."""

_MIN_JOINED_LETTERS = 5
"""Minimum number of letters of two joined words that may be unfinished; fewer letters have too many completions."""

_MIN_STEMMED_LETTERS = 3
"""Minimum length of a stemmed word, in letters."""

_MAX_COMPOUNDS = 100
"""Maximum number of compounds per word."""

_MAX_PARTS = 8
"""Maximum number of parts of a word that is split into terms, or where letters and digits meet."""
_LETTERS_OR_DIGITS = re.compile(r"\d+|\D+")
_DATE = re.compile(r"\d{1,2} \d{1,2} \d{4}|\d{4} \d{1,2} \d{1,2}")
_LIBRARY_VERSION = re.compile(r"([a-z]+)(\d+)")
"""A name and a version, between which documents may have ``.js`` (``vue3``: ``Vue.js 3``)."""

_VERSION = re.compile(r"(?P<sign>v?)(?P<number>\d+)")
"""The first part of a version such as ``2.0.1``, which may also be written ``v2.0.1``."""

_Listing = Callable[[tuple[str, ...], str], Mapping[str, int]]
"""Lists the terms of some fields with a prefix, most frequent first, with their document frequencies."""


@dataclass(frozen=True, slots=True)
class TermVariant:
    """One form in which a document may contain a word.

    Attributes:
        terms: One term, or several consecutive terms.
        boost: 1.0 for the word as typed, less for other forms.
        errors: 0 for the word or its stem, 1 for a longer word, 2 or more for typing errors.
        words: The terms to highlight, if they differ from the terms to search for.
        in_parts: Whether they are parts of a word written as one, which has a field of its own.
        is_closed_compound: Whether it is a compound written as one word that ends with the word.
    """

    terms: tuple[str, ...]
    boost: float
    errors: int = 0
    words: tuple[str, ...] = ()
    in_parts: bool = False
    is_closed_compound: bool = False

    @property
    def is_correction(self) -> bool:
        """Whether this variant assumes that the word was mistyped."""
        return self.errors > 1


@dataclass(frozen=True, slots=True)
class Expansion:
    """All variants of a word, best first; empty if the index contains nothing similar.

    Attributes:
        completed: Common prefix of the longer variants, if the word may be unfinished.
        split: The variant that is the word split in two, if there is one.
        expensive: Whether finding or searching the variants is slow: all are typing errors, or one is the word split
            where letters and digits meet.
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
    """Return the variants of a word in an index, cached with the snapshot.

    Args:
        fields: The text fields to search.
        languages: Languages whose stemmers apply.
        is_last: Whether the word may be unfinished.
        allow_expensive: Whether to also look for typing errors, and to split the word in slow ways.
    """
    key = (query_term, fields, languages, is_last, allow_expensive)
    expansion = snapshot.cached(key)
    if expansion is None:
        expansion = _expand(snapshot, query_term, fields, languages, is_last, allow_expensive, ranking)
        snapshot.cache(key, expansion)
    assert isinstance(expansion, Expansion)
    return expansion


def concatenated_variants(
    snapshot: Snapshot, fields: tuple[str, ...], first: QueryTerm, second: QueryTerm, is_open: bool, ranking: Ranking
) -> list[TermVariant]:
    """Return the variants of two words written as one that the index contains: ``log in`` -> ``login``.

    Args:
        is_open: Whether the second word may be unfinished.
    """
    word = first.terms[-1] + second.terms[0]
    terms = (*first.terms[:-1], word, *second.terms[1:])
    variants = [TermVariant(terms, ranking.concatenated, 1)] if _are_together(snapshot, terms, fields) else []
    if is_open and len(terms) == 1 and len(word) >= _MIN_JOINED_LETTERS:
        key = (word, fields)
        longer = snapshot.cached(key)
        if longer is None:
            longer = _completions(_listing(snapshot), word, fields, ranking)[:_MAX_JOINED_COMPLETIONS]
            snapshot.cache(key, longer)
        variants += [TermVariant((term,), ranking.concatenated * ranking.prefix, 1) for term in longer]
    return variants


def variants_in_parts(
    snapshot: Snapshot, query_term: QueryTerm, is_known: bool, is_open: bool, ranking: Ranking
) -> list[TermVariant]:
    """Return the variants of a word among the parts of words written as one: ``record`` in ``appTableRecord``.

    Args:
        is_known: Whether documents contain the word itself. If not, it may also be several parts, or an unfinished one.
        is_open: Whether the word may be unfinished.
    """
    key = ("parts", query_term, is_known, is_open)
    cached: list[TermVariant] | None = snapshot.cached(key)
    if cached is not None:
        return cached
    word, fields = query_term.term, (WORD_PARTS,)
    candidates: list[tuple[str, ...]] = [(word,)]
    if query_term.parts:
        candidates.append(query_term.parts)
    if not is_known:
        split = split_in_two(snapshot, word, fields, 2) or split_in_terms(snapshot, word, WORD_PARTS, _MAX_PARTS)
        candidates += [] if split is None else [split]
        if is_open and len(word) >= _MIN_STEMMED_LETTERS:
            candidates += [(term,) for term, _ in snapshot.terms(WORD_PARTS, word, _MAX_JOINED_COMPLETIONS)]
    variants = [
        TermVariant(terms, ranking.word_parts, 1, in_parts=True)
        for terms in dict.fromkeys(candidates)
        if _are_together(snapshot, terms, fields)
    ]
    snapshot.cache(key, variants)
    return variants


def compound_variants(
    snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...], languages: tuple[str, ...], ranking: Ranking
) -> list[TermVariant]:
    """Return the closed compounds of the index that end with a word, most frequent first: *Gutschein* finds
    *Geschenkgutschein*.
    """
    key = ("compounds", query_term, fields, languages)
    variants: list[TermVariant] | None = snapshot.cached(key)
    if variants is None:
        counts: dict[str, int] = {}

        def list_keys(ending: str) -> list[tuple[str, int]]:
            return snapshot.terms(COMPOUNDS, ending, _MAX_LISTED)

        def is_word(word: str) -> bool:
            return snapshot.max_doc_frequency(fields, word) > 0

        for language in compound_languages(languages):
            listed = compounds_of(language, query_term.term, query_term.surface, list_keys, is_word)
            add_highest_counts(counts, listed)
        best = sorted(counts, key=counts.__getitem__, reverse=True)[:_MAX_COMPOUNDS]
        variants = [TermVariant((compound,), ranking.closed_compound, 1, is_closed_compound=True) for compound in best]
        snapshot.cache(key, variants)
    return variants


def _expand(
    snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...], languages: tuple[str, ...], is_last: bool,
    allow_expensive: bool, ranking: Ranking,
) -> Expansion:  # fmt: skip
    listed = _listing(snapshot)
    if query_term.kind is TermKind.COMPOUND:
        return _expand_compound(snapshot, listed, query_term, fields, is_last, allow_expensive, ranking)
    word = query_term.term
    variants_by_term: dict[str, TermVariant] = {}
    counts: dict[str, int] = {}

    def add(term: str, boost: float, errors: int) -> None:
        if term not in variants_by_term:
            count = snapshot.max_doc_frequency(fields, term)
            if count:
                variants_by_term[term] = TermVariant((term,), boost, errors)
                counts[term] = count

    add(word, 1.0, 0)
    if query_term.kind is not TermKind.WORD:
        return _expand_characters(snapshot, query_term, fields, tuple(variants_by_term.values()), ranking)
    if len(word) >= _MIN_STEMMED_LETTERS:
        for relative in _relatives(listed, query_term, fields, languages, ranking):
            add(relative, ranking.stem, 0)
    for term in (*spelled_out(snapshot, query_term, fields), *with_accents(snapshot, word, fields, is_last)):
        add(term, ranking.synonym, 0)
        for relative in _relatives(
            listed, replace(query_term, terms=(term,), surface=term), fields, languages, ranking
        ):
            add(relative, ranking.stem, 0)
    frequency = sum(counts.values())
    if is_last:
        for term in _completions(listed, word, fields, ranking):
            add(term, ranking.prefix, 1)
    total_count = sum(counts.values())
    apart = list(with_apostrophe(snapshot, word, fields, is_last)) if total_count < ranking.typo_max_doc_freq else []
    if apart:
        variants = [
            *variants_by_term.values(),
            *(TermVariant(pair, ranking.synonym) for pair in apart),
        ]
        return Expansion(tuple(variants), max(frequency, 1), word if is_last else None)
    if allow_expensive and total_count < ranking.typo_max_doc_freq and errors_allowed(word):
        near = ranking.typo if total_count else ranking.unknown_typo
        for term, errors in corrections(snapshot, fields, word, is_last)[:_MAX_CORRECTIONS]:
            add(term, near if errors == 1 else ranking.far_typo, 1 + errors)
    elif allow_expensive and not total_count and len(word) >= ranking.swapped_from and may_be_mistyped(word):
        for term in swapped(snapshot, fields, word):
            add(term, ranking.unknown_typo, 2)
    variants = list(variants_by_term.values())
    expensive = not variants or variants[0].errors > 1
    split = (
        split_in_two(snapshot, word, fields, 1 if not variants else 2)
        if total_count < ranking.typo_max_doc_freq and may_be_split(word)
        else None
    )
    if split is not None:
        variants.append(TermVariant(split, ranking.concatenated, 1))
    elif allow_expensive and not variants and may_be_split(word):

        def forms_of(rest: str) -> list[str]:
            term = replace(query_term, terms=(rest,), surface=rest)
            relatives = _relatives(listed, term, fields, languages, ranking)
            longer = _completions(listed, rest, fields, ranking)[:_MAX_JOINED_COMPLETIONS] if is_last else []
            return relatives + longer

        splits = {split_in_terms(snapshot, word, field, _MAX_PARTS): None for field in fields}
        splits[split_before_form(snapshot, word, fields, forms_of)] = None
        variants += [TermVariant(terms, ranking.concatenated, 1) for terms in splits if terms is not None]
    if snapshot.has_compounds and total_count < ranking.typo_max_doc_freq and word.isalpha():
        shortened = dict.fromkeys(suspended(snapshot, word, fields))
        variants += [TermVariant(terms, ranking.closed_compound, 1) for terms in shortened]
    if query_term.parts and _are_together(snapshot, query_term.parts, fields):
        variants.append(TermVariant(query_term.parts, ranking.concatenated, 1))
    parts = _letters_and_digits(snapshot, query_term, fields) if allow_expensive else None
    if parts is not None and parts not in (split, query_term.parts):
        variants.append(TermVariant(parts, ranking.concatenated, 1))
        expensive = True
    if allow_expensive and not variants:
        inner = within_part_numbers(snapshot, word, fields)
        variants += [TermVariant((term,), ranking.concatenated, 1) for term in inner]
    version = _LIBRARY_VERSION.fullmatch(word)
    if version is not None and _are_together(snapshot, (version[1], "js", version[2]), fields):
        variants.append(TermVariant((version[1], "js", version[2]), ranking.concatenated, 1))
    frequency = min(snapshot.total, frequency or sum(counts.values()) or len(variants))
    return Expansion(tuple(variants), frequency, word if is_last else None, split, expensive)


def _expand_characters(
    snapshot: Snapshot,
    query_term: QueryTerm,
    fields: tuple[str, ...],
    variants_as_typed: tuple[TermVariant, ...],
    ranking: Ranking,
) -> Expansion:
    """Expand a character or a pair of characters: Japanese endings, and Chinese characters of two forms."""
    variants = list(variants_as_typed)
    if "ja" in snapshot.languages and query_term.kind is TermKind.BIGRAM:
        variants += [
            TermVariant(terms, ranking.synonym, words=(written,))
            for terms, written in with_endings(snapshot, query_term.term, fields)
        ]
    if "zh" in snapshot.languages:
        forms = ((form,) for form in other_forms(query_term.term))
        variants += [TermVariant(form, ranking.synonym) for form in forms if _are_together(snapshot, form, fields)]
    frequency = sum(_max_documents_with_all(snapshot, variant.terms, fields) for variant in variants)
    return Expansion(tuple(variants), min(snapshot.total, frequency))


def _listing(snapshot: Snapshot) -> _Listing:
    # Listing the terms of a short prefix takes milliseconds and may happen twice.
    @cache
    def listed(fields: tuple[str, ...], start: str) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for field in fields:
            add_highest_counts(counts, snapshot.terms(field, start, _MAX_LISTED))
        return dict(sorted(counts.items(), key=itemgetter(1), reverse=True)[:_MAX_LISTED])

    return listed


def _relatives(
    listed: _Listing, query_term: QueryTerm, fields: tuple[str, ...], languages: tuple[str, ...], ranking: Ranking
) -> list[str]:
    """Return terms that share a stem with the word in one of the languages, most frequent first."""
    word = query_term.term
    relatives: dict[str, int] = {}
    for language in languages:
        stems_to_match = stems(language, word) | {stem(language, query_term.surface)}
        counts: dict[str, int] = {}
        for start in _starts(language, word, stems_to_match):
            counts |= listed(fields, start)
        counts.pop(word, None)
        relatives |= {term: counts[term] for term in terms_with_stem(language, stems_to_match, list(counts))}
    return sorted(relatives, key=lambda term: -relatives[term])[: ranking.max_stems]


def _starts(language: str, word: str, stems_to_match: Set[str]) -> Iterator[str]:
    """Yield prefixes of the terms that share a word's stem, long enough to list these terms."""
    start = commonprefix([word, *stems_to_match])  # noqa: RUF071 - of characters, as wanted
    if len(start) >= min(_MIN_STEMMED_LETTERS, len(word)):
        yield start
    else:  # Stems may have little in common (*ikkuna*: *iku* and *ikkun*).
        shared = {commonprefix([word, stemmed]) for stemmed in stems_to_match}  # noqa: RUF071
        yield from sorted(prefix for prefix in shared if len(prefix) >= _MIN_STEMMED_LETTERS)
    common_stem = commonprefix(list(stems_to_match))  # noqa: RUF071
    if len(common_stem) >= _MIN_STEMMED_LETTERS:
        yield from (prefix + common_stem for prefix in ("", *prefixes(language)) if prefix + common_stem != start)


def _completions(listed: _Listing, word: str, fields: tuple[str, ...], ranking: Ranking) -> list[str]:
    limit = ranking.max_completions if len(word) > 2 else ranking.max_completions // 3
    completions = islice(listed(fields if len(word) > 1 else fields[:1], word), limit)
    return [term for term in completions if term != word]


def _expand_compound(
    snapshot: Snapshot, listed: _Listing, query_term: QueryTerm, fields: tuple[str, ...], is_last: bool,
    allow_expensive: bool, ranking: Ranking,
) -> Expansion:  # fmt: skip
    """Expand a compound: as written, or as one word; its last part may be unfinished, or one part mistyped."""
    variants = [TermVariant(query_term.terms, 1.0)]
    version = _VERSION.fullmatch(query_term.term)
    if version is not None:
        number = (version["number"] if version["sign"] else f"v{query_term.term}", *query_term.terms[1:])
        if _are_together(snapshot, number, fields):
            variants.append(TermVariant(number, ranking.synonym))
    dates = [date for date in _dates(query_term.terms) if _are_together(snapshot, date, fields)]
    variants += [TermVariant(date, ranking.synonym) for date in dates]
    frequency = min(snapshot.max_doc_frequency(fields, term) for term in query_term.terms)
    if is_last:
        *head, tail = query_term.terms
        longer = (term for term in listed(fields if len(tail) > 1 else fields[:1], tail) if term != tail)
        # The end of the head is nearly as selective as all of it, which may have forty parts.
        following = (term for term in longer if follow_each_other(snapshot, (*head[-2:], term), fields))
        limit = ranking.max_completions // 3
        variants += [TermVariant((*head, term), ranking.prefix, 1) for term in islice(following, limit)]
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
        frequency = frequency or min(
            snapshot.total, sum(_max_documents_with_all(snapshot, variant.terms, fields) for variant in corrected)
        )
        variants += corrected
        expensive = True
    return Expansion(tuple(variants), frequency, query_term.terms[-1] if is_last else None, expensive=expensive)


def _dates(terms: tuple[str, ...]) -> list[tuple[str, ...]]:
    """``("12", "5", "2024")`` -> ``[("12", "05", "2024")]``: a date with and without zeros before day and month."""
    if _DATE.fullmatch(" ".join(terms)) is None:
        return []
    spellings = product(*(dict.fromkeys((term, term.lstrip("0") or term, term.zfill(2))) for term in terms))
    return [spelling for spelling in spellings if spelling != terms]


def _mistyped_part(snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...], ranking: Ranking) -> int | None:
    """Return the index of the part of a compound that may be mistyped: the rarest, if only this part is missing."""
    if query_term.strict:
        return None
    terms = query_term.terms
    counts = [snapshot.max_doc_frequency(fields, term) for term in terms]
    rare = [
        index
        for index, count in enumerate(counts)
        if count < ranking.typo_max_doc_freq
        and len(terms[index]) >= ranking.part_error_from
        and may_be_mistyped(terms[index])
    ]
    if not rare:
        return None
    rarest = min(rare, key=counts.__getitem__)
    others_exist = all(count for index, count in enumerate(counts) if index != rarest)
    return rarest if others_exist and not follow_each_other(snapshot, terms, fields) else None


def _corrected(
    snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...], mistyped: int, is_last: bool, ranking: Ranking
) -> list[TermVariant]:
    """Return the compound with a mistyped part replaced by terms that occur between its other parts somewhere."""
    before, word, after = query_term.terms[:mistyped], query_term.terms[mistyped], query_term.terms[mistyped + 1 :]
    candidates = (
        corrections(snapshot, fields, word, is_last and not after)
        if errors_allowed(word)
        else one_error_away(snapshot, fields, word)
    )
    variants = (
        TermVariant((*before, term, *after), ranking.typo if errors == 1 else ranking.far_typo, 1 + errors)
        for term, errors in candidates[:_MAX_LISTED]
        if follow_each_other(snapshot, (*before, term, *after), fields)
    )
    return list(islice(variants, ranking.max_completions // 3))


def _letters_and_digits(snapshot: Snapshot, query_term: QueryTerm, fields: tuple[str, ...]) -> tuple[str, ...] | None:
    """``"256gb"`` -> ``("256", "gb")``, if a field contains all parts."""
    parts = tuple(part for term in query_term.terms for part in _LETTERS_OR_DIGITS.findall(term))
    if not len(query_term.terms) < len(parts) <= _MAX_PARTS:
        return None
    return parts if _are_together(snapshot, parts, fields) else None


def _are_together(snapshot: Snapshot, terms: tuple[str, ...], fields: tuple[str, ...]) -> bool:
    """Whether any single field contains all of the terms."""
    return _max_documents_with_all(snapshot, terms, fields) > 0


def _max_documents_with_all(snapshot: Snapshot, terms: tuple[str, ...], fields: tuple[str, ...]) -> int:
    """Return an upper limit on the number of documents in which one field contains all of the terms."""
    return max([min([snapshot.frequency(field, term) for term in terms]) for field in fields])
