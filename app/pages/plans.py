"""Comparison of plans, and meters that show an account's usage of its limits."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import today
from app.counters.base import CounterStore
from app.pages.layout import render
from app.pages.plan_cards import UPGRADE, make_cards, plan_title
from app.plans import PlanLimits
from app.runtime import runtime
from app.services.health import COUNTERS
from app.services.sites import count_documents, count_keys, count_sites
from app.services.usage.daily_usage import usage_between
from app.services.usage.quota import asks_today
from app.web.admission import current_admission
from app.web.auth import MANAGING
from app.web.callers import current_caller

WARNING_SHARE = 0.8
"""Used fraction of a quota at which the meter starts to warn."""


@dataclass(frozen=True, slots=True)
class Meter:
    """A limit and its usage.

    Attributes:
        most: The limit, or ``None`` for unlimited.
        note: Help text below the meter.
        state: ``near`` or ``full`` for a meter that warns, otherwise empty.
    """

    label: str
    used: int
    limit: int | None
    note: str = ""
    state: str = ""


def quota_meter(label: str, used: int, limit: int | None, *, full: str, note: str = "") -> Meter:
    """Return a meter that warns near its limit. Sites and keys need no warning: using all of them is not a problem."""
    if limit is None or used < WARNING_SHARE * limit:
        return Meter(label, used, limit, note)
    if used < limit:
        return Meter(label, used, limit, f"Nearly used up. {note}".rstrip(), "near")
    return Meter(label, used, limit, full, "full")


def readable_counters() -> CounterStore | None:
    """Return the counter store; ``None`` while it is unavailable, to read the last copy of its counts from SQL."""
    return None if runtime().health.failing_since(COUNTERS) else runtime().counters


def read_meters(session: Session) -> tuple[Meter, ...]:
    """Return the meters of the caller's account, from the last copy in SQL while the counter store is unavailable."""
    account, day = current_caller().account, today()
    return quota_meters(
        account.limits,
        asks=read_asks(account.id, account.limits),
        searches=sum(usage.used for usage in usage_between(session, readable_counters(), account.id, day, day)),
        pages=count_documents(session, account.id),
        sites=count_sites(session, account.id),
        keys=count_keys(session, account.id),
    )


def read_asks(account_id: int, limits: PlanLimits) -> int | None:
    """Return the number of an account's questions today; ``None`` if none can be asked, or it cannot be read now."""
    counters = readable_counters()
    if runtime().language_model is None or limits.asks_per_day == 0 or counters is None:
        return None
    return asks_today(counters, account_id, limits)


def quota_meters(
    limits: PlanLimits, *, searches: int, asks: int | None, pages: int, sites: int, keys: int
) -> tuple[Meter, ...]:
    """Return the meters of an account, starting with today's searches.

    Args:
        limits: The account's limits.
        searches: Number of searches charged today.
        asks: Number of questions today; ``None`` to show no meter of them.
    """
    questions: tuple[Meter, ...] = ()
    if asks is not None:
        meter = quota_meter(
            "AI questions today",
            asks,
            limits.asks_per_day,
            note="Resets at 00:00 UTC.",
            full="Limit reached: questions are rejected until 00:00 UTC.",
        )
        questions = (meter,)
    return (
        quota_meter(
            "Searches today",
            searches,
            limits.searches_per_day,
            note="Resets at 00:00 UTC.",
            full="Limit reached: searches are rejected until 00:00 UTC.",
        ),
        *questions,
        quota_meter("Indexed pages", pages, limits.documents, full="Limit reached: new pages are rejected."),
        Meter("Sites", sites, limits.sites),
        Meter("API keys", keys, limits.keys, note="Includes disabled keys."),
    )


ROWS = (
    ("searches_per_day", "Searches per day"),
    ("documents", "Indexed pages"),
    ("sites", "Sites"),
    ("keys", "API keys"),
    ("requests_per_minute", "Requests per minute"),
    ("requests_per_day", "Requests per day"),
    ("asks_per_day", "AI questions per day (Ask)"),
)
"""Limits and their labels, in display order."""


def show_plans() -> str:
    """Show all plans, and the caller's usage if the caller may manage the account."""
    current_runtime = runtime()
    caller = current_admission().caller
    account = caller.account if caller is not None and MANAGING.allows(caller) else None
    meters: tuple[Meter, ...] = ()
    if account is not None:
        with current_runtime.database.read() as session:
            meters = read_meters(session)
    cards = make_cards(current_runtime, caller)
    return render(
        "plans.html",
        plans={plan_title(name): limits for name, limits in current_runtime.plans.items()},
        cards=cards,
        rows=[row for row in ROWS if row[0] != "asks_per_day" or current_runtime.language_model is not None],
        plan="" if account is None else plan_title(account.plan),
        has_own_limits=account is not None and account.limits != current_runtime.plans[account.plan],
        meters=meters,
        has_language_model=current_runtime.language_model is not None,
        can_upgrade=any(card.action is not None and card.action.text == UPGRADE for card in cards),
        is_open=current_runtime.settings.registration,
    )
