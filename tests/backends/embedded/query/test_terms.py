"""Compounds match as written and as separate parts, and words in other forms have synonyms."""

from __future__ import annotations

import pytest

from backends.query import Highlight, SearchSettings
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of


def test_compound_as_written_ranks_above_its_separate_parts() -> None:
    case = index_of(
        page("parts", "Driver", "The driver structure has prime_fd_to_handle and more"),
        page("whole", "Other", "See drm_driver.prime_fd_to_handle for this drm thing"),
        page("both", "Guide", "In drm: the driver, its handle to a prime fd"),
        page("none", "Guide", "Handle with care"),
        page("letters", "s of u", "u and s"),
        page("us", "U.S. law", "x"),
        page("version", "7 of 3.11", "x"),
    )
    assert case.ids("drm_driver.prime_fd_to_handle") == ["whole", "both"]
    assert case.ids("U.S.") == ["us"]
    assert case.ids("3.11.7") == []
    assert case.ids("drm_driver.prime_fd_to_handle", all_words=True) == ["whole"]


def test_parts_of_a_compound_are_highlighted_where_they_occur_separately() -> None:
    case = index_of(page("a", "Guide", "The node has js."), page("b", "Guide", "Install node.js here"))
    marked = {hit.id: (hit.formatted or {})["content"] for hit in case.search("node.js", highlight=Highlight()).hits}
    assert marked == {"b": "Install <em>node.js</em> here", "a": "The <em>node</em> has <em>js</em>."}


def test_partial_match_of_a_compound_is_highlighted() -> None:
    (hit,) = index_of(page("a", "Guide", "The function INV")).search("F.INV-function", highlight=Highlight()).hits
    assert (hit.formatted or {})["content"] == "The <em>function</em> <em>INV</em>"


def test_letters_of_an_abbreviation_are_not_highlighted_elsewhere() -> None:
    case = index_of(page("a", "Page", "The U.K. has vitamin K and plan U"))
    (hit,) = case.search("U.K. plan", highlight=Highlight()).hits
    assert (hit.formatted or {})["content"] == "The <em>U.K</em>. has vitamin K and <em>plan</em> U"


def test_only_the_first_compounds_match_as_parts_unless_nothing_else_matches() -> None:
    case = index_of(page("first", "aa and bb"), page("third", "ee and ff"), page("fourth", "gg_hh"))
    assert case.ids("aa_bb cc_dd ee_ff gg_hh") == ["fourth", "first"]
    assert set(case.ids("aa_bb cc_dd ee_ff")) == {"first"}
    assert case.ids("cc_dd xx_yy ee_ff") == ["third"]


@pytest.mark.parametrize(("group", "typed"), [
    (("couch", "sofa"), "couches"), (("sf", "san francisco"), "san franciso"), (("notebook", "sofa"), "notebok"),
    (("living room", "sofa"), "living rooms"),
])  # fmt: skip
def test_inflected_or_mistyped_word_has_the_synonyms_of_the_word(group: tuple[str, str], typed: str) -> None:
    settings = SearchSettings(synonyms=(group,))
    case = index_of(page("a", group[0]), page("b", group[1]), page("c", "Ship"))
    assert set(case.ids(typed, settings=settings)) == {"a", "b"}


def test_word_that_exists_is_not_read_as_a_similar_synonym() -> None:
    settings = SearchSettings(synonyms=(("couch", "sofa"),))
    case = index_of(page("a", "coach"), page("b", "sofa"))
    assert case.ids("coach", settings=settings) == ["a"]


@pytest.mark.parametrize(("text", "query"), [
    ("Take ½ cup of it", "1/2"), ("Take 1½ cups of it", "1 1/2"), ("Take 1/2 cup of it", "½"),
    ("Take ¾ cup of it", "3/4"), ("Take 2⅓ cups of it", "2 1/3"), ("Use №5 for it", "no 5"), ("Use No 5 for it", "№5"),
    ("With .NET you can", "net"), ("With Vue.js 3 you can", "vue3"),
])  # fmt: skip
def test_fractions_signs_and_names_are_found_however_they_are_typed(text: str, query: str) -> None:
    case = index_of(page("right", "x", text), page("other", "x", "Use 12 volts and the 5-inch screen"))
    assert case.ids(query)[0] == "right"


def test_fraction_is_highlighted_beside_a_number() -> None:
    case = index_of(page("a", "Take 1½ cups", "x"))
    result = case.search("1 1/2", highlight=Highlight("<b>", "</b>"))
    assert result.hits[0].formatted["title"] == "Take <b>1½</b> cups"
