"""What is Typesense's own, for the fake and for a real server alike."""

from __future__ import annotations

import base64
import contextlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
import requests

from backends.base import Document, SearchBackend
from backends.errors import BackendRejected, ReplyTooLarge
from backends.filters import parse_filter
from backends.query import MATCH_ALL, FieldKind, Highlight, SearchQuery, SearchSettings
from tests.backends.contract import SHOP, Case, page
from tests.backends.native_filters import NativeFilters
from tests.patience import PATIENCE_SECONDS


def direct(backend: SearchBackend, token: str, collection: str, q: str = "*") -> requests.Response:
    """A search as a client sends it, with a key of its own."""
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
    def test_the_fields_of_documents_are_filtered_in_typesense_syntax(
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
    def test_a_filter_that_typesense_would_never_answer_is_rejected_with_the_place(
        self, case: Case, expression: str, position: int
    ) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected) as caught:
            self.native(case, expression)
        assert (caught.value.part, caught.value.position) == ("filters", position)

    @pytest.mark.parametrize(("expression", "position"), [("_changed_at:>1", 0), ("author:=Ann && (_terms:!=x)", 16)])
    def test_a_filter_knows_no_fields_but_those_of_documents(self, case: Case, expression: str, position: int) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected, match="no field") as caught:
            self.native(case, expression)
        assert (caught.value.part, caught.value.position) == ("filters", position)

    def test_long_numbers_can_be_text_or_have_zeros_before_them(self, case: Case) -> None:
        case.add(page("a", "reading", code="99999999999999999999", size=5, price=0.5), page("b", "reading", size=6))
        assert self.native(case, "code:=99999999999999999999 && size:>0000000000000000000004") == ["a"]
        assert self.native(case, "code:=[`99999999999999999999`, b]") == ["a"]
        assert self.native(case, "price:<99999999999999999999") == ["a"]
        assert self.native(case, "size:<9223372036854775807") == ["a", "b"]

    def test_a_collection_made_before_every_letter_was_folded_finds_what_it_found(self, case: Case) -> None:
        backend: Any = case.backend
        backend._transport.patch(f"/collections/{case.index}", dict, {"fields": [{"name": "_folding", "drop": True}]})
        backend.close()
        backend._types.clear()
        case.add(page("a", "ŋutsu Москва Straße"))
        for text in ("ŋutsu", "москва", "strasse", "STRASSE"):
            (hit,) = case.search(text, highlight=Highlight()).hits
            assert "<em>" in (hit.formatted or {})["title"]

    def test_a_filter_cannot_break_out_of_its_place(self, case: Case) -> None:
        case.add(*SHOP)
        for expression in ("author:=Bob) || (author:=Ann", "author:=Bob || author:=Ann"):
            found: list[str] = []
            with contextlib.suppress(BackendRejected):
                found = self.native(case, expression, filter=parse_filter("price > 100"))
            assert "lamp" not in found

    def test_whole_numbers_become_fractions_without_loss(self, case: Case) -> None:
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
        query = SearchQuery("word", filters=filters, kinds=case.kinds)
        return [hit.id for hit in case.backend.search(case.index, query).hits]

    def test_a_range_over_lists_of_numbers_cannot_be_negated_and_says_so(self, case: Case) -> None:
        case.add(*SHOP)
        with pytest.raises(BackendRejected, match="cannot negate"):
            case.ids("reading", "NOT sizes 2 TO 9")
        assert sorted(case.ids("reading", "NOT price 20 TO 120")) == ["chair", "sofa", "stool"]
        assert sorted(case.ids("reading", "NOT sizes > 5")) == ["chair", "lamp", "sofa", "stool"]

    def test_known_fields_that_no_document_of_this_index_has_yet(self, case: Case) -> None:
        case.add(page("a", "word"))
        kinds = {"later": frozenset({FieldKind.NUMBER})}
        for wish in ({"facets": ("later",)}, {"filter": parse_filter("later > 1 OR later = 1")}):
            result = case.backend.search(case.index, SearchQuery("word", kinds=kinds, **wish))
            assert result.total == (1 if "facets" in wish else 0)

    def test_an_index_made_anew_elsewhere_is_searched_as_it_is_now(self, case: Case) -> None:
        case.add(page("a", "word", size=1))
        assert case.search("word", facets=("size",)).facets["size"] == {"1": 1}
        types = dict(case.backend._types[case.index])
        case.backend.delete_index(case.index)
        case.backend.create_index(case.index)
        case.backend._types[case.index] = types
        assert case.search("word", facets=("size",)).facets == {"size": {}}
        case.add(page("b", "word", size=2))
        assert case.search("word", facets=("size",)).facets["size"] == {"2": 1}

    def test_marks_of_the_engine_inside_documents_stay_text(self, case: Case) -> None:
        from backends.query import Highlight

        case.add(page("a", "\ue000chips\ue001 <mark>chips</mark> <em>x</em>", "c"))
        formatted = case.search("chips", highlight=Highlight()).hits[0].formatted
        assert formatted is not None
        assert (
            formatted["title"]
            == "\ue000<em>chips</em>\ue001 &lt;mark&gt;<em>chips</em>&lt;/mark&gt; &lt;em&gt;x&lt;/em&gt;"
        )

    def test_more_than_a_hundred_values_with_ties_are_cut_in_order(self, case: Case) -> None:
        case.add(*(page(f"p{n}", "word", color=f"c{n:04}") for n in range(600)))
        values = case.search("word", facets=("color",)).facets["color"]
        assert list(values) == [f"c{n:04}" for n in range(100)]
        assert list(case.search("word", facets=("id",)).facets["id"])[:2] == ["p0", "p1"]

    def test_a_page_that_is_certainly_too_large_is_refused_before_its_documents_are_read(self, case: Case) -> None:
        case.add(*(page(f"p{n}", "word", "x" * 1000) for n in range(10)), page("small", "word", "y"))
        for options in (
            {"limit": 11, "max_bytes": 9_000},  # All that is found is on the page.
            {"limit": 5, "max_bytes": 100},  # The smallest document as many times is larger.
            {"limit": 5, "max_bytes": 4_000, "filters": "content:!=y"},
            {"limit": 5, "offset": 3, "max_bytes": 4_000, "filters": "content:!=y", "highlight": Highlight()},
        ):
            query = SearchQuery("word", kinds=case.kinds, **options)
            with pytest.raises(ReplyTooLarge):
                case.backend.search(case.index, query)

    def test_a_page_that_may_fit_is_given(self, case: Case) -> None:
        case.add(*(page(f"p{n}", "word", "x" * 1000) for n in range(10)), page("small", "word", "y"))
        for options in (
            {"limit": 11, "max_bytes": 20_000}, {"limit": 2, "max_bytes": 1_500}, {"limit": 20, "offset": 10},
            {"limit": 5, "offset": 10, "max_bytes": 1_500}, {"limit": 0, "max_bytes": 10}, {"limit": 11},
        ):  # fmt: skip
            assert case.search("word", **options).total == 11
        pinned = SearchSettings(pinned={"word": ("small",)})
        assert case.search("word", limit=1, max_bytes=500, settings=pinned).hits[0].id == "small"
        assert case.search("nothing", limit=11, max_bytes=10).total == 0

    def test_facet_values_keep_case_marks_and_length(self, case: Case) -> None:
        names = ["A/B", "AB", "a b", "日本", "x" * 150, "x" * 151, "C++"]
        case.add(*(page(str(n), "word", brand=name) for n, name in enumerate(names)))
        assert dict(case.search("word", facets=("brand",)).facets["brand"]) == dict.fromkeys(names, 1)

    def test_very_long_words_and_texts_do_no_harm(self, case: Case) -> None:
        case.add(page("a", "word", "y" * 100_000 + " tail"))
        assert case.ids("tail") == ["a"]
        assert case.search("y" * 512).total in (0, 1)

    def test_pages_far_past_the_end_are_answered(self, case: Case) -> None:
        case.add(page("a", "word"))
        for limit in (1, 20, 101):
            result = case.search("word", limit=limit, offset=2_147_483_647)
            assert (result.hits, result.total) == ((), 1)

    def test_foreign_collections_are_no_indexes_of_ours(self, backend: SearchBackend) -> None:
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

    def test_a_credential_searches_its_index_until_revoked(self, case: Case) -> None:
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

    def test_one_parent_key_serves_all_tokens_of_a_holder_in_every_process(self, case: Case) -> None:
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

    def test_a_credential_holds_nothing_stronger_than_itself(self, case: Case) -> None:
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

    def test_an_expired_credential_is_refused(self, case: Case) -> None:
        past = datetime.now(UTC) - timedelta(seconds=5)
        credential = case.backend.issue_credential(case.index, "holder", past)
        assert direct(case.backend, credential.token, case.index).status_code == 401
        case.backend.revoke_credential(credential.reference)

    def test_documents_without_date_come_by_last_change(self, case: Case) -> None:
        for number in range(3):
            case.backend.upsert(case.index, [Document(str(number), page(str(number)), 10 - number)], {})
        assert case.ids(MATCH_ALL) == ["0", "1", "2"]
