"""Warnings that a quota runs out, once at 80 and once at 100 percent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.clock import now, today
from app.config import Settings
from app.models import Account, QuotaWarning, Site, UsageDay
from app.plans import PlanTable
from app.services.mail.letters import Letter, Link
from app.services.mail.queue import queue_mail
from app.storage.database import ROW_LOCK, Database
from app.wording import number, operator_text

KIND = "quota_warning"
PERCENTS = (80, 100)
FORGOTTEN_BELOW = 70
"""Percent of a quota in total below which its warnings are forgotten, so that the next rise is told again."""
KEPT_DAYS = 7
SEARCHES, DOCUMENTS = "searches", "documents"


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """How much of a quota an account has used.

    Attributes:
        quota: ``searches`` or ``documents``.
        period: The UTC day of a quota per day; empty for one in total.
        allowed: At least 1.
    """

    account_id: int
    quota: str
    period: str
    used: int
    allowed: int

    @property
    def reached(self) -> tuple[int, ...]:
        """Of :data:`PERCENTS`, those that are reached."""
        return tuple(percent for percent in PERCENTS if 100 * self.used >= percent * self.allowed)


def warn_owners(database: Database, plans: PlanTable, settings: Settings) -> int:
    """Queue the warnings that are due; harmless if several processes do it at once.

    Searches are told as the copies of usage have them, up to a minute late.

    Returns:
        How many mails were queued.
    """
    with database.read() as session:
        uses = list(_uses(session, plans, today()))
        told = _told(session)
    _forget(database, uses, told)
    warned = 0
    for use in uses:
        if set(use.reached) - told.get(_window(use), set()):
            with database.write() as session:
                warned += _warn(session, use, settings)
    return warned


Window = tuple[int, str, str, int]
"""Account, quota, period, and what was allowed."""


def _window(use: QuotaUse) -> Window:
    return use.account_id, use.quota, use.period, use.allowed


def _told(session: Session) -> dict[Window, set[int]]:
    told: dict[Window, set[int]] = {}
    for row in session.scalars(select(QuotaWarning)):
        told.setdefault((row.account_id, row.quota, row.period, row.allowed), set()).add(row.percent)
    return told


def _uses(session: Session, plans: PlanTable, day: date) -> Iterator[QuotaUse]:
    """What was used of each quota of which anything was used."""
    searches = select(Account, UsageDay.searches).join(UsageDay).where(UsageDay.day == day, UsageDay.searches > 0)
    documents = select(Account, func.sum(Site.document_count)).join(Site).group_by(Account.id)
    for quota, period, query in ((SEARCHES, day.isoformat(), searches), (DOCUMENTS, "", documents)):
        for account, used in session.execute(query):
            # An account whose plan is no longer defined cannot make a request either, which is logged there.
            if account.plan not in plans:
                continue
            limits = plans.limits_of(account.plan, account.limit_overrides)
            allowed = limits.searches_per_day if quota == SEARCHES else limits.documents
            if allowed:
                yield QuotaUse(account.id, quota, period, int(used), allowed)


def _warn(session: Session, use: QuotaUse, settings: Settings) -> bool:
    """Tell whether a mail was queued: another process may have been first."""
    account = session.get(Account, use.account_id, with_for_update=ROW_LOCK)
    if account is None:
        return False
    fresh = [percent for percent in use.reached if session.get(QuotaWarning, (*_window(use), percent)) is None]
    for percent in fresh:
        session.add(
            QuotaWarning(
                account_id=use.account_id,
                quota=use.quota,
                period=use.period,
                allowed=use.allowed,
                percent=percent,
                warned_at=now(),
            )
        )
    # Who is warned of the last one needs no warning of those before.
    if not fresh or fresh[-1] != use.reached[-1]:
        return False
    letter = write_warning(use, settings.public_url, settings.operator_contact)
    queue_mail(session, account.email, letter.subject, letter.text, letter.html, kind=KIND, account_id=account.id)
    return True


def _forget(database: Database, uses: list[QuotaUse], told: dict[Window, set[int]]) -> None:
    """Forget warnings of days gone by, and of quotas in total that have room again or are others now."""
    high = {_window(use) for use in uses if 100 * use.used >= FORGOTTEN_BELOW * use.allowed}
    oldest = (today() - timedelta(days=KEPT_DAYS)).isoformat()
    over = [window for window in told if (window[2] < oldest if window[2] else window not in high)]
    if not over:
        return
    with database.write() as session:
        for account_id, quota, period, allowed in sorted(over):
            session.execute(
                delete(QuotaWarning).where(
                    QuotaWarning.account_id == account_id,
                    QuotaWarning.quota == quota,
                    QuotaWarning.period == period,
                    QuotaWarning.allowed == allowed,
                )
            )


def write_warning(use: QuotaUse, public_url: str, contact: str) -> Letter:
    """What the owner is told, and what they can do."""
    used, allowed, is_full = number(use.used), number(use.allowed), use.reached[-1] == PERCENTS[-1]
    dashboard = Link("Your usage", f"{public_url}/dashboard")
    larger = f"Ask {operator_text(contact)} for a larger plan."
    automatic = f"The site search at {public_url} sent this mail automatically."
    if use.quota == SEARCHES:
        advice = (
            "What you can do: see in the analytics what is searched, and whether a program searches that should not. "
            + larger
        )
        analytics = Link("What was searched", f"{public_url}/api/analytics")
        if is_full:
            subject = "Today’s searches are used up: further ones are refused until 00:00 UTC"
            facts = f"Your account has used all {allowed} searches that its plan allows per day."
            follows = "Until 00:00 UTC, visitors of your sites cannot search. Then the next day’s searches begin."
        else:
            subject = "80 percent of today’s searches are used"
            facts = f"Your account has used {used} of the {allowed} searches that its plan allows per day."
            follows = "Once they are used up, further searches are refused until 00:00 UTC."
        return Letter(subject, (facts, follows, advice, analytics, dashboard, automatic))
    advice = f"What you can do: delete pages that nobody searches for, or exclude them from their sources. {larger}"
    sites = Link("Your sites", f"{public_url}/sites")
    if is_full:
        subject = "Your plan’s pages are used up: new ones are refused"
        facts = f"Your sites have {used} pages, and your plan allows {allowed}."
        follows = "New pages are refused. Those that are there can be searched and changed."
    else:
        subject = "80 percent of your plan’s pages are used"
        facts = f"Your sites have {used} of the {allowed} pages that your plan allows."
        follows = "Once they are used up, new pages are refused."
    return Letter(subject, (facts, follows, advice, sites, dashboard, automatic))
