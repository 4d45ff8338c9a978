"""Documents of a file, and queries made of their words: always the same ones."""

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
    """One search; ``refined`` adds a filter, a sort and facets."""

    kind: str
    text: str
    refined: bool = False
    hits: int = HITS


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The documents of a file of JSON lines that ``benchmarks/pages.py`` made."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def make_queries(documents: list[dict[str, Any]], count: int) -> list[Query]:
    """So many queries of each kind, from words of the documents themselves, neither rare nor everywhere."""
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
    """Searches for some of the most frequent words, with facets, and with five times as many hits as others have."""
    frequency = _frequencies(documents)
    return [Query("long", word, refined=True, hits=5 * HITS) for word, _ in frequency.most_common(count)]


def misspell(word: str, chance: random.Random) -> str:
    """A word with one letter replaced, neither the first two nor the last."""
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
    """Words that one document has near its beginning."""
    known = set(usual)
    found: list[str] = []
    while len(found) < count:
        near = sorted(set(WORD.findall(chance.choice(documents)["content"][:2000].lower())) & known)
        if len(near) >= words:
            found.append(" ".join(chance.sample(near, words)))
    return found
