"""Documents of a file, and queries from their words, the same in every run."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HITS = 20
WORD = re.compile(r"[a-z]{4,14}")


@dataclass(frozen=True)
class Query:
    """A search; ``refined`` adds a filter, a sort order, and facets."""

    kind: str
    text: str
    refined: bool = False
    hits: int = HITS


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Read the documents of a file that ``benchmarks/pages.py`` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def make_queries(documents: list[dict[str, Any]], count: int) -> list[Query]:
    """Return ``count`` queries of each kind, from words of the documents that are neither rare nor in most of them."""
    chance = random.Random(7)
    frequency = _frequencies(documents)
    usual = [word for word, number in sorted(frequency.items()) if 10 <= number <= len(documents) // 10]
    long = [word for word in usual if len(word) >= 6]
    pairs = _together(documents, usual, 2, count, chance)
    queries = [Query("one word", chance.choice(usual)) for _ in range(count)]
    queries += [Query("two words", pair) for pair in pairs]
    queries += [Query("prefix", chance.choice(long)[:4]) for _ in range(count)]
    queries += [Query("typing error", misspell(chance.choice(long), chance)) for _ in range(count)]
    queries += [Query("filter, sort, facets", chance.choice(usual), refined=True) for _ in range(count)]
    queries += [Query("three words", words) for words in _together(documents, usual, 3, count, chance)]
    return queries


def make_long_queries(documents: list[dict[str, Any]], count: int) -> list[Query]:
    """Return searches for some of the most frequent words, with facets and five times the usual number of hits."""
    frequency = _frequencies(documents)
    return [Query("long", word, refined=True, hits=5 * HITS) for word, _ in frequency.most_common(count)]


def misspell(word: str, chance: random.Random) -> str:
    """Replace one letter of a word, but neither the first two nor the last."""
    place = chance.randrange(2, len(word) - 1)
    return word[:place] + chance.choice("aeiourstln".replace(word[place], "")) + word[place + 1 :]


def _frequencies(documents: list[dict[str, Any]]) -> Counter[str]:
    frequency: Counter[str] = Counter()
    for document in documents:
        frequency.update(set(WORD.findall(document["content"][:4000].lower())))
    return frequency


def _together(
    documents: list[dict[str, Any]], usual: list[str], words: int, count: int, chance: random.Random
) -> list[str]:
    """Return words near the beginning of a document."""
    known = set(usual)
    found: list[str] = []
    while len(found) < count:
        near = sorted(set(WORD.findall(chance.choice(documents)["content"][:2000].lower())) & known)
        if len(near) >= words:
            found.append(" ".join(chance.sample(near, words)))
    return found
