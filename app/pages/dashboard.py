"""The home page, which describes the service, and the dashboard of an account."""

from __future__ import annotations

from flask import Response

from app.apidoc.openapi import document
from app.clock import today
from app.crawl.sources.sources import list_open_runs
from app.operations.accounts import get_dashboard, get_user
from app.pages.analytics.figures import MAJOR_FIGURES, make_figures
from app.pages.analytics.reports import SHOWN_PERIOD
from app.pages.analytics.time_charts import draw_searches
from app.pages.layout import render
from app.pages.negotiation import wants_page
from app.pages.plan_cards import make_cards
from app.pages.plans import Meter, read_meters, readable_counters
from app.pages.rule_sentences import rule_sentence
from app.pages.sites import list_deleted
from app.pages.sources.reports import explain_failure
from app.pages.todos import (
    candidates_of,
    in_order,
    read_rejections,
    todos_of_misses,
    todos_of_quotas,
    todos_of_rejections,
    todos_of_runs,
)
from app.plans import per_month
from app.runtime import runtime
from app.services import sites
from app.services.access.keys import is_box_used
from app.services.analytics.examples import find_site_with_examples
from app.services.analytics.reports import get_analytics
from app.web.admission import find_caller
from app.web.callers import current_caller
from app.web.hosts import base_url
from app.web.responses import json_response
from app.wording import counted
from schemas.analytics import PERIODS

EXAMPLE_RULE = {
    "when": {"match": "contains", "query": "ticket"},
    "do": {"pin": ["tickets"], "notice": {"text": "Open until eight in December"}},
}
"""The rule in the picture on the home page."""
EXAMPLE_TITLES = {"tickets": "Tickets and prices"}


def show_home() -> str | Response:
    """Describe this service, with links."""
    base = base_url()
    if not wants_page():
        info = document()["info"]
        return json_response(
            {
                "name": info["title"],
                "version": info["version"],
                "documentation": f"{base}/docs",
                "openapi": f"{base}/openapi.json",
                "dashboard": f"{base}/dashboard",
            }
        )
    return render(
        "home.html",
        base_url=base,
        is_open=runtime().settings.registration,
        docs_search_key=runtime().settings.docs_search_key,
        cards=make_cards(runtime(), find_caller()),
        rule=rule_sentence(EXAMPLE_RULE, EXAMPLE_TITLES),
    )


SHOWN_SITES = 5


def show_dashboard() -> str:
    """Show usage against limits, searches of the last 28 days, and next steps."""
    caller = current_caller()
    account, current_runtime = caller.account, runtime()
    counters = readable_counters()
    with current_runtime.database.read() as session:
        board = get_dashboard(
            session, counters, current_runtime.health, account.id, account.plan, account.limits, today()
        )
        today_meter, *others = read_meters(session)
        running = list_open_runs(session, account.id)
        analytics = get_analytics(
            session, account.id, PERIODS[SHOWN_PERIOD], today=today(), recent=current_runtime.recent_results
        )
        chart = draw_searches(session, account.id, analytics)
        listed_sites, total = sites.list_sites(session, account.id, limit=SHOWN_SITES, offset=0)
        candidates = candidates_of(session, listed_sites)
        rejected_count = read_rejections(session)
        deleted = list_deleted(session, account.id)
        with_examples = find_site_with_examples(session, listed_sites)
        box_used = is_box_used(session, account.id)
        user = get_user(session, caller)
    limits = account.limits
    rejected = board.usage["refused_searches_this_month"]
    searches_this_month = board.usage["searches_this_month"]
    month = Meter(
        "Searches this month",
        searches_this_month,
        per_month(limits.searches_per_day),
        note=f"Calendar month. {counted(rejected, 'search')} rejected." if rejected else "Calendar month.",
    )
    return render(
        "dashboard.html",
        board=board,
        meters=(today_meter, month, *others),
        todos=in_order(
            *todos_of_runs((), running),
            *todos_of_misses(candidates),
            *todos_of_quotas((today_meter, *others)),
            *todos_of_rejections(rejected_count, limits.requests_per_minute),
        ),
        analytics=analytics,
        chart=chart,
        figures=make_figures(analytics)[:MAJOR_FIGURES],
        sites=listed_sites,
        is_box_used=box_used,
        unconfirmed=None if user.email_confirmed or not current_runtime.settings.sends_email else user,
        site_total=total,
        deleted=deleted,
        with_examples=with_examples,
        explain_failure=explain_failure,
    )
