"""The analytics figures and their comparison with the previous period."""

from __future__ import annotations

import pytest

from app.pages.analytics.figures import Figure, make_figures, make_query_figures, percent
from app.services.analytics.query_reports import QueryAnalytics
from app.services.analytics.reports import Analytics, Totals

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
