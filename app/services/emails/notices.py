"""Emails about events: quota warnings, failed crawls, disabled webhooks, and invitations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlsplit

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.clock import now, today
from app.config import Settings
from app.counters.base import CounterStore
from app.models import Account, Invitation, QuotaWarning, Site, Source, UsageDay, Webhook
from app.plans import PlanLimits, PlanTable
from app.services.emails.letters import Letter, Link, queue_email
from app.services.sites import get_account
from app.services.usage.quota import daily_requests_window
from app.services.webhooks import announce, notify_operator
from app.storage.database import ROW_LOCK, Database
from app.wording import moment_text, number, operator_text
from schemas.validation.webhooks import QUOTA_REACHED, QUOTA_WARNING

QUOTA_KIND = "quota_warning"
PERCENTS = (80, 100)
"""Used percentages of a quota at which owners are warned."""
FORGOTTEN_BELOW = 70
"""Used percentage of a total quota below which its warnings are reset, so that the next rise is reported."""
RETENTION = timedelta(days=7)
"""Age at which warnings about daily quotas are deleted."""
REQUESTS, SEARCHES, DOCUMENTS = "requests", "searches", "documents"


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """The usage of a quota.

    Attributes:
        quota: ``requests``, ``searches``, or ``documents``.
        period: UTC day of the searches, or end of the request window in Unix seconds; empty for a total quota.
        allowed: Limit of the quota, at least 1.
    """

    account_id: int
    quota: str
    period: str
    used: int
    allowed: int

    @property
    def reached(self) -> tuple[int, ...]:
        """The percentages in :data:`PERCENTS` that have been reached."""
        return tuple(percent for percent in PERCENTS if 100 * self.used >= percent * self.allowed)


def warn_owners(database: Database, counters: CounterStore, plans: PlanTable, settings: Settings) -> int:
    """Queue due quota warnings as webhook events, and as emails if email is set up.

    Several processes may call this simultaneously.

    Searches are read from copies of the usage, which are up to a minute old. Requests are only checked for accounts
    that searched or indexed today.

    Returns:
        Number of queued warnings.

    Raises:
        CountersUnavailable: Requests cannot be read.
    """
    with database.read() as session:
        uses = list(_uses(session, plans, today()))
        busy = _busy_accounts(session, plans, today())
        past_warnings = _earlier_warnings(session)
    for account_id, limits in busy:
        (window,) = counters.peek([daily_requests_window(account_id, limits)], now=now().timestamp()).windows
        if window.limit and window.hits:
            uses.append(QuotaUse(account_id, REQUESTS, str(window.reset_at), window.hits, window.limit))
    _forget(database, uses)
    warned = 0
    for use in uses:
        if set(use.reached) - past_warnings.get(_window(use), set()):
            with database.write() as session:
                warned += _warn(session, use, settings)
    return warned


Window = tuple[int, str, str, int]
"""Account, quota, period, and limit."""


def _window(use: QuotaUse | QuotaWarning) -> Window:
    return use.account_id, use.quota, use.period, use.allowed


def _earlier_warnings(session: Session) -> dict[Window, set[int]]:
    percents: dict[Window, set[int]] = {}
    for row in session.scalars(select(QuotaWarning)):
        percents.setdefault(_window(row), set()).add(row.percent)
    return percents


def _uses(session: Session, plans: PlanTable, day: date) -> Iterator[QuotaUse]:
    """Yield the uses of search and document quotas."""
    searches = select(Account, UsageDay.searches).join(UsageDay).where(UsageDay.day == day, UsageDay.searches > 0)
    documents = (
        select(Account, func.sum(Site.document_count)).join(Site).where(Site.deleted_at.is_(None)).group_by(Account.id)
    )
    for quota, period, query in ((SEARCHES, day.isoformat(), searches), (DOCUMENTS, "", documents)):
        for account, used in session.execute(query):
            # An account whose plan is no longer defined cannot make requests either; the request checks log that.
            if account.plan not in plans:
                continue
            limits = plans.limits_of(account.plan, account.limit_overrides)
            allowed = limits.searches_per_day if quota == SEARCHES else limits.documents
            if allowed:
                yield QuotaUse(account.id, quota, period, int(used), allowed)


def _busy_accounts(session: Session, plans: PlanTable, day: date) -> list[tuple[int, PlanLimits]]:
    """Return accounts that searched or indexed, with their limits."""
    accounts = session.scalars(select(Account).join(UsageDay).where(UsageDay.day == day))
    return [
        (account.id, plans.limits_of(account.plan, account.limit_overrides))
        for account in accounts
        if account.plan in plans
    ]


def _warn(session: Session, use: QuotaUse, settings: Settings) -> bool:
    """Announce a warning if it is due, and return whether it was."""
    # The lock serializes concurrent processes, so that each warning is queued once.
    account = session.get(Account, use.account_id, with_for_update=ROW_LOCK)
    if account is None:
        return False
    new_percents = [percent for percent in use.reached if session.get(QuotaWarning, (*_window(use), percent)) is None]
    for percent in new_percents:
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
    # A warning about the highest percentage makes lower warnings superfluous.
    if not new_percents or new_percents[-1] != use.reached[-1]:
        return False
    data = {"quota": use.quota, "percent": use.reached[-1], "used": use.used, "allowed": use.allowed}
    announce(session, account.id, QUOTA_WARNING, data)
    if use.reached[-1] == PERCENTS[-1]:
        notify_operator(session, settings, QUOTA_REACHED, account, quota=use.quota, used=use.used, allowed=use.allowed)
    if settings.sends_email:
        letter = write_warning(use, settings.public_url, settings.operator_contact)
        queue_email(session, account.email, letter, kind=QUOTA_KIND, account_id=account.id)
    return True


def _forget(database: Database, uses: list[QuotaUse]) -> None:
    """Delete old warnings about daily quotas, and warnings about total quotas that were changed or are free again."""
    high = {_window(use) for use in uses if 100 * use.used >= FORGOTTEN_BELOW * use.allowed}
    with database.read() as session:
        over = [row for row in session.scalars(select(QuotaWarning)) if _is_over(row, high)]
    if not over:
        return
    with database.write() as session:
        for row in sorted(over, key=lambda row: (*_window(row), row.percent)):
            identity = {"quota": row.quota, "period": row.period, "allowed": row.allowed, "percent": row.percent}
            session.execute(delete(QuotaWarning).filter_by(account_id=row.account_id, **identity))


def _is_over(row: QuotaWarning, high: set[Window]) -> bool:
    if row.period:
        return row.warned_at < now() - RETENTION
    return _window(row) not in high


def write_warning(use: QuotaUse, public_url: str, contact: str) -> Letter:
    """Write a letter about a quota and what its owner can do."""
    used, allowed, is_full = number(use.used), number(use.allowed), use.reached[-1] == PERCENTS[-1]
    match use.quota:
        case "searches":
            advice = "check in analytics what visitors search for, and whether a program searches by mistake."
            link = Link("Top queries", f"{public_url}/api/analytics")
            near = (
                "80 percent of today’s searches are used",
                f"Your account has used {used} of the {allowed} searches that its plan allows per day. Once they are "
                "used up, further searches are rejected until 00:00 UTC.",
            )
            full = (
                "Today’s searches are used up; further ones are rejected until 00:00 UTC",
                f"Your account has used all {allowed} searches that its plan allows per day. Visitors of "
                "your sites cannot search until 00:00 UTC, when the next day’s searches become available.",
            )
        case "requests":
            advice = (
                "check whether a program sends more requests than necessary. Send documents in batches, and skip "
                "unchanged ones."
            )
            link = Link("How to send documents in batches", f"{public_url}/docs/documents")
            until = moment_text(datetime.fromtimestamp(int(use.period), UTC))
            near = (
                "80 percent of a day’s requests are used",
                f"Your account has made {used} of the {allowed} requests that its plan allows per day. Once they are "
                f"used up, further requests are rejected until {until}.",
            )
            full = (
                f"A day’s requests are used up; further ones are rejected until {until}",
                f"Your account has made all {allowed} requests that its plan allows per day. Until {until}, requests "
                "with its private and search keys are rejected, and its pages here cannot be opened.",
            )
        case _:
            advice = "delete pages that visitors do not need, or exclude them from your sources."
            link = Link("Your sites", f"{public_url}/sites")
            near = (
                "80 percent of your plan’s pages are used",
                f"Your sites have {used} of the {allowed} pages that your plan allows. Once they are used up, new ones "
                "are rejected.",
            )
            full = (
                "Your plan’s pages are used up; new ones are rejected",
                f"Your sites have {used} pages, and your plan allows {allowed}. New pages are rejected. Existing "
                "pages can still be searched and changed.",
            )
    subject, text = full if is_full else near
    return Letter(
        subject,
        (
            text,
            f"What you can do: {advice} Or ask {operator_text(contact)} for a larger plan.",
            link,
            Link("Your usage", f"{public_url}/dashboard"),
            f"The site search at {public_url} sent this email automatically.",
        ),
    )


FAILED_RUNS_KIND = "failed_runs"


def queue_failure_notice(
    session: Session, source: Source, site: Site, error: Mapping[str, str] | None, public_url: str
) -> None:
    """Queue the email about a source whose last two runs failed.

    Args:
        error: ``code`` and ``message`` of the second failure.
        public_url: Base URL of this service.
    """
    account = session.get_one(Account, site.account_id)
    letter = write_letter(source, site.name, "" if error is None else error["message"], public_url)
    queue_email(session, account.email, letter, kind=FAILED_RUNS_KIND, account_id=account.id)


def write_letter(source: Source, site_name: str, reason: str, public_url: str) -> Letter:
    """Write a letter about a failing source and what its owner can do."""
    return Letter(
        f"The last two crawls of {source.url} failed",
        (
            f"The last two crawls of {source.url} for {site_name} failed. {reason}".rstrip(),
            "Its pages stay searchable as of the last successful crawl. Later changes may be missing.",
            Link("See the error and start a new run", f"{public_url}/api/sites/{source.site_id}/sources/{source.id}"),
            "You will not be notified of further failures until a crawl of this source succeeds.",
            f"The site search at {public_url} sent this email automatically.",
        ),
    )


WEBHOOK_KIND = "webhook_off"


def queue_notice(session: Session, webhook: Webhook, public_url: str) -> None:
    """Notify a webhook's owner that it was turned off after failing for days."""
    assert webhook.account_id is not None  # The operator's webhook is never turned off.
    account = get_account(session, webhook.account_id)
    letter = write_notice(webhook, public_url)
    queue_email(session, account.email, letter, kind=WEBHOOK_KIND, account_id=account.id)


def write_notice(webhook: Webhook, public_url: str) -> Letter:
    """Write a letter to the webhook's owner.

    It contains only the host of the webhook's URL, because the rest may contain a secret."""
    host = urlsplit(webhook.url).netloc
    return Letter(
        f"Your webhook on {host} was turned off",
        (
            f"All deliveries to the webhook on {host} have failed for three days. It was turned off, so no further "
            "events are sent to it.",
            "The list of deliveries shows what went wrong. Once the receiver works, turn the webhook on again there; "
            "you can resend the failed deliveries.",
            Link("View deliveries", f"{public_url}/api/webhooks/{webhook.id}"),
            f"The site search at {public_url} sent this email automatically.",
        ),
    )


INVITATION_KIND = "invitation"


def write_invitation(invitation: Invitation, account: str, url: str, public_url: str) -> Letter:
    """Write a letter to an invited person.

    Args:
        account: Name of the account.
        url: Link of the invitation.
        public_url: Base URL of this service.
    """
    return Letter(
        f"Join {account} at the site search",
        (
            f"{account} invites you to its account at {public_url}, as {invitation.role}. To accept, open this page "
            "and choose a password:",
            Link("Accept the invitation", url),
            f"The link works once, until {moment_text(invitation.expires_at)}.",
            "If you do not know the sender, ignore this email.",
        ),
    )
