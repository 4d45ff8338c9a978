"""Rates: parts of searches and of clicks, as analytics tell them."""

from __future__ import annotations


def part(count: int, searches: int) -> float | None:
    """``count`` of ``searches``, from 0 to 1; ``None`` without searches. More than all counts as all.

    A search of yesterday may be clicked today, and a client may report clicks without searches.
    """
    return min(1.0, count / searches) if searches > 0 else None


def mean(total: int, count: int) -> float | None:
    """``total`` divided among ``count``; ``None`` without any."""
    return total / count if count > 0 else None
