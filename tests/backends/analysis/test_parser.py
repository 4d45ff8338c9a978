"""Query parsing, and the limit on the number of terms."""

from __future__ import annotations

import time

import pytest

from backends.analysis.parser import MAX_QUERY_TERMS, TermKind, parse_query
from backends.servers.tokenizer import query_parts


@pytest.mark.parametrize(("text", "last_term_is_prefix"), [
    ("a " * 200, True), ("a " * 200 + '"b c"', False), ("a " * 200 + '"b c" d', True), ("a " * 200 + '"b c" -d', False),
    ("a " * 200 + '"b c" ...', False), ('"b c" ' + "a " * 200, True),
])  # fmt: skip
def test_text_after_many_words_is_still_parsed(text: str, last_term_is_prefix: bool) -> None:
    parsed = parse_query(text)

    assert [unit.term for unit in parsed.query_terms[:200]] == ["a"] * 200
    assert parsed.last_term_is_prefix is last_term_is_prefix
    assert [phrase.terms for phrase in parsed.phrases] == ([("b", "c")] if '"' in text else [])
    assert [phrase.terms for phrase in parsed.excluded] == ([("d",)] if "-d" in text else [])


def numbered(words: str) -> list[str]:
    return [f"{words}{number}" for number in range(MAX_QUERY_TERMS)]


@pytest.mark.parametrize(("text", "kept", "breaks", "last_term_is_prefix"), [
    (numbered("few"), numbered("few"), set(), True),
    (["the", *numbered("few")], numbered("few"), set(), True),
    ([*numbered("few"), "the"], numbered("few"), set(), False),
    (["few", "the", *numbered("few")[1:]], ["few", *numbered("few")[1:]], {1}, True),
    (["few", "-no", *numbered("few")[1:], "the"], ["few", *numbered("few")[1:]], {1}, False),
    (["the", "the", *numbered("few")[:-1]], ["the", *numbered("few")[:-1]], {1}, True),
    (["few"] * MAX_QUERY_TERMS + ["fewest"], ["few"] * (MAX_QUERY_TERMS - 1) + ["fewest"], {MAX_QUERY_TERMS - 1}, True),
])  # fmt: skip
def test_overlong_query_keeps_its_most_significant_words(
    text: list[str], kept: list[str], breaks: set[int], last_term_is_prefix: bool
) -> None:
    parsed = parse_query(" ".join(text))
    parsed = parsed.shortened(lambda unit: len(unit.term) if unit.term.startswith("few") else 0)

    assert [unit.term for unit in parsed.query_terms] == kept
    assert {place for place in parsed.adjacency_breaks if 0 < place < len(kept)} == breaks
    assert parsed.last_term_is_prefix is last_term_is_prefix


@pytest.mark.parametrize(("text", "units", "phrases"), [
    ('צה"ל וארה"ב', [("צה", "ל"), ("וארה", "ב")], []), ('"צה"ל בארה״ב" חוק', [("חוק",)], [("צה", "ל", "בארה", "ב")]),
    ('ב"גן הזיכרון"', [("ב",)], [("גן", "הזיכרון")]),
    ("“opening hours” now", [("now",)], [("opening", "hours")]), ("„neue Zeit“", [], [("neue", "zeit")]),
    ("माता-पिताओं", [("माता",), ("पिताओं",)], []), ("वर्णित", [("वरणित",)], []),
])  # fmt: skip
def test_quotes_and_hyphens_are_parsed_by_their_meaning_in_each_script(
    text: str, units: list[tuple[str, ...]], phrases: list[tuple[str, ...]]
) -> None:
    parsed = parse_query(text)

    assert [unit.terms for unit in parsed.query_terms] == units
    assert [phrase.terms for phrase in parsed.phrases] == phrases


@pytest.mark.parametrize("text", ['"' + "א״ב " * 120, '"' + 'א"ב ' * 120, 'א"ב"' * 120])
def test_unclosed_quotes_are_parsed_in_bounded_time(text: str) -> None:
    started = time.process_time()
    parse_query(text)
    query_parts(text)
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(("text", "units"), [
    ("海", [(TermKind.UNIGRAM, "海")]), ("海港", [(TermKind.BIGRAM, "海港")]),
    ("海港市", [(TermKind.BIGRAM, "海港"), (TermKind.BIGRAM, "港市")]),
])  # fmt: skip
def test_single_cjk_character_is_a_unigram_and_longer_runs_are_bigrams(
    text: str, units: list[tuple[TermKind, str]]
) -> None:
    assert [(unit.kind, unit.term) for unit in parse_query(text).query_terms] == units


def test_query_is_parsed_into_terms_phrases_and_exclusions() -> None:
    parsed = parse_query('install "node js" -old -"very old" e-mail 3.11.7 日本語 c++')
    assert [(unit.kind, unit.terms) for unit in parsed.query_terms] == [
        (TermKind.WORD, ("install",)), (TermKind.WORD, ("e",)), (TermKind.WORD, ("mail",)),
        (TermKind.COMPOUND, ("3", "11", "7")), (TermKind.BIGRAM, ("日本",)), (TermKind.BIGRAM, ("本語",)),
        (TermKind.WORD, ("cplusplus",)),
    ]  # fmt: skip
    assert [phrase.terms for phrase in parsed.phrases] == [("node", "js")]
    assert [phrase.terms for phrase in parsed.excluded] == [("old",), ("very", "old")]
