"""Response times by day and searches by hour, from the stored searches.

Daily totals have only the sum of response times. Stored searches have individual times, until they expire.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import BigInteger, ColumnElement, case, func, select, type_coerce
from sqlalchemy.orm import Session

from app.models import SearchEvent
from app.models.events import DAY_MICROSECONDS
from app.services.analytics.report_parts import RecentResults, Span, sites_of
from app.services.analytics.reports import EPOCH, DayCount

MAX_SEARCHES = 200_000
"""Maximum number of searches to read, the newest first in whole days, so that busy sites get their report quickly."""
HOURS = 24
PERCENTILES = (50, 95, 99)
_HOUR_MICROSECONDS = DAY_MICROSECONDS // HOURS


@dataclass(frozen=True, slots=True)
class DayTimes:
    """Percentiles of the response times of a UTC day, in milliseconds; ``None`` if none was measured."""

    date: date
    p50: int | None
    p95: int | None
    p99: int | None


@dataclass(frozen=True, slots=True)
class SearchTimes:
    """Times of the searches in a period.

    Attributes:
        days: The days that were read, oldest first.
        searches_by_hour: Number of searches in each hour of the day (UTC) on these days.
    """

    days: Sequence[DayTimes]
    searches_by_hour: Sequence[int]


@dataclass(frozen=True, slots=True)
class HourCount:
    """The searches in one hour of a UTC day.

    Attributes:
        hour: From 0 to 23.
    """

    date: date
    hour: int
    searches: int
    zero_results: int


def count_by_hour(
    session: Session, account_id: int, days: Sequence[DayCount], *, site_id: int | None, channel: str | None
) -> list[HourCount]:
    """Return all hours of consecutive days, oldest first.

    Args:
        days: Oldest first.
        site_id, channel: As for :func:`~app.services.analytics.reports.get_analytics`.
    """
    first, last = ((day.date - EPOCH).days for day in (days[0], days[-1]))
    span = Span(sites_of(session, account_id, site_id), first, last, channel)
    moment = type_coerce(SearchEvent.occurred_at, BigInteger)
    hour = moment // _HOUR_MICROSECONDS
    rows = session.execute(
        select(hour, func.count(), func.sum(case((SearchEvent.results_count == 0, 1), else_=0)))
        .where(*_searches_of(span, first))
        .group_by(hour)
    )
    counts = {int(hour_number): (count, int(zero_results)) for hour_number, count, zero_results in rows}
    return [
        HourCount(day.date, hour_of_day, *counts.get((first + index) * HOURS + hour_of_day, (0, 0)))
        for index, day in enumerate(days)
        for hour_of_day in range(HOURS)
    ]


def _searches_of(span: Span, first: int) -> list[ColumnElement[bool]]:
    """Return the conditions that select the searches of a span from its day ``first`` on."""
    moment = type_coerce(SearchEvent.occurred_at, BigInteger)
    return [
        SearchEvent.site_id.in_(span.site_ids),
        moment >= first * DAY_MICROSECONDS,
        moment < (span.last + 1) * DAY_MICROSECONDS,
        SearchEvent.counted,
        *(() if span.channel is None else (SearchEvent.channel == span.channel,)),
    ]


def get_search_times(
    session: Session,
    account_id: int,
    series: Sequence[DayCount],
    *,
    site_id: int | None,
    channel: str | None,
    recent: RecentResults | None = None,
) -> SearchTimes:
    """Return the times of a period's newest days that have at most :data:`MAX_SEARCHES` searches; at least one day.

    Args:
        series: The days of the period, oldest first.
        site_id, channel, recent: As for :func:`~app.services.analytics.reports.get_analytics`.
    """
    first, last = ((day.date - EPOCH).days for day in (series[0], series[-1]))
    span = Span(sites_of(session, account_id, site_id), first, last, channel)
    if recent is None:
        return _read(session, span, series)
    return recent.get(("times", span), lambda: _read(session, span, series), lambda times: sum(times.searches_by_hour))


def _read(session: Session, span: Span, series: Sequence[DayCount]) -> SearchTimes:
    first = _first_day(span, series)
    moment = type_coerce(SearchEvent.occurred_at, BigInteger)
    hour = moment // _HOUR_MICROSECONDS
    rows = session.execute(
        select(hour, SearchEvent.response_ms, func.count())
        .where(*_searches_of(span, first))
        .group_by(hour, SearchEvent.response_ms)
    ).all()
    by_hour = [0] * HOURS
    by_day: dict[int, Counter[int]] = {}
    for hour_number, response_ms, count in rows:
        day, hour_of_day = divmod(int(hour_number), HOURS)
        by_hour[hour_of_day] += count
        if response_ms is not None:
            by_day.setdefault(day, Counter())[response_ms] += count
    days = [
        DayTimes(EPOCH + timedelta(days=day), *percentiles(by_day.get(day, {}))) for day in range(first, span.last + 1)
    ]
    return SearchTimes(days, by_hour)


def _first_day(span: Span, series: Sequence[DayCount]) -> int:
    first, searches = span.last, 0
    for position, day in enumerate(reversed(series)):
        searches += day.searches
        if position and searches > MAX_SEARCHES:
            break
        first = span.last - position
    return first


def percentiles(counts: Mapping[int, int]) -> list[int | None]:
    """Return the percentiles of values by nearest rank.

    Args:
        counts: Maps each value to its number of occurrences.
    """
    total = sum(counts.values())
    if not total:
        return [None for _ in PERCENTILES]
    ranks = [max(1, -(-share * total // 100)) for share in PERCENTILES]
    values: list[int | None] = []
    passed = 0
    for value in sorted(counts):
        passed += counts[value]
        while len(values) < len(ranks) and passed >= ranks[len(values)]:
            values.append(value)
    return values
