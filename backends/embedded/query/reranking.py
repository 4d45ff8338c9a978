"""Reordering the best hits by signals that tantivy does not support."""

from __future__ import annotations

import time

import tantivy

from backends.embedded.index.schema import DATE, UPDATED_AT
from backends.embedded.query.ranking import Ranking
from backends.embedded.query.scoring import recency

RERANKED = 100
"""Number of top hits that are reordered by signals that tantivy does not support."""

_MICROSECONDS_A_DAY = 86_400_000_000

ScoredHit = tuple[float, tantivy.DocAddress]


def order_ties_by_change(searcher: tantivy.Searcher, hits: list[ScoredHit]) -> list[ScoredHit]:
    """Order hits with equal scores by last change, oldest first, so that the order does not depend on segments."""
    # Usually there are no ties, and nothing has to be read.
    if len({score for score, _ in hits}) == len(hits):
        return hits
    changes = searcher.fast_field_values(UPDATED_AT, [address for _, address in hits])
    keys = [(-score, change or 0) for (score, _), change in zip(hits, changes, strict=True)]
    return [hits[index] for index in sorted(range(len(hits)), key=keys.__getitem__)]


def rerank(searcher: tantivy.Searcher, hits: list[ScoredHit], count: int, ranking: Ranking) -> list[ScoredHit]:
    """Multiply the scores of hits by their recency, and return the hits in the new order.

    Args:
        hits: Hits, best first.
        count: Number of hits needed; hits that cannot be among them may be missing.
    """
    if not hits or not ranking.recency_boost:
        return hits
    if count < len(hits):
        # Hits further behind than the largest bonus cannot move up.
        min_score = hits[count - 1][0] / recency(0, ranking)
        hits = [hit for hit in hits if hit[0] >= min_score]
    dates = searcher.fast_field_values(DATE, [address for _, address in hits])
    if dates.count(None) == len(dates):
        return hits
    now = time.time() * 1_000_000
    scored = [
        (score if date is None else score * recency((now - date) / _MICROSECONDS_A_DAY, ranking), address)
        for (score, address), date in zip(hits, dates, strict=True)
    ]
    scored.sort(key=lambda hit: -hit[0])
    return scored
