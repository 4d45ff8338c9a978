"""One query: how often it was searched, what was clicked, what it finds now, and what to do about it."""

from __future__ import annotations

from urllib.parse import urlencode

from flask import Response, request
from marshmallow import ValidationError

from app.errors import ApiError
from app.pages.analytics.charts import draw_chart
from app.pages.analytics.choice import choose_site
from app.pages.analytics.figures import make_query_figures, percent
from app.pages.analytics.overview import PERIOD_TEXTS
from app.pages.analytics.suggestions import hidden_of
from app.pages.layout import render
from app.runtime import runtime
from app.services import inbox
from app.services.access.credentials import site_record
from app.services.analytics.query_reports import get_query_analytics
from app.services.inbox import CurrentResult, search_now
from app.web.parsing import invalid
from app.web.request_checks import current_caller
from backends.errors import BackendUnavailable
from backends.text import normal_form
from schemas.analytics import QueryAnalyticsQuerySchema

SHOWN_HITS = 10


def show_query() -> str | Response:
    """A query of a site, over a period.

    Raises:
        ApiError: 400, 404.
    """
    sent = {name: value for name, value in request.args.items() if value}
    try:
        query = normal_form(QueryAnalyticsQuerySchema().load(sent)["q"])
    except ValidationError as error:
        raise invalid(error) from error
    choice = choose_site()
    assert choice.site is not None, "the schema requires one"
    current_runtime, site = runtime(), choice.site
    with current_runtime.database.read() as session:
        told = get_query_analytics(session, current_caller().account.id, site.id, query, choice.days, choice.last)
        ignored = inbox.is_ignored(session, site.id, query)
    found: CurrentResult | None = None
    problem = None
    try:
        found = search_now(current_runtime.searcher, site_record(site), query, limit=SHOWN_HITS)
    except (ApiError, BackendUnavailable) as error:
        problem = error.message if isinstance(error, ApiError) else "The search engine is unavailable."
    return render(
        "analytics_query.html",
        choice=choice,
        site=site,
        query=query,
        told=told,
        figures=make_query_figures(told, None if found is None else found.total),
        chart=draw_chart(told.series),
        found=found,
        problem=problem,
        pinned=site_record(site).settings.pinned.get(query, ()),
        ignored=ignored,
        hidden=hidden_of(site),
        periods=PERIOD_TEXTS,
        percent=percent,
        query_string=urlencode(choice.query),
    )
