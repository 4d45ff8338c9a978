"""The choice of a site on the pages of analytics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlencode

from flask import request
from marshmallow import ValidationError

from app.clock import today
from app.models import Site
from app.runtime import runtime
from app.services import sites
from app.web.parsing import check_query_string, invalid
from app.web.permissions import choose_reported_site
from app.web.request_checks import current_caller
from schemas.analytics import AnalyticsQuerySchema, days_of

OFFERED_SITES = 100
"""Most sites that a page offers to choose from; any other is reached by its own page."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The site that the address names, and those to choose from.

    Attributes:
        site: ``None`` for all sites of the account.
        period: Name of the period; empty where two dates are chosen.
        last: The last UTC day.
        days: How many UTC days end with it.
        channel: How searches came; ``None`` for all.
    """

    site: Site | None
    offered: Sequence[Site]
    period: str
    last: date
    days: int
    channel: str | None

    @property
    def first(self) -> date:
        """The first UTC day."""
        return self.last - timedelta(days=self.days - 1)

    @property
    def query(self) -> dict[str, str]:
        """The choice as the parameters of an address."""
        dates = {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return {
            **({} if self.site is None else {"site_id": str(self.site.id)}),
            **({"period": self.period} if self.period else dates),
            **({} if self.channel is None else {"channel": self.channel}),
        }

    @property
    def period_query(self) -> str:
        """The days as the parameters of an address."""
        return urlencode({name: value for name, value in self.query.items() if name in ("period", "from", "to")})


def choose_site() -> Choice:
    """The choice that the address of this request makes.

    Raises:
        ApiError: 400, 403, 404.
    """
    check_query_string(request)
    caller = current_caller()
    names = ("site_id", "period", "from", "to", "channel")
    sent = {name: value for name, value in request.args.items() if value and name in names}
    try:
        parameters = AnalyticsQuerySchema().load(sent)
    except ValidationError as error:
        raise invalid(error) from error
    site_id = choose_reported_site(caller, parameters["site_id"])
    with runtime().database.read() as session:
        site = None if site_id is None else sites.get_site(session, caller.account.id, site_id)
        found, _ = sites.list_sites(session, caller.account.id, limit=OFFERED_SITES, offset=0, only=caller.only_site_id)
    offered = list(found) if site is None or site in found else [site, *found]
    last, days = days_of(parameters, today())
    period = parameters["period"] if parameters["first"] is None else ""
    return Choice(site, offered, period, last, days, parameters["channel"])
