"""The weekly digest: what visitors did not find and what else is open, for accounts with something to be told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import or_, select

from app.clock import now
from app.config import Settings
from app.errors import ApiError
from app.models import Account, IgnoredQuery, Site
from app.plans import PlanTable
from app.services.access.credentials import site_record
from app.services.analytics.reports import get_analytics
from app.services.inbox.current_results import search_now
from app.services.mail.letters import Block, Letter, Link, Listing
from app.services.mail.open_matters import ListFailed, OpenMatter, list_open_matters
from app.services.mail.queue import queue_mail
from app.services.mail.unsubscribing import unsubscribe_url
from app.services.search.search import Searcher
from app.storage.database import ROW_LOCK, Database
from app.wording import counted, number
from backends.errors import BackendError

KIND = "weekly_digest"
PERIOD_DAYS = 7
SENT_AFTER = timedelta(hours=7)
"""When on Monday, UTC."""
MAX_QUERIES = 10
"""Most queries that are told of a site."""
LOOKED_AT = 3 * MAX_QUERIES
"""Most that are looked at: some are ignored, or find something by now."""
LONGEST_QUERY = 80
ACCOUNTS_AT_ONCE = 100

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Miss:
    """A query that found nothing, and still does."""

    query: str
    searches: int


@dataclass(frozen=True, slots=True)
class SiteMisses:
    """Misses of one site.

    Attributes:
        searches: All searches of the period.
        zero_results: Those that found nothing.
    """

    site_id: int
    name: str
    searches: int
    zero_results: int
    misses: Sequence[Miss]


class Digests:
    """Queues the digests."""

    def __init__(
        self, database: Database, searcher: Searcher, settings: Settings, plans: PlanTable, list_failed: ListFailed
    ):
        self._database = database
        self._searcher = searcher
        self._settings = settings
        self._plans = plans
        self._list_failed = list_failed

    def queue_due(self, is_stopping: Callable[[], bool] = lambda: False) -> int:
        """Queue the digests of this week, each once; harmless if several processes do it at once.

        An account whose search engine is away is left for the next time.

        Returns:
            How many were queued.
        """
        queued = 0
        week = week_of(now())
        for account_id, wanted in self._due(week):
            if is_stopping():
                break
            try:
                sites = self._find_misses(account_id, week) if wanted else ()
            except BackendError as error:
                log.warning("the digest of account %s waits: %s", account_id, error)
                continue
            queued += self._queue(account_id, week, sites)
        return queued

    def _due(self, week: date) -> Iterator[tuple[int, bool]]:
        """Accounts whose digest of the week was not seen to, and whether they want one."""
        begin = datetime.combine(week, time(), UTC)
        last = 0
        while True:
            with self._database.read() as session:
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

    def _find_misses(self, account_id: int, week: date) -> list[SiteMisses]:
        """The account's sites on which something was not found in the week before ``week``.

        Raises:
            BackendError: An engine cannot say what the queries find now.
        """
        with self._database.read() as session:
            sites = session.scalars(
                select(Site).where(Site.account_id == account_id, Site.active).order_by(Site.id)
            ).all()
        found = (self._misses_of(site, week) for site in sites)
        return [site for site in found if site.misses]

    def _misses_of(self, site: Site, week: date) -> SiteMisses:
        sunday = week - timedelta(days=1)
        with self._database.read() as session:
            analytics = get_analytics(
                session, site.account_id, PERIOD_DAYS, site_id=site.id, today=sunday, limit=LOOKED_AT
            )
            ignored = set(session.scalars(select(IgnoredQuery.query).where(IgnoredQuery.site_id == site.id)))
        misses: list[Miss] = []
        for each in analytics.zero_result_queries:
            if len(misses) < MAX_QUERIES and each.query not in ignored and self._finds_nothing(site, each.query):
                misses.append(Miss(each.query, each.count))
        totals = analytics.totals
        return SiteMisses(site.id, site.name, totals.total_searches, totals.zero_results, misses)

    def _finds_nothing(self, site: Site, query: str) -> bool:
        try:
            return search_now(self._searcher, site_record(site), query).total == 0
        except ApiError:
            return False  # The engine refuses such a query: there is nothing that the owner could do about it.

    def _queue(self, account_id: int, week: date, sites: Sequence[SiteMisses]) -> bool:
        """Tell whether there was something to send, and nobody else had done so."""
        settings = self._settings
        with self._database.write() as session:
            account = session.get(Account, account_id, with_for_update=ROW_LOCK)
            if account is None or (account.digest_week is not None and account.digest_week >= week):
                return False
            account.digest_week = week
            if not account.weekly_digest:
                return False
            matters = list_open_matters(session, account, self._plans, self._list_failed, week)
            if not (sites or matters):
                return False
            stop_url = unsubscribe_url(settings.public_url, settings.secret_key, account_id)
            letter = write_digest(sites, settings.public_url, stop_url, matters)
            queue_mail(
                session,
                account.email,
                letter.subject,
                letter.text,
                letter.html,
                kind=KIND,
                account_id=account_id,
                unsubscribe_url=stop_url,
            )
            return True


def week_of(moment: datetime) -> date:
    """The Monday whose digest is to be sent at ``moment``: until Monday at seven, it is that of the week before."""
    day = (moment - SENT_AFTER).date()
    return day - timedelta(days=day.weekday())


def write_digest(
    sites: Sequence[SiteMisses], public_url: str, stop_url: str, matters: Sequence[OpenMatter] = ()
) -> Letter:
    """A letter about what was not found and what else is open, each with a link to where something can be done."""
    blocks: list[Block] = []
    subject = "What is still open at your site search"
    if sites:
        where = sites[0].name if len(sites) == 1 else counted(len(sites), "site")
        subject = f"What visitors did not find on {where}"
        blocks.append("Last week, visitors of your sites searched for this, and it still finds nothing:")
    for site in sites:
        inbox = f"{public_url}/api/analytics/inbox?site_id={site.site_id}"
        title = f"{site.name}: {number(site.zero_results)} of {counted(site.searches, 'search')} found nothing"
        misses = [f"{_shown(miss.query)} ({counted(miss.searches, 'search')})" for miss in site.misses]
        blocks += [Listing(title, misses), Link(f"What to do about it on {site.name}", inbox)]
    if sites:
        blocks.append(
            "Where you have a page about it in other words, a synonym or a pinned page helps; the inbox shows what "
            "either changes before you save it. Otherwise your visitors may miss a page. Queries that you ignore there "
            "are not told again."
        )
    if matters:
        blocks.append("This is open, too:" if sites else "This is still open:")
    for matter in matters:
        blocks += [matter.text, Link(matter.link, public_url + matter.path)]
    blocks += [
        f"The site search at {public_url} sends this mail automatically, on Mondays when there is something to tell.",
        Link("Send me no more of them", stop_url),
    ]
    return Letter(subject, blocks)


def _shown(query: str) -> str:
    return f"“{query if len(query) <= LONGEST_QUERY else query[: LONGEST_QUERY - 1] + '…'}”"
