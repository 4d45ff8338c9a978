"""Related pages, by the words of a page that are rare in the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from backends.errors import BackendRejected, IndexNotFound, ResponseTooLarge
from backends.filters import OneOf, parse_filter
from backends.query import MATCH_ALL, Boost, Effects, Preferred, SearchQuery, SearchSettings
from tests.backends.contract.case import Case, page

COMMON = "Ask our team about prices and delivery at any time."
"""A sentence of every page, as sites have it in their footers."""


def text(*sentences: str) -> str:
    return " ".join([*sentences, COMMON])


SITE = (
    page("espresso", "Espresso machines", text("Espresso needs pressure. Our espresso machines have a steel boiler.")),
    page("grinder", "Grinders for espresso", text("Steel burrs for espresso machines. Espresso needs fine coffee.")),
    page("tent", "Tents for two", text("A tent for two hikers. The tent is waterproof, and its poles are aluminum.")),
    page("stakes", "Stakes and poles", text("Stakes and aluminum poles for a tent. Each tent needs eight stakes.")),
    page("piano", "Piano lessons", text("Lessons for beginners. Learn to play the piano with sheet music.")),
    page("hours", "Opening hours", text("We open at nine and close at six.")),
    page("jobs", "Jobs", text("Apprentices wanted for our workshop.")),
    page("bike", "Bicycle repair", text("Brakes, gears, and flat tires.")),
    page("garden", "Garden tools", text("Spades, rakes, and gloves.")),
    page("paint", "Wall paint", text("White paint dries within an hour.")),
)  # fmt: skip


def related(case: Case, id: str, **options: Any) -> list[str] | None:
    return at(case, OneOf("id", (id,)), **options)


def at(case: Case, place: OneOf, limit: int = 4, **options: Any) -> list[str] | None:
    query = SearchQuery(MATCH_ALL, limit=limit, kinds=case.kinds, **options)
    hits = case.backend.find_related(case.index, place, query)
    return None if hits is None else [hit.id for hit in hits]


class RelatedContract:
    def test_pages_with_the_same_rare_words_are_related_and_common_words_do_not_count(self, case: Case) -> None:
        case.add(*SITE)
        assert related(case, "espresso") == ["grinder"]
        assert related(case, "grinder") == ["espresso"]
        assert related(case, "tent") == ["stakes"]

    def test_page_like_no_other_has_no_related_pages(self, case: Case) -> None:
        case.add(*SITE)
        assert related(case, "piano") == []
        assert related(case, "hours") == []

    def test_unknown_page_is_distinguished_from_a_page_without_related_pages(self, case: Case) -> None:
        assert related(case, "espresso") is None
        case.add(*SITE)
        assert related(case, "nothing") is None
        assert at(case, OneOf("url", ("/nothing",))) is None
        with pytest.raises(IndexNotFound):
            case.backend.find_related("t_unknown", OneOf("id", ("a",)), SearchQuery(MATCH_ALL, limit=4))

    def test_page_is_found_by_the_first_url_that_a_document_has(self, case: Case) -> None:
        case.add(*({**each, "url": f"https://example.com/{each['id']}"} for each in SITE))
        urls = ("https://example.com/none", "https://example.com/tent", "https://example.com/espresso")
        assert at(case, OneOf("url", urls)) == ["stakes"]
        assert at(case, OneOf("url", urls[::-1])) == ["grinder"]

    def test_the_more_words_are_shared_the_earlier_a_page_comes_and_the_limit_holds(self, case: Case) -> None:
        tents = [
            page("family", "Family tents", text("A tent for four. The tent is waterproof, with aluminum poles.")),
            page("shop", "Camping shop", text("Backpacks, stoves, lamps, ropes, boots, bottles, and one tent.")),
        ]
        case.add(*SITE, *tents)
        found = related(case, "tent")
        assert found is not None
        assert set(found[:2]) == {"family", "stakes"}
        assert related(case, "tent", limit=1) == found[:1]

    def test_other_versions_of_the_page_are_not_related(self, case: Case) -> None:
        case.add(
            *(page(f"espresso-{n}", SITE[0]["title"], SITE[0]["content"], release=f"r{n}", slug="e") for n in range(3)),
            *(page(f"grinder-{n}", SITE[1]["title"], SITE[1]["content"], release=f"r{n}", slug="g") for n in range(3)),
            *SITE[2:],
        )
        found = related(case, "espresso-1")
        assert found is not None
        assert [id.partition("-")[0] for id in found] == ["grinder"]
        settings = SearchSettings(distinct="slug", preferred=Preferred("release", "r2"))
        assert related(case, "espresso-1", settings=settings) == ["grinder-2"]
        latest = SearchSettings(distinct="slug", preferred=Preferred("release", "latest"))
        assert len(related(case, "espresso-1", settings=latest) or ()) == 1

    def test_versions_with_other_titles_are_known_by_the_distinct_field(self, case: Case) -> None:
        old = {**SITE[0], "id": "old", "title": "Machines for espresso (2019)", "slug": "espresso"}
        case.add({**SITE[0], "slug": "espresso"}, old, *SITE[1:])
        assert set(related(case, "espresso") or ()) == {"old", "grinder"}
        assert related(case, "espresso", settings=SearchSettings(distinct="slug")) == ["grinder"]

    def test_pages_of_another_version_or_language_are_not_related(self, case: Case) -> None:
        case.add(
            {**SITE[0], "version": "2", "lang": "en"},
            {**SITE[1], "version": "2", "lang": "en"},
            {**SITE[1], "id": "other-version", "title": "Older grinders", "version": "1", "lang": "en"},
            {**SITE[1], "id": "other-language", "title": "Mühlen", "version": "2", "lang": "de"},
            {**SITE[1], "id": "neither", "title": "Grinding for espresso"},
            *SITE[2:],
        )
        assert set(related(case, "espresso") or ()) == {"grinder", "neither"}

    def test_filters_and_hidden_documents_apply_to_related_pages_but_not_to_the_page(self, case: Case) -> None:
        case.add(
            {**SITE[0], "section": "machines"}, {**SITE[1], "section": "tools"},
            {**SITE[1], "id": "second", "title": "Second-hand grinders for espresso", "section": "used"}, *SITE[2:],
        )  # fmt: skip
        assert set(related(case, "espresso") or ()) == {"grinder", "second"}
        assert related(case, "espresso", portable_filter=parse_filter("section = used")) == ["second"]
        assert related(case, "espresso", effects=Effects(hidden=("grinder",))) == ["second"]
        assert related(case, "espresso", portable_filter=parse_filter("section = nowhere")) == []
        with pytest.raises(BackendRejected) as caught:
            related(case, "espresso", portable_filter=parse_filter("colour = red"))
        assert caught.value.parameter == "filters"

    def test_ranks_order_related_pages_but_make_no_other_page_related(self, case: Case) -> None:
        case.add(*SITE, {**SITE[1], "id": "second", "title": "Second-hand grinders for espresso"})
        for last in ("grinder", "second"):
            boosts = tuple(
                Boost(rank, parse_filter(f"id = {id}")) for id, rank in ((last, -5), ("piano", 5), ("hours", 5))
            )
            found = related(case, "espresso", settings=SearchSettings(boosts=boosts))
            assert found is not None
            assert set(found) == {"grinder", "second"}
            assert found[-1] == last

    def test_a_single_shared_word_in_titles_does_not_make_a_page_related(self, case: Case) -> None:
        case.add(
            *SITE,
            page("chess", "Chess set", text("Folding board with felt-lined pieces of boxwood; the king is tall.")),
            page("drivers", "Screwdriver set", text("Six blades of chrome vanadium steel, slotted and Phillips.")),
        )
        assert related(case, "chess") == []

    def test_forms_of_a_word_are_one_word(self, case: Case) -> None:
        case.add(
            page("pay", "Pay invoices", text("Paying invoices: each invoice states when it is due.")),
            page("send", "Send an invoice", text("An invoice is sent by email, and invoices can be printed.")),
            *SITE,
        )
        assert related(case, "pay") == ["send"]

    def test_hits_contain_the_requested_fields_and_their_size_is_limited(self, case: Case) -> None:
        case.add(*SITE)
        query = SearchQuery(MATCH_ALL, limit=4, returned_fields=frozenset({"id", "title"}))
        (hit,) = case.backend.find_related(case.index, OneOf("id", ("tent",)), query) or ()
        assert hit.document == {"id": "stakes", "title": "Stakes and poles"}
        with pytest.raises(ResponseTooLarge):
            related(case, "tent", max_bytes=10)

    @pytest.mark.parametrize(
        "content",
        [
            "",
            " ",
            "!?",
            "1 2 3",
            "a",
            "and the of",
            "😀",
            "x" * 100_000,
            "日本語の文法" * 50,
            "\u202e\u200f",
            "a:=b && c",
            '-x "y',
        ],
    )
    def test_any_page_is_accepted(self, case: Case, content: str) -> None:
        case.add(*SITE, page("odd", "", content), page("twin", content[:400], content))
        for id in ("odd", "twin"):
            found: Sequence[str] | None = related(case, id)
            assert found is not None
            assert set(found) <= {"odd", "twin"} - {id}

    def test_untitled_pages_have_related_pages(self, case: Case) -> None:
        case.add(*({**each, "title": ""} for each in SITE))
        assert related(case, "espresso") == ["grinder"]
