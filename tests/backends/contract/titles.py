"""Title search by word prefixes."""

from __future__ import annotations

import pytest

from backends.base import TitleMatch
from backends.errors import BackendRejected, IndexNotFound
from backends.filters import parse_filter
from backends.query import SearchQuery, SearchSettings
from tests.backends.contract.case import Case, page


def titles(case: Case, text: str, limit: int = 8) -> list[str]:
    return [match.title for match in case.backend.find_titles(case.index, text, limit)]


class TitleContract:
    def test_title_is_found_by_a_prefix_of_any_of_its_words(self, case: Case) -> None:
        case.add(
            page("a", "Installation guide", url="/start?a=1&b=2#three"),
            page("b", "Uninstall", "How to install it"),
            page("c", "Opening hours", "Installation at nine"),
        )
        (match,) = case.backend.find_titles(case.index, "inst", 8)
        assert match == TitleMatch("Installation guide", "/start?a=1&b=2#three")
        assert titles(case, "g") == ["Installation guide"]
        assert titles(case, "HOUR") == ["Opening hours"]

    def test_title_must_contain_every_word_and_the_last_one_as_a_prefix(self, case: Case) -> None:
        case.add(page("a", "Opening hours in winter"), page("b", "Opening of the bridge"), page("c", "Hours"))
        assert titles(case, "opening ho") == ["Opening hours in winter"]
        assert titles(case, "winter opening") == ["Opening hours in winter"]
        assert titles(case, "open hours") == []
        assert sorted(titles(case, "opening")) == ["Opening hours in winter", "Opening of the bridge"]

    def test_titles_match_without_case_or_accents_and_are_returned_unchanged(self, case: Case) -> None:
        case.add(page("a", "École  de Münster – l’été “là”"))
        for text in ("ecole", "ÉCO", "ecole munst"):
            assert titles(case, text) == ["École  de Münster – l’été “là”"], text

    def test_title_search_applies_neither_typo_tolerance_nor_synonyms(self, case: Case) -> None:
        case.add(page("a", "Document archive"), page("b", "Sofa"))
        case.search("couch", settings=SearchSettings(synonyms=(("couch", "sofa"),)))
        assert titles(case, "documemt") == []
        assert titles(case, "documnet arch") == []
        assert titles(case, "couch") == []

    @pytest.mark.parametrize("text", ["日本", "日本語", "語", "文法"])
    def test_titles_without_spaces_are_found_by_their_parts(self, case: Case, text: str) -> None:
        if case.backend.name == "meilisearch" and not text.startswith("日"):
            pytest.skip("Where Meilisearch sees words depends on the languages that it was built with.")
        case.add(page("a", "日本語の文法"), page("b", "한국어 문법"))
        assert titles(case, text) == ["日本語の文法"]

    def test_punctuation_separates_title_words_and_is_not_an_operator(self, case: Case) -> None:
        case.add(page("a", "Node.js: a guide"), page("b", "Learn C++"))
        assert titles(case, '"node js" gui') == ["Node.js: a guide"]
        assert titles(case, "guide -node") == ["Node.js: a guide"]
        assert titles(case, "C++") == ["Learn C++"]
        assert titles(case, "*") == []

    def test_duplicate_titles_are_returned_once_and_at_most_up_to_the_limit(self, case: Case) -> None:
        case.add(*(page(f"same{number}", "Source code") for number in range(3)))
        assert titles(case, "sour") == ["Source code"]
        case.add(*(page(str(number), f"Source number {number}") for number in range(30)))
        assert len(titles(case, "source num", 20)) == 20
        assert len(titles(case, "source num", 1)) == 1

    def test_titles_come_only_from_documents_that_pass_the_filter(self, case: Case) -> None:
        case.add(
            page("a", "Source code", section="help"),
            page("b", "Source of the river", section="news", date="2024-03-01"),
            page("c", "Sources", section="news", date="2021-01-01"),
        )

        def titles_within(expression: str) -> list[str]:
            within = SearchQuery("", portable_filter=parse_filter(expression), kinds=case.kinds)
            return [match.title for match in case.backend.find_titles(case.index, "sour", 8, within=within)]

        assert titles_within("section = help") == ["Source code"]
        assert titles_within("section = news AND date > 2023-01-01") == ["Source of the river"]
        assert sorted(titles_within("NOT section = help")) == ["Source of the river", "Sources"]
        assert titles_within("section = nowhere") == []
        assert len(titles(case, "sour")) == 3

    def test_title_filter_on_an_unknown_field_is_rejected(self, case: Case) -> None:
        case.add(page("a", "Source code"))
        within = SearchQuery("", portable_filter=parse_filter("colour = red"), kinds=case.kinds)
        with pytest.raises(BackendRejected) as caught:
            case.backend.find_titles(case.index, "sour", 8, within=within)
        assert caught.value.parameter == "filters"

    def test_common_prefix_is_completed_with_a_word_beside_the_other_words(self, case: Case) -> None:
        case.add(*(page(str(number), f"Chapter w{number:03}") for number in range(60)), page("z", "Annex wzebra"))
        assert titles(case, "annex w") == ["Annex wzebra"]

    def test_changed_and_deleted_titles_are_visible_immediately(self, case: Case) -> None:
        case.add(page("a", "Old title"), page("b", "Old barn"))
        case.add(page("a", "New title"))
        case.backend.delete(case.index, ["b"])
        assert titles(case, "old") == []
        assert titles(case, "new") == ["New title"]

    def test_any_text_is_accepted_as_a_title_query(self, case: Case) -> None:
        case.add(page("a", "Something else"))
        for text in (
            "", " ", "\t", "!?", "x" * 512, "a " * 256, "\u202e\u200f", "😀", '"', "-", "title:a", "a OR b", "日" * 170,
            "e\u0301" * 150, "\u0301" * 250, ".*", "[a", "\\", "%", "`a`", "a:=b && c",
        ):  # fmt: skip
            assert titles(case, text) in ([], ["Something else"]), text

    def test_empty_index_has_no_titles_and_a_missing_index_raises_index_not_found(self, case: Case) -> None:
        assert titles(case, "a") == []
        with pytest.raises(IndexNotFound):
            case.backend.find_titles("t_unknown", "a", 8)
