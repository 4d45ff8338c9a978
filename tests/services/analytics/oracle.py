"""A plain implementation of analytics that counts all events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta

from app.models.events import AGENT, CHANNELS
from app.services.analytics.events import Click, SearchEvent
from app.services.analytics.report_parts import ChannelCount, ClickedPage, PageCount
from app.services.analytics.reports import Analytics, DayCount, QueryCount, Totals
from backends.text import normal_form

MERGE_SECONDS = 30

Event = SearchEvent | Click


def merged(events: Iterable[SearchEvent]) -> list[SearchEvent]:
    """Return the events without those replaced by the next one of their session; ``events`` are in order of arrival."""
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
    """Return each click once, and whether it is the first of its search; ``clicks`` are in order of arrival."""
    kept: dict[object, tuple[Click, bool]] = {}
    searches: set[object] = set()
    for click in clicks:
        search = click.site_id, click.search_key
        if (*search, click.document_id) not in kept:
            kept[*search, click.document_id] = click, search not in searches
            searches.add(search)
    return list(kept.values())


def count(
    events: Sequence[Event],
    site_ids: set[int],
    period_days: int,
    today: date,
    *,
    limit: int = 10,
    channel: str | None = None,
    details: bool = False,
) -> Analytics:
    """Return the expected analytics of these sites."""
    every = merged(event for event in events if isinstance(event, SearchEvent) and event.site_id in site_ids)
    every_click = single(event for event in events if isinstance(event, Click) and event.site_id in site_ids)
    searches = [event for event in every if channel in (None, event.channel)]
    clicks = [(click, first) for click, first in every_click if channel in (None, click.channel)]
    days = [today - timedelta(days=n) for n in range(period_days - 1, -1, -1)]
    previous = [day - timedelta(days=period_days) for day in days]
    kept = [event for event in searches if event.occurred_at.date() in set(days)]
    listed = [event for event in kept if channel is not None or event.channel != AGENT]
    clicked = [(click, first) for click, first in clicks if click.occurred_at.date() in set(days)]

    def top(holds: Callable[[SearchEvent], bool] = lambda event: True, *, clickless: bool = False) -> list[QueryCount]:
        counts = Counter(normal_form(event.query) for event in listed if holds(event))
        return sorted(
            (
                _of_query(query, number, listed, clicked if channel is None else _first_of_each(clicked))
                for query, number in counts.items()
                if not (clickless and any(normal_form(click.query) == query for click, _ in clicked))
            ),
            key=lambda item: (-item.count, item.query),
        )

    no_clicks = {normal_form(event.query) for event in listed if event.results_count > 0}
    kept_before = [event for event in searches if event.occurred_at.date() in previous]
    clicked_before = [(click, first) for click, first in clicks if click.occurred_at.date() in previous]
    return Analytics(
        totals=_totals(kept, clicked),
        previous=_totals(kept_before, clicked_before),
        unique_queries=len({normal_form(event.query) for event in listed}),
        top_queries=top()[:limit],
        zero_result_queries=top(lambda event: event.results_count == 0)[:limit],
        partial_queries=top(lambda event: event.results_count > 0 and event.matched == "some")[:limit],
        no_click_queries=[item for item in top(clickless=True) if item.query in no_clicks][:limit],
        series=[_day(day, kept, clicked) for day in days],
        previous_series=[_day(day, kept_before, clicked_before) for day in previous],
        channels=[
            ChannelCount(
                name,
                len(own),
                sum(event.results_count == 0 for event in own),
                sum(click.channel == name and click.occurred_at.date() in set(days) for click, _ in every_click),
            )
            for name in CHANNELS
            for own in [[event for event in every if event.channel == name and event.occurred_at.date() in set(days)]]
            if own or any(click.channel == name and click.occurred_at.date() in set(days) for click, _ in every_click)
        ],
        pages=_pages(kept)[:limit] if details else (),
        clicked_pages=_clicked_pages([click for click, _ in clicked])[:limit] if details else (),
    )


def _day(day: date, kept: Sequence[SearchEvent], clicked: Sequence[tuple[Click, bool]]) -> DayCount:
    own = _totals(
        [event for event in kept if event.occurred_at.date() == day],
        [(click, first) for click, first in clicked if click.occurred_at.date() == day],
    )
    return DayCount(day, own.total_searches, own.zero_results, own.clicks, own.clicked_searches, own.agent_searches)


def _first_of_each(clicked: Sequence[tuple[Click, bool]]) -> list[tuple[Click, bool]]:
    """Return the clicks, each with whether it is the first of its search and query."""
    seen: set[object] = set()
    found = []
    for click, _ in clicked:
        key = click.site_id, click.search_key, normal_form(click.query)
        found.append((click, key not in seen))
        seen.add(key)
    return found


def _pages(kept: Sequence[SearchEvent]) -> list[PageCount]:
    told = [event for event in kept if event.page is not None and event.channel is not None]
    counts = Counter(str(event.page) for event in told)
    empty = Counter(str(event.page) for event in told if event.results_count == 0)
    return sorted(
        (PageCount(page, number, empty[page]) for page, number in counts.items()),
        key=lambda page: (-page.searches, page.page),
    )


def _clicked_pages(clicks: Sequence[Click]) -> list[ClickedPage]:
    counts = Counter((click.site_id, click.document_id) for click in clicks)
    found = []
    for (site_id, document_id), number in counts.items():
        own = [click for click in clicks if (click.site_id, click.document_id) == (site_id, document_id)]
        told = [click.position for click in own if click.position is not None]
        found.append(ClickedPage(site_id, document_id, None, number, sum(told) / len(told) if told else None))
    return sorted(found, key=lambda page: (-page.clicks, page.site_id, page.id))


def visitors(events: Sequence[Event], site_id: int, query: str, first_day: date) -> list[int]:
    """Count the distinct visitors of a query since a day: all, with results, and without results."""
    own = merged(event for event in events if isinstance(event, SearchEvent) and event.site_id == site_id)
    made = [
        event
        for event in own
        if event.visitor is not None
        and event.channel != AGENT
        and normal_form(event.query) == query
        and event.occurred_at.date() >= first_day
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
        mixed_searches=sum(event.mixed for event in kept),
        agent_searches=sum(event.channel == AGENT for event in kept),
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
