"""What was searched for."""

from __future__ import annotations

from flask import request
from marshmallow import ValidationError

from app.clock import today
from app.pages.analytics.charts import draw_chart
from app.pages.layout import render
from app.runtime import runtime
from app.services import sites
from app.services.analytics.reports import get_analytics
from app.web.parsing import invalid
from app.web.request_checks import current_caller
from schemas.analytics import PERIODS, AnalyticsQuerySchema

OFFERED_SITES = 100
"""Most sites that the page offers to choose from; any other is reached by its own page."""


def show_analytics() -> str:
    """Searches of one site or of all, over a period.

    Raises:
        ApiError: 400, 404.
    """
    account_id = current_caller().account.id
    sent = {name: value for name, value in request.args.items() if value}
    try:
        parameters = AnalyticsQuerySchema().load(sent)
    except ValidationError as error:
        raise invalid(error) from error
    period, site_id = parameters["period"], parameters["site_id"]
    with runtime().database.read() as session:
        site = None if site_id is None else sites.get_site(session, account_id, site_id)
        found, _ = sites.list_sites(session, account_id, limit=OFFERED_SITES, offset=0)
        analytics = get_analytics(session, account_id, PERIODS[period], site_id=site_id, today=today())
    offered = list(found) if site is None or site in found else [site, *found]
    return render(
        "analytics.html",
        analytics=analytics,
        chart=draw_chart(analytics.series),
        period=period,
        periods={name: f"{days} days" for name, days in PERIODS.items()},
        site=site,
        sites=offered,
    )
