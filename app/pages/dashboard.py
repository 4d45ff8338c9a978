"""The account at a glance."""

from __future__ import annotations

from dataclasses import dataclass

from app.clock import today
from app.pages.analytics.charts import draw_chart
from app.pages.layout import render
from app.pages.sources.reports import explain_failure
from app.plans import per_month
from app.runtime import runtime
from app.services import sites
from app.services.analytics.reports import get_analytics
from app.services.dashboard import get_dashboard
from app.web.request_checks import current_caller
from app.wording import counted
from schemas.analytics import PERIODS

SHOWN_SITES = 5
NEARLY = 0.8
"""Part of a quota from which on it is said to run out."""


@dataclass(frozen=True, slots=True)
class Meter:
    """How much of a limit is used.

    Attributes:
        most: The limit; ``None`` is none.
        note: What is said below.
        state: ``near`` or ``full`` where running out stops something, else empty.
    """

    label: str
    used: int
    most: int | None
    note: str = ""
    state: str = ""


def quota_meter(label: str, used: int, most: int | None, *, full: str, note: str = "") -> Meter:
    """The meter of what is used up by use; to have all the sites or keys of a plan is nothing to be warned of."""
    if most is None or used < NEARLY * most:
        return Meter(label, used, most, note)
    if used < most:
        return Meter(label, used, most, f"Nearly used up. {note}".rstrip(), "near")
    return Meter(label, used, most, full, "full")


def show_dashboard() -> str:
    """Usage against limits, searches of the last 30 days, and what to do next."""
    caller = current_caller()
    account, part = caller.account, runtime()
    used_today = part.counters.usage_of_day(account.id, today()).used
    with part.database.read() as session:
        board = get_dashboard(session, part.counters, account.id, account.plan, account.limits, today())
        analytics = get_analytics(session, account.id, PERIODS["30d"], today=today())
        found, total = sites.list_sites(session, account.id, limit=SHOWN_SITES, offset=0)
    limits = account.limits
    refused = board.usage["refused_searches_this_month"]
    searches_this_month, pages = board.usage["searches_this_month"], board.usage["indexed_pages"]
    meters = (
        quota_meter(
            "Searches today",
            used_today,
            limits.searches_per_day,
            note="Resets at 00:00 UTC.",
            full="Used up: searches are refused until 00:00 UTC.",
        ),
        Meter(
            "Searches this month",
            searches_this_month,
            per_month(limits.searches_per_day),
            note=f"Calendar month. {counted(refused, 'search')} refused." if refused else "Calendar month.",
        ),
        quota_meter("Indexed pages", pages, limits.documents, full="Limit reached: new pages are refused."),
        Meter("Sites", board.siteCount, limits.sites),
        Meter("API keys", board.apiKeyCount, limits.keys, note="Includes disabled keys."),
    )
    return render(
        "dashboard.html",
        board=board,
        meters=meters,
        analytics=analytics,
        chart=draw_chart(analytics.series),
        sites=found,
        site_total=total,
        explain_failure=explain_failure,
    )
