"""Writes: durable and searchable when they return; documents are replaced and deleted by ID."""

from __future__ import annotations

import pytest

from backends.query import MATCH_ALL
from tests.backends.contract.case import SHOP, Case, page


class WriteContract:
    def test_documents_are_searchable_when_upsert_returns(self, case: Case) -> None:
        for number in range(5):
            case.add(page(str(number), f"fresh{number} bread"))
            assert case.ids(f"fresh{number}")[:1] == [str(number)]
            assert case.backend.count(case.index) == number + 1

    def test_upsert_replaces_the_whole_document(self, case: Case) -> None:
        case.add(page("a", "alpha", "beta", author="Ann", color="red"), page("b", "gamma"))
        case.add(page("a", "delta"))
        assert case.ids("alpha") == case.ids("beta") == []
        hit = case.search("delta").hits[0]
        assert "author" not in hit.document
        assert "color" not in hit.document
        assert case.ids(MATCH_ALL, "color = red") == []
        assert case.backend.count(case.index) == 2

    def test_repeating_an_upsert_changes_nothing(self, case: Case) -> None:
        case.add(*SHOP)
        case.add(*SHOP)
        assert case.backend.count(case.index) == len(SHOP)
        assert case.search(MATCH_ALL).total == len(SHOP)

    def test_empty_batch_has_no_effect(self, case: Case) -> None:
        case.backend.upsert(case.index, [], {})
        case.backend.delete(case.index, [])
        assert case.backend.count(case.index) == 0

    @pytest.mark.parametrize("id", [
        "1", "a/b", "../a", "a b", " a ", "A", "ä", "日本語", "%2F", "a?b#c&d=e", '"quoted"', "it's", "a,b`c", "*",
        "-a", "x" * 512, "日" * 512, "\\", "a\nb", "'; DROP", "[a]", "😀", "a:b", "null", "\u00e9", "e\u0301",
    ])  # fmt: skip
    def test_any_id_can_be_written_found_replaced_and_deleted(self, case: Case, id: str) -> None:
        case.add(page(id, "needle"), page("other", "needle"))
        case.add(page(id, "needle two"))
        assert sorted(case.ids("needle")) == sorted([id, "other"])
        assert case.search("two").hits[0].document["id"] == id
        assert sorted(case.backend.document_ids(case.index)) == sorted([id, "other"])
        case.backend.delete(case.index, [id])
        assert list(case.backend.document_ids(case.index)) == ["other"]

    def test_ids_are_compared_exactly(self, case: Case) -> None:
        case.add(page("A", "one"), page("a", "two"), page("ａ", "three"), page(" a", "four"))
        assert case.backend.count(case.index) == 4
        case.backend.delete(case.index, ["a"])
        assert sorted(case.backend.document_ids(case.index)) == sorted(["A", "ａ", " a"])

    def test_deleted_documents_disappear_immediately_and_unknown_ids_are_ignored(self, case: Case) -> None:
        case.add(*SHOP)
        case.backend.delete(case.index, ["lamp", "nobody", "sofa", "lamp"])
        assert case.backend.count(case.index) == 3
        assert sorted(case.backend.document_ids(case.index)) == ["chair", "shelf", "stool"]
        assert case.search("reading").total == 3

    def test_large_batch_is_written_and_deleted_completely(self, case: Case) -> None:
        case.add(*(page(f"p{number}", f"page {number}", "common text") for number in range(1000)))
        assert case.backend.count(case.index) == 1000
        assert case.search("common").total == 1000
        assert sorted(case.backend.document_ids(case.index)) == sorted(f"p{number}" for number in range(1000))
        case.backend.delete(case.index, [f"p{number}" for number in range(0, 1000, 2)])
        assert case.backend.count(case.index) == 500
