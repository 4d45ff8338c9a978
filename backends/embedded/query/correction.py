"""The query that was answered, where words that no document has were replaced by similar ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import tantivy

from backends.embedded.analysis.normalization import fold
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.query.relaxations import required_clauses
from backends.embedded.query.terms import ResolvedQuery, ResolvedTerm
from backends.embedded.query.variants import TermVariant
from backends.text import WORD, in_case_of

Must = tantivy.Occur.Must
_MOST_READ = 100_000
"""Characters of a text that are looked through for a word with its accents."""


def corrected_text(resolved: ResolvedQuery, condition: tantivy.Query | None) -> str | None:
    """The query as typed, with another word for each required one that exists nowhere; ``None`` if there are none.

    Of the words that are similar, the nearest and most frequent one is taken with which a document has every word.

    Args:
        condition: What the documents must fulfil beside the query, all of whose words some document has.
    """
    required = resolved.required
    candidates = {at: _replacements(resolved, term) for at, term in enumerate(required)}
    candidates = {at: found for at, found in candidates.items() if found}
    if not candidates:
        return None
    chosen = _chosen_together(resolved, condition, candidates)
    changed = {
        old: _as_written(resolved, new)
        for at, variant in chosen.items()
        for old, new in zip(required[at].query_term.terms, variant.terms, strict=True)
        if old != new
    }

    def shown(match: re.Match[str]) -> str:
        word = changed.get(fold(match[0]))
        return match[0] if word is None else in_case_of(match[0], word)

    return WORD.sub(shown, resolved.text)


def _replacements(resolved: ResolvedQuery, term: ResolvedTerm) -> list[TermVariant]:
    """Replacements of a term, the best first; nothing if documents have it in any form that is no error."""
    best = term.variants[0] if term.variants else None
    if best is None or (len(best.terms) == 1 and not best.is_correction):
        return []  # What was looked up of a word is in the index, and comes before what may stand for it.
    similar = [variant for variant in term.variants if variant.is_correction]
    if not similar or any(_exists(resolved, variant) for variant in term.variants if not variant.is_correction):
        return []
    return similar


def _exists(resolved: ResolvedQuery, variant: TermVariant) -> bool:
    query = resolved.queries.one(variant)
    return query is not None and (len(variant.terms) == 1 or resolved.snapshot.count(query) > 0)


def _chosen_together(
    resolved: ResolvedQuery, condition: tantivy.Query | None, candidates: Mapping[int, Sequence[TermVariant]]
) -> dict[int, TermVariant]:
    """For each place one of its candidates, so that a document has them all."""
    clauses: dict[int, tantivy.Query] = {
        at: term.query for at, term in enumerate(resolved.required) if term.query is not None
    }
    others = [*required_clauses(resolved), *([] if condition is None else [(Must, condition)])]
    is_alone = len(clauses) == 1 and not others
    chosen: dict[int, TermVariant] = {}
    for at, variants in candidates.items():
        chosen[at] = variants[0]
        for variant in variants if len(variants) > 1 and not is_alone else ():
            query = resolved.queries.one(variant)
            if query is None:
                continue
            together = [*((Must, each) for each in (clauses | {at: query}).values()), *others]
            if resolved.snapshot.count(tantivy.Query.boolean_query(together)):
                chosen[at], clauses[at] = variant, query
                break
    return chosen


def _as_written(resolved: ResolvedQuery, term: str) -> str:
    """A term as a document has it, with its accents, in lower case."""
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
            words = () if text.isascii() else WORD.finditer(text, 0, _MOST_READ)
            yield from (match[0].lower() for match in words if fold(match[0]) == term)
            yield term
