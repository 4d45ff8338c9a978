"""CPU time that search rules and ranks add to a search of the embedded engine.

python -m benchmarks.rules
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, product
from typing import Any

from app.services.search_rules import RuleSet
from backends.base import Document
from backends.filters import parse_filter
from backends.query import Boost, FieldKind, Highlight, SearchQuery, SearchSettings
from backends.registry import create_backend

DOCUMENTS, QUERIES, ROUNDS, RULES = 5000, 400, 5, 200
KIND_COUNT = 100
SYLLABLES = ["ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve", "wi", "zo"]
WORDS = ["".join(parts) for parts in islice(product(SYLLABLES, repeat=4), 0, None, 13)][:3000]
KINDS = {"kind": frozenset({FieldKind.STRING})}


def cpu_microseconds(work: Callable[[SearchQuery], object], queries: list[SearchQuery]) -> float:
    """Return the CPU time of one query, in the best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for query in queries:
            work(query)
        best = min(best, time.process_time() - start)
    return best / len(queries) * 1e6


def rules(match: str, *, hold: bool = False) -> RuleSet:
    """Return the maximum number of rules of a site."""

    def when(number: int) -> dict[str, Any]:
        return {"match": "is"} if hold else {"query": f"boat number{number} hire", "match": match}

    return RuleSet([
        {"id": f"{number}", "when": when(number), "do": {"pin": [f"{number}"]}, "enabled": True}
        for number in range(RULES)
    ])  # fmt: skip


def ranked(*boosts: Boost) -> SearchSettings:
    return SearchSettings(boosts=boosts)


def main() -> None:
    """Print a table."""
    draw = random.Random(1)
    backend = create_backend("memory://")
    backend.create_index("pages")
    documents = [
        {
            "id": f"{at}",
            "title": " ".join(draw.choices(WORDS, k=5)),
            "content": " ".join(draw.choices(WORDS, k=200)),
            "url": f"/part{at % 10}/{at}",
            "kind": f"k{at % KIND_COUNT}",
        }
        for at in range(DOCUMENTS)
    ]
    backend.upsert("pages", [Document(each["id"], each, at) for at, each in enumerate(documents, 1)], KINDS)
    texts = [" ".join(draw.choices(WORDS, k=2)) for _ in range(QUERIES)]
    queries = [SearchQuery(text, kinds=KINDS, highlight=Highlight()) for text in texts]
    plain = cpu_microseconds(lambda query: backend.search("pages", query), queries)
    print(f"a search: {plain:.0f} µs")
    sets = {f"{RULES} rules that do not hold, {match}": rules(match) for match in ("is", "starts", "contains", "words")}
    for name, chosen in (sets | {f"{RULES} rules that hold": rules("is", hold=True)}).items():
        chosen.apply(queries[0], lambda: datetime.now(UTC))
        added = cpu_microseconds(lambda query, chosen=chosen: chosen.apply(query, lambda: datetime.now(UTC)), queries)  # type: ignore[misc]
        print(f"{name}: + {added:.1f} µs, {added / plain:.1%}")
    by_filter = [Boost(1 + number % 3, parse_filter(f"kind = k{number}")) for number in range(50)]
    synonyms = tuple(tuple(draw.sample(WORDS, 2)) for _ in range(10_000))
    for name, settings, applied in (
        ("one boost by a filter", ranked(by_filter[0]), RuleSet([])),
        ("one boost by a folder", ranked(Boost(1, path="/part1/*")), RuleSet([])),
        ("one boost by another pattern", ranked(Boost(1, path="*/1*")), RuleSet([])),
        ("50 boosts by filters", ranked(*by_filter), RuleSet([])),
        ("10,000 synonyms", SearchSettings(synonyms=synonyms), RuleSet([])),
        ("the 50 boosts, the synonyms, and the rules that hold", replace(ranked(*by_filter), synonyms=synonyms),
         rules("is", hold=True)),
    ):  # fmt: skip
        with_settings = [
            applied.apply(replace(query, settings=settings), lambda: datetime.now(UTC)) for query in queries
        ]
        total = cpu_microseconds(lambda query: backend.search("pages", query), with_settings)
        print(f"{name}: + {total - plain:.0f} µs, {total / plain - 1:.0%}")
    backend.close()


if __name__ == "__main__":
    main()
