"""Tests of the crawler fail if it meets an unexpected exception, which it would only log and count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.crawl.fetch.unexpected import STEPS, UNEXPECTED_ERRORS


@dataclass
class UnexpectedErrors:
    """The unexpected exceptions of a test.

    Attributes:
        expected: The number that the test causes on purpose, by step.
    """

    expected: dict[str, int]


def _counts() -> dict[str, float]:
    return {step: UNEXPECTED_ERRORS.labels(step)._value.get() for step in STEPS}


@pytest.fixture(autouse=True)
def unexpected_errors() -> Iterator[UnexpectedErrors]:
    """Check that the crawler meets only the exceptions that the test expects; the captured log has their tracebacks."""
    errors = UnexpectedErrors({})
    before = _counts()
    yield errors
    after = _counts()
    assert {step: after[step] - before[step] for step in STEPS if after[step] != before[step]} == errors.expected
