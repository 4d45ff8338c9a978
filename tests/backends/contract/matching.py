"""Matching: the rules of every engine, and the rules of engines that match in our own code."""

from __future__ import annotations

import html
import random
from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar

import pytest

from backends.base import Matched
from backends.query import Highlight, OneWaySynonyms, SearchSettings, SortKey, Synonyms
from tests.backends.contract.case import Case, page


class CommonMatchingContract:
    def test_case_and_accents_are_ignored(self, case: Case) -> None:
        case.add(page("a", "Café Münster ÉCOLE"))
        for text in ("cafe", "CAFÉ", "münster", "MUNSTER", "école", "ecole"):
            assert case.ids(text) == ["a"], text

    def test_the_last_word_matches_as_a_prefix(self, case: Case) -> None:
        case.add(page("a", "Installation guide"), page("b", "Uninstall"))
        assert case.ids("inst") == ["a"]
        assert case.ids("installation gui") == ["a"]

    @pytest.mark.parametrize(("written", "typed"), [
        ("U-Bahn", "ubahn"), ("E-mail", "email"), ("E-book", "ebooks"), ("KT-INS114-DRE", "KTINS114DRE"),
        ("8X-100/B", "8x100b"),
        ("00:1A:2B:3C:4D:5E", "001a2b3c4d5e"), ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("978-3-16-148410-0", "9783161484100"), ("TextDrawHideForPlayer", "HideForPlayer"),
        ("TextDrawHideForPlayer", "forplayer"), ("appTableRecord", "table record"), ("nike7055", "7055"),
        ("getElementById", "elementbyid"), ("Foo\u200bBar", "foobar"),
    ])  # fmt: skip
    def test_compound_words_are_found_joined_and_split(self, case: Case, written: str, typed: str) -> None:
        case.add(page("a", "Sea", f"It says {written} here"), page("b", "Ship", "Only Bahn, mail, and table here"))
        result = case.search(typed, highlight=Highlight())
        assert [hit.id for hit in result.hits][:1] == ["a"]
        assert (result.matched, result.corrected_query) == (Matched.ALL, None)
        assert "<em>" in (result.hits[0].formatted or {})["content"]

    def test_one_typo_is_tolerated_from_five_characters(self, case: Case) -> None:
        case.add(page("a", "Document search"), page("b", "Ship"))
        for text in ("serch", "seaarch", "seorch", "saerch"):
            assert case.ids(text) == ["a"], text
        assert case.ids("shup x9q") == []

    def test_documents_with_all_words_come_first(self, case: Case) -> None:
        case.add(page("one", "apple"), page("two", "apple", "banana"), page("three", "cherry"))
        assert case.ids("apple banana")[0] == "two"

    @pytest.mark.parametrize(("text", "found"), [
        ("When are tickets refunded?", {"tickets"}), ("zebra boat", {"boats"}), ("boat zebra", {"boats"}),
        ("how to get a boat", {"boats"}), ("xqzzyq boat at the pier", {"boats"}), ("apple cherry", {"apple", "cherry"}),
        ("cherry xqzzyq apple", {"apple", "cherry"}), ("walrus otter", {"both", "walrus"}),
        ("zebra boat xqzzyq", {"boats"}),
    ])  # fmt: skip
    def test_query_finds_pages_that_lack_some_of_its_words(self, case: Case, text: str, found: set[str]) -> None:
        case.add(
            page("tickets", "Tickets", "Day tickets can be returned up to noon."),
            page("boats", "Boats", "Every boat leaves from this pier."),
            page("apple", "Apple", "It is red."),
            page("cherry", "Cherry", "It is dark red."),
            page("both", "Other", "A walrus, an otter"),
            page("walrus", "Walrus", "A large seal"),
        )
        assert set(case.ids(text)[: len(found)]) == found

    def test_pages_and_facets_of_a_partial_match_count_the_same_documents(self, case: Case) -> None:
        case.add(*(page(f"{word}{at}", word, color=word) for word in ("apple", "cherry") for at in range(4)))
        everything = case.search("apple cherry", limit=100, facets=("color",))
        assert (everything.total, everything.facets) == (8, {"color": {"apple": 4, "cherry": 4}})
        pages = [case.ids("apple cherry", limit=3, offset=offset) for offset in range(0, 9, 3)]
        assert [*chain(*pages)] == [hit.id for hit in everything.hits]
        assert case.ids("apple cherry", "color = cherry", limit=100) == case.ids("cherry", limit=100)
        assert case.ids("apple cherry", sort=(SortKey("id"),)) == sorted(hit.id for hit in everything.hits)
        assert case.ids("apple -cherry", limit=100) == case.ids("apple", limit=100)

    def test_words_end_at_punctuation_symbols_and_any_whitespace(self, case: Case) -> None:
        signs = "\t\n\u00a0\u202f\u2014!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~°€£©®™→½²µ¶·×÷±…•★✓😀\u2028"
        letters = {sign for sign in signs if sign.isalnum()}
        names = {sign: f"q{chr(97 + at // 26)}{chr(97 + at % 26)}z" for at, sign in enumerate(signs)}
        case.add(*(page(names[sign], names[sign], f"first{sign}second") for sign in signs))
        for sign in signs:
            found = [case.ids(f"{word} {names[sign]}", all_words=True) for word in ("first", "second")]
            assert found == [[] if sign in letters else [names[sign]]] * 2, repr(sign)

    @pytest.mark.parametrize("synonyms", [
        (("couch", "sofa"), ("sf", "san francisco")),
        (OneWaySynonyms("couch", ("sofa",)), OneWaySynonyms("san francisco", ("sf",))),
    ])  # fmt: skip
    def test_inflected_and_mistyped_words_have_the_synonyms_of_the_word(self, case: Case, synonyms: Synonyms) -> None:
        case.add(
            page("sofa", "Sofa grey"), page("sofas", "Sofas in blue"), page("couch", "Couch brown"),
            page("guide", "San Francisco guide"), page("museum", "SF museum"), page("other", "Lamp"),
        )  # fmt: skip
        settings = SearchSettings("en", synonyms=synonyms)
        for text in ("couch", "couches", "Couches"):
            assert set(case.ids(text, settings=settings)) == {"sofa", "sofas", "couch"}, text
        correct = case.search("san francisco", settings=settings, facets=("id",))
        assert {hit.id for hit in correct.hits} == {"guide", "museum"}
        mistyped = case.search("san franciso", settings=settings, facets=("id",), highlight=Highlight())
        assert {hit.id for hit in mistyped.hits} == {hit.id for hit in correct.hits}
        assert (mistyped.total, mistyped.facets) == (correct.total, correct.facets)
        # The best hit of the embedded engine is the synonym, in which nothing is corrected.
        outcomes = ((Matched.CORRECTED, "san francisco"), (Matched.ALL, None))
        assert (mistyped.matched, mistyped.corrected_query) in outcomes
        assert all("<em>" in (hit.formatted or {})["title"] for hit in mistyped.hits)
        assert case.search("san franciso", settings=settings, limit=0).total == 2
        assert case.ids("san franciso", settings=settings, limit=1, offset=1) == [mistyped.hits[1].id]

    def test_mistyped_synonym_that_no_document_has_finds_the_other_words(self, case: Case) -> None:
        case.add(page("museum", "SF museum"), page("other", "Lamp"))
        settings = SearchSettings("en", synonyms=(("sf", "san francisco"),))
        assert case.ids("san franciso", settings=settings) == ["museum"]
        assert case.ids("san frenzy", settings=settings) == []
        assert case.ids("san franciso") == []

    def test_title_match_ranks_above_a_content_match(self, case: Case) -> None:
        case.add(page("content", "other thing", "the walrus"), page("title", "the walrus", "other thing"))
        assert case.ids("walrus") == ["title", "content"]


class MatchingContract:
    """The contract of engines that match words in our own code."""

    CJK: ClassVar[tuple[tuple[str, str], ...]] = (
        ("東京都は日本の首都です。", "首都"), ("東京都は日本の首都です。", "東京"), ("黑豹队的防守只丢了", "防守"),
        ("대화상자를 닫습니다", "대화상자"), ("대화상자를 닫습니다", "상자"), ("กรุงเทพเป็นเมืองหลวง", "เมือง"),
        ("データベースの検索", "検索"), ("猫", "猫"), ("これは猫", "猫"), ("猫です", "猫"),
        ("全文検索エンジン", "エンジン"),
    )  # fmt: skip

    @pytest.mark.parametrize(("content", "text"), CJK)
    def test_text_without_spaces_is_found_by_its_parts(self, case: Case, content: str, text: str) -> None:
        case.add(page("a", "", content), page("b", "Other", "Latin words 無関係 무관 อื่น"))
        result = case.search(text, highlight=Highlight())
        assert [hit.id for hit in result.hits] == ["a"]
        formatted = result.hits[0].formatted
        assert formatted is not None
        assert f"<em>{text}</em>" in formatted["content"]

    @pytest.mark.parametrize(("text", "wanted"), [
        ("node.js", "node"), ("Node.JS", "node"), ("C++", "cpp"), ("c++", "cpp"), ("C#", "csharp"), ("c#", "csharp"),
        (".net", "dotnet"), (".NET", "dotnet"), ("3.11.7", "python"), ("jo@example.com", "mail"),
        ("https://example.com/docs/start?x=1", "link"), ("e-mail", "mail2"), ("snake_case_name", "snake"),
    ])  # fmt: skip
    def test_technical_terms_are_found_as_written(self, case: Case, text: str, wanted: str) -> None:
        case.add(
            page("node", "Node.js guide", "Install node.js first."),
            page("cpp", "Learn C++", "C++ and more"),
            page("csharp", "Learn C#", "C# and more"),
            page("dotnet", "Use .NET today", "With .net you can"),
            page("python", "Python 3.11.7", "Version 3.11.7 is out"),
            page("py2", "Python 3.12.1", "11 of 7"),
            page("mail", "Contact", "Write to jo@example.com now"),
            page("mail2", "E-mail", "How e-mail works"),
            page("link", "Address", "See https://example.com/docs/start?x=1 for more"),
            page("snake", "Names", "call snake_case_name() here"),
            page("c", "Vitamin C", "c is net worth it"),
        )
        assert case.ids(text)[0] == wanted

    def test_version_number_does_not_match_its_scattered_parts(self, case: Case) -> None:
        case.add(page("a", "Python 3.11.7"), page("b", "Python", "7 of 11 in 3"))
        assert case.ids("3.11.7") == ["a"]

    def test_compound_query_word_matches_two_separate_words_without_correction(self, case: Case) -> None:
        case.add(page("a", "Desk lamp"), page("b", "Lamp"))
        result = case.search("desklamp")
        assert [hit.id for hit in result.hits] == ["a"]
        assert (result.matched, result.corrected_query) == (Matched.ALL, None)

    def test_phrase_matches_words_only_in_order(self, case: Case) -> None:
        case.add(
            page("a", "x", "the quick brown fox"), page("b", "x", "brown and quick"), page("c", "x", "quick brown")
        )
        assert sorted(case.ids('"quick brown"')) == ["a", "c"]
        assert case.ids('"quick brown" fox')[0] == "a"
        assert case.ids('"brown quick"') == []
        assert case.ids('"quick"') != []

    @pytest.mark.parametrize("phrase", ["이 암호를", "암호를 국립도서관", "时候 开放", "เปิดเมื่อไร แต่ย้าย", "राम के घर"])
    def test_multiword_phrase_is_found_in_any_script(self, case: Case, phrase: str) -> None:
        first, _, rest = phrase.partition(" ")
        case.add(page("a", "x", f"x {phrase} y"), page("b", "x", f"{rest} x {first}"))
        assert case.ids(f'"{phrase}"') == ["a"]

    def test_gershayim_in_a_hebrew_abbreviation_does_not_start_a_phrase(self, case: Case) -> None:
        case.add(page("a", "x", 'פעולות צה"ל מול ארה"ב'), page("b", "x", "ל וארה"))
        assert case.ids('צה"ל ארה"ב') == ["a"]

    def test_minus_excludes_matching_documents(self, case: Case) -> None:
        case.add(page("a", "red apple"), page("b", "green apple"), page("c", "apple", "a red one"))
        assert case.ids("apple -red") == ["b"]
        assert sorted(case.ids('apple -"red apple"')) == ["b", "c"]
        assert sorted(case.ids("-red")) == ["b"]
        assert sorted(case.ids("apple - red"))[0] == "a"

    def test_exact_match_ranks_above_prefix_above_typo(self, case: Case) -> None:
        case.add(
            page("typo", "x", "a serch here"),
            page("prefix", "x", "a searchlight here"),
            page("exact", "x", "a search here"),
        )
        assert case.ids("search") == ["exact", "prefix", "typo"]

    @pytest.mark.parametrize(("text", "found"), [
        ("documantation", True), ("docmentation", True), ("documnetation", True), ("documentatoin", True),
        ("docmentatoin", True), ("odcumentation", True), ("docuxxxtation", False), ("documant", True),
        ("docunentat", True), ("guode", True), ("giude", True), ("gude", False), ("guidee", True),
    ])  # fmt: skip
    def test_typo_tolerance_depends_on_word_length(self, case: Case, text: str, found: bool) -> None:
        case.add(page("a", "Documentation guide"), page("b", "Something else"))
        assert case.ids(text) == (["a"] if found else [])

    def test_title_match_ranks_above_excerpt_above_content(self, case: Case) -> None:
        filler = "one two three four five"
        case.add(
            page("content", filler, f"walrus {filler}", excerpt=filler),
            page("title", f"walrus {filler}", filler, excerpt=filler),
            page("excerpt", filler, filler, excerpt=f"walrus {filler}"),
        )
        assert case.ids("walrus") == ["title", "excerpt", "content"]

    def test_more_matched_words_rank_above_a_better_field(self, case: Case) -> None:
        case.add(
            page("both", "other", "a walrus and also an otter in a pond"),
            page("one", "walrus", "walrus walrus"),
            page("two", "otter", "otter"),
        )
        assert case.ids("walrus otter")[0] == "both"

    def test_all_words_option_requires_every_word(self, case: Case) -> None:
        case.add(page("both", "x", "walrus otter"), page("one", "walrus"))
        assert case.ids("walrus otter") == ["both", "one"]
        assert case.ids("walrus otter", all_words=True) == ["both"]

    def test_fields_option_limits_the_searched_fields(self, case: Case) -> None:
        case.add(
            page("t", "walrus", "x", excerpt="y"),
            page("c", "x", "walrus", excerpt="y"),
            page("e", "x", "y", excerpt="walrus"),
        )
        assert case.ids("walrus", fields=("title",)) == ["t"]
        assert case.ids("walrus", fields=("content",)) == ["c"]
        assert sorted(case.ids("walrus", fields=("excerpt", "content"))) == ["c", "e"]
        assert case.ids("walrus", fields=("url",)) == []

    @pytest.mark.parametrize(("content", "text"), [
        ("He was running through the houses", "house run"), ("Die Häuser wurden gebaut", "Haus"),
        ("Las aplicaciones son nuevas", "aplicación"), ("La aplicación es nueva", "aplicaciones"),
        ("Les chevaux nationaux", "national"), ("Новые документы", "документ"), ("I gatti dormono nella casa", "gatto"),
    ])  # fmt: skip
    def test_inflected_forms_of_a_word_are_found(self, case: Case, content: str, text: str) -> None:
        case.add(page("a", "", content), page("b", "zzz"))
        assert case.ids(text) == ["a"]

    def test_stop_words_are_optional(self, case: Case) -> None:
        case.add(page("a", "Install the server", "Simple steps"), page("b", "How to", "How do I do this to the"))
        assert case.ids("how do i install the server")[0] == "a"
        assert case.ids("the")[0] in ("a", "b")

    @pytest.mark.parametrize(("content", "text"), [
        ("Ελληνικά κείμενα", "ελληνικα"), ("ΑΘΗΝΑ", "αθήνα"), ("Ёлка зелёная", "елка"), ("مُحَمَّد كتب", "محمد"),
        ("İSTANBUL", "istanbul"), ("Straße", "strasse"), ("ﬁle ｆｕｌｌ", "full"), ("cafe\u0301", "café"),
        ("Łódź", "lodz"), ("שָׁלוֹם עולם", "שלום"), ("हिन्दी भाषा", "भाषा"),
    ])  # fmt: skip
    def test_case_and_diacritics_are_folded_in_every_script(self, case: Case, content: str, text: str) -> None:
        case.add(page("a", "", content), page("b", "zzz"))
        assert case.ids(text) == ["a"]

    def test_settings_apply_synonyms_pins_weights_and_stop_words(self, case: Case) -> None:
        case.add(
            page("a", "Laptop", "portable"),
            page("b", "Notebook computer", "portable"),
            page("c", "Phone", "a laptop is no phone"),
            page("z", "Nothing", "to see"),
        )
        plain = case.ids("laptop")
        assert plain[0] == "a"
        assert "b" not in plain
        synonyms = SearchSettings(synonyms=(("laptop", "notebook computer"),))
        assert {"a", "b"} <= set(case.ids("laptop", settings=synonyms))
        assert {"a", "b"} <= set(case.ids("notebook computer", settings=synonyms))
        pinned = SearchSettings(pinned={"laptop": ("z", "gone", "c")})
        result = case.search(" LAPTOP ", settings=pinned)
        assert [hit.id for hit in result.hits] == ["z", "c", "a"]
        assert result.total == 3
        assert case.ids("laptop", settings=pinned, limit=1, offset=1) == ["c"]
        assert case.ids("laptop", settings=pinned, limit=5, offset=2) == ["a"]
        weights = SearchSettings(weights={"title": 0.01, "content": 10.0})
        assert case.ids("laptop", settings=weights)[0] == "c"
        stops = SearchSettings(stop_words=frozenset({"laptop"}))
        assert case.ids("laptop phone", settings=stops)[0] == "c"

    def test_synonym_groups_add_up_and_changes_replace_the_old_groups(self, case: Case) -> None:
        case.add(page("a", "laptop"), page("b", "notebook"), page("c", "computer"), page("d", "tablet"))

        def found(*groups: tuple[str, ...]) -> list[str]:
            return sorted(case.ids("laptop", settings=SearchSettings(synonyms=groups)))

        assert found(("laptop", "notebook"), ("laptop", "computer")) == ["a", "b", "c"]
        assert found(("laptop", "tablet"), ("laptop", "computer")) == ["a", "c", "d"]
        assert found(("laptop", "tablet")) == ["a", "d"]
        assert found() == ["a"]

    def test_one_way_synonyms_are_found_in_one_direction_only(self, case: Case) -> None:
        case.add(page("a", "tablet"), page("b", "ipad"), page("c", "galaxy pad"), page("d", "slate"))
        one_way = OneWaySynonyms("tablet", ("ipad", "galaxy pad"))

        def found(query: str, *synonyms: tuple[str, ...] | OneWaySynonyms) -> list[str]:
            return sorted(case.ids(query, settings=SearchSettings(synonyms=synonyms)))

        assert found("tablet", one_way) == ["a", "b", "c"]
        assert found("ipad", one_way) == ["b"]
        assert found("galaxy pad", one_way) == ["c"]
        assert found("tablet", one_way, ("tablet", "slate")) == ["a", "b", "c", "d"]
        assert found("slate", one_way, ("tablet", "slate")) == ["a", "d"]
        assert found("tablet", OneWaySynonyms("tablet", ("ipad",))) == ["a", "b"]
        assert found("ipad", ("tablet", "ipad")) == ["a", "b"]
        assert found("tablet") == ["a"]

    def test_pinned_document_must_pass_the_filter(self, case: Case) -> None:
        case.add(page("a", "walrus", color="red"), page("b", "walrus", color="blue"), page("z", "x", color="red"))
        pinned = SearchSettings(pinned={"walrus": ("z", "b")})
        assert case.ids("walrus", "color = red", settings=pinned) == ["z", "a"]

    def test_hidden_document_is_never_returned_for_its_query(self, case: Case) -> None:
        case.add(page("a", "walrus", color="red"), page("A", "walrus", color="red"), page("z", "x", color="blue"))
        hidden = SearchSettings(hidden={"walrus": ("a", "gone"), "*": ("z",)}, pinned={"walrus": ("z", "a")})

        result = case.search(" WALRUS ", settings=hidden, facets=("color",))

        assert [hit.id for hit in result.hits] == ["z", "A"]
        assert result.total == 2
        assert result.facets["color"] == {"blue": 1, "red": 1}
        assert case.ids("walrus", "color = red", settings=hidden) == ["A"]
        assert case.ids("walrus", settings=hidden, sort=(SortKey("color"),)) == ["A"]
        assert sorted(case.ids("*", settings=hidden)) == ["A", "a"]
        assert sorted(case.ids("walru", settings=hidden)) == ["A", "a"]

    def test_newer_document_wins_a_tie(self, case: Case) -> None:
        case.add(
            page("old", "walrus", date="2010-01-01"),
            page("new", "walrus", date="2025-01-01"),
            page("mid", "walrus", date="2018-01-01"),
        )
        assert case.ids("walrus") == ["new", "mid", "old"]

    @pytest.mark.parametrize(("content", "text", "marked"), [
        ("Installation guide", "instal", "<em>Installation</em> guide"),
        ("A documentation page", "documantation", "A <em>documentation</em> page"),
        ("Many houses here", "house", "Many <em>houses</em> here"),
        ("Le café noir", "cafe", "Le <em>café</em> noir"),
        ("Use node.js & more", "node.js", "Use <em>node.js</em> &amp; more"),
        ("Learn C++ now", "c++", "Learn <em>C++</em> now"),
    ])  # fmt: skip
    def test_every_kind_of_match_is_highlighted(self, case: Case, content: str, text: str, marked: str) -> None:
        case.add(page("a", "", content))
        formatted = case.search(text, highlight=Highlight()).hits[0].formatted
        assert formatted is not None
        assert formatted["content"] == marked

    def test_removing_highlight_tags_restores_the_original_text(self, case: Case) -> None:
        texts = [
            "<b>İstanbul</b> ﬁle & ß",
            "x́́ cafe\u0301 'quote' \"double\"",
            "日本語 English 한국어",
            "\u202e a \u200b b",
        ]
        case.add(*(page(str(number), text, text) for number, text in enumerate(texts)))
        for query in ("istanbul", "file", "cafe", "日本", "english", "한국"):
            for hit in case.search(query, highlight=Highlight(crop_fields={})).hits:
                assert hit.formatted is not None
                for name in ("title", "content"):
                    plain = html.unescape(hit.formatted[name].replace("<em>", "").replace("</em>", ""))
                    assert plain == hit.document[name]

    def test_sorting_agrees_with_a_reference_model_on_any_page(self, case: Case) -> None:
        chance = random.Random(7)
        documents = []
        for number in range(300):
            fields: dict[str, Any] = {}
            if chance.random() < 0.8:
                fields["rank"] = chance.choice([1, 2, 2.5, 3, -1])
            if chance.random() < 0.7:
                fields["color"] = chance.choice(["red", "Green", "blue"])
            if chance.random() < 0.5:
                fields["date"] = chance.choice(["2020-01-01", "2021-06-01", "2022-01-01T10:00:00Z"])
            documents.append(page(f"d{number:03}", "word", **fields))
        case.add(*documents)
        keys = (SortKey("rank", True), SortKey("color"), SortKey("id"))

        def by(document: Mapping[str, Any]) -> tuple[Any, ...]:
            rank, color = document.get("rank"), document.get("color")
            return (rank is None, -(rank or 0), color is None, (color or "").lower(), document["id"])

        expected = [document["id"] for document in sorted(documents, key=by)]
        for offset in (0, 7, 95, 205, 290):
            assert case.ids("word", sort=keys, limit=20, offset=offset) == expected[offset : offset + 20]
