"""Searches, results, and clicks in a window."""

from __future__ import annotations

from urllib.parse import urlencode

from flask import request

from app.models import Site
from app.pages.analytics import lists
from app.pages.analytics.charts import draw_chart, draw_rates
from app.pages.analytics.choice import choose_site
from app.pages.analytics.figures import make_figures, percent
from app.pages.analytics.suggestions import hidden_of
from app.pages.layout import render
from app.runtime import runtime
from app.services.analytics.reports import get_analytics
from app.services.search_settings import learns_from_clicks, list_learned
from app.web.request_checks import current_caller
from schemas.analytics import PERIODS

SHORT_LIST = 10
"""Queries of each list that the page shows."""
CHANNEL_NAMES = {
    "box": "Search box",
    "gateway": "Gateway",
    "api": "API",
    "google": "Custom Search",
    "algolia": "Algolia’s API",
    "agent": "Agents",
}
PERIOD_TEXTS = {name: f"{days} days" for name, days in PERIODS.items()}


def show_analytics() -> str:
    """Searches of one site or of all, over a period; or one of their lists in full.

    Raises:
        ApiError: 400, 404.
    """
    choice = choose_site()
    kind = lists.find_kind(request.args.get("list", ""))
    with runtime().database.read() as session:
        analytics = get_analytics(
            session,
            current_caller().account.id,
            choice.days,
            site_id=None if choice.site is None else choice.site.id,
            today=choice.last,
            channel=choice.channel,
            details=True,
            recent=runtime().recent_results,
            limit=SHORT_LIST if kind is None else lists.LONGEST,
        )
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
        shown = lists.make_list(lists.items_of(analytics, kind), kind, choice.query)
        return render("analytics_list.html", shown=shown, **common)
    return render(
        "analytics.html",
        analytics=analytics,
        figures=make_figures(analytics),
        chart=draw_chart(analytics.series),
        learns=choice.site is not None and learns_from_clicks(choice.site.search_settings),
        learned=[] if choice.site is None else _learned_queries(choice.site),
        rates=draw_rates(analytics.series, has_clicks=bool(analytics.totals.clicks)),
        lists=[(kind, lists.items_of(analytics, kind)) for kind in lists.KINDS],
        has_clicks=bool(analytics.totals.clicks),
        short=SHORT_LIST,
        **common,
    )


def _learned_queries(site: Site) -> list[tuple[str, int]]:
    """The queries whose results clicks put into another order, with the number of pages that move up."""
    with runtime().database.read() as session:
        learned = list_learned(session, current_caller().account.id, site.id)
    return [(query, len(documents)) for query, documents in learned.items()]
