"""Usage: limits and connection details for clients, usage reports, the search log, and the dashboard."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import orjson
from flask import Response, request

from app.apidoc.openapi import ApiBlueprint
from app.clock import now, today
from app.counters.values import IdempotencyKey, ReportStatus
from app.errors import ApiError, ErrorCode, field_error
from app.operations.accounts import Dashboard, get_dashboard
from app.operations.asks import can_ask
from app.plans import describe_quota, limit_or_unlimited, per_month
from app.runtime import Runtime, runtime
from app.services.access.callers import Caller
from app.services.access.credentials import SiteRecord
from app.services.access.engine_keys import CredentialsStopped, direct_keys, gateway_keys
from app.services.analytics.events import SearchEvent
from app.services.usage.daily_usage import find_index
from app.services.usage.month_usage import encode_csv, find_month
from app.web.admission import current_admission
from app.web.auth import ANY_KEY, MANAGING
from app.web.callers import current_caller, current_visitor
from app.web.charges import count_logged_search, used_today
from app.web.hosts import base_url
from app.web.permissions import own_site, reject_other_site
from app.web.policy import OperationPolicy
from app.web.responses import CSV, csv_response, prefers
from backends.errors import BackendUnavailable
from backends.query import MATCH_ALL
from schemas.usage import (
    ClientInfoSchema,
    DashboardSchema,
    OwnMonthQuerySchema,
    OwnMonthSchema,
    SearchLogAnswerSchema,
    SearchLogSchema,
    UsageReportAnswerSchema,
    UsageReportSchema,
)
from schemas.validation.keys import Scope

client_info_blp = ApiBlueprint("client-info", __name__, description="Connection details for search clients.")


@client_info_blp.route("/v1/client-info", methods=["GET"])
@client_info_blp.operation("showClientInfo", OperationPolicy(ANY_KEY), errors=(ErrorCode.SEARCH_ENGINE_UNAVAILABLE,))
@client_info_blp.response(200, ClientInfoSchema)
def show_client_info() -> tuple[dict[str, Any], int, dict[str, str]]:
    """Get the engine's URL and keys for this key's site, the site's state, and the plan's limits."""
    current_runtime = runtime()
    caller = current_caller()
    key = caller.key
    assert key is not None
    site = own_site(caller)
    direct = _is_direct(current_runtime, site)
    if direct and site.active:
        try:
            engine = current_runtime.engines.get_engine(site.engine)
            engine_key, public_key = direct_keys(current_runtime.database, engine, key, site)
        except CredentialsStopped as error:
            raise BackendUnavailable("The key or the site is being changed; try again.", retry_after=1) from error
    else:
        engine_key, public_key = gateway_keys(key, site, current_runtime.settings.secret_key)
    limits = caller.account.limits
    monthly = per_month(limits.searches_per_day)
    response = {
        "engine_host": current_runtime.settings.search_public_url if direct else f"{base_url()}/engine",
        "engine_key": engine_key,
        "engine_public_key": public_key,
        "active": site.active,
        "ask": can_ask(current_runtime, site, limits),
        "index": site.engine_index if direct else site.index,
        "domain": site.domain,
        "plan": caller.account.plan,
        "limits": describe_quota(limits.searches_per_day, used_today(current_admission())),
        "usage_limits": {
            "max_indexed_pages": limit_or_unlimited(limits.documents),
            "search_queries_per_month": limit_or_unlimited(monthly),
            "unlimited": limits.documents is None and monthly is None,
        },
    }
    # The response contains engine keys.
    return response, 200, {"Cache-Control": "no-store"}


def _is_direct(current_runtime: Runtime, site: SiteRecord) -> bool:
    """Whether clients search the engine itself. A collection is searched at the gateway, since it has no index."""
    if not current_runtime.settings.search_public_url or site.searched_sites is not None:
        return False
    return current_runtime.engines.get_engine(site.engine).issues_credentials


blp = ApiBlueprint(
    "usage",
    __name__,
    description="Usage reports and the search log, for clients that search the gateway or the engine directly.",
)

_REPORT_LIMITS = {"public": 10, "search": 100}
_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}", re.ASCII)
_AHEAD = timedelta(minutes=5)
_BACK = timedelta(days=30)


@blp.route("/v1/report-usage", methods=["POST"])
@blp.operation(
    "reportUsage", OperationPolicy(ANY_KEY, reports_usage=True), errors=(ErrorCode.INDEX_NOT_FOUND,), body=True
)
@blp.doc(
    parameters=[
        {
            "in": "header",
            "name": "Idempotency-Key",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            "description": "Unique ID of the report; repeating it within 24 hours has no effect.",
        }
    ]
)
@blp.arguments(UsageReportSchema)
@blp.response(200, UsageReportAnswerSchema)
def report_usage(report: dict[str, Any]) -> dict[str, Any]:
    """Report searches or indexing operations that ran outside this API."""
    caller = current_caller()
    current_runtime = runtime()
    idempotency = _idempotency_key(report)
    with current_runtime.database.read() as session:
        site_id = find_index(session, caller.account.id, report["index"])
    _reject_beyond_kind(caller, report, site_id)
    outcome = current_runtime.counters.report_usage(
        caller.account.id,
        site_id,
        report["operation"],
        report["count"],
        capped=caller.kind == "public" and not current_runtime.settings.search_public_url,
        idempotency=idempotency,
        now=now().timestamp(),
    )
    if outcome.status is ReportStatus.CONFLICT:
        raise field_error("Idempotency-Key", "conflict", "was used with a different body in the last 24 hours")
    if outcome.status is ReportStatus.DUPLICATE:
        return {"success": True, "duplicate": True}
    return {"success": True}


def _idempotency_key(report: dict[str, Any]) -> IdempotencyKey | None:
    header = request.headers.get("Idempotency-Key")
    if header is None:
        return None
    if not _IDEMPOTENCY_KEY.fullmatch(header):
        raise field_error("Idempotency-Key", "invalid", "must have 1 to 255 visible ASCII characters")
    body = orjson.dumps(report, option=orjson.OPT_SORT_KEYS)
    return IdempotencyKey(header, hashlib.sha256(body).hexdigest())


def _reject_beyond_kind(caller: Caller, report: dict[str, Any], site_id: int) -> None:
    """Limit public and search keys to small reports about their own index, and site-only keys to their site."""
    reject_other_site(caller, site_id)
    max_count = _REPORT_LIMITS.get(caller.kind)
    if max_count is None:
        return
    assert caller.key is not None
    if report["operation"] != "search" or report["count"] > max_count or site_id != caller.key.site_id:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            f"A {caller.kind} key can report at most {max_count} searches of its own index per request; "
            "use a private key.",
        )


@blp.route("/api/v1/search-log", methods=["POST"])
@blp.operation("logSearch", OperationPolicy(ANY_KEY), body=True)
@blp.arguments(SearchLogSchema)
@blp.response(200, SearchLogAnswerSchema)
def log_search(entry: dict[str, Any]) -> dict[str, Any]:
    """Log a search that ran outside `/v1/search`, for analytics."""
    caller = current_caller()
    key = caller.key
    assert key is not None
    moment = now()
    occurred_at = entry["timestamp"] or moment
    if occurred_at > moment + _AHEAD:
        raise field_error("timestamp", "out_of_range", "must be at most 5 minutes in the future")
    if occurred_at < moment - _BACK:
        raise field_error("timestamp", "out_of_range", "must be at most 30 days in the past")
    if entry["query"].strip() == MATCH_ALL:
        return {"success": True}
    if caller.kind == "public" and not count_logged_search(current_admission()):
        return {"success": True, "counted": False}
    visitor = current_visitor(current_admission(), key.site_id, entry["session_id"])
    runtime().events.record(
        SearchEvent(
            site_id=key.site_id,
            query=entry["query"],
            results_count=entry["results_count"],
            session_id=visitor.session_id,
            occurred_at=occurred_at,
            response_ms=None,
            visitor=visitor.number,
            channel=visitor.channel,
            page=visitor.page,
        )
    )
    return {"success": True}


_DASHBOARD = OperationPolicy(MANAGING, Scope.SITES, whole_account=True)
dashboard_blp = ApiBlueprint("dashboard", __name__, description="Counts, usage, and limits of the account.")


@dashboard_blp.route("/dashboard", methods=["GET"])
@dashboard_blp.operation("showDashboard", _DASHBOARD)
@dashboard_blp.response(200, DashboardSchema)
def show_dashboard() -> Dashboard:
    """Get counts, usage, and limits of the account."""
    caller = current_caller()
    current_runtime = runtime()
    with current_runtime.database.read() as session:
        return get_dashboard(
            session,
            current_runtime.counters,
            current_runtime.health,
            caller.account.id,
            caller.account.plan,
            caller.account.limits,
            today(),
        )


@dashboard_blp.route("/api/usage", methods=["GET"])
@dashboard_blp.operation("showMonth", _DASHBOARD)
@dashboard_blp.arguments(OwnMonthQuerySchema, location="query")
@dashboard_blp.response(200, OwnMonthSchema)
@dashboard_blp.alt_response(200, schema={"type": "string"}, content_type=CSV)
def show_month(query: dict[str, Any]) -> dict[str, Any] | Response:
    """Get the account's usage in a month, to check an invoice. With `Accept: text/csv`, get it as a table."""
    current_runtime = runtime()
    with current_runtime.database.read() as session:
        reported, months = find_month(session, current_runtime.counters, current_caller().account.id, query["month"])
    if prefers(request, CSV):
        return csv_response(encode_csv([reported]), f"usage-{reported.month:%Y-%m}.csv")
    return {
        "month": f"{reported.month:%Y-%m}",
        "final": reported.is_final,
        **asdict(reported.usage),
        "months": [f"{month:%Y-%m}" for month in months],
    }
