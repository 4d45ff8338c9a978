"""Text processing takes linear time, regardless of the number of combining marks."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.services.accounts.accounts import email_key
from backends.analysis import languages
from backends.analysis.normalization import analyze
from backends.analysis.parser import Phrase
from backends.embedded.index import documents
from backends.embedded.results import folding
from backends.highlighting import Highlighter
from backends.query import Highlight
from backends.servers.highlighter import Matcher
from backends.servers.tokenizer import extra_words, query_parts, split_words
from backends.text import MAX_MARKS_IN_A_ROW, few_marks, normal_form
from backends.values import fold_value

FILTER_TERMS = (
    "\u0301\u0316\u0323\u0344\u0345\u05b0\u0651\u093c\u094d\u0e38\u0e48\u0f71\u0f73\u0f81\u3099\uff9e\u20d7"
    + ("\U000101fd\U0001d165\U0001d16d\U0001e8d0\U0001e94a")
)
LETTERS = "a éßΣא\u1100क한日ก\uff71\U0001d400🔬."
runs = st.tuples(st.sampled_from(LETTERS + FILTER_TERMS), st.integers(1, 90)).map(lambda run: run[0] * run[1])
alternating = st.tuples(st.sampled_from(FILTER_TERMS), st.sampled_from(FILTER_TERMS), st.integers(1, 60)).map(
    lambda pair: (pair[0] + pair[1]) * pair[2]
)
texts = st.lists(st.one_of(runs, alternating), max_size=6).map("".join)

STEPS: tuple[Callable[[str], Any], ...] = (
    analyze,
    normal_form,
    fold_value,
    split_words,
    extra_words,
    languages.toned_words,
    languages.detect_language,
    documents.sort_text,
    email_key,
    Phrase.of,
    query_parts,
    lambda text: folding.fold_text(text),
    lambda text: Highlighter(Highlight(), Matcher.of(query_parts("a é"), ["a"])).format([{"content": text}])[0],
)


def is_mark(char: str) -> bool:
    return all(map(unicodedata.combining, unicodedata.normalize("NFKD", char)))


def longest_run(text: str) -> int:
    return max((len(list(run)) for marks, run in groupby(text, key=is_mark) if marks), default=0)


def normalized_by(step: Callable[[str], Any], text: str) -> list[str]:
    """Return the texts that a step passes to Python's Unicode normalization."""
    seen: list[str] = []
    normalize, is_normalized = unicodedata.normalize, unicodedata.is_normalized

    def watched(function: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        return lambda form, text: (seen.append(text), function(form, text))[1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unicodedata, "normalize", watched(normalize))
        patch.setattr(unicodedata, "is_normalized", watched(is_normalized))
        step(text)
    return seen


@pytest.mark.slow
@given(texts)
@example("\uff71" + "\u0301" * 80 + "\u0316" * 80)
@example("a" + "\u0301\uff9e" * 80)
@example("a" + "\U0001d165\U0001d167" * 80)
@example("\u0f40" + "\u0f73" * 80)
def test_long_runs_of_combining_marks_are_never_normalized(text: str) -> None:
    assert all(longest_run(given) <= MAX_MARKS_IN_A_ROW for step in STEPS for given in normalized_by(step, text))


def test_every_watched_step_normalizes_text() -> None:
    assert all(normalized_by(step, "Ελληνικά a\u0301\u0316 " + "\U0001d400") for step in STEPS)


@given(texts)
def test_runs_of_combining_marks_are_truncated_to_the_maximum(text: str) -> None:
    left = {is_run: [] for is_run in (True, False)}
    for is_run, run in groupby(text, key=is_mark):
        left[is_run].append("".join(run)[: MAX_MARKS_IN_A_ROW if is_run else None])
    kept = ["".join(run) for _, run in groupby(few_marks(text), key=is_mark)]
    assert [run for run in kept if is_mark(run[0])] == left[True]
    assert [run for run in kept if not is_mark(run[0])] == left[False]


@pytest.mark.slow
def test_only_backends_text_normalizes_unicode() -> None:
    root = Path(__file__).parents[2]
    found = {
        str(file.relative_to(root))
        for part in ("app", "backends", "schemas")
        for file in (root / part).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == "normalize")
        or (isinstance(node, ast.ImportFrom) and node.module == "unicodedata")
    }
    assert found == {"backends/text.py"}


@pytest.mark.parametrize(("query", "normal"), [
    ("  Hello   World ", "hello world"), ("CAFE\u0301", "caf\u00e9"), ("a\tb\n c", "a b c"), ("", ""),
    ("\u00a0x\u3000y", "x y"),
])  # fmt: skip
def test_equivalent_queries_share_one_normal_form(query: str, normal: str) -> None:
    assert normal_form(query) == normal
    assert normal_form(normal) == normal
