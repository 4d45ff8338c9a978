"""The choice of a site on the pages of analytics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flask import request
from marshmallow import ValidationError

from app.models import Site
from app.runtime import runtime
from app.services import sites
from app.web.parsing import check_query_string, invalid
from app.web.permissions import choose_reported_site
from app.web.request_checks import current_caller
from schemas.analytics import AnalyticsQuerySchema

OFFERED_SITES = 100
"""Most sites that a page offers to choose from; any other is reached by its own page."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The site that the address names, and those to choose from.

    Attributes:
        site: ``None`` for all sites of the account.
        period: Name of the period.
    """

    site: Site | None
    offered: Sequence[Site]
    period: str

    @property
    def query(self) -> dict[str, str]:
        """The choice as the parameters of an address."""
        return {**({} if self.site is None else {"site_id": str(self.site.id)}), "period": self.period}


def choose_site() -> Choice:
    """The choice that the address of this request makes.

    Raises:
        ApiError: 400, 403, 404.
    """
    check_query_string(request)
    caller = current_caller()
    sent = {name: value for name, value in request.args.items() if value and name in ("site_id", "period")}
    try:
        parameters = AnalyticsQuerySchema().load(sent)
    except ValidationError as error:
        raise invalid(error) from error
    site_id = choose_reported_site(caller, parameters["site_id"])
    with runtime().database.read() as session:
        site = None if site_id is None else sites.get_site(session, caller.account.id, site_id)
        found, _ = sites.list_sites(session, caller.account.id, limit=OFFERED_SITES, offset=0, only=caller.only_site_id)
    offered = list(found) if site is None or site in found else [site, *found]
    return Choice(site, offered, parameters["period"])
