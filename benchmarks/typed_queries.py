"""Texts that visitors type, letter by letter, for :mod:`benchmarks.typed_load`.

Queries follow Zipf's law. With the fitted exponent, the first 14 queries are 11 percent of all searches
(measured: 10.5), the first 500 are 38 (50), and the first 7,877 are 80 (80).
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.queries import make_queries

SITE_QUERIES = {
    1: 7218, 2: 5859, 3: 5184, 4: 4320, 5: 3745, 6: 3690, 7: 3584, 8: 3575, 9: 3229, 10: 3204, 14: 2464, 42: 1351,
    98: 650, 221: 295, 500: 124, 7877: 7,
}  # fmt: skip
"""Rank of a query to its number of searches on the site of Michigan State University.

Published by L. Rosenfeld in "Search Analytics for Fun and Profit", An Event Apart, Chicago, 2007.
"""

DIFFERENT_QUERIES = 18_500
"""Number of different queries, such that the first 7,877 are 80 percent of all searches, as measured."""

UNIQUE_TEXTS = 60_000
"""Number of texts for a load in which nothing repeats."""

SENT = 0.5
"""Share of letters that a search follows. A search always follows the last letter."""


def zipf_exponent(counts: Mapping[int, int]) -> float:
    """Return the exponent of Zipf's law for counts by rank: the slope of their logarithms, by least squares."""
    ranks, numbers = [math.log(rank) for rank in counts], [math.log(count) for count in counts.values()]
    return -statistics.linear_regression(ranks, numbers).slope


@dataclass(frozen=True)
class Typed:
    """A text that a visitor of a site has typed so far. Each query has a visitor of its own."""

    site: int
    visitor: int
    text: str


def make_texts(documents: list[dict[str, Any]], count: int) -> list[str]:
    """Return different queries of one to three words of the documents, in a fixed pseudo-random order."""
    kinds = ("one word", "two words", "three words")
    texts = sorted({query.text for query in make_queries(documents, count * 2 // 3) if query.kind in kinds})
    random.Random(5).shuffle(texts)
    return texts[:count]


def make_unique(texts: Sequence[str]) -> Iterator[Typed]:
    """Yield each text once."""
    return (Typed(0, visitor, text) for visitor, text in enumerate(texts))


def make_typed(texts: Sequence[str], sites: int, visitors: int) -> Iterator[Typed]:
    """Yield the texts that visitors send in turn, without end. Each site ranks the queries in its own order.

    Args:
        visitors: Number of visitors who type at the same time.
    """
    chance = random.Random(11)
    exponent = zipf_exponent(SITE_QUERIES)
    weights = list(itertools.accumulate(rank**-exponent for rank in range(1, len(texts) + 1)))
    rankings = [chance.sample(texts, len(texts)) for _ in range(min(sites, 20))]
    numbers = itertools.count()

    def type_queries() -> Iterator[Typed]:
        for visitor in numbers:
            site = chance.randrange(sites)
            (text,) = chance.choices(rankings[site % len(rankings)], cum_weights=weights)
            for sent in beginnings(text, chance):
                yield Typed(site, visitor, sent)

    typing = [type_queries() for _ in range(visitors)]
    while True:
        yield from map(next, typing)


def beginnings(text: str, chance: random.Random) -> Iterator[str]:
    """Yield the prefixes of a text that the search box sends while a visitor types it, and the text itself."""
    last = ""
    for end in range(1, len(text) + 1):
        sent = text[:end].strip()
        if sent != last and (end == len(text) or chance.random() < SENT):
            last = sent
            yield sent


def repeated(sent: Sequence[Typed], per_write: int, workers: int, limit: float) -> float:
    """Return the hit rate of a cache of results, as a share of all searches.

    Args:
        per_write: Number of searches between two writes. The sites are written in turn.
        workers: Number of workers, each with its own cache. A random worker gets each search.
        limit: Maximum number of results in a cache. The least recently used are evicted.
    """
    chance = random.Random(13)
    caches: list[OrderedDict[tuple[int, int, str], None]] = [OrderedDict() for _ in range(workers)]
    sites = 1 + max(each.site for each in sent)
    commits = [0] * sites
    hits = 0
    for at, each in enumerate(sent, 1):
        cache = chance.choice(caches)
        key = each.site, commits[each.site], each.text
        hits += key in cache
        cache[key] = None
        cache.move_to_end(key)
        if len(cache) > limit:
            cache.popitem(last=False)
        if at % per_write == 0:
            commits[at // per_write % sites] += 1
    return hits / len(sent)
