"""Relaxed searches when no document matches the whole query."""

from __future__ import annotations

import pytest

from backends.query import Highlight, SearchSettings
from tests.backends.contract import page
from tests.backends.embedded.in_memory import index_of


def test_quoted_name_in_a_sentence_is_preferred_but_not_required() -> None:
    case = index_of(
        page("doctor", "Television", "The doctor travels through time and has been played by many actors"),
        page("exact", "Television", "Doctor Who travels alone"),
        page("other", "Gardens", "Roses and tulips"),
    )
    assert case.ids('how often does "Doctor Who" travel through time') == ["exact", "doctor"]
    assert case.ids('how often does "Doctor Who" travel', all_words=True) == []
    assert case.ids('how often does "Doctor Whom" travel through time')[0] == "doctor"
    assert "other" not in case.ids('how often does "Doctor Whom" travel through time -"roses and"')
    assert case.ids('how often does "Doctor Whom" travel', all_words=True) == []
    for strict in ('"Doctor Whom"', 'time "Doctor Whom"', '"Doctor Whom" "travels through time"'):
        assert case.ids(strict) == [], strict


def test_page_with_the_quoted_phrase_is_found_when_all_other_words_are_missing() -> None:
    case = index_of(page("phrase", "TV", "Doctor Who has been on for years"), page("other", "Doctor", "Doctor, doctor"))
    assert case.ids('how expensive tickets "Doctor Who" cost') == ["phrase", "other"]
    for words in ('"Doctor Who" nedir?', '"Doctor Who" -tickets cost'):
        assert case.ids(words) == ["phrase"]
    assert case.ids('"Doctor Who" cost -years') == case.ids('"Doctor Who" cost', all_words=True) == []


@pytest.mark.parametrize("pinned", [{}, {'how often does "doctor who" travel': ("words-070", "phrase-1")}])
@pytest.mark.parametrize("size", [7, 50, 101])
def test_pages_join_hits_with_and_without_the_quoted_name(size: int, pinned: dict[str, tuple[str, ...]]) -> None:
    case = index_of(
        *(page(f"words-{at:03}", "Doctor travels often", "Who else, how often? The doctor.") for at in range(120)),
        *(page(f"phrase-{at}", "Television", "Doctor Who was on for years") for at in range(3)),
    )
    text, settings = 'how often does "Doctor Who" travel', SearchSettings(pinned=pinned)
    ids = [id for at in range(0, 150, size) for id in case.ids(text, offset=at, limit=size, settings=settings)]
    assert len(ids) == len(set(ids)) == 123
    first = [*pinned.get(text.lower(), ()), "phrase-0", "phrase-1", "phrase-2"]
    assert set(ids[: len(set(first))]) == set(first)
    assert case.search(text, limit=0, settings=settings).total == 123


def test_phrase_with_one_unspaced_word_is_not_treated_as_a_sentence() -> None:
    case = index_of(page("a", "博物馆", "开放的时间"), page("b", "时间", "博物馆开放"))
    assert case.ids('"开放时间" 博物馆') == []
    assert case.ids('请问市中心的博物馆什么时候有"开放时间"呢')[:1] != []


def test_words_of_an_unmatched_phrase_are_highlighted() -> None:
    case = index_of(page("doctor", "Television", "The doctor travels through time"))
    (hit,) = case.search('how often does "Doctor Whom" travel', highlight=Highlight()).hits
    assert "<em>doctor</em> <em>travels</em>" in (hit.formatted or {})["content"]


def test_stop_words_find_nothing_beside_words_that_no_page_has() -> None:
    chapters = (page(f"{at}", f"Chapter {at}", "In this chapter of the book we tell the visitors.") for at in range(40))
    case = index_of(page("car", "Parking", "Where to leave the car."), page("fern", "Fern of the quay", ""), *chapters)
    assert case.ids("where is the quokka") == []
    assert case.ids("fern of the quay") == ["fern"]


def test_compounds_that_begin_with_a_word_come_after_all_other_hits() -> None:
    pages = [
        {"id": "begins", "title": "Tensoren", "content": "Der Spannungstensor beschreibt die Kräfte in einem Körper."},
        {"id": "has", "title": "Kraft", "content": "Eine Kraft kann auch in den Strukturen eines Hauses wirken."},
        {"id": "none", "title": "Wetter", "content": "Der Regen fällt in den Bergen, und es wird kalt."},
    ]
    case = index_of(*pages)

    assert case.ids("Was verursacht Spannungen in den Strukturen") == ["has", "begins"]
