"""The on-disk engine fulfills the whole contract."""

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
def test_invalid_engine_url_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match="search engine"):
        create_backend(url)


def test_engine_identity_depends_only_on_its_kind_and_name(tmp_path: Path) -> None:
    first, second = (create_backend(f"tantivy://{tmp_path}/{tail}") for tail in ("a", "b?indexes=5"))
    named = create_backend(f"tantivy://{tmp_path}/a?name=second")
    assert (first.identity, second.identity, named.identity) == ("tantivy", "tantivy", "tantivy:second")
    assert create_backend("memory://").identity == "memory"
    assert (first.name, first.persistent) == ("tantivy", True)
    assert (create_backend("memory://").name, create_backend("memory://").persistent) == ("memory", False)


def test_backend_creates_no_directory_before_it_is_needed(tmp_path: Path) -> None:
    backend = create_backend(f"tantivy://{tmp_path}/indexes")
    assert backend.list_indexes() == []
    assert not (tmp_path / "indexes").exists()
    backend.check()
    assert (tmp_path / "indexes").is_dir()


def test_equally_relevant_documents_are_ordered_by_oldest_change_first(backend: SearchBackend) -> None:
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
