"""The weekly digest: searches without results and open tasks of an account, and unsubscribing from it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from itsdangerous import BadData, URLSafeSerializer
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app.clock import now, start_of
from app.crawl.sources.sources import list_failed
from app.errors import ApiError
from app.models import Account, IgnoredQuery, Site, UsageDay
from app.plans import PlanTable
from app.runtime import Runtime
from app.services.access.credentials import site_record
from app.services.analytics.reports import get_analytics
from app.services.emails.letters import Block, Letter, Link, Listing, queue_email
from app.services.inbox import search_now
from app.services.search.search import Searcher
from app.services.sites import count_documents, listed
from app.storage.database import ROW_LOCK, Database
from app.wording import counted, number
from backends.errors import BackendError

WARNING_PERCENT = 80
"""Minimum used percentage of a quota for the digest to mention it."""
PERIOD_DAYS = 7


@dataclass(frozen=True, slots=True)
class OpenMatter:
    """A task for the account's owner.

    Attributes:
        link: Text of the link.
        path: Path of the page where the task is done.
    """

    text: str
    link: str
    path: str


def list_open_matters(session: Session, account: Account, plans: PlanTable, week: date) -> list[OpenMatter]:
    """Return an account's failed crawls, and its quotas that are or were nearly exhausted.

    Args:
        week: The Monday after the week whose searches count.
    """
    crawls = [
        OpenMatter(
            f"The last crawl of {crawl.url} for {crawl.site_name} failed."
            + (f" {crawl.error['message']}" if crawl.error else ""),
            f"Open this source of {crawl.site_name}",
            f"/api/sites/{crawl.site_id}/sources/{crawl.id}",
        )
        for crawl in list_failed(session, account.id)
    ]
    return crawls + _quotas(session, account, plans, week)


def _quotas(session: Session, account: Account, plans: PlanTable, week: date) -> list[OpenMatter]:
    if account.plan not in plans:
        return []
    limits = plans.limits_of(account.plan, account.limit_overrides)
    documents = count_documents(session, account.id)
    first = week - timedelta(days=PERIOD_DAYS)
    searches = session.scalar(
        select(func.max(UsageDay.searches)).where(
            UsageDay.account_id == account.id, UsageDay.day >= first, UsageDay.day < week
        )
    )
    uses = (
        ("Your sites have {used} of the {allowed} pages that your plan allows.", documents, limits.documents),
        (
            "On the busiest day of the week, you used {used} of the {allowed} searches that your plan allows per day.",
            searches,
            limits.searches_per_day,
        ),
    )
    return [
        OpenMatter(text.format(used=number(int(used)), allowed=number(allowed)), "Compare the plans", "/plans")
        for text, used, allowed in uses
        if allowed and used and 100 * used >= WARNING_PERCENT * allowed
    ]


PATH = "/digest/unsubscribe"


def unsubscribe_url(public_url: str, secret: str, account_id: int) -> str:
    """Return the link with which an account unsubscribes."""
    token = _serializer(secret).dumps(account_id)
    return f"{public_url}{PATH}?token={token if isinstance(token, str) else token.decode()}"


def read_token(token: str, secret: str) -> int | None:
    """Return the account of a link's token; ``None`` if the token is invalid."""
    try:
        account_id = _serializer(secret).loads(token)
    except BadData:
        return None
    return account_id if isinstance(account_id, int) else None


def unsubscribe(session: Session, account_id: int) -> None:
    """Stop an account's digests. Does nothing if the account is already unsubscribed or was deleted."""
    account = session.get(Account, account_id, with_for_update=ROW_LOCK)
    if account is not None:
        account.weekly_digest = False


def _serializer(secret: str) -> URLSafeSerializer:
    return URLSafeSerializer(secret, salt="weekly-digest", signer_kwargs={"digest_method": hashlib.sha256})


KIND = "weekly_digest"
SENT_AFTER = timedelta(hours=7)
"""Time on Monday, in UTC, after which digests are sent."""
MAX_QUERIES = 10
"""Maximum number of queries listed for a site."""
MAX_CONSIDERED = 3 * MAX_QUERIES
"""Maximum number of queries considered; some are ignored or have results by now."""
LONGEST_QUERY = 80
"""Maximum length, in characters, of a query in the digest; longer queries are truncated."""
ACCOUNTS_AT_ONCE = 100
"""Maximum number of accounts read in one transaction."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Miss:
    """A query that had no results and still has no results."""

    query: str
    searches: int


@dataclass(frozen=True, slots=True)
class SiteMisses:
    """Queries without results on one site.

    Attributes:
        searches: Number of all searches in the period.
        zero_results: Number of searches without results.
    """

    site_id: int
    name: str
    searches: int
    zero_results: int
    misses: Sequence[Miss]


def queue_due_digests(runtime: Runtime, is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Queue this week's digests, each once, even if several processes run this at the same time.

    An account whose search engine is unavailable is left for the next call.

    Returns:
        Number of queued digests.
    """
    queued = 0
    week = week_of(now())
    for account_id, is_subscribed in _due(runtime.database, week):
        if is_stopping():
            break
        try:
            sites = _find_misses(runtime, account_id, week) if is_subscribed else ()
        except BackendError as error:
            log.warning("postponed the digest of account %s: %s", account_id, error)
            continue
        queued += _queue(runtime, account_id, week, sites)
    return queued


def _due(database: Database, week: date) -> Iterator[tuple[int, bool]]:
    """Yield the ID of each account whose digest for this week is pending, and whether it subscribes to digests."""
    begin = start_of(week)
    last = 0
    while True:
        with database.read() as session:
            rows = session.execute(
                select(Account.id, Account.weekly_digest)
                .where(
                    Account.id > last,
                    or_(Account.digest_week.is_(None), Account.digest_week < week),
                    Account.created_at < begin,
                    Account.suspended_at.is_(None),
                )
                .order_by(Account.id)
                .limit(ACCOUNTS_AT_ONCE)
            ).all()
        for row in rows:
            yield row.id, row.weekly_digest
        if not rows:
            return
        last = rows[-1].id


def _find_misses(runtime: Runtime, account_id: int, week: date) -> list[SiteMisses]:
    """Return the account's sites with unsuccessful queries in the week before ``week``.

    Raises:
        BackendError: An engine cannot run the queries now.
    """
    with runtime.database.read() as session:
        sites = session.scalars(select(Site).where(listed(account_id), Site.active).order_by(Site.id)).all()
    sites_with_misses = (_misses_of(runtime, site, week) for site in sites)
    return [site for site in sites_with_misses if site.misses]


def _misses_of(runtime: Runtime, site: Site, week: date) -> SiteMisses:
    sunday = week - timedelta(days=1)
    with runtime.database.read() as session:
        analytics = get_analytics(
            session, site.account_id, PERIOD_DAYS, site_id=site.id, today=sunday, limit=MAX_CONSIDERED
        )
        ignored = set(session.scalars(select(IgnoredQuery.query).where(IgnoredQuery.site_id == site.id)))
    misses: list[Miss] = []
    for counted_query in analytics.zero_result_queries:
        if (
            len(misses) < MAX_QUERIES
            and counted_query.query not in ignored
            and _finds_nothing(runtime.searcher, site, counted_query.query)
        ):
            misses.append(Miss(counted_query.query, counted_query.count))
    totals = analytics.totals
    return SiteMisses(site.id, site.name, totals.total_searches, totals.zero_results, misses)


def _finds_nothing(searcher: Searcher, site: Site, query: str) -> bool:
    try:
        return search_now(searcher, site_record(site), query).total == 0
    except ApiError:
        return False  # The engine rejects such a query, and the owner cannot change that.


def _queue(runtime: Runtime, account_id: int, week: date, sites: Sequence[SiteMisses]) -> bool:
    """Queue an account's digest. Returns ``False`` if there is nothing to report or another process was first."""
    settings = runtime.settings
    with runtime.database.write() as session:
        account = session.get(Account, account_id, with_for_update=ROW_LOCK)
        if account is None or (account.digest_week is not None and account.digest_week >= week):
            return False
        # Recorded even if no digest is sent, so that the account is not examined again this week.
        account.digest_week = week
        if not account.weekly_digest:
            return False
        matters = list_open_matters(session, account, runtime.plans, week)
        if not (sites or matters):
            return False
        stop_url = unsubscribe_url(settings.public_url, settings.secret_key, account_id)
        letter = write_digest(sites, settings.public_url, stop_url, matters)
        queue_email(session, account.email, letter, kind=KIND, account_id=account_id, unsubscribe_url=stop_url)
        return True


def week_of(moment: datetime) -> date:
    """Return the latest Monday whose digest is due at ``moment``. Digests become due at seven on Mondays."""
    day = (moment - SENT_AFTER).date()
    return day - timedelta(days=day.weekday())


def write_digest(
    sites: Sequence[SiteMisses], public_url: str, stop_url: str, matters: Sequence[OpenMatter] = ()
) -> Letter:
    """Write a letter about queries without results and open tasks, each with a link."""
    blocks: list[Block] = []
    subject = "To do for your site search"
    if sites:
        where = sites[0].name if len(sites) == 1 else counted(len(sites), "site")
        subject = f"What visitors could not find on {where}"
        blocks.append("Last week, visitors of your sites searched for these queries, which still have no results:")
    for site in sites:
        inbox = f"{public_url}/api/analytics/inbox?site_id={site.site_id}"
        title = f"{site.name}: {number(site.zero_results)} of {counted(site.searches, 'search')} had no results"
        misses = [f"{_quoted(miss.query)} ({counted(miss.searches, 'search')})" for miss in site.misses]
        blocks += [Listing(title, misses), Link(f"Review them on {site.name}", inbox)]
    if sites:
        blocks.append(
            "If you have a page that uses other words, add a synonym or pin the page; the inbox previews both before "
            "you save. Otherwise, consider adding a page. Queries that you ignore in the inbox are not listed again."
        )
    if matters:
        blocks.append("Also to do:" if sites else "To do:")
    for matter in matters:
        blocks += [matter.text, Link(matter.link, public_url + matter.path)]
    blocks += [
        f"The site search at {public_url} sends this email automatically, on Mondays when there is something to "
        "report.",
        Link("Unsubscribe", stop_url),
    ]
    return Letter(subject, blocks)


def _quoted(query: str) -> str:
    return f"“{query if len(query) <= LONGEST_QUERY else query[: LONGEST_QUERY - 1] + '…'}”"
