"""Rates have no value without a divisor, and never exceed one."""

from __future__ import annotations

from app.services.analytics.report_parts import mean, part


def test_part_is_between_0_and_1_and_none_without_a_divisor() -> None:
    assert [part(0, 4), part(1, 4), part(4, 4), part(5, 4)] == [0.0, 0.25, 1.0, 1.0]
    assert part(0, 0) is part(3, 0) is None


def test_mean_of_zero_values_is_none() -> None:
    assert mean(7, 2) == 3.5
    assert mean(0, 0) is None
