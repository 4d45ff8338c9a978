"""Semantic search finds reworded questions and leaves keyword queries unchanged, on the shipped question set."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.runtime import MINILM_PACKAGES
from benchmarks.relevance import EngineAlone, EngineWithMeaning, Row, evaluate, read_lines, rows_of

if any(find_spec(name) is None for name in MINILM_PACKAGES) and not os.environ.get("CI"):
    pytest.skip("the extra minilm is not installed", allow_module_level=True)

QUESTIONS = Path(__file__).parents[1] / "benchmarks" / "sets" / "other-words"

LEAST_GAIN = 0.3
"""Minimum gain in MRR@10 for questions worded differently from their page."""


def measure(system: EngineAlone) -> dict[str, float]:
    """Return the MRR@10 of each row."""
    system.index(read_lines(QUESTIONS / "documents.jsonl.gz"))

    def mean(row: Row) -> float:
        return evaluate(row, system.search)[0]["MRR@10"]

    return {row.name: mean(row) for row in rows_of(QUESTIONS)}


@pytest.mark.slow
def test_semantic_search_improves_reworded_questions_and_keeps_keyword_results() -> None:
    by_words, by_meaning = measure(EngineAlone()), measure(EngineWithMeaning())

    assert by_meaning["other-words"] - by_words["other-words"] >= LEAST_GAIN
    assert by_meaning["other-words keywords"] == by_words["other-words keywords"]
