"""The plans side by side; for whom is logged in, also their own plan and how much of it is used."""

from __future__ import annotations

from flask import g

from app.clock import today
from app.pages.layout import render
from app.pages.meters import Meter, quota_meters
from app.runtime import Runtime, runtime
from app.services.access.callers import Caller
from app.services.access.credentials import AccountRecord
from app.services.health import COUNTERS
from app.services.sites import count_documents, count_keys, count_sites
from app.services.usage.daily_usage import usage_between
from app.web.auth import MANAGING
from schemas.accounts import is_email

ROWS = (
    ("searches_per_day", "Searches per day"),
    ("documents", "Indexed pages"),
    ("sites", "Sites"),
    ("keys", "API keys"),
    ("requests_per_minute", "Requests per minute"),
    ("requests_per_day", "Requests per day"),
)
"""Limits in the order in which they are compared, and what they are called."""


def show_plans() -> str:
    """All plans, for everybody."""
    current_runtime = runtime()
    caller: Caller | None = g.caller
    account = caller.account if caller is not None and MANAGING.allows(caller) else None
    return render(
        "plans.html",
        plans=current_runtime.plans,
        rows=ROWS,
        account=account,
        has_own_limits=account is not None and account.limits != current_runtime.plans[account.plan],
        meters=[] if account is None else _meters(current_runtime, account),
        contact=current_runtime.settings.operator_contact,
        contact_address=contact_address(current_runtime.settings.operator_contact),
        is_open=current_runtime.settings.registration,
    )


def contact_address(contact: str) -> str:
    """The place where a link to whom users ask leads; empty if it is only a text."""
    if is_email(contact):
        return f"mailto:{contact}"
    return contact if contact.startswith(("https://", "http://")) else ""


def _meters(runtime: Runtime, account: AccountRecord) -> tuple[Meter, ...]:
    counters = None if runtime.health.failing_since(COUNTERS) else runtime.counters
    with runtime.database.read() as session:
        searches = sum(day.used for day in usage_between(session, counters, account.id, today(), today()))
        pages, sites = count_documents(session, account.id), count_sites(session, account.id)
        keys = count_keys(session, account.id)
    return quota_meters(account.limits, searches=searches, pages=pages, sites=sites, keys=keys)
