"""Spelling correction: replacing query words that no document contains by similar ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import tantivy

from backends.analysis.normalization import fold
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.query.relaxations import required_clauses
from backends.embedded.query.terms import ResolvedQuery, ResolvedTerm
from backends.embedded.query.variants import TermVariant
from backends.text import WORD, in_case_of

Must = tantivy.Occur.Must
_MAX_SEARCHED_CHARS = 100_000
"""Maximum number of characters of a text that are searched for the accented form of a word."""


def corrected_text(resolved: ResolvedQuery, condition: tantivy.Query | None) -> str | None:
    """Return the query with its misspelled words corrected: ``opning hours`` -> ``opening hours``.

    A required word that no document contains is replaced by the nearest, then most frequent, similar word with which
    a document contains the whole query. ``None`` if there are no words to replace.

    Args:
        condition: Condition on the documents; some document that meets it contains all words of the query.
    """
    required = resolved.required
    candidates = {index: _replacements(resolved, term) for index, term in enumerate(required)}
    candidates = {index: variants for index, variants in candidates.items() if variants}
    if not candidates:
        return None
    chosen = _chosen_together(resolved, condition, candidates)
    changed = {
        old: as_written(resolved, new)
        for index, variant in chosen.items()
        for old, new in zip(required[index].query_term.terms, variant.terms, strict=True)
        if old != new
    }

    def corrected_word(match: re.Match[str]) -> str:
        word = changed.get(fold(match[0]))
        return match[0] if word is None else in_case_of(match[0], word)

    return WORD.sub(corrected_word, resolved.text)


def _replacements(resolved: ResolvedQuery, term: ResolvedTerm) -> list[TermVariant]:
    """Return a term's replacements, best first; empty if documents contain it in a form without typing errors."""
    best = term.variants[0] if term.variants else None
    if best is None or (len(best.terms) == 1 and not best.is_correction):
        return []  # The best variant is not a correction, so the index contains the word.
    similar = [variant for variant in term.variants if variant.is_correction]
    if not similar or any(_exists(resolved, variant) for variant in term.variants if not variant.is_correction):
        return []
    return similar


def _exists(resolved: ResolvedQuery, variant: TermVariant) -> bool:
    query = resolved.queries.for_variant(variant)
    return query is not None and (len(variant.terms) == 1 or resolved.snapshot.count(query) > 0)


def _chosen_together(
    resolved: ResolvedQuery, condition: tantivy.Query | None, candidates: Mapping[int, Sequence[TermVariant]]
) -> dict[int, TermVariant]:
    """Choose one candidate for each word, by its index, so that a document contains all of them."""
    clauses: dict[int, tantivy.Query] = {
        index: term.query for index, term in enumerate(resolved.required) if term.query is not None
    }
    others = [*required_clauses(resolved), *([] if condition is None else [(Must, condition)])]
    # A variant exists in the index, so without other clauses some document contains it, and nothing is counted.
    is_alone = len(clauses) == 1 and not others
    chosen: dict[int, TermVariant] = {}
    for index, variants in candidates.items():
        chosen[index] = variants[0]
        for variant in variants if len(variants) > 1 and not is_alone else ():
            query = resolved.queries.for_variant(variant)
            if query is None:
                continue
            together = [*((Must, clause) for clause in (clauses | {index: query}).values()), *others]
            if resolved.snapshot.count(tantivy.Query.boolean_query(together)):
                chosen[index], clauses[index] = variant, query
                break
    return chosen


def as_written(resolved: ResolvedQuery, term: str) -> str:
    """Return a term as a document spells it, with accents, in lower case."""
    fields = tuple(resolved.queries.fields)
    key = ("written", term, fields)
    written = resolved.snapshot.cached(key)
    if written is None:
        written = next(_written_forms(resolved.snapshot, fields, term), term)
        resolved.snapshot.cache(key, written)
    return str(written)


def _written_forms(snapshot: Snapshot, fields: Sequence[str], term: str) -> Iterator[str]:
    for field in fields:
        query = tantivy.Query.term_query(snapshot.schema, field, term)
        for _, address in snapshot.searcher.search(query, limit=1, count=False).hits:
            text = snapshot.searched_text(field, address)
            words = () if text.isascii() else WORD.finditer(text, 0, _MAX_SEARCHED_CHARS)
            yield from (match[0].lower() for match in words if fold(match[0]) == term)
            yield term
