"""Rates have no value without a divisor, and never exceed one."""

from __future__ import annotations

from app.services.analytics.origins import mean, part


def test_a_part_is_from_nothing_to_all() -> None:
    assert [part(0, 4), part(1, 4), part(4, 4), part(5, 4)] == [0.0, 0.25, 1.0, 1.0]
    assert part(0, 0) is part(3, 0) is None


def test_a_mean_of_nothing_is_unknown() -> None:
    assert mean(7, 2) == 3.5
    assert mean(0, 0) is None
