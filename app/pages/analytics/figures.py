"""Figures of the analytics, each with its change since the period before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.services.analytics.query_reports import QueryAnalytics
from app.services.analytics.reports import Analytics, Totals
from app.wording import counted, number

Number = TypeVar("Number", int, float)

NONE = "–"
"""What stands where there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, and how it changed.

    Attributes:
        change: In words; empty where the period before has nothing to compare with.
        tone: ``better`` or ``worse`` where the change is one or the other, else empty.
    """

    label: str
    value: str
    change: str = ""
    tone: str = ""


def make_query_figures(told: QueryAnalytics, finds_now: int | None) -> list[Figure]:
    """The figures of one query.

    Args:
        finds_now: Documents; ``None`` if the engine cannot say.
    """
    rate, position = told.click_through_rate, told.average_click_position
    return [
        Figure("Searches", number(told.searches)),
        Figure("Finds now", NONE if finds_now is None else counted(finds_now, "page") if finds_now else "nothing"),
        Figure("Clicks", number(told.clicks)),
        Figure("Searches with a click", NONE if rate is None else percent(rate)),
        Figure("Average position of clicks", NONE if position is None else f"{position:.1f}"),
    ]


def make_figures(analytics: Analytics) -> list[Figure]:
    """The figures of a period."""
    now, before = analytics.totals, analytics.previous
    mixed = now.mixed_searches or before.mixed_searches
    return [
        _count("Searches", now.total_searches, before.total_searches),
        Figure("Unique queries", number(analytics.unique_queries)),
        _rate("Searches without results", now.zero_result_rate, before.zero_result_rate, less_is_better=True),
        *([_count("Ordered by meaning", now.mixed_searches, before.mixed_searches)] if mixed else []),
        *_click_figures(now, before),
        _level("Average response time", _response_ms(now), _response_ms(before), lambda value: f"{number(value)} ms"),
    ]


def _click_figures(now: Totals, before: Totals) -> list[Figure]:
    """Figures of clicks; nothing where none were reported."""
    if not (now.clicks or before.clicks):
        return []
    return [
        _count("Clicks", now.clicks, before.clicks),
        _rate("Searches with a click", now.click_through_rate, before.click_through_rate if before.clicks else None),
        _level(
            "Average position of clicks",
            now.average_click_position,
            before.average_click_position,
            lambda value: f"{value:.1f}",
        ),
    ]


def _response_ms(totals: Totals) -> int | None:
    return totals.avg_response_time_ms if totals.measured_searches else None


def percent(rate: float) -> str:
    """A rate from 0 to 1: ``12.5%``."""
    return f"{100 * rate:.1f}".removesuffix(".0") + "%"


def _count(label: str, value: int, before: int) -> Figure:
    if not before:
        return Figure(label, number(value))
    if value == before:
        return Figure(label, number(value), "as many as before")
    share = abs(value - before) / before
    direction = "more" if value > before else "fewer"
    return Figure(label, number(value), f"{percent(round(share, 2))} {direction} than {number(before)} before")


def _rate(label: str, value: float | None, before: float | None, *, less_is_better: bool = False) -> Figure:
    if value is None:
        return Figure(label, NONE)
    if before is None:
        return Figure(label, percent(value))
    if percent(value) == percent(before):
        return Figure(label, percent(value), "as before")
    tone = "better" if (value < before) == less_is_better else "worse"
    direction = "up" if value > before else "down"
    return Figure(label, percent(value), f"{direction} from {percent(before)}", tone)


def _level(label: str, value: Number | None, before: Number | None, show: Callable[[Number], str]) -> Figure:
    """A figure of which less is better."""
    if value is None:
        return Figure(label, NONE)
    if before is None:
        return Figure(label, show(value))
    if show(value) == show(before):
        return Figure(label, show(value), "as before")
    tone = "better" if value < before else "worse"
    return Figure(label, show(value), f"{'up' if value > before else 'down'} from {show(before)}", tone)
