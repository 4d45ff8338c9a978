"""Rates have no value without a divisor, and never exceed one."""

from __future__ import annotations

from app.services.analytics.report_parts import mean, share_of


def test_share_is_between_0_and_1_and_none_without_a_divisor() -> None:
    assert [share_of(0, 4), share_of(1, 4), share_of(4, 4), share_of(5, 4)] == [0.0, 0.25, 1.0, 1.0]
    assert share_of(0, 0) is share_of(3, 0) is None


def test_mean_of_zero_values_is_none() -> None:
    assert mean(7, 2) == 3.5
    assert mean(0, 0) is None
