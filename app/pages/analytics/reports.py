"""Analytics of a site or an account: overview, single queries, CSV export, and forms on these pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlencode

from flask import Response, request

from app.clock import start_of, today
from app.errors import ApiError
from app.models import Site
from app.pages.analytics import lists
from app.pages.analytics.charts import draw_chart, draw_rates, percent
from app.pages.analytics.figures import MIN_POINTS, make_ask_figures, make_figures, make_query_figures
from app.pages.analytics.lists import MAX_QUERIES
from app.pages.analytics.time_charts import draw_hours, draw_searches, draw_times
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.services import collections, inbox, sites
from app.services.access.credentials import load_site_record
from app.services.analytics.examples import find_site_with_examples, remove_examples
from app.services.analytics.query_reports import get_query_analytics
from app.services.analytics.reports import Analytics, encode_csv, get_analytics
from app.services.analytics.search_times import get_search_times
from app.services.asks.open_questions import list_open_questions
from app.services.asks.questions import find_asks
from app.services.collections import MAX_COLLECTIONS
from app.services.inbox import CurrentResult, search_now
from app.services.search.suggestions import HiddenSuggestions, hidden_suggestions
from app.services.search_settings import learns_from_clicks, list_learned
from app.web.callers import current_caller, load_site
from app.web.parsing import check_query_string, load_values
from app.web.permissions import choose_reported_site
from app.web.responses import csv_response
from backends.errors import BackendUnavailable
from backends.text import normal_form
from schemas.analytics import PERIODS, AnalyticsQuerySchema, QueryAnalyticsQuerySchema, days_of

OFFERED_SITES = 100
"""Maximum number of sites to choose from. Analytics of other sites are linked from the sites' own pages."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The site and period selected in the URL, and the sites and collections to choose from.

    Attributes:
        site: The site or collection; ``None`` for all sites of the account.
        period: Name of the period; empty for custom dates.
        last: The last UTC day.
        days: Number of UTC days, ending with ``last``.
        channel: Channel of the searches; ``None`` for all.
    """

    site: Site | None
    offered: Sequence[Site]
    period: str
    last: date
    days: int
    channel: str | None

    @property
    def first(self) -> date:
        """The first UTC day."""
        return self.last - timedelta(days=self.days - 1)

    @property
    def query(self) -> dict[str, str]:
        """The selection as query parameters."""
        dates = {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return {
            **({} if self.site is None else {"site_id": str(self.site.id)}),
            **({"period": self.period} if self.period else dates),
            **({} if self.channel is None else {"channel": self.channel}),
        }

    @property
    def period_query(self) -> str:
        """The period as URL-encoded query parameters."""
        return urlencode({name: value for name, value in self.query.items() if name in ("period", "from", "to")})


def choose_site(*, or_collection: bool = False) -> Choice:
    """Read the selection from the request's URL.

    Args:
        or_collection: Whether the page shows collections, too.

    Raises:
        ApiError: 400, 403, 404.
    """
    check_query_string(request)
    caller = current_caller()
    names = ("site_id", "period", "from", "to", "channel")
    arguments = {name: value for name, value in request.args.items() if value and name in names}
    parameters = load_values(AnalyticsQuerySchema(), {"period": SHOWN_PERIOD, **arguments})
    site_id = choose_reported_site(caller, parameters["site_id"])
    with runtime().database.read() as session:
        account_id = caller.account.id
        site = None if site_id is None else sites.get_site(session, account_id, site_id, or_collection=or_collection)
        listed, _ = sites.list_sites(session, account_id, limit=OFFERED_SITES, offset=0, only=caller.only_site_id)
        if or_collection and caller.only_site_id is None:
            combined, _ = collections.list_collections(session, account_id, limit=MAX_COLLECTIONS, offset=0)
            listed = [*listed, *combined]
    offered = list(listed) if site is None or site in listed else [site, *listed]
    last, days = days_of(parameters, today())
    period = parameters["period"] if parameters["first"] is None else ""
    return Choice(site, offered, period, last, days, parameters["channel"])


SHORT_LIST = 10
"""Number of queries in each list on the overview."""
CHANNEL_NAMES = {
    "box": "Search box",
    "gateway": "InstantSearch and Meilisearch clients",
    "api": "API",
    "google": "Google Custom Search API",
    "algolia": "Algolia API",
    "agent": "AI agents",
}
SHOWN_PERIOD = "28d"
"""Period that pages show by default: whole weeks, so that it has the same weekdays as the preceding period."""
PERIOD_TEXTS = {name: f"{PERIODS[name]} days" for name in ("7d", SHOWN_PERIOD, "90d")}
"""The periods that pages offer. Links with another period show its dates."""


def _read_analytics(choice: Choice, limit: int) -> Analytics:
    """Read the selected analytics, with at most ``limit`` queries in each list."""
    with runtime().database.read() as session:
        return get_analytics(
            session,
            current_caller().account.id,
            choice.days,
            site_id=None if choice.site is None else choice.site.id,
            today=choice.last,
            channel=choice.channel,
            details=True,
            recent=runtime().recent_results,
            limit=limit,
        )


def show_analytics() -> str:
    """Show the analytics of one site or all sites, or one of the lists in full.

    Raises:
        ApiError: 400, 404.
    """
    choice = choose_site(or_collection=True)
    kind = lists.find_kind(request.args.get("list", ""))
    analytics = _read_analytics(choice, SHORT_LIST if kind is None else MAX_QUERIES)
    common = {
        "choice": choice,
        "site": choice.site,
        "periods": PERIOD_TEXTS,
        "percent": percent,
        "channels": CHANNEL_NAMES,
        "query_string": urlencode(choice.query),
        "hidden": hidden_of(choice.site),
    }
    if kind is not None:
        long_list = lists.make_list(lists.items_of(analytics, kind), kind, choice.query)
        return render("analytics_list.html", shown=long_list, **common)
    with runtime().database.read() as session:
        times = get_search_times(
            session,
            current_caller().account.id,
            analytics.series,
            site_id=None if choice.site is None else choice.site.id,
            channel=choice.channel,
            recent=runtime().recent_results,
        )
        with_examples = find_site_with_examples(session, choice.offered if choice.site is None else [choice.site])
        chart = draw_searches(
            session,
            current_caller().account.id,
            analytics,
            site_id=None if choice.site is None else choice.site.id,
            channel=choice.channel,
        )
        asks = find_asks(session, choice.site, choice.channel, choice.last, choice.days)
    learns = choice.site is not None and learns_from_clicks(choice.site.search_settings)
    return render(
        "analytics.html",
        with_examples=with_examples,
        analytics=analytics,
        figures=make_figures(analytics),
        chart=chart,
        asks=asks,
        ask_figures=[] if asks is None else make_ask_figures(asks),
        learns=learns,
        learned=_learned_queries(choice.site) if learns and choice.site is not None else [],
        rates=(
            draw_rates(analytics.series, has_clicks=bool(analytics.totals.clicks))
            if sum(day.searches > 0 for day in analytics.series) >= MIN_POINTS
            else None
        ),
        times=draw_times(times.days),
        hours=draw_hours(times.searches_by_hour),
        lists=[(kind, lists.items_of(analytics, kind)) for kind in lists.KINDS],
        has_clicks=bool(analytics.totals.clicks),
        short=SHORT_LIST,
        **common,
    )


def _learned_queries(site: Site) -> list[tuple[str, int]]:
    """Return the queries whose results are reordered by clicks, with the number of pages that move up."""
    with runtime().database.read() as session:
        learned = list_learned(session, current_caller().account.id, site.id)
    return [(query, len(documents)) for query, documents in learned.items()]


SHOWN_HITS = 10


def show_query() -> str | Response:
    """Show the analytics of a query on a site.

    Raises:
        ApiError: 400, 404.
    """
    arguments = {name: value for name, value in request.args.items() if value}
    query = normal_form(load_values(QueryAnalyticsQuerySchema(), arguments)["q"])
    choice = choose_site(or_collection=True)
    assert choice.site is not None, "the schema requires one"
    current_runtime, site = runtime(), choice.site
    with current_runtime.database.read() as session:
        report = get_query_analytics(session, current_caller().account.id, site.id, query, choice.days, choice.last)
        ignored = inbox.is_ignored(session, site.id, query)
        question = list_open_questions(session, site.id, start_of(choice.first)).get(query)
        record = load_site_record(session, site)
    result: CurrentResult | None = None
    problem = None
    try:
        result = search_now(current_runtime.searcher, record, query, limit=SHOWN_HITS)
    except (ApiError, BackendUnavailable) as error:
        problem = error.message if isinstance(error, ApiError) else "The search engine is unavailable."
    return render(
        "analytics_query.html",
        choice=choice,
        site=site,
        query=query,
        report=report,
        question=question,
        figures=make_query_figures(report, None if result is None else result.total),
        chart=draw_chart(report.series),
        result=result,
        problem=problem,
        pinned=record.settings.pinned.get(query, ()),
        ignored=ignored,
        hidden=hidden_of(site),
        periods=PERIOD_TEXTS,
        percent=percent,
        query_string=urlencode(choice.query),
    )


def export_analytics() -> Response:
    """Export the lists of one site or all sites as CSV.

    Raises:
        ApiError: 400, 404.
    """
    choice = choose_site(or_collection=True)
    analytics = _read_analytics(choice, MAX_QUERIES)
    with runtime().database.read() as session:
        asks = find_asks(session, choice.site, choice.channel, choice.last, choice.days)
    period = choice.period or f"{choice.first}-{choice.last}"
    name = "analytics" if choice.site is None else f"analytics-site-{choice.site.id}"
    return csv_response(encode_csv(analytics, asks.unanswered_counts if asks else ()), f"{name}-{period}.csv")


def hidden_of(site: Site | None) -> HiddenSuggestions:
    """Return the texts that a site never suggests; empty for all sites together."""
    return hidden_suggestions(() if site is None else tuple(site.search_settings.get("suggestions_hidden", ())))


def remove_example_searches(site_id: int) -> Response:
    """Remove the demo's example searches of a site."""
    current_runtime = runtime()
    site = load_site(site_id)
    remove_examples(current_runtime.database, site, current_runtime.settings.event_retention_days)
    return see_other("/dashboard", notice="examples-removed")
