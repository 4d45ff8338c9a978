"""Explanations of a hit's position: its relaxation, its matching words, and each signal's share of its score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tantivy

from backends.embedded.query.ranking import Ranking
from backends.embedded.query.ranks import Factors, score_of
from backends.embedded.query.scoring import Signal
from backends.embedded.query.terms import ResolvedQuery, ResolvedTerm
from backends.embedded.query.variants import TermVariant
from backends.query import rank_factor

_Query = tantivy.Query
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, slots=True)
class Explained:
    """A query whose hits can be explained.

    Attributes:
        query: Computes the score of words and signals, before factors.
        relaxation: Name of the relaxation.
        resolved: The query's words.
        signals: The signals that contribute to the score.
    """

    query: tantivy.Query
    relaxation: str
    resolved: ResolvedQuery
    signals: Sequence[Signal]

    def explain(self, address: tantivy.DocAddress, factors: Factors, *, is_scored: bool) -> dict[str, Any] | None:
        """Return the explanation of a hit as JSON; ``None`` if the query does not match the hit.

        Args:
            is_scored: Whether hits are ordered by score.
        """
        score = score_of(self.query, self.resolved.snapshot.searcher, address)
        if score is None:
            return None
        words = {"relaxation": self.relaxation, "words": list(_words(self.resolved, address))}
        if not is_scored:
            return {"score": None, **words, "signals": [], "rank": factors.rank}
        shares = [*self._shares(score, address), ("recency", factors.recency), ("rank", rank_factor(factors.rank))]
        return {
            "score": score * factors.product,
            **words,
            "signals": [{"name": name, "share": share} for name, share in shares],
            "rank": factors.rank,
        }

    def _shares(self, score: float, address: tantivy.DocAddress) -> Iterator[tuple[str, float]]:
        """Yield the words' share of the score, then for each signal the factor by which it raises the score so far."""
        added = {signal.__name__: self._added(signal, address) for signal in self.signals}
        total = sum(added.values())
        score_so_far = score - total
        if score_so_far > _NEGLIGIBLE:
            yield "words", score_so_far
        else:  # Hits that match only stop words have no other score.
            added = {"words": score}
            score_so_far = 0.0
        for name, value in added.items():
            if value > _NEGLIGIBLE:
                yield name, (score_so_far + value) / score_so_far if score_so_far else value
                score_so_far += value

    def _added(self, signal: Signal, address: tantivy.DocAddress) -> float:
        return sum(score_of(query, self.resolved.snapshot.searcher, address) or 0.0 for query in signal(self.resolved))


def _words(resolved: ResolvedQuery, address: tantivy.DocAddress) -> Iterator[Mapping[str, str]]:
    """Yield every form of the query's words that matches in a document, with its field."""
    whole = "".join(part for term in resolved.parsed.query_terms for part in term.terms)
    forms = [
        (term.query_term.surface, variant, _kind(term, variant, resolved.ranking, whole))
        for term in resolved.terms
        for variant in term.variants
    ]
    forms += [
        (" ".join(phrase.words), TermVariant(phrase.terms, 1.0, words=phrase.words), "exact")
        for phrase in resolved.parsed.phrases
    ]
    for word, variant, kind in forms:
        for field in resolved.queries.fields_of(variant):
            query = resolved.queries.in_field(field, variant)
            if query is not None and score_of(query, resolved.snapshot.searcher, address) is not None:
                matched_text = " ".join(variant.words or variant.terms)
                yield {"word": word, "variant": matched_text, "kind": kind, "field": field}


def _kind(term: ResolvedTerm, variant: TermVariant, ranking: Ranking, whole: str) -> str:
    """Classify a variant as one of :data:`backends.base.VARIANT_KINDS`. ``whole`` is all query words, joined."""
    typed = term.query_term.terms
    if variant.is_closed_compound:
        return "compound"
    if variant.in_parts:
        return "split"
    if variant.terms in ((term.query_term.joined,), (whole,)) and variant.terms != typed:
        return "joined"
    if variant.terms == typed:
        return "exact"
    if variant.is_correction:
        return "typo"
    if not variant.errors:
        return "synonym" if variant.boost == ranking.synonym else "stem"
    if variant.boost == ranking.prefix:
        return "prefix"
    return "split" if len(variant.terms) > len(typed) else "joined"
