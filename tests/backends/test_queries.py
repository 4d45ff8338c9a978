"""What a person typed is taken apart; what is beyond the bound is passed over."""

from __future__ import annotations

import time

import pytest

from backends.embedded.queries import MAX_UNITS, parse_query
from backends.words import query_parts


@pytest.mark.parametrize(("text", "open_end"), [
    ("a " * 200, True), ("a " * 200 + '"b c"', False), ("a " * 200 + '"b c" d', True), ("a " * 200 + '"b c" -d', False),
    ("a " * 200 + '"b c" ...', False), ('"b c" ' + "a " * 200, True),
])  # fmt: skip
def test_words_beyond_the_bound_only_tell_whether_the_last_is_finished(text: str, open_end: bool) -> None:
    parsed = parse_query(text)

    assert [unit.term for unit in parsed.units] == ["a"] * MAX_UNITS
    assert parsed.open_end is open_end
    assert [phrase.terms for phrase in parsed.phrases] == ([("b", "c")] if '"' in text else [])
    assert [phrase.terms for phrase in parsed.excluded] == ([("d",)] if "-d" in text else [])


@pytest.mark.parametrize(("text", "units", "phrases"), [
    ('צה"ל וארה"ב', [("צה", "ל"), ("וארה", "ב")], []), ('"צה"ל בארה״ב" חוק', [("חוק",)], [("צה", "ל", "בארה", "ב")]),
    ('ב"גן הזיכרון"', [("ב",)], [("גן", "הזיכרון")]),
    ("“opening hours” now", [("now",)], [("opening", "hours")]), ("„neue Zeit“", [], [("neue", "zeit")]),
    ("माता-पिताओं", [("माता",), ("पिताओं",)], []), ("वर्णित", [("वरणित",)], []),
])  # fmt: skip
def test_signs_mean_what_they_are_typed_for(
    text: str, units: list[tuple[str, ...]], phrases: list[tuple[str, ...]]
) -> None:
    parsed = parse_query(text)

    assert [unit.terms for unit in parsed.units] == units
    assert [phrase.terms for phrase in parsed.phrases] == phrases


def test_server_engines_are_told_the_same() -> None:
    def together(text: str) -> list[tuple[str, ...]]:
        return [part.words for part in query_parts(text) if part.phrase]

    assert together('צה"ל וארה״ב') == [("צה", "ל"), ("וארה", "ב")]
    assert together('"צה"ל בארה״ב" חוק') == [("צה", "ל", "בארה", "ב")]
    assert together("“opening hours” now") == [("opening", "hours")]


@pytest.mark.parametrize("text", ['"' + "א״ב " * 120, '"' + 'א"ב ' * 120, 'א"ב"' * 120])
def test_quotes_that_never_close_are_read_in_time(text: str) -> None:
    started = time.process_time()
    parse_query(text)
    query_parts(text)
    assert time.process_time() - started < 1.0
