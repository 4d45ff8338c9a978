"""Indexes: creation, listing, deletion, and isolation."""

from __future__ import annotations

import re
import uuid

import pytest

from backends.base import Document, SearchBackend
from backends.errors import IndexNotFound
from backends.filters import OneOf
from backends.query import MATCH_ALL, SearchQuery
from tests.backends.contract.case import Case, page


class IndexContract:
    def test_a_new_index_is_listed_and_empty(self, case: Case) -> None:
        assert case.index in case.backend.list_indexes()
        assert case.backend.count(case.index) == 0
        assert list(case.backend.document_ids(case.index)) == []
        assert case.search(MATCH_ALL).total == 0
        assert case.search("word").hits == ()

    def test_creating_an_existing_index_keeps_its_documents(self, case: Case) -> None:
        case.add(page("a"))
        case.backend.create_index(case.index)
        assert case.backend.count(case.index) == 1

    def test_deleting_an_index_removes_its_documents(self, case: Case) -> None:
        case.add(page("a", "word"))
        case.backend.delete_index(case.index)
        assert case.index not in case.backend.list_indexes()
        with pytest.raises(IndexNotFound):
            case.search("word")
        case.backend.create_index(case.index)
        assert case.backend.count(case.index) == 0

    def test_deleting_a_missing_index_does_nothing(self, backend: SearchBackend) -> None:
        backend.delete_index(f"t_{uuid.uuid4().hex}")

    def test_every_method_on_an_unknown_index_raises_index_not_found(self, backend: SearchBackend) -> None:
        name = f"t_{uuid.uuid4().hex}"
        for call in (
            lambda: backend.upsert(name, [Document("a", page("a"), 1)], {}),
            lambda: backend.delete(name, ["a"]),
            lambda: backend.search(name, SearchQuery("word")),
            lambda: backend.find_titles(name, "word", 8),
            lambda: backend.find_related(name, OneOf("id", ("a",)), SearchQuery("*")),
            lambda: backend.count(name),
            lambda: list(backend.document_ids(name)),
        ):
            with pytest.raises(IndexNotFound) as caught:
                call()
            assert caught.value.index == name
        assert name not in backend.list_indexes()

    def test_indexes_are_isolated_from_each_other(self, case: Case, backend: SearchBackend) -> None:
        other = Case(backend, f"t_{uuid.uuid4().hex}")
        backend.create_index(other.index)
        try:
            case.add(page("a", "shared word"))
            other.add(page("a", "shared other"), page("b", "shared word"))
            assert case.ids("shared") == ["a"]
            assert case.ids("other") == []
            case.backend.delete(case.index, ["b"])
            assert sorted(other.ids("shared")) == ["a", "b"]
        finally:
            backend.delete_index(other.index)

    def test_maintenance_does_not_change_search_results(self, case: Case) -> None:
        case.backend.run_maintenance()
        case.add(page("a", "word"), page("b", "word"))
        case.backend.delete(case.index, ["b"])
        case.backend.run_maintenance()
        assert case.ids("word") == ["a"]

    def test_a_closed_backend_can_be_used_again(self, case: Case) -> None:
        case.add(page("a", "word"))
        case.backend.close()
        assert case.ids("word") == ["a"]

    def test_backend_reports_its_version(self, backend: SearchBackend) -> None:
        assert re.fullmatch(r"v?\d+\.\d+.*", backend.version())

    def test_free_share_of_disk_and_memory_is_a_fraction_if_available(self, backend: SearchBackend) -> None:
        share = backend.free_share()
        assert share is None or 0 < share < 1

    def test_backend_reports_the_size_of_its_indexes_if_available(self, case: Case) -> None:
        case.add(page("a", "word"))
        size = case.backend.index_bytes()
        assert size is None or size > 0

    def test_check_passes_when_the_engine_is_available(self, backend: SearchBackend) -> None:
        backend.check()
