"""The engine on disk keeps every promise of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.base import Document, SearchBackend
from backends.query import SearchQuery
from backends.registry import create_backend
from tests.backends.contract import BackendContract, MatchingContract, case_fixture  # noqa: F401


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[SearchBackend]:
    backend = create_backend(f"tantivy://{tmp_path}/indexes?indexes=50")
    yield backend
    backend.close()


class TestTantivy(BackendContract, MatchingContract):
    pass


@pytest.mark.parametrize("url", [
    "tantivy://", "tantivy:///", "tantivy://host/path", "tantivy:///p?indexes=0", "tantivy:///p?indexes=x",
    "tantivy:///p?timeout=-1", "tantivy:///p?unknown=1",
    "tantivy:///p?name=A", "tantivy:///p?name=a%20b", "memory://host", "memory:///path", "memory://?indexes=3",
])  # fmt: skip
def test_an_address_that_is_not_of_the_form_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="search engine"):
        create_backend(url)


def test_an_engine_is_known_by_its_kind_and_name_wherever_it_lies(tmp_path: Path) -> None:
    first, second = (create_backend(f"tantivy://{tmp_path}/{tail}") for tail in ("a", "b?indexes=5"))
    named = create_backend(f"tantivy://{tmp_path}/a?name=second")
    assert (first.identity, second.identity, named.identity) == ("tantivy", "tantivy", "tantivy:second")
    assert create_backend("memory://").identity == "memory"
    assert (first.name, first.persistent) == ("tantivy", True)
    assert (create_backend("memory://").name, create_backend("memory://").persistent) == ("memory", False)


def test_nothing_is_opened_or_made_before_the_first_use(tmp_path: Path) -> None:
    backend = create_backend(f"tantivy://{tmp_path}/indexes")
    assert backend.list_indexes() == []
    assert not (tmp_path / "indexes").exists()
    backend.check()
    assert (tmp_path / "indexes").is_dir()


def test_equal_documents_come_longest_unchanged_first_however_they_were_written(backend: SearchBackend) -> None:
    documents = [
        Document(str(at), {"id": str(at), "title": "Boats", "content": "Leave at ten.", "url": "/"}, at)
        for at in range(1, 61)
    ]
    for index, size in (("whole", 60), ("parts", 7)):
        backend.create_index(index)
        for start in reversed(range(0, 60, size)):
            backend.upsert(index, documents[start : start + size], {})

    def ids(index: str, **page: int) -> list[str]:
        return [hit.id for hit in backend.search(index, SearchQuery("boats", **page)).hits]

    in_order = [str(at) for at in range(1, 61)]
    assert ids("whole", limit=60) == ids("parts", limit=60) == in_order
    assert ids("whole", limit=5, offset=20) == ids("parts", limit=5, offset=20) == in_order[20:25]
