"""Facet values are counted correctly and in order, with every counting method."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import tantivy
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.base import Document
from backends.embedded.backend import TantivyBackend
from backends.embedded.index.documents import MAX_FACET_VALUE_CHARS, sort_text
from backends.embedded.index.schema import UPDATED_AT
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.results import facets
from backends.embedded.results.facets import count_facets
from backends.query import FieldKind
from backends.values import number_text

ANY = frozenset(FieldKind)
PARTS = {"one segment": (0, 400), "several segments": (0, 230, 300, 380, 400)}
FRACTIONS = ("", ".5", ".55", ".555", ".1", ".15", ".9", ".95")
EXTRA = tuple(f"extra{number}" for number in range(facets.MANY_FIELDS))


def custom_fields(number: int, chance: random.Random) -> dict[str, Any]:
    second = f"2024-01-01T00:00:{chance.randrange(60):02}"
    fields = {
        "unique": f"u{chance.getrandbits(60):x}",
        "pairs": f"p{number % 397}",
        "few": f"v{chance.randrange(7)}",
        "skewed": int(chance.random() ** 3 * 200),
        "tags": [f"t{chance.randrange(150)}" for _ in range(chance.randrange(5))],
        "number": chance.choice([5, 5.0, 0.5, -1, 1e16, True]),
        "second": f"{second}Z",
        "fraction": f"{second[:18]}{chance.choice(['1', '1.5', '1.25', '2'])}Z",
        "moment": f"2024-01-01T00:00:{number // 8:02}{FRACTIONS[number % 8]}Z",
        "zone": f"{second}{chance.choice(['Z', '+00:00'])}",
        "day": f"20{chance.randrange(10, 25)}-{chance.randrange(1, 13):02}-01",
        "long": "x" * MAX_FACET_VALUE_CHARS + str(number),
        "text": chance.choice(["", "a", "A", "é", "true", "5", "日本"]),
        "every": [number, str(number), number % 2 == 0],
    }
    if number % 40 == 0:
        fields["rare"] = f"r{number}"
    return fields


KINDS = dict.fromkeys((*custom_fields(0, random.Random(0)), *EXTRA), ANY)


@cache
def library(parts: str) -> tuple[Snapshot, list[dict[str, Any]]]:
    """Return an index and its documents in the order of their last change."""
    chance = random.Random(5)
    documents = []
    for number in range(400):
        fields = custom_fields(number, chance)
        # Some IDs differ only in case or spaces.
        id = f"{chance.choice(['', ' ', 'X', 'x'])}{number // 2}{chance.choice('aA')}{'' if number % 2 else '_'}"
        documents.append({"id": id, "title": "t", "content": "c", "url": id, **fields, "extra0": fields["few"]})
    backend = TantivyBackend.from_url("memory://")
    backend.create_index("i")
    edges = PARTS[parts]
    for start, end in pairwise(edges):
        batch = documents[start:end]
        backend.upsert("i", [Document(fields["id"], fields, start + at) for at, fields in enumerate(batch)], KINDS)
    backend.store.settle()
    snapshot = backend.store.snapshot("i")
    assert snapshot.searcher.num_segments == len(edges) - 1
    return snapshot, documents


def counted(documents: list[dict[str, Any]], name: str) -> Mapping[str, int]:
    """Count facet values with the reference model."""
    counts: Counter[str] = Counter()
    for document in documents:
        value = document.get(name, [])
        texts = set()
        for item in value if isinstance(value, list) else [value]:
            text = str(item).lower() if isinstance(item, bool) else item if isinstance(item, str) else number_text(item)
            texts.add(text[:MAX_FACET_VALUE_CHARS].replace("+00:00", "Z"))
        counts.update(texts)
    return counts


def first(counts: Mapping[str, int], most: int) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]


@pytest.mark.parametrize("parts", PARTS)
@settings(max_examples=80)
@given(
    st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True),
    st.booleans(), st.integers(0, 399), st.integers(1, 400), st.sampled_from([1, 2, 5, 20, 100, 1000]),
)  # fmt: skip
def test_facet_counts_agree_with_a_reference_model(
    parts: str, names: list[str], many: bool, start: int, size: int, most: int
) -> None:
    snapshot, documents = library(parts)
    end = min(399, start + size - 1)
    query = tantivy.Query.range_query(snapshot.schema, UPDATED_AT, tantivy.FieldType.Integer, start, end)
    names = list(dict.fromkeys([*names, *EXTRA])) if many else names

    counts, _ = count_facets(snapshot, query, names, KINDS, most)

    assert list(counts) == names
    for name in names:
        assert list(counts[name].items()) == first(counted(documents[start : end + 1], name), most), name


@pytest.mark.parametrize("parts", PARTS)
def test_cached_counts_of_all_documents_do_not_change_facet_counts(parts: str) -> None:
    snapshot, documents = library(parts)
    names = [name for name in KINDS if name not in EXTRA]
    for start, end in ((0, 399), (100, 399), (0, 99), (0, 399)):
        query = tantivy.Query.range_query(snapshot.schema, UPDATED_AT, tantivy.FieldType.Integer, start, end)
        counts, _ = count_facets(snapshot, query, names, KINDS, 100)
        for name in names:
            assert list(counts[name].items()) == first(counted(documents[start : end + 1], name), 100), name


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("most", [1, 3, 10, 100, 1000])
def test_id_facet_lists_the_first_ids_in_order(parts: str, most: int) -> None:
    snapshot, documents = library(parts)
    for start, end in ((0, 399), (17, 60), (390, 399)):
        query = tantivy.Query.range_query(snapshot.schema, UPDATED_AT, tantivy.FieldType.Integer, start, end)
        counts, _ = count_facets(snapshot, query, ["id"], KINDS, most)
        shown = list(counts["id"])
        sort_texts = sorted(sort_text(document["id"]) for document in documents[start : end + 1])
        assert shown == sorted(shown)
        assert set(shown) <= {document["id"] for document in documents[start : end + 1]}
        assert sorted(map(sort_text, shown)) == sort_texts[:most]
        assert set(counts["id"].values()) == {1}
