"""The account at a glance."""

from __future__ import annotations

from app.clock import today
from app.guard import current_caller
from app.pages.charts import draw_chart
from app.pages.layout import render
from app.runtime import runtime
from app.services import sites
from app.services.analytics import get_analytics
from app.services.dashboard import get_dashboard
from schemas.analytics import PERIODS

SHOWN_SITES = 5


def show_dashboard() -> str:
    """Usage against limits, searches of the last 30 days, and what to do next."""
    caller = current_caller()
    account, part = caller.account, runtime()
    used_today = part.counters.usage_of_day(account.id, today()).used
    with part.database.read() as session:
        board = get_dashboard(session, part.counters, account.id, account.plan, account.limits, today())
        analytics = get_analytics(session, account.id, PERIODS["30d"], today=today())
        found, total = sites.list_sites(session, account.id, limit=SHOWN_SITES, offset=0)
    meters = (
        ("Searches today", used_today, account.limits.searches_per_day, "resets at 00:00 UTC"),
        (
            "Searches this month",
            board.usage["searches_this_month"],
            board.limits["searches_per_month"],
            "calendar month",
        ),
        ("Indexed pages", board.usage["indexed_pages"], account.limits.documents, None),
        ("Sites", board.siteCount, account.limits.sites, None),
        ("API keys", board.apiKeyCount, account.limits.keys, "disabled ones count too"),
    )
    return render(
        "dashboard.html",
        board=board,
        meters=meters,
        analytics=analytics,
        chart=draw_chart(analytics.series),
        sites=found,
        site_total=total,
    )
