"""Optimized typo lookups return the same words as a full scan."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base import Document
from backends.embedded.backend import TantivyBackend
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.query.typos import corrections, edits, errors_allowed, existing_prefix_length, split_in_two

FIELDS = ("title", "content")


@cache
def dictionary() -> tuple[Snapshot, dict[str, int]]:
    """Return an index of random words, and the higher of each word's title and content frequency."""
    chance = random.Random(11)
    syllables = ["an", "ber", "co", "du", "el", "fa", "gri", "ho", "in", "ter", "na", "tio"]
    words = ["".join(chance.choices(syllables, k=chance.randrange(1, 6))) for _ in range(300)]
    backend = TantivyBackend.from_url("memory://")
    backend.create_index("i")
    counts: dict[str, dict[str, int]] = {name: {} for name in FIELDS}
    for start in (0, 60, 90):
        batch = []
        for number in range(start, {0: 60, 60: 90, 90: 100}[start]):
            fields = {"id": str(number), "url": "/", **{name: " ".join(chance.sample(words, 12)) for name in FIELDS}}
            batch.append(Document(str(number), fields, number))
            for name in FIELDS:
                for word in set(fields[name].split()):
                    counts[name][word] = counts[name].get(word, 0) + 1
        backend.upsert("i", batch, {})
    backend.store.settle()
    every = {word: max(found.get(word, 0) for found in counts.values()) for found in counts.values() for word in found}
    return backend.store.snapshot("i"), every


def plain_distance(left: str, right: str) -> int:
    """Return the optimal string alignment distance, computed by its definition."""
    return plain_distances(left, right)[-1]


def plain_distances(left: str, right: str) -> list[int]:
    """Return the distance to every prefix of ``right``, starting with the empty prefix."""
    rows = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) + 1):
        for j in range(len(right) + 1):
            if not i or not j:
                rows[i][j] = i + j
                continue
            rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (left[i - 1] != right[j - 1]))
            if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
                rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
    return rows[-1]


def some_words(count: int) -> list[str]:
    """Return dictionary words with typos, joined words, and words unlike any in the dictionary."""
    chance = random.Random(13)
    known = sorted(dictionary()[1])
    found = []
    for _ in range(count):
        word = chance.choice(known) + (chance.choice(known) if chance.random() < 0.3 else "")
        for _ in range(chance.randrange(3)):
            word = chance.choice(sorted(edits(word)) or [word])
        found.append(word)
    return [*found, "xyzzyxyzzy", "antern", "internationale", "q" * 40]


def test_existing_prefix_is_the_longest_beginning_of_any_term() -> None:
    snapshot, counts = dictionary()
    for word in some_words(300):
        longest = max(size for size in range(len(word) + 1) if any(t.startswith(word[:size]) for t in counts))
        assert existing_prefix_length(snapshot, FIELDS, word) == max(longest, min(3, len(word)))


@pytest.mark.slow
@pytest.mark.parametrize("as_prefix", [False, True])
def test_corrections_are_the_most_frequent_of_the_nearest_terms(as_prefix: bool) -> None:
    snapshot, counts = dictionary()
    for word in some_words(80):
        found = dict(corrections(snapshot, FIELDS, word, as_prefix)[:8])
        near = {term for term in counts if plain_distance(word, term) == 1}
        if as_prefix and errors_allowed(word):
            near |= {term for term in counts if term != word and min(plain_distances(word, term)) <= 1}
        if not errors_allowed(word):
            assert not found
        elif near:
            assert set(found.values()) == {1}
            assert set(found) <= near if as_prefix or len(near) > 8 else set(found) == near
            assert min(counts[term] for term in found) >= sorted((counts[term] for term in near), reverse=True)[:8][-1]
        else:
            assert set(found.values()) <= {2}
            assert all(plain_distance(word, term) <= 2 for term in found)
            alike = {t for t in counts if t[:3] == word[:3] and plain_distance(word, t) == 2}
            assert bool(found) >= bool(alike and errors_allowed(word) == 2)


@pytest.mark.parametrize(("typed", "meant"), [
    ("acomodate", "accommodate"), ("definatley", "definitely"), ("neccesary", "necessary"),
    ("pyschologcal", "psychological"), ("jnternatoinal", "international"), ("enviromment", "environment"),
    ("ccommodate", "accommodate"), ("ibbernational", "international"), ("vnironment", "environment"),
])  # fmt: skip
def test_two_typos_in_a_long_word_are_corrected_at_any_position(typed: str, meant: str) -> None:
    backend = TantivyBackend.from_url("memory://")
    backend.create_index("i")
    fields = {"id": "1", "url": "/", "title": "", "content": "accommodate definitely necessary psychological"}
    more = {"id": "2", "url": "/", "title": "an international environment", "content": ""}
    backend.upsert("i", [Document("1", fields, 1), Document("2", more, 2)], {})
    for as_prefix in (False, True):
        assert [term for term, _ in corrections(backend.store.snapshot("i"), FIELDS, typed, as_prefix)][:1] == [meant]


@pytest.mark.parametrize("shortest", [1, 2])
def test_a_word_is_split_into_the_most_frequent_pair(shortest: int) -> None:
    snapshot, _ = dictionary()
    for word in some_words(300):
        pairs = []
        for at in range(shortest, len(word) - shortest + 1):
            parts = (word[:at], word[at:])
            count = max(min(snapshot.frequency(field, part) for part in parts) for field in FIELDS)
            if count:
                pairs.append((-count, at, parts))
        assert split_in_two(snapshot, word, FIELDS, shortest) == (min(pairs)[2] if pairs else None)


@pytest.mark.slow
@given(st.text(alphabet="abcxyz", min_size=2, max_size=9))
def test_every_edit_has_distance_one(word: str) -> None:
    assert all(plain_distance(word, other) == 1 for other in edits(word))


def test_short_words_very_long_words_and_words_with_digits_tolerate_no_typos() -> None:
    assert [errors_allowed(word) for word in ("abcd", "abcde", "abcdefgh", "abcdefghi", "abcde1", "x" * 99)] == [
        0, 1, 1, 2, 0, 0,
    ]  # fmt: skip
