"""Analytics counted anew from all events, the plain way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta

from app.services.analytics.events import Click, SearchEvent
from app.services.analytics.reports import Analytics, DayCount, QueryCount, Totals
from backends.text import normal_form

MERGE_SECONDS = 30

Event = SearchEvent | Click


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


def single(clicks: Iterable[Click]) -> list[tuple[Click, bool]]:
    """Each click once, with whether it is the first of its search; ``clicks`` in order of arrival."""
    kept: dict[object, tuple[Click, bool]] = {}
    searches: set[object] = set()
    for click in clicks:
        search = click.site_id, click.search_key
        if (*search, click.document_id) not in kept:
            kept[*search, click.document_id] = click, search not in searches
            searches.add(search)
    return list(kept.values())


def count(events: Sequence[Event], site_ids: set[int], period_days: int, today: date, *, limit: int = 10) -> Analytics:
    """What the analytics of these sites must be."""
    searches = merged(event for event in events if isinstance(event, SearchEvent) and event.site_id in site_ids)
    clicks = single(event for event in events if isinstance(event, Click) and event.site_id in site_ids)
    days = [today - timedelta(days=n) for n in range(period_days - 1, -1, -1)]
    previous = {day - timedelta(days=period_days) for day in days}
    kept = [event for event in searches if event.occurred_at.date() in set(days)]
    clicked = [(click, first) for click, first in clicks if click.occurred_at.date() in set(days)]
    per_day = Counter(event.occurred_at.date() for event in kept)
    zero_per_day = Counter(event.occurred_at.date() for event in kept if event.results_count == 0)

    def top(holds: Callable[[SearchEvent], bool] = lambda event: True, *, clickless: bool = False) -> list[QueryCount]:
        counts = Counter(normal_form(event.query) for event in kept if holds(event))
        return sorted(
            (
                _of_query(query, number, kept, clicked)
                for query, number in counts.items()
                if not (clickless and any(normal_form(click.query) == query for click, _ in clicked))
            ),
            key=lambda item: (-item.count, item.query),
        )

    no_clicks = {normal_form(event.query) for event in kept if event.results_count > 0}
    return Analytics(
        totals=_totals(kept, clicked),
        previous=_totals(
            [event for event in searches if event.occurred_at.date() in previous],
            [(click, first) for click, first in clicks if click.occurred_at.date() in previous],
        ),
        unique_queries=len({normal_form(event.query) for event in kept}),
        top_queries=top()[:limit],
        zero_result_queries=top(lambda event: event.results_count == 0)[:limit],
        partial_queries=top(lambda event: event.results_count > 0 and event.matched == "some")[:limit],
        no_click_queries=[item for item in top(clickless=True) if item.query in no_clicks][:limit],
        series=[DayCount(day, per_day[day], zero_per_day[day]) for day in days],
    )


def visitors(events: Sequence[Event], site_id: int, query: str, first_day: date) -> list[int]:
    """The different visitors who searched a query from a day on, who did so with results, and without."""
    own = merged(event for event in events if isinstance(event, SearchEvent) and event.site_id == site_id)
    made = [
        event
        for event in own
        if event.visitor is not None and normal_form(event.query) == query and event.occurred_at.date() >= first_day
    ]
    found = {event.visitor for event in made if event.results_count > 0}
    missed = {event.visitor for event in made if event.results_count == 0}
    return [len(found | missed), len(found), len(missed)]


def _totals(kept: Sequence[SearchEvent], clicked: Sequence[tuple[Click, bool]]) -> Totals:
    times = [event.response_ms for event in kept if event.response_ms is not None]
    positions = [click.position for click, _ in clicked if click.position is not None]
    return Totals(
        total_searches=len(kept),
        zero_results=sum(event.results_count == 0 for event in kept),
        measured_searches=len(times),
        response_ms=sum(times),
        clicks=len(clicked),
        clicked_searches=sum(first for _, first in clicked),
        positioned_clicks=len(positions),
        click_positions=sum(positions),
    )


def _of_query(
    query: str, number: int, kept: Sequence[SearchEvent], clicked: Sequence[tuple[Click, bool]]
) -> QueryCount:
    own = _totals(
        [event for event in kept if normal_form(event.query) == query],
        [(click, first) for click, first in clicked if normal_form(click.query) == query],
    )
    return QueryCount(
        query,
        number,
        own.clicks,
        own.clicked_searches,
        own.positioned_clicks,
        own.click_positions,
        own.total_searches,
    )
