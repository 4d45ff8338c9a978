"""The lists of analytics as a file."""

from __future__ import annotations

from flask import Response

from app.pages.analytics.choice import choose_site
from app.pages.analytics.lists import LONGEST
from app.runtime import runtime
from app.services.analytics.reports import get_analytics
from app.services.csv_export import encode_csv
from app.web.request_checks import current_caller
from app.web.responses import csv_response


def export_analytics() -> Response:
    """The lists of queries of one site or of all, over a period, as CSV.

    Raises:
        ApiError: 400, 404.
    """
    choice = choose_site()
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
            limit=LONGEST,
        )
    period = choice.period or f"{choice.first}-{choice.last}"
    name = "analytics" if choice.site is None else f"analytics-site-{choice.site.id}"
    return csv_response(encode_csv(analytics), f"{name}-{period}.csv")
