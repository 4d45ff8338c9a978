"""Analytics counted anew from all events, the plain way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from app.services.analytics.events import SearchEvent
from app.services.analytics.reports import Analytics, DayCount, QueryCount
from backends.text import normal_form

MERGE_SECONDS = 30


def merged(events: Iterable[SearchEvent]) -> list[SearchEvent]:
    """Without the entries that the next one of their session replaces; ``events`` in order of arrival."""
    lines: dict[object, list[SearchEvent]] = defaultdict(list)
    for number, event in enumerate(events):
        lines[(event.site_id, event.session_id) if event.session_id else number].append(event)
    kept = []
    for line in lines.values():
        line.sort(key=lambda event: event.occurred_at)
        for event, following in zip(line, [*line[1:], None], strict=True):
            replaced = (
                following is not None
                and normal_form(following.query).startswith(normal_form(event.query))
                and following.occurred_at - event.occurred_at <= timedelta(seconds=MERGE_SECONDS)
            )
            if not replaced:
                kept.append(event)
    return kept


def count(events: Sequence[SearchEvent], site_ids: set[int], period_days: int, today: date) -> Analytics:
    """What the analytics of these sites must be."""
    first = today - timedelta(days=period_days - 1)
    kept = [e for e in merged(events) if e.site_id in site_ids and first <= e.occurred_at.date() <= today]
    times = [event.response_ms for event in kept if event.response_ms is not None]
    days = [first + timedelta(days=n) for n in range(period_days)]
    per_day = Counter(event.occurred_at.date() for event in kept)
    zero_per_day = Counter(event.occurred_at.date() for event in kept if event.results_count == 0)
    return Analytics(
        total_searches=len(kept),
        unique_queries=len({normal_form(event.query) for event in kept}),
        avg_response_time_ms=int(sum(times) / len(times) + 0.5) if times else 0,
        measured_searches=len(times),
        top_queries=_top(kept),
        zero_result_queries=_top(event for event in kept if event.results_count == 0),
        series=[DayCount(day, per_day[day], zero_per_day[day]) for day in days],
    )


def _top(events: Iterable[SearchEvent]) -> list[QueryCount]:
    counts = Counter(normal_form(event.query) for event in events)
    return [QueryCount(query, n) for query, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]]
