"""The on-disk engine fulfills the whole contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.base import Document, SearchBackend
from backends.query import Highlight, SearchQuery
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


def test_rare_words_decide_which_passage_is_quoted(backend: SearchBackend) -> None:
    backend.create_index("site_1")
    texts = {"first": "A python program is a long text. One may halt it."}
    texts |= {f"other-{number}": "A python program is a long text, and it is here." for number in range(20)}
    documents = [
        Document(id, {"id": id, "title": "Page", "content": text, "url": "/"}, at)
        for at, (id, text) in enumerate(texts.items(), 1)
    ]
    backend.upsert("site_1", documents, {})

    def share(text: str) -> float:
        hits = backend.search("site_1", SearchQuery(text, answers=True)).hits
        passage = hits[0].find_passage() if hits[0].find_passage is not None else None
        assert hits[0].id == "first"
        assert passage is not None
        return passage.share

    assert share("how to halt a long python program") == 1
    assert share("how to halt a zebra in the python program") < 0.7
    hit = next(
        hit
        for hit in backend.search("site_1", SearchQuery("how to halt the python program", answers=True)).hits
        if hit.id == "other-1"
    )
    assert hit.find_passage is not None
    passage = hit.find_passage()
    assert passage is not None
    assert passage.words == 2
    assert passage.share < 0.1


@pytest.mark.parametrize(("written", "typed"), [
    ("\ufedb\ufe98\ufe8e\ufe8f", "كتاب"), ("كتاب", "\ufedb\ufe98\ufe8e\ufe8f"), ("\ufeb3\ufefc\ufee1", "سلام"),
    ("\ufb2a\ufb1d", "שי"), ("\u216b", "xii"), ("\u2153", "1/3"), ("\xb5m", "μm"), ("\ufb01nance", "finance"),
])  # fmt: skip
def test_presentation_forms_are_the_letters_that_they_stand_for(
    backend: SearchBackend, written: str, typed: str
) -> None:
    backend.create_index("site_1")
    fields = {"id": "a", "title": "Page", "content": f"Before {written} after", "url": "/"}
    backend.upsert("site_1", [Document("a", fields, 1)], {})

    (hit,) = backend.search("site_1", SearchQuery(typed, highlight=Highlight())).hits

    assert hit.formatted is not None
    assert hit.formatted["content"] == f"Before <em>{written}</em> after"
