"""Usage of the account in past months, to check invoices."""

from __future__ import annotations

from flask import Response, request
from sqlalchemy.orm import Session

from app.counters.base import CounterStore
from app.pages.layout import render
from app.runtime import runtime
from app.services.health import COUNTERS
from app.services.usage.month_usage import AccountMonth, account_month, encode_csv, find_month, list_months
from app.web.callers import current_caller
from app.web.parsing import check_query_string, load_values
from app.web.responses import csv_response
from schemas.usage import OwnMonthQuerySchema

SHOWN_MONTHS = 24
"""Maximum number of months on the page and in its CSV. Earlier months can be chosen one by one."""


def show_months() -> str:
    """Show the usage of the newest months, or of the month in the URL."""
    check_query_string(request)
    query = load_values(OwnMonthQuerySchema(), {name: value for name, value in request.args.items() if value})
    account_id = current_caller().account.id
    with runtime().database.read() as session:
        if query["month"] is None:
            months, reports = list_months(session, account_id), _newest_months(session)
        else:
            report, months = find_month(session, _counters(), account_id, query["month"])
            reports = [report]
    return render("usage.html", reports=reports, months=months, chosen=query["month"])


def export_months() -> Response:
    """Export the usage of the newest months as CSV."""
    check_query_string(request)
    with runtime().database.read() as session:
        return csv_response(encode_csv(_newest_months(session)), "usage.csv")


def _newest_months(session: Session) -> list[AccountMonth]:
    account_id, counters = current_caller().account.id, _counters()
    months = list_months(session, account_id)[:SHOWN_MONTHS]
    return [account_month(session, counters, account_id, month) for month in months]


def _counters() -> CounterStore | None:
    """Return the counter store; ``None`` while it is unavailable, when the page shows copies up to a minute old."""
    return None if runtime().health.failing_since(COUNTERS) else runtime().counters
