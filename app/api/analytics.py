"""Analytics and the inbox."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from app.apidoc.openapi import ApiBlueprint
from app.clock import today
from app.errors import ErrorCode
from app.runtime import runtime
from app.services import inbox
from app.services.access.credentials import load_site_record, site_record
from app.services.analytics import event_retention
from app.services.analytics.query_reports import get_query_analytics
from app.services.analytics.reports import Analytics, encode_csv, get_analytics
from app.services.asks.questions import find_asks
from app.services.inbox import search_now
from app.services.sites import get_site
from app.web.auth import MANAGING
from app.web.callers import current_caller
from app.web.permissions import choose_reported_site, reject_other_site
from app.web.policy import OperationPolicy
from app.web.responses import CSV, csv_response, prefers
from schemas.analytics import (
    AnalyticsQuerySchema,
    AnalyticsSchema,
    InboxChangedSchema,
    InboxChangeSchema,
    InboxQuerySchema,
    InboxSchema,
    QueryAnalyticsQuerySchema,
    QueryAnalyticsSchema,
    VisitorErasureSchema,
    VisitorQuerySchema,
    days_of,
)
from schemas.validation.keys import Scope

blp = ApiBlueprint("analytics", __name__, description="Search statistics.")

_POLICY = OperationPolicy(MANAGING, Scope.ANALYTICS)


@blp.route("/api/analytics", methods=["GET"])
@blp.operation("showAnalytics", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND,))
@blp.arguments(AnalyticsQuerySchema, location="query")
@blp.response(200, AnalyticsSchema)
@blp.alt_response(200, schema={"type": "string"}, content_type=CSV)
def show_analytics(parameters: dict[str, Any]) -> Analytics | Response:
    """Get search statistics of one site, or of all sites. With `Accept: text/csv`, get the queries as a table."""
    account_id = current_caller().account.id
    site_id = choose_reported_site(current_caller(), parameters["site_id"])
    with runtime().database.read() as session:
        site = None if site_id is None else get_site(session, account_id, site_id, or_collection=True)
        last, days = days_of(parameters, today())
        analytics = get_analytics(
            session,
            account_id,
            days,
            site_id=site_id,
            today=last,
            limit=parameters["limit"],
            channel=parameters["channel"],
            details=True,
            recent=runtime().recent_results,
        )
        if prefers(request, CSV):
            asks = find_asks(session, site, parameters["channel"], last, days)
            return csv_response(encode_csv(analytics, asks.unanswered_counts if asks else ()))
    return analytics


@blp.route("/api/analytics/visitors", methods=["DELETE"])
@blp.operation("eraseVisitor", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND,), empty_body=True)
@blp.arguments(VisitorQuerySchema, location="query")
@blp.response(200, VisitorErasureSchema)
def erase_visitor(parameters: dict[str, Any]) -> dict[str, Any]:
    """Erase the searches and clicks of a visitor's session on a site, even if the site is deleted."""
    current_runtime = runtime()
    site_id = parameters["site_id"]
    reject_other_site(current_caller(), site_id)
    with current_runtime.database.read() as session:
        site = get_site(session, current_caller().account.id, site_id, include_deleted=True, or_collection=True)
    erased = event_retention.erase_visitor(
        current_runtime.database, site, parameters["session_id"], current_runtime.settings.event_retention_days
    )
    return {"success": True, **erased._asdict()}


@blp.route("/api/analytics/query", methods=["GET"])
@blp.operation("showQueryAnalytics", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND, ErrorCode.SEARCH_ENGINE_UNAVAILABLE))
@blp.arguments(QueryAnalyticsQuerySchema, location="query")
@blp.response(200, QueryAnalyticsSchema)
def show_query_analytics(parameters: dict[str, Any]) -> dict[str, Any]:
    """Get searches, clicks, and the current number of results of one query on one site. No search is charged."""
    current_runtime = runtime()
    account_id = current_caller().account.id
    reject_other_site(current_caller(), parameters["site_id"])
    with current_runtime.database.read() as session:
        site = get_site(session, account_id, parameters["site_id"], or_collection=True)
        record = load_site_record(session, site)
        last, days = days_of(parameters, today())
        report = get_query_analytics(session, account_id, site.id, parameters["q"], days, last)
    result = search_now(current_runtime.searcher, record, report.query)
    return {
        "query": report.query,
        "searches": report.searches,
        "clicks": report.clicks,
        "click_through_rate": report.click_through_rate,
        "average_click_position": report.average_click_position,
        "series": report.series,
        "clicked_documents": report.clicked_documents,
        "finds_now": result.total,
    }


inbox_blp = ApiBlueprint("inbox", __name__, description="Queries that disappoint visitors.")

INBOX = "/api/analytics/inbox"


@inbox_blp.route(INBOX, methods=["GET"])
@inbox_blp.operation("showInbox", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND, ErrorCode.SEARCH_ENGINE_UNAVAILABLE))
@inbox_blp.arguments(InboxQuerySchema, location="query")
@inbox_blp.response(200, InboxSchema)
def show_inbox(parameters: dict[str, Any]) -> dict[str, Any]:
    """List a site's queries that disappointed visitors in the last 30 days and would still disappoint them.

    They are ordered by the number of disappointed visitors. Queries that find something now are not listed. The service
    checks the first 100 queries; these searches are not charged and don't appear in analytics.
    """
    page = {name: parameters[name] for name in ("limit", "offset")}
    current_runtime = runtime()
    reject_other_site(current_caller(), parameters["site_id"])
    with current_runtime.database.read() as session:
        site = get_site(session, current_caller().account.id, parameters["site_id"])
        candidates = inbox.list_candidates(
            session, site, today(), ignored=parameters["ignored"], recent=current_runtime.recent_results
        )
    items, total = inbox.list_inbox(current_runtime.searcher, site_record(site), candidates, **page)
    return {"items": items, "total": total, **page}


@inbox_blp.route(INBOX, methods=["PUT"])
@inbox_blp.operation("updateInbox", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND,), body=True)
@inbox_blp.arguments(InboxChangeSchema)
@inbox_blp.response(200, InboxChangedSchema)
def update_inbox(change: dict[str, Any]) -> dict[str, Any]:
    """Ignore a query in the inbox, or show it again."""
    reject_other_site(current_caller(), change["site_id"])
    with runtime().database.write() as session:
        query = inbox.ignore_query(session, current_caller().account.id, **change)
    return {"success": True, "query": query, "ignored": change["ignored"]}
