"""Reports of matched query words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from backends.base import Matched
from backends.query import MATCH_ALL, Highlight, SearchSettings, SortKey
from tests.backends.contract.case import Case, page

LIBRARY = (
    page("guide", "Documentation guide", "How to search the documents in München"),
    page("pie", "Apple pie", "Banana bread and cake", color="red"),
    page("crumble", "Apple", "Cherry crumble", color="green"),
    page("lamp", "Desk lamp", "Set it up in the hall"),
    page("once", "Serch", "A word that somebody mistyped"),
    page("otter", "Otters", "An apple a day", date="2025-01-01"),
)

ALL, SOME, CORRECTED = Matched.ALL, Matched.SOME, Matched.CORRECTED


class MatchedContract:
    @pytest.mark.parametrize(("text", "matched", "corrected"), [
        (MATCH_ALL, ALL, None),
        ("documentation", ALL, None),
        ("docume", ALL, None),
        ("DOCUMENTATION Guide", ALL, None),
        ("munchen", ALL, None),
        ("apple cherry", ALL, None),
        ('"apple pie"', ALL, None),
        ("apple -cherry", ALL, None),
        ("-apple", ALL, None),
        ("serch guide", ALL, None),
        ("banana cherry", SOME, None),
        ("apple xqzzyq", SOME, None),
        ("documantation cherry", SOME, None),
        ("xqzzyq", SOME, None),
        ("...", SOME, None),
        ("documantation", CORRECTED, "documentation"),
        ("documantation guide", CORRECTED, "documentation guide"),
        ("The Guide, documnetation", CORRECTED, "The Guide, documentation"),
        ("bannana bread -chery", CORRECTED, "banana bread -chery"),
        ("Münhcen", CORRECTED, "München"),
        ("CHERY crumbel", CORRECTED, "CHERRY crumble"),
    ])  # fmt: skip
    def test_search_reports_matched_words_and_the_corrected_query(
        self, case: Case, text: str, matched: Matched, corrected: str | None
    ) -> None:
        case.add(*LIBRARY)
        result = case.search(text, settings=SearchSettings(stop_words=frozenset({"the"})))
        assert (result.matched, result.corrected_query) == (matched, corrected)

    @pytest.mark.parametrize(("text", "matched", "corrected"), [
        ("quarantine", ALL, None),
        ("quaran", ALL, None),
        ("Übersicht", ALL, None),
        ("qarantine", CORRECTED, "quarantine"),
        ("rules qarantine", CORRECTED, "rules quarantine"),
        ("quarentina", CORRECTED, "quarantine"),
        ("UBERSCIHT", CORRECTED, "ÜBERSICHT"),
        ("qarantine zeppelin", SOME, None),
    ])  # fmt: skip
    def test_words_of_section_titles_count_as_words_of_the_document(
        self, case: Case, text: str, matched: Matched, corrected: str | None
    ) -> None:
        titles = ("Quarantine", "Übersicht")
        sections = [{"anchor": str(at), "title": title, "level": 2, "start": 8 * at} for at, title in enumerate(titles)]
        case.add(page("rules", "Rules", "Nothing to see here", sections=sections), page("other", "Other", "To hear"))
        result = case.search(text)
        assert (result.matched, result.corrected_query) == (matched, corrected)
        assert case.ids(text) == ["rules"]

    @pytest.mark.parametrize("options", [
        {"limit": 0}, {"limit": 1, "offset": 1}, {"offset": 100}, {"offset": 20_000}, {"facets": ("color",)},
        {"sort": (SortKey("date", True),)}, {"facets": ("color",), "limit": 0}, {"highlight": Highlight()},
        {"all_words": True},
    ])  # fmt: skip
    def test_matched_words_do_not_depend_on_page_or_order(self, case: Case, options: Mapping[str, Any]) -> None:
        case.add(*LIBRARY)
        wanted = {
            MATCH_ALL: (ALL, None),
            "apple cherry": (ALL, None),
            "banana cherry": (SOME, None),
            "appel cherry": (CORRECTED, "apple cherry"),
        }
        for text, told in wanted.items():
            result = case.search(text, **options)
            assert (result.matched, result.corrected_query) == told, text

    def test_matched_words_consider_only_documents_that_pass_the_filter(self, case: Case) -> None:
        case.add(*LIBRARY)
        assert case.search("apple cherry", "color = green").matched is ALL
        assert case.search("apple cherry", "color = red").matched is SOME
        assert case.search("apple cherry", "color = blue").matched is SOME
        assert case.search(MATCH_ALL, "color = blue").matched is ALL
        assert case.search("cherry appel", "color = green").corrected_query == "cherry apple"
        assert case.search("cherry appel", "color = red").matched is SOME

    def test_word_found_only_outside_the_filter_is_not_corrected(self, case: Case) -> None:
        case.add(page("a", "A serch here", color="red"), page("b", "A search there", color="green"))
        result = case.search("serch", "color = green")
        assert result.total == 1
        assert (result.matched, result.corrected_query) == (ALL, None)

    def test_synonym_match_is_not_reported_as_a_correction(self, case: Case) -> None:
        case.add(page("a", "Laptop", "portable"), page("b", "Phone", "portable"))
        settings = SearchSettings(synonyms=(("laptop", "notebook computer"), ("phone", "telefone")))
        for text in ("notebook computer", "telefone", "laptop"):
            result = case.search(text, settings=settings)
            assert (result.total, result.matched, result.corrected_query) == (1, ALL, None), text

    def test_pinned_document_counts_as_matching_every_word(self, case: Case) -> None:
        case.add(*LIBRARY)
        pins = {"banana cherry": ("lamp", "gone"), "xqzzyq": ("lamp",), "appel": ("lamp",), "apple xqzzyq": ("gone",)}
        settings = SearchSettings(pinned=pins)
        for options in ({}, {"limit": 0}, {"limit": 1}, {"offset": 1}):
            assert case.search("banana cherry", settings=settings, **options).matched is ALL
            assert case.search("xqzzyq", settings=settings, **options).matched is ALL
            assert case.search("appel", settings=settings, **options).corrected_query == "apple"
            assert case.search("apple xqzzyq", settings=settings, **options).matched is SOME

    def test_correction_occurs_in_a_document_with_all_other_words(self, case: Case) -> None:
        searches = [page(f"search{number}", "Search", "a thing") for number in range(5)]
        case.add(*searches, page("serph", "A blue serph swims"))
        assert case.search("thing serch").corrected_query == "thing search"
        assert case.search("blue serch").corrected_query == "blue serph"
