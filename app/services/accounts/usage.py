"""Usage of every account, for the operator: a fixed number of queries, however many accounts there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from app.models import Account, Key, Site, UsageDay
from app.plans import PlanLimits


@dataclass(frozen=True, slots=True)
class AccountUsage:
    """Usage of one account.

    Attributes:
        searches_today, searches_this_month: Charged in UTC days and months, as of the last copy of the counter store,
            which is up to a minute old.
        keys: Disabled and expired ones included.
    """

    account: Account
    searches_today: int
    searches_this_month: int
    documents: int
    sites: int
    keys: int

    def share(self, limits: PlanLimits) -> float:
        """The largest part of a quota that is used: 1.0 is all of it."""
        used = (
            (self.searches_today, limits.searches_per_day),
            (self.documents, limits.documents),
            (self.sites, limits.sites),
            (self.keys, limits.keys),
        )
        return max((count / max(limit, 1) for count, limit in used if limit is not None), default=0.0)


def list_account_usage(session: Session, today: date) -> Sequence[AccountUsage]:
    """Every account with what it uses, oldest first."""
    month = (
        select(
            UsageDay.account_id,
            func.sum(UsageDay.searches),
            func.sum(case((UsageDay.day == today, UsageDay.searches), else_=0)),
        )
        .where(UsageDay.day >= today.replace(day=1), UsageDay.day <= today)
        .group_by(UsageDay.account_id)
    )
    searches = {account_id: (int(in_month), int(of_day)) for account_id, in_month, of_day in session.execute(month)}
    in_use = Site.deleted_at.is_(None)
    counted = (
        select(Site.account_id, func.count(), func.sum(Site.document_count)).where(in_use).group_by(Site.account_id)
    )
    sites = {account_id: (count, int(documents)) for account_id, count, documents in session.execute(counted)}
    of_accounts = select(Key.account_id, func.count()).join(Site).where(in_use).group_by(Key.account_id)
    keys = dict(session.execute(of_accounts).all())
    listed = []
    for account in session.scalars(select(Account).order_by(Account.id)):
        in_month, of_day = searches.get(account.id, (0, 0))
        count, documents = sites.get(account.id, (0, 0))
        listed.append(AccountUsage(account, of_day, in_month, documents, count, keys.get(account.id, 0)))
    return listed
