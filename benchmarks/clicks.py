"""Whether learning from clicks improves results, although visitors mostly look at the top, and harms no judged ones.

    python -m benchmarks.clicks              a better second page comes first; equal pages keep their places
    python -m benchmarks.clicks DATA         nDCG@10 and MRR@10 of judged sets before and after a simulated month

Visitors look at position p of a list with a probability such as 1/p. They then click with a probability that depends
on the quality of the result: :data:`ATTRACTION` of its judgment. Each night, the service learns from all clicks so far,
and the next day's visitors see the new order. DATA is as for ``benchmarks.relevance``. The run fails if a set gets
worse.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.operations.learning import VisitorClick, find_gains
from app.services.search.learned_order import learned_page
from backends.base import Hit
from backends.query import SearchQuery, SearchSettings
from benchmarks.relevance import EngineAlone, Row, ndcg, read_lines, reciprocal_rank, rows_of

DAYS = 30
VISITORS = 10
"""Visitors of a query per day."""
JUDGED_VISITORS = 5
"""Visitors of a judged query per day."""
ATTRACTION = {0: 0.1, 1: 0.5}
"""Probability of a click on a document that a visitor looks at, by judgment. Higher judgments count as 1."""
LOOKED_AT = 10
STEEPNESSES = (1.0, 0.7, 0.5)

Attraction = Callable[[str, str], float]
"""Function that returns the probability that a visitor who looks at a document clicks it."""


@dataclass(frozen=True, slots=True)
class _Click:
    document_id: str
    visitor: int
    position: int
    day: int


def displayed(ranked: Sequence[str], gains: Mapping[str, float]) -> list[str]:
    """Return the order that visitors see."""
    query = SearchQuery("q", limit=len(ranked), settings=SearchSettings(learned={"q": gains}))
    if not query.learned:
        return list(ranked)
    return [hit.id for hit in learned_page(query, [Hit(document_id, b"{}") for document_id in ranked])]


def simulate(
    rankings: Mapping[str, Sequence[str]],
    attraction: Attraction,
    *,
    movable: Mapping[str, set[str]] | None = None,
    seed: int,
    days: int = DAYS,
    visitors: int = VISITORS,
    steepness: float = 1.0,
) -> dict[str, list[str]]:
    """Return the orders that visitors see after some days.

    Args:
        rankings: Query to documents, as the engine ranks them.
        movable: The documents with all words of the query; ``None`` for all documents.
        visitors: Number of visitors who search each query on each day, once each.
        steepness: Exponent s of the probability 1/p^s that a visitor looks at position p.
    """
    chance = random.Random(seed)
    clicks: dict[str, list[_Click]] = defaultdict(list)
    seen = {query: list(ranked) for query, ranked in rankings.items()}
    number = 0
    for day in range(days):
        for query, ranked in seen.items():
            for _ in range(visitors):
                number += 1
                for position, document_id in enumerate(ranked[:LOOKED_AT], 1):
                    if chance.random() < attraction(query, document_id) * position**-steepness:
                        clicks[query].append(_Click(document_id, number, position, day))
        for query, ranked in rankings.items():
            told = [VisitorClick(c.document_id, c.visitor, c.position, day - c.day) for c in clicks[query]]
            places = {document_id: place for place, document_id in enumerate(ranked, 1)}
            if movable is not None:
                places = {document_id: place for document_id, place in places.items() if document_id in movable[query]}
            seen[query] = displayed(ranked, find_gains(told, places))
    return seen


def swapped_pairs(first: float, second: float, *, lists: int, seed: int, steepness: float = 1.0) -> tuple[float, float]:
    """Return the share of lists whose second page is above the first in the end.

    In one of five lists, visitors click the first two pages with the given probabilities. In the others, the first page
    is better.

    Returns:
        The share among the former lists, and among the latter.
    """
    rankings = {f"{number}": [f"page {place}" for place in range(10)] for number in range(lists)}

    def attraction(query: str, document_id: str) -> float:
        given = {"page 0": first, "page 1": second}
        return (given if int(query) % 5 == 0 else {"page 0": 0.6, "page 1": 0.2}).get(document_id, 0.1)

    seen = simulate(rankings, attraction, seed=seed, steepness=steepness)
    swapped = {query for query, ranked in seen.items() if ranked.index("page 1") < ranked.index("page 0")}
    given = {query for query in rankings if int(query) % 5 == 0}
    return len(swapped & given) / len(given), len(swapped - given) / (lists - len(given))


def _simulate_row(engine: EngineAlone, row: Row, seed: int) -> list[tuple[str, float, float]]:
    def having_all_words(text: str) -> set[str]:
        found = engine.backend.search("set", SearchQuery(text, limit=100, all_words=True))
        return {hit.id for hit in found.hits}

    rankings = {query: engine.search(text) for query, text in row.queries.items()}
    movable = {query: having_all_words(text) for query, text in row.queries.items()}
    seen = simulate(
        rankings,
        lambda query, document_id: ATTRACTION[min(1, max(0, row.judgments[query].get(document_id, 0)))],
        movable=movable,
        seed=seed,
        visitors=JUDGED_VISITORS,
    )
    return [
        (
            name,
            *(sum(measure(ids[query], row.judgments[query]) for query in ids) / len(ids) for ids in (rankings, seen)),
        )
        for name, measure in (("nDCG@10", ndcg), ("MRR@10", reciprocal_rank))
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.data is None:
        print("a visitor clicks what they look at      the second page comes first, if they look at p with")
        print("on the first page  on the second   " + "".join(f"{f'1/p^{each:g}':>12}" for each in STEEPNESSES))
        for first, second in ((0.1, 0.6), (0.2, 0.6), (0.3, 0.6), (0.3, 0.4), (0.3, 0.3), (0.6, 0.3)):
            parts = [swapped_pairs(first, second, lists=300, seed=options.seed, steepness=each) for each in STEEPNESSES]
            print(f"{first:<18.1f} {second:<16.1f}" + "".join(f"{given:12.2f}" for given, _ in parts))
            print(f"{'in the other lists':35}" + "".join(f"{others:12.2f}" for _, others in parts))
        return 0
    failed = False
    engine = EngineAlone()
    for folder in sorted(path.parent for path in options.data.glob("*/qrels.tsv")):
        engine.index(read_lines(folder / "documents.jsonl.gz"))
        for row in rows_of(folder):
            for name, before, after in _simulate_row(engine, row, options.seed):
                failed |= after < before
                print(
                    f"{row.name:28} {name:8} {before:.3f} {after:.3f}{'  worse' if after < before else ''}", flush=True
                )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
