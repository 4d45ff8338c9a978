"""Meaning finds what words do not, and leaves queries of keywords alone: measured on the questions that are shipped."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.services.embedding.registry import MINILM_PACKAGES
from benchmarks.relevance import EngineAlone, EngineWithMeaning, Row, evaluate, read_lines, rows_of

if any(find_spec(name) is None for name in MINILM_PACKAGES) and not os.environ.get("CI"):
    pytest.skip("the extra minilm is not installed", allow_module_level=True)

QUESTIONS = Path(__file__).parents[1] / "benchmarks" / "sets" / "other-words"

LEAST_GAIN = 0.15
"""MRR@10 that meaning adds at least to questions in other words than their page."""


def measure(system: EngineAlone) -> dict[str, float]:
    """MRR@10 of each row."""
    system.index(read_lines(QUESTIONS / "documents.jsonl.gz"))

    def mean(row: Row) -> float:
        return evaluate(row, system.search)[0]["MRR@10"]

    return {row.name: mean(row) for row in rows_of(QUESTIONS)}


@pytest.mark.slow
def test_questions_in_other_words_are_found_better_and_keywords_alike() -> None:
    by_words, by_meaning = measure(EngineAlone()), measure(EngineWithMeaning())

    assert by_meaning["other-words"] - by_words["other-words"] >= LEAST_GAIN
    assert by_meaning["other-words keywords"] == by_words["other-words keywords"]
