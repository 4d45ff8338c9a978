"""Tests specific to Typesense, for the fake and the real server."""

from __future__ import annotations

import base64
import contextlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
import requests

from backends.base import Document, SearchBackend
from backends.errors import BackendRejected, ResponseTooLarge
from backends.filters import parse_filter
from backends.query import MATCH_ALL, FieldKind, Highlight, SearchQuery, SearchSettings
from tests.backends.contract import SHOP, Case, page
from tests.backends.native_filters import NativeFilters
from tests.patience import PATIENCE_SECONDS


def direct(backend: SearchBackend, token: str, collection: str, q: str = "*") -> requests.Response:
    """Send a search as a client does, with its own key."""
    node = backend._transport.url.nodes[0]
    body = {"searches": [{"collection": collection, "q": q, "query_by": "title,content"}]}
    return requests.post(
        f"{node}/multi_search", json=body, headers={"X-TYPESENSE-API-KEY": token}, timeout=PATIENCE_SECONDS
    )


def in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


class TypesensePromises(NativeFilters):
    ANN: ClassVar[str] = "author:=Ann"
    BAD: ClassVar[tuple[str, ...]] = ('author = "Ann"', "author:=Ann &&", "sizes:>abc", "(author:=Ann", "id:!=lamp")
    UNKNOWN: ClassVar[tuple[str, int]] = ("author:=Ann && nope:=1", 15)

    @pytest.mark.parametrize(
        ("expression", "expected"),
        [
            ("author:=[Ann,Bob]", {"lamp", "sofa", "shelf"}),
            ("price:>20", {"shelf", "sofa"}),
            ("price:[20..120]", {"lamp", "shelf"}),
            ("tags:=home && stock:=true", {"lamp"}),
            ("date:>1709251200", {"sofa", "stool"}),
            ("id:=lamp", {"lamp"}),
            ("brand:=`acme co` || sizes:=10", {"stool", "shelf"}),
            ("price__text:=5", {"chair"}),
            ("author:!=Ann", {"sofa", "chair", "stool"}),
        ],
    )
    def test_native_filter_matches_documents_in_typesense_syntax(
        self, case: Case, expression: str, expected: set[str]
    ) -> None:
        case.add(*SHOP)
        assert set(self.native(case, expression)) == expected

    @pytest.mark.parametrize(
        ("expression", "position"),
        [
            ("code:>9223372036854775808", 6),
            ("author:=Ann && sizes:=[1, -9223372036854775809]", 26),
            ("date:[1..99999999999999999999]", 9),
            ("(brand:=`a && b` || code:99999999999999999999)", 25),
            ("nope:= 99999999999999999999", 7),
            ("id:=`", 4),
            ("author:=Ann || id: ``", 19),
        ],
    )
    def test_filter_that_would_hang_typesense_is_rejected_with_its_position(
        self, case: Case, expression: str, position: int
    ) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            self.native(case, expression)
        assert (caught.value.parameter, caught.value.position) == ("filters", position)

    @pytest.mark.parametrize(("expression", "position"), [("_changed_at:>1", 0), ("author:=Ann && (_terms:!=x)", 16)])
    def test_native_filter_on_an_internal_field_is_rejected(self, case: Case, expression: str, position: int) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected, match="no field") as caught:
            self.native(case, expression)
        assert (caught.value.parameter, caught.value.position) == ("filters", position)

    def test_filter_accepts_long_numbers_as_text_and_with_leading_zeros(self, case: Case) -> None:
        case.add(page("a", "reading", code="99999999999999999999", size=5, price=0.5), page("b", "reading", size=6))
        assert self.native(case, "code:=99999999999999999999 && size:>0000000000000000000004") == ["a"]
        assert self.native(case, "code:=[`99999999999999999999`, b]") == ["a"]
        assert self.native(case, "price:<99999999999999999999") == ["a"]
        assert self.native(case, "size:<9223372036854775807") == ["a", "b"]

    def test_collection_created_before_full_folding_still_finds_its_documents(self, case: Case) -> None:
        backend: Any = case.backend
        backend._transport.patch(f"/collections/{case.index}", dict, {"fields": [{"name": "_folding", "drop": True}]})
        backend.close()
        backend._types.clear()
        case.add(page("a", "ŋutsu Москва Straße"))
        for text in ("ŋutsu", "москва", "strasse", "STRASSE"):
            (hit,) = case.search(text, highlight=Highlight()).hits
            assert "<em>" in (hit.formatted or {})["title"]

    def test_native_filter_cannot_escape_the_combined_filter(self, case: Case) -> None:
        case.add(*SHOP)
        for expression in ("author:=Bob) || (author:=Ann", "author:=Bob || author:=Ann"):
            found: list[str] = []
            with contextlib.suppress(BackendRejected):
                found = self.native(case, expression, portable_filter=parse_filter("price > 100"))
            assert "lamp" not in found

    def test_integer_field_later_accepts_fractions_without_losing_precision(self, case: Case) -> None:
        case.add(page("a", "word", size=1), page("b", "word", size=9007199254740993))
        assert case.ids("word", "size = 9007199254740993") == ["b"]
        case.add(page("c", "word", size=1.5), page("d", "word", size=[2, 2.5]))
        assert sorted(case.ids("word", "size > 1")) == ["b", "c", "d"]
        assert sorted(self.named(case, "size:>1")) == ["b", "c", "d"]
        assert dict(case.search("word", facets=("size",)).facets["size"]) == {
            "1": 1,
            "1.5": 1,
            "2": 1,
            "2.5": 1,
            "9007199254740993": 1,
        }

    def named(self, case: Case, filters: str) -> list[str]:
        query = SearchQuery("word", native_filter=filters, kinds=case.kinds)
        return [hit.id for hit in case.backend.search(case.index, query).hits]

    def test_negated_range_over_a_list_of_numbers_is_rejected_with_a_reason(self, case: Case) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected, match="cannot negate"):
            case.ids("reading", "NOT sizes 2 TO 9")
        assert sorted(case.ids("reading", "NOT price 20 TO 120")) == ["chair", "sofa", "stool"]
        assert sorted(case.ids("reading", "NOT sizes > 5")) == ["chair", "lamp", "sofa", "stool"]

    def test_fields_missing_from_every_document_can_be_faceted_and_filtered(self, case: Case) -> None:
        case.add(page("a", "word"))
        kinds = {"later": frozenset({FieldKind.NUMBER})}
        for wish in ({"facets": ("later",)}, {"portable_filter": parse_filter("later > 1 OR later = 1")}):
            result = case.backend.search(case.index, SearchQuery("word", kinds=kinds, **wish))
            assert result.total == (1 if "facets" in wish else 0)

    def test_index_recreated_by_another_process_is_searched_without_error(self, case: Case) -> None:
        case.add(page("a", "word", size=1))
        assert case.search("word", facets=("size",)).facets["size"] == {"1": 1}
        types = dict(case.backend._types[case.index])
        case.backend.delete_index(case.index)
        case.backend.create_index(case.index)
        case.backend._types[case.index] = types
        assert case.search("word", facets=("size",)).facets == {"size": {}}
        case.add(page("b", "word", size=2))
        assert case.search("word", facets=("size",)).facets["size"] == {"2": 1}

    def test_highlight_markers_inside_documents_are_treated_as_text(self, case: Case) -> None:
        from backends.query import Highlight

        case.add(page("a", "\ue000chips\ue001 <mark>chips</mark> <em>x</em>", "c"))
        formatted = case.search("chips", highlight=Highlight()).hits[0].formatted
        assert formatted is not None
        assert (
            formatted["title"]
            == "\ue000<em>chips</em>\ue001 &lt;mark&gt;<em>chips</em>&lt;/mark&gt; &lt;em&gt;x&lt;/em&gt;"
        )

    def test_facet_values_with_tied_counts_are_truncated_in_order(self, case: Case) -> None:
        case.add(*(page(f"p{n}", "word", color=f"c{n:04}") for n in range(600)))
        values = case.search("word", facets=("color",)).facets["color"]
        assert list(values) == [f"c{n:04}" for n in range(100)]
        assert list(case.search("word", facets=("id",)).facets["id"])[:2] == ["p0", "p1"]

    def test_page_certain_to_exceed_max_bytes_raises_response_too_large(self, case: Case) -> None:
        case.add(*(page(f"p{n}", "word", "x" * 1000) for n in range(10)), page("small", "word", "y"))
        for options in (
            {"limit": 11, "max_bytes": 9_000},  # The page contains every match.
            {"limit": 5, "max_bytes": 100},  # Even the smallest document exceeds this at five times its size.
            {"limit": 5, "max_bytes": 4_000, "native_filter": "content:!=y"},
            {"limit": 5, "offset": 3, "max_bytes": 4_000, "native_filter": "content:!=y", "highlight": Highlight()},
        ):
            query = SearchQuery("word", kinds=case.kinds, **options)
            with pytest.raises(ResponseTooLarge):
                case.backend.search(case.index, query)

    def test_page_that_may_fit_in_max_bytes_is_returned(self, case: Case) -> None:
        case.add(*(page(f"p{n}", "word", "x" * 1000) for n in range(10)), page("small", "word", "y"))
        for options in (
            {"limit": 11, "max_bytes": 20_000}, {"limit": 2, "max_bytes": 1_500}, {"limit": 20, "offset": 10},
            {"limit": 5, "offset": 10, "max_bytes": 1_500}, {"limit": 0, "max_bytes": 10}, {"limit": 11},
        ):  # fmt: skip
            assert case.search("word", **options).total == 11
        pinned = SearchSettings(pinned={"word": ("small",)})
        assert case.search("word", limit=1, max_bytes=500, settings=pinned).hits[0].id == "small"
        assert case.search("nothing", limit=11, max_bytes=10).total == 0

    def test_facet_values_keep_case_punctuation_and_length(self, case: Case) -> None:
        names = ["A/B", "AB", "a b", "日本", "x" * 150, "x" * 151, "C++"]
        case.add(*(page(str(n), "word", brand=name) for n, name in enumerate(names)))
        assert dict(case.search("word", facets=("brand",)).facets["brand"]) == dict.fromkeys(names, 1)

    def test_very_long_words_and_texts_are_indexed_and_searched(self, case: Case) -> None:
        case.add(page("a", "word", "y" * 100_000 + " tail"))
        assert case.ids("tail") == ["a"]
        assert case.search("y" * 512).total in (0, 1)

    def test_offset_far_past_the_end_returns_no_hits_and_the_total(self, case: Case) -> None:
        case.add(page("a", "word"))
        for limit in (1, 20, 101):
            result = case.search("word", limit=limit, offset=2_147_483_647)
            assert (result.hits, result.total) == ((), 1)

    def test_foreign_collections_are_not_listed_as_indexes(self, backend: SearchBackend) -> None:
        transport: Any = backend._transport
        transport.post("/collections", dict, body={"name": "foreign", "fields": [{"name": "x", "type": "string"}]})
        try:
            assert "foreign" not in backend.list_indexes()
        finally:
            transport.delete("/collections/foreign", dict)

    def test_synonyms_follow_the_settings(self, case: Case) -> None:
        case.add(page("a", "laptop"), page("b", "notebook"))
        settings = SearchSettings(synonyms=(("laptop", "notebook"),))
        assert sorted(case.ids("laptop", settings=settings)) == ["a", "b"]
        assert case.ids("laptop") == ["a"]

    # --- credentials

    def test_credential_searches_its_index_until_revoked(self, case: Case) -> None:
        case.add(page("a", "word"))
        first = case.backend.issue_credential(case.index, "key_1:v1", in_an_hour())
        again = case.backend.issue_credential(case.index, "key_1:v1", in_an_hour())
        other = case.backend.issue_credential(case.index, "key_2:v1", in_an_hour())
        assert first.reference == again.reference != other.reference
        for token in (first.token, again.token, other.token):
            assert direct(case.backend, token, case.index, "word").json()["results"][0]["found"] == 1
        case.backend.revoke_credential(first.reference)
        case.backend.revoke_credential(first.reference)
        assert direct(case.backend, first.token, case.index).status_code == 401
        assert direct(case.backend, again.token, case.index).status_code == 401
        assert direct(case.backend, other.token, case.index).status_code == 200
        anew = case.backend.issue_credential(case.index, "key_1:v1", in_an_hour())
        assert direct(case.backend, anew.token, case.index).status_code == 200
        assert direct(case.backend, first.token, case.index).status_code == 401
        for reference in (anew.reference, other.reference):
            case.backend.revoke_credential(reference)

    def test_one_parent_key_serves_all_tokens_of_a_holder_across_processes(self, case: Case) -> None:
        from backends.registry import create_backend

        transport: Any = case.backend._transport
        before = len(transport.get("/keys", dict)["keys"])
        token = case.backend.issue_credential(case.index, "holder", in_an_hour())
        url = f"typesense://:{transport.url.key}@{transport.url.nodes[0].removeprefix('http://')}"
        elsewhere = create_backend(url)
        for _ in range(3):
            assert elsewhere.issue_credential(case.index, "holder", in_an_hour()).reference == token.reference
        assert len(transport.get("/keys", dict)["keys"]) == before + 1
        elsewhere.revoke_credential(token.reference)
        fresh = case.backend.issue_credential(case.index, "holder", in_an_hour())
        assert direct(case.backend, fresh.token, case.index).status_code == 200
        case.backend.revoke_credential(fresh.reference)
        elsewhere.close()

    def test_credential_contains_only_its_own_narrow_scope_and_no_server_key(self, case: Case) -> None:
        transport: Any = case.backend._transport
        credential = case.backend.issue_credential(case.index, "holder", in_an_hour())
        text = base64.b64decode(credential.token).decode()
        embedded = json.loads(text[48:])
        assert set(embedded) == {"collection", "expires_at", "limit_multi_searches"}
        assert embedded["collection"] == case.index
        (parent,) = [k for k in transport.get("/keys", dict)["keys"] if credential.reference in k["description"]]
        assert (parent["actions"], parent["collections"]) == (["documents:search"], [case.index])
        assert transport.url.key not in credential.token + credential.reference + text
        case.backend.revoke_credential(credential.reference)

    def test_expired_credential_is_rejected(self, case: Case) -> None:
        past = datetime.now(UTC) - timedelta(seconds=5)
        credential = case.backend.issue_credential(case.index, "holder", past)
        assert direct(case.backend, credential.token, case.index).status_code == 401
        case.backend.revoke_credential(credential.reference)

    def test_undated_documents_are_ordered_by_last_change(self, case: Case) -> None:
        for number in range(3):
            case.backend.upsert(case.index, [Document(str(number), page(str(number)), 10 - number)], {})
        assert case.ids(MATCH_ALL) == ["0", "1", "2"]
