"""Use of a plan's limits."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import today
from app.plans import PlanLimits
from app.runtime import runtime
from app.services.health import COUNTERS
from app.services.sites import count_documents, count_keys, count_sites
from app.services.usage.daily_usage import usage_between
from app.web.request_checks import current_caller

NEARLY = 0.8
"""Part of a quota from which on it is said to run out."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The use of a limit.

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


def read_meters(session: Session) -> tuple[Meter, ...]:
    """The meters of the caller's account, as they stand; while the counter store is away, from what was copied last."""
    account, current_runtime, day = current_caller().account, runtime(), today()
    counters = None if current_runtime.health.failing_since(COUNTERS) else current_runtime.counters
    return quota_meters(
        account.limits,
        searches=sum(each.used for each in usage_between(session, counters, account.id, day, day)),
        pages=count_documents(session, account.id),
        sites=count_sites(session, account.id),
        keys=count_keys(session, account.id),
    )


def quota_meters(limits: PlanLimits, *, searches: int, pages: int, sites: int, keys: int) -> tuple[Meter, ...]:
    """The meters of an account: searches today first, then what it has.

    Args:
        limits: The account's own.
        searches: Charged today.
    """
    return (
        quota_meter(
            "Searches today",
            searches,
            limits.searches_per_day,
            note="Resets at 00:00 UTC.",
            full="Used up: searches are refused until 00:00 UTC.",
        ),
        quota_meter("Indexed pages", pages, limits.documents, full="Limit reached: new pages are refused."),
        Meter("Sites", sites, limits.sites),
        Meter("API keys", keys, limits.keys, note="Includes disabled keys."),
    )
