"""The engine satisfies every row of the ranking specification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.ranking.documents import SHELVES
from tests.ranking.engine import Shelf
from tests.ranking.rows import ROWS, Row


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_query_returns_the_hits_of_its_row(shelves: Mapping[str, Shelf], row: Row) -> None:
    found = shelves[row.shelf].search(row.search)
    assert row.holds(found), f"{row.shows}\nwanted: {row.ids}\nfound:  {' '.join(found.ids)} ({found.total} in all)"


def test_rows_name_documents_of_their_shelf() -> None:
    for row in ROWS:
        known = {each["id"] for each in SHELVES[row.shelf]}
        assert {*row.ids.split()} - {"…"} <= known, row.query


def test_document_ids_are_unique_on_each_shelf() -> None:
    for shelf, documents in SHELVES.items():
        twice = [id for id, count in Counter(each["id"] for each in documents).items() if count > 1]
        assert twice == [], shelf
