"""Hits: documents as sent, pagination, and any query text."""

from __future__ import annotations

import pytest

from backends.errors import BackendRejected
from backends.query import MATCH_ALL, Highlight, SearchSettings, SortKey
from backends.support import EngineSupport, nowhere
from tests.backends.contract.case import SHOP, Case, page


class HitContract:
    def test_a_search_with_an_unsupported_attribute_is_rejected(
        self, case: Case, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        support = EngineSupport({**case.backend.support, "explain": nowhere("This engine cannot explain hits.")})
        monkeypatch.setattr(case.backend, "support", support)

        with pytest.raises(BackendRejected, match="cannot explain hits"):
            case.search("word", explain=True)

    def test_hit_contains_the_document_as_sent_plus_empty_required_fields(self, case: Case) -> None:
        sent = page(
            "a",
            "Title",
            "Some content",
            author="Ann",
            date="2024-03-01",
            price=1.5,
            count=7,
            ok=True,
            tags=["x", "Ÿ"],
            numbers=[1, 2.5],
            text='<b>"bold"</b> 日本',
            **{"with-dash": "d", "under_score": 0},
        )
        case.add(sent)
        document = case.search("title").hits[0].document
        assert document == {**sent, "excerpt": ""}
        assert type(document["count"]) is int

    def test_long_document_is_returned_whole_and_its_last_word_is_found(self, case: Case) -> None:
        words = " ".join(f"filler{number % 700}" for number in range(5600))
        content = words[:63_900] + " lastword"
        case.add(page("long", "Long", content))
        hit = case.search("lastword").hits[0]
        assert hit.document["content"] == content

    def test_limit_and_offset_page_through_every_hit_exactly_once(self, case: Case) -> None:
        case.add(*(page(f"p{number:02}", "same word", f"text {number}") for number in range(53)))
        for text in ("word", MATCH_ALL):
            seen: list[str] = []
            for offset in range(0, 60, 10):
                result = case.search(text, limit=10, offset=offset)
                assert result.total == 53
                seen += [hit.id for hit in result.hits]
            assert sorted(seen) == [f"p{number:02}" for number in range(53)]

    @pytest.mark.parametrize("offset", [5, 1000, 10_000, 2_147_483_647])
    def test_offset_past_the_end_returns_no_hits_and_the_correct_total(self, case: Case, offset: int) -> None:
        case.add(*SHOP)
        for options in ({}, {"sort": (SortKey("price"),)}, {"filters": "author = Ann"}):
            result = case.search("reading", offset=offset, **options)
            assert result.hits == ()
            assert result.total == (2 if "filters" in options else 5)

    def test_limit_zero_returns_only_the_total_and_limit_101_returns_101_hits(self, case: Case) -> None:
        case.add(*(page(str(number), "word") for number in range(120)))
        empty = case.search("word", limit=0)
        assert (empty.hits, empty.total) == ((), 120)
        assert len(case.search("word", limit=101).hits) == 101
        assert case.search("word", limit=0, facets=("author",)).facets == {"author": {}}

    def test_match_all_sorts_by_newest_date_then_undated_by_last_change(self, case: Case) -> None:
        case.add(
            page("u1"),
            page("old", date="2001-01-01"),
            page("u2"),
            page("new", date="2024-01-01T00:00:01Z"),
            page("mid", date="2024-01-01"),
            page("ancient", date="0001-01-01"),
        )
        case.add(page("u1"))
        assert case.ids(MATCH_ALL) == ["new", "mid", "old", "ancient", "u1", "u2"]
        assert case.ids(MATCH_ALL, limit=2, offset=3) == ["ancient", "u1"]

    @pytest.mark.parametrize("text", ["...", "-", "?!", '"', '""', "---", "\\", "( )", "。"])
    def test_query_of_only_punctuation_returns_no_hits(self, case: Case, text: str) -> None:
        case.add(page("a", "Word ... - 😀 ( ) 。", "more"))
        result = case.search(text)
        assert (result.hits, result.total) == ((), 0)

    def test_any_text_is_accepted_as_a_query(self, case: Case) -> None:
        case.add(*SHOP)
        for text in (
            '"unbalanced', "a" * 512, "ab " * 170, "title:", "title:x", "* *", "[a TO b]", "AND OR NOT", "a && b",
            "\\\"", "https://example.com/a?b=c&d=e#f", "f()", "<script>alert(1)</script>", "../../etc/passwd",
            "'; DROP TABLE x; --", "𝕬𝖇𝖈", "\u200b", "é" * 250, "日" * 170, "ﬁ ß İ", "a-b-c-d-e", "+++", "++", "#",
            "c++ c# .net", "1.2.3.4.5.6.7.8", "\u0301", "\u202eabc", "x\ty", "-a -b -c", '-"', '"" ""', "กกก",
            "ا" * 200, "- - -", "a\u00a0b", "\ufdfa", "~1",
        ):  # fmt: skip
            result = case.search(text, highlight=Highlight())
            assert 0 <= len(result.hits) <= result.total <= len(SHOP), text

    def test_documents_can_be_pinned_for_the_match_all_query(self, case: Case) -> None:
        case.add(page("a", date="2024-01-01"), page("b", date="2020-01-01"), page("c", date="2022-01-01"))
        settings = SearchSettings(pinned={MATCH_ALL: ("b", "gone")})
        assert case.ids(MATCH_ALL, settings=settings) == ["b", "a", "c"]
        assert case.ids(MATCH_ALL, settings=settings, sort=(SortKey("id"),)) == ["a", "b", "c"]
