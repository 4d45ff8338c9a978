"""Corrected queries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.analysis.normalization import fold
from backends.base import Matched
from backends.embedded.query.typos import edits
from backends.query import Highlight, SearchSettings, SortKey
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of

WORDS = st.sampled_from(("watermelon", "quarantine", "coroutine", "harbor", "lantern", "übersicht"))
OTHER_SPELLINGS = {"uebersicht"}
"""Strings that are one letter away from one of the words but count as the word itself, so they are not corrected."""

TEXTS = st.lists(WORDS, max_size=3).map(" ".join)
PAGES = st.lists(
    st.builds(
        lambda fields, titles: {
            **page("", **fields),
            "sections": [{"anchor": f"s{at}", "title": title, "level": 2, "start": 0} for at, title in titles],
        },
        st.fixed_dictionaries({"title": TEXTS, "content": TEXTS, "excerpt": TEXTS}),
        st.lists(TEXTS, max_size=3).map(enumerate),
    ),
    min_size=1,
    max_size=4,
)
OPTIONS = st.fixed_dictionaries({}, optional={
    "sections": st.just(3), "highlight": st.just(Highlight()), "answers": st.just(True), "explain": st.just(True),
    "all_words": st.just(True), "sort": st.just((SortKey("title"),)), "facets": st.just(("*",)),
})  # fmt: skip


def test_correction_is_the_most_frequent_of_the_nearest_words() -> None:
    case = index_of(page("a", "perch"), page("b", "search"), page("c", "search"), page("d", "research"))
    assert case.search("serch").corrected_query == "search"


@pytest.mark.parametrize(("written", "typed", "corrected"), [
    ("Ein Café in München", "Müncehn", "München"), ("Une forêt près de l’hôtel", "foret horet", "foret forêt"),
    ("Наши документы", "докумнеты", "документы"), ("Read pg_settings first", "PG_seftings now", "PG_settings now"),
    ("Install the strings.Truncate call", "strings.Trucnate", "strings.Truncate"),
])  # fmt: skip
def test_corrected_word_is_spelled_as_in_documents_and_other_words_as_typed(
    written: str, typed: str, corrected: str
) -> None:
    case = index_of(page("a", "Now", written))
    assert case.search(typed).corrected_query == corrected


@pytest.mark.parametrize("text", ["houses", "haus", "log in", "desklamp", "e-mial", "instal"])
def test_other_form_of_a_word_is_not_a_correction(text: str) -> None:
    case = index_of(
        page("a", "The house and its desk lamp"), page("b", "Das Haus"), page("c", "Login e mial list install")
    )
    result = case.search(text)
    assert result.total
    assert (result.matched, result.corrected_query) == (Matched.ALL, None)


def test_rare_word_that_occurs_in_a_document_is_not_corrected() -> None:
    case = index_of(page("a", "search engine"), page("b", "serch"))
    result = case.search("serch engine")
    assert [hit.id for hit in result.hits] == ["a", "b"]
    assert (result.matched, result.corrected_query) == (Matched.ALL, None)


def test_word_whose_synonym_occurs_nowhere_is_still_corrected() -> None:
    case = index_of(page("a", "search engine"))
    settings = SearchSettings(synonyms=(("serch", "look up"),))
    assert case.search("serch", settings=settings).corrected_query == "search"


def test_missing_stop_word_does_not_count_as_unmatched() -> None:
    case = index_of(page("a", "Install a server", "These are the steps of it, for you and me"))
    assert case.search("how to install the server").matched is Matched.ALL


def test_words_of_an_unmatched_phrase_count_as_matched_without_quotes() -> None:
    case = index_of(page("a", "Find the lake", "in blue and deep water"), page("b", "Find", "deep blue"))
    assert case.search('find the "blue lake" here there').matched is Matched.ALL
    assert case.search('find the "blue moon" here there').matched is Matched.SOME


@given(PAGES, st.data(), OPTIONS)
def test_mistyped_word_is_found_in_every_field_of_a_page(
    pages: list[dict[str, Any]], data: st.DataObject, options: dict[str, Any]
) -> None:
    case = index_of(*({**fields, "id": str(number)} for number, fields in enumerate(pages)))
    word = data.draw(WORDS)
    beginning = data.draw(TEXTS)
    typed = data.draw(st.sampled_from(sorted(edits(fold(word), 0, len(word) // 2) - OTHER_SPELLINGS)))
    expected_ids = {str(number) for number, fields in enumerate(pages) if word in str(fields)}
    result = case.search(typed, **options)
    assert {hit.id for hit in result.hits} == expected_ids
    expected = (Matched.CORRECTED, word) if expected_ids else (Matched.SOME, None)
    assert (result.matched, result.corrected_query) == expected
    longer = case.search(f"{beginning} {typed}", **options)
    if longer.matched is Matched.CORRECTED:
        assert case.search(f"{beginning} {word}").matched is Matched.ALL


@pytest.mark.parametrize(("title", "typed", "meant"), [
    ("Привет мир", "ghbdtn", "привет"), ("Привет мир", "Ghbdtn vbh", "привет мир"), ("Буква", ",erdf", "буква"),
    ("Київ їжа", "rb]d ];f", "київ їжа"), ("Ελλάδα", "ell;ada", "ελλαδα"), ("שלום עולם", "akuo", "שלום"),
    ("مرحبا", "lvpfh", "مرحبا"), ("لا اله", "b hgi", "لا اله"), ("سلام", "sghl", "سلام"),
    ("Hello world", "руддщ", "hello"), ("Hello world", "יקךךם", "hello"), ("Hello world", "اثممخ", "hello"),
])  # fmt: skip
def test_query_in_another_keyboard_layout_is_corrected(title: str, typed: str, meant: str) -> None:
    result = index_of(page("a", title), page("b", "Harbor")).search(typed, highlight=Highlight())
    assert [hit.id for hit in result.hits] == ["a"]
    assert (result.matched, result.corrected_query) == (Matched.CORRECTED, meant)
    assert "<em>" in (result.hits[0].formatted or {})["title"]


@pytest.mark.parametrize("typed", ["ghbdtn harbor", "ghbdtn asdf", "-ghbdtn", "harbor"])
def test_query_that_finds_pages_keeps_its_keyboard_layout(typed: str) -> None:
    result = index_of(page("a", "Привет мир"), page("b", "Harbor")).search(typed)
    assert result.corrected_query is None


@pytest.mark.parametrize(("typed", "corrected"), [
    ('"opening hour"', '"opening hours"'), ('museum "opening hour"', 'museum "opening hours"'),
    ('"hour opening"', None),
    ('"opening hours"', None), ("“Opening Hour”", "“Opening hours”"),
])  # fmt: skip
def test_last_word_of_a_phrase_that_no_page_has_is_inflected(typed: str, corrected: str | None) -> None:
    result = index_of(page("a", "Opening hours of the museum"), page("b", "An hour")).search(typed)
    assert result.corrected_query == corrected
    assert [hit.id for hit in result.hits] == ([] if typed == '"hour opening"' else ["a"])
