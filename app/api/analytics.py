"""Analytics."""

from __future__ import annotations

from typing import Any

from app.api import examples
from app.clock import today
from app.errors import ErrorCode
from app.runtime import runtime
from app.services.analytics.reports import Analytics, get_analytics
from app.services.sites import get_site
from app.web.auth import MANAGING
from app.web.openapi import ApiBlueprint
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from schemas.analytics import PERIODS, AnalyticsQuerySchema, AnalyticsSchema

blp = ApiBlueprint("analytics", __name__, description="Search statistics.")


@blp.route("/api/analytics", methods=["GET"])
@blp.operation("showAnalytics", OperationPolicy(MANAGING), errors=(ErrorCode.SITE_NOT_FOUND,))
@blp.arguments(AnalyticsQuerySchema, location="query")
@blp.response(200, AnalyticsSchema, example=examples.ANALYTICS_ANSWER)
def show_analytics(parameters: dict[str, Any]) -> Analytics:
    """Get search statistics of one site, or of all sites of the account, over a period."""
    account_id = current_caller().account.id
    site_id = parameters["site_id"]
    with runtime().database.read() as session:
        if site_id is not None:
            get_site(session, account_id, site_id)
        return get_analytics(session, account_id, PERIODS[parameters["period"]], site_id=site_id, today=today())
