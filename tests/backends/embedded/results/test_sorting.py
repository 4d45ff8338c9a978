"""Sorted pages agree with the complete sort order, with every sorting method."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
import tantivy
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.base import Document
from backends.embedded.backend import TantivyBackend
from backends.embedded.index.documents import sort_text
from backends.embedded.index.schema import ID
from backends.embedded.index.snapshots import Snapshot
from backends.embedded.results import sorting
from backends.embedded.results.sorting import Sorter
from backends.query import FieldKind, SortKey
from backends.values import parse_instant

SCALAR = frozenset({FieldKind.STRING, FieldKind.NUMBER, FieldKind.BOOLEAN})
KINDS = dict.fromkeys(("few", "mixed", "rare", "single", "same"), SCALAR)
FIELDS = ("id", "title", "date", "author", *KINDS)


@cache
def shelf() -> tuple[Snapshot, dict[str, dict[str, Any]]]:
    """Return an index of several segments with deleted documents, and its documents by ID."""
    chance = random.Random(3)
    documents: dict[str, dict[str, Any]] = {}
    for number in range(260):
        id = f"{chance.choice('aAbB')}{number}"
        fields: dict[str, Any] = {
            "id": id, "title": f"Page {chance.randrange(40)}", "content": "word " * chance.randrange(1, 9), "url": id,
            "few": f"v{chance.randrange(3)}", "single": f"s{chance.random()}", "same": "x",
        }  # fmt: skip
        if chance.random() < 0.7:
            fields["date"] = f"20{chance.randrange(10, 14)}-01-0{chance.randrange(1, 4)}"
        if chance.random() < 0.8:
            fields["mixed"] = chance.choice([1, 2.5, -3, True, "Text", "text", "Äpfel", "apfel", ""])
        if chance.random() < 0.1:
            fields["rare"] = chance.randrange(4)
        if chance.random() < 0.9:
            fields["author"] = chance.choice(["Ann", "ann", "Bob", "Cid"])
        documents[id] = fields
    backend = TantivyBackend.from_url("memory://")
    backend.create_index("i")
    everyone = [Document(id, fields, number) for number, (id, fields) in enumerate(documents.items())]
    for start, end in ((0, 150), (150, 200), (200, 255), (255, 260)):
        backend.upsert("i", everyone[start:end], KINDS)
    gone = list(documents)[::9]
    backend.delete("i", gone)
    for id in gone:
        del documents[id]
    backend.store.settle()
    snapshot = backend.store.snapshot("i")
    assert snapshot.searcher.num_segments > 2
    return snapshot, documents


def by_relevance(snapshot: Snapshot) -> sorting.Page:
    def page(query: tantivy.Query, offset: int, limit: int) -> list[tantivy.DocAddress]:
        return [hit[1] for hit in snapshot.searcher.search(query, limit=limit, offset=offset).hits]

    return page


def ids(snapshot: Snapshot, addresses: list[tantivy.DocAddress]) -> list[str]:
    return [str(snapshot.searcher.doc(address).get_first(ID)) for address in addresses]


def in_order(ranked: list[str], documents: dict[str, dict[str, Any]], keys: list[SortKey]) -> list[str]:
    """Sort with the reference model: stable sorts, starting with the last key."""
    for key in reversed(keys):
        values = {
            id: parse_instant(document["date"]) if key.field == "date" else sort_text(document[key.field])
            for id, document in documents.items()
            if key.field in document
        }
        with_value = sorted((id for id in ranked if id in values), key=values.__getitem__, reverse=key.descending)
        ranked = with_value + [id for id in ranked if id not in values]
    return ranked


sort_keys = st.lists(
    st.builds(SortKey, st.sampled_from(FIELDS), st.booleans()), min_size=1, max_size=4, unique_by=lambda key: key.field
)


bounds = pytest.mark.parametrize(("small", "far"), [(sorting.SMALL_GROUP, sorting.FAR_OFFSET), (4, 10), (0, 0)])


@bounds
@pytest.mark.parametrize("offset", [0, 3, 90, 200, 225])
@pytest.mark.parametrize("keys", [
    [SortKey("few", False), SortKey("date", True)], [SortKey("date", False), SortKey("title", True)],
    [SortKey("rare", True), SortKey("mixed", False)],
])  # fmt: skip
def test_page_may_start_and_end_within_equal_values(small: int, far: int, keys: list[SortKey], offset: int) -> None:
    assert_right_page(small, far, keys, offset, 20, "word")


@pytest.mark.slow
@bounds
@settings(max_examples=150)
@given(sort_keys, st.integers(0, 240), st.integers(1, 60), st.sampled_from(["word", "page"]))
def test_sorted_page_agrees_with_a_reference_model(
    small: int, far: int, keys: list[SortKey], offset: int, limit: int, word: str
) -> None:
    assert_right_page(small, far, keys, offset, limit, word)


def assert_right_page(small: int, far: int, keys: list[SortKey], offset: int, limit: int, word: str) -> None:
    snapshot, documents = shelf()
    query = tantivy.Query.boolean_query([
        (tantivy.Occur.Should, tantivy.Query.term_query(snapshot.schema, "content", word)),
        (tantivy.Occur.Should, tantivy.Query.term_query(snapshot.schema, "title", "7")),
    ])  # fmt: skip
    last = by_relevance(snapshot)
    ranked = ids(snapshot, last(query, 0, snapshot.total))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "SMALL_GROUP", small)
        patch.setattr(sorting, "FAR_OFFSET", far)
        found = ids(snapshot, Sorter(snapshot, keys, last).page(query, offset, limit))

    assert found == in_order(ranked, documents, keys)[offset : offset + limit]
