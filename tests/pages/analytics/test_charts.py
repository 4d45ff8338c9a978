"""The chart of searches per day."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.pages.analytics.charts import HEIGHT, draw_chart, nice_ceiling
from app.services.analytics.reports import DayCount

FIRST = date(2024, 5, 1)


def series(*counts: tuple[int, int]) -> list[DayCount]:
    return [DayCount(FIRST + timedelta(days=n), searches, zero) for n, (searches, zero) in enumerate(counts)]


@given(
    st.lists(
        st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)).map(lambda c: (max(c), min(c))), min_size=1, max_size=90
    )
)
def test_chart_bars_start_at_the_baseline_stay_inside_and_are_proportional(counts: list[tuple[int, int]]) -> None:
    chart = draw_chart(series(*counts))
    assert len(chart.bars) == len(counts)
    for bar, (searches, zero) in zip(chart.bars, counts, strict=True):
        assert 0 <= bar.x < chart.width
        assert bar.empty_y + bar.empty_height == pytest.approx(HEIGHT, abs=0.02)
        assert bar.found_y + bar.found_height == pytest.approx(bar.empty_y, abs=0.02)
        assert bar.found_y >= 0
        assert bar.found_height + bar.empty_height == pytest.approx(HEIGHT * searches / chart.top, abs=0.02)
        assert bar.empty_height == pytest.approx(HEIGHT * zero / chart.top, abs=0.02)


@given(st.integers(0, 10**12))
def test_axis_maximum_is_a_round_number_at_most_twice_the_largest_value(most: int) -> None:
    top = nice_ceiling(most)
    assert most <= top <= max(4, 2 * most)
    assert set(str(top)[1:]) <= {"0"}


def test_chart_has_a_text_summary() -> None:
    assert draw_chart(series((0, 0), (0, 0))).summary == "No searches in the last 2 days."
    assert draw_chart(series((3, 1), (1200, 20), (0, 0))).summary == (
        "1,203 searches in 3 days, 21 of them without results; the busiest day was 2 May 2024 with 1,200."
    )


@pytest.mark.parametrize(
    ("days", "labels"),
    [
        (7, ["1 May", "2 May", "3 May", "4 May", "5 May", "6 May", "7 May"]),
        (28, ["1 May", "8 May", "15 May", "22 May"]),
        (30, ["1 May", "7 May", "13 May", "19 May", "25 May"]),
        (90, ["1 May", "19 May", "6 Jun", "24 Jun", "12 Jul"]),
    ],
)
def test_day_axis_labels_are_evenly_spaced(days: int, labels: list[str]) -> None:
    chart = draw_chart(series(*[(1, 0)] * days))

    assert [tick.text for tick in chart.ticks] == labels
    assert [tick.x * len(labels) for tick in chart.ticks] == [chart.width * place for place in range(len(labels))]


@pytest.mark.parametrize(
    ("most", "levels"),
    [(0, (4, 2, 0)), (5, (5, 0)), (37, (40, 20, 0)), (300, (300, 200, 100, 0)), (450, (500, 250, 0))],
)
def test_search_axis_levels_are_whole_numbers(most: int, levels: tuple[int, ...]) -> None:
    assert tuple(draw_chart(series((most, 0))).levels) == levels
