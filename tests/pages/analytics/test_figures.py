"""The analytics figures and their comparison with the previous period."""

from __future__ import annotations

from datetime import date

import pytest

from app.pages.analytics.charts import percent
from app.pages.analytics.figures import Figure, make_figures, make_query_figures
from app.services.analytics.query_reports import QueryAnalytics
from app.services.analytics.reports import Analytics, DayCount, Totals

NOTHING = dict.fromkeys(
    (
        "total_searches",
        "zero_results",
        "measured_searches",
        "response_ms",
        "clicks",
        "clicked_searches",
        "positioned_clicks",
        "click_positions",
    ),
    0,
)


def figures(now: dict[str, int], before: dict[str, int]) -> dict[str, Figure]:
    analytics = Analytics(Totals(**NOTHING | now), Totals(**NOTHING | before), 0, [], [], [], [], [])
    return {figure.label: figure for figure in make_figures(analytics)}


def test_figures_without_searches_show_no_rates() -> None:
    values = {label: (figure.value, figure.change) for label, figure in figures({}, {}).items()}

    assert values == {
        "Searches": ("0", ""),
        "Unique queries": ("0", ""),
        "Searches without results": ("–", ""),
        "Average response time": ("–", ""),
    }


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [
        (12, 0, ""),
        (1200, 1200, "same as before"),
        (1320, 120, "120 before"),
        (1319, 120, "999% more than 120 before"),
        (1500, 1200, "25% more than 1,200 before"),
        (1, 3, "67% fewer than 3 before"),
        (0, 3, "100% fewer than 3 before"),
    ],
)
def test_counts_are_compared_as_percentages_of_the_previous_period(now: int, before: int, change: str) -> None:
    assert figures({"total_searches": now}, {"total_searches": before})["Searches"].change == change


@pytest.mark.parametrize(
    ("now", "before", "change", "tone"),
    [
        (20, 30, "down from 30%", "better"),
        (30, 20, "up from 20%", "worse"),
        (20, 20, "same as before", ""),
    ],
)
def test_fewer_searches_without_results_are_marked_better(now: int, before: int, change: str, tone: str) -> None:
    told = figures({"total_searches": 100, "zero_results": now}, {"total_searches": 100, "zero_results": before})[
        "Searches without results"
    ]

    assert told == Figure("Searches without results", f"{now}%", change, tone)


def test_small_changes_are_neither_better_nor_worse() -> None:
    before = {"total_searches": 1000, "zero_results": 138, "measured_searches": 1, "response_ms": 100}
    told = figures({**before, "zero_results": 140, "response_ms": 104}, before)

    assert told["Searches without results"] == Figure("Searches without results", "14%", "up from 13.8%", "", "")
    assert told["Average response time"].tone == ""
    assert figures({**before, "zero_results": 145}, before)["Searches without results"].tone == "worse"


def test_only_the_first_four_figures_have_cards() -> None:
    told = figures({"total_searches": 9, "clicks": 2, "clicked_searches": 2, "mixed_searches": 1}, {})

    assert [label for label, figure in told.items() if not figure.is_minor] == [
        "Searches",
        "Searches without results",
        "Clicks",
        "Searches with a click",
    ]


def test_sparkline_begins_with_the_first_search_and_needs_three_days() -> None:
    def spark(*searches: int) -> str:
        series = [DayCount(date(2024, 5, 1 + place), count, 0) for place, count in enumerate(searches)]
        analytics = Analytics(Totals(**NOTHING), Totals(**NOTHING), 0, [], [], [], [], series)
        return make_figures(analytics)[0].sparkline

    assert spark(0, 0, 4, 2, 0) == "M0.0 0.0L50.0 50.0L100.0 100.0"
    assert spark(0, 0, 0, 4, 2) == spark(3, 3, 3) == ""


def test_more_clicks_higher_positions_and_faster_responses_are_marked_better() -> None:
    now = {
        "total_searches": 10, "clicks": 5, "clicked_searches": 5, "positioned_clicks": 4, "click_positions": 6,
        "measured_searches": 2, "response_ms": 20,
    }  # fmt: skip
    before = {
        "total_searches": 10, "clicks": 4, "clicked_searches": 4, "positioned_clicks": 4, "click_positions": 10,
        "measured_searches": 2, "response_ms": 40,
    }  # fmt: skip
    better, worse = figures(now, before), figures(before, now)

    for told, tone in ((better, "better"), (worse, "worse")):
        for label in ("Searches with a click", "Average position of clicks", "Average response time"):
            assert told[label].tone == tone, label
    assert better["Average position of clicks"].value == "1.5"
    assert better["Average position of clicks"].change == "down from 2.5"
    assert better["Average response time"].value == "10 ms"


def test_clicks_are_not_compared_with_a_period_without_clicks() -> None:
    told = figures({"total_searches": 10, "clicks": 5, "clicked_searches": 5}, {"total_searches": 10})

    assert told["Clicks"] == Figure("Clicks", "5")
    assert told["Searches with a click"] == Figure("Searches with a click", "50%")


@pytest.mark.parametrize(("rate", "text"), [(0, "0%"), (1, "100%"), (0.125, "12.5%"), (1 / 3, "33.3%")])
def test_rates_are_shown_as_percentages(rate: float, text: str) -> None:
    assert percent(rate) == text


@pytest.mark.parametrize(("finds", "text"), [(None, "–"), (0, "none"), (1, "1 page"), (1200, "1,200 pages")])
def test_query_figures_show_the_current_number_of_results(finds: int | None, text: str) -> None:
    told = QueryAnalytics("q", 0, 0, None, None, [], [])

    assert {figure.label: figure.value for figure in make_query_figures(told, finds)} == {
        "Searches": "0",
        "Results now": text,
        "Clicks": "0",
        "Searches with a click": "–",
        "Average position of clicks": "–",
    }


def test_semantic_searches_are_shown_only_if_there_are_any() -> None:
    assert "Semantic searches" not in figures({"total_searches": 4}, {})
    told = figures({"mixed_searches": 3}, {"mixed_searches": 2})
    assert told["Semantic searches"].change == "50% more than 2 before"
