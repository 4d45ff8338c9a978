"""The inbox of queries to do something about."""

from __future__ import annotations

from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.clock import today
from app.errors import ErrorCode
from app.runtime import runtime
from app.services import inbox
from app.services.access.credentials import site_record
from app.services.sites import get_site
from app.web.auth import MANAGING
from app.web.permissions import refuse_other_site
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from schemas.inbox import InboxChangedSchema, InboxChangeSchema, InboxQuerySchema, InboxSchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("inbox", __name__, description="Queries to do something about.")

PATH = "/api/analytics/inbox"


@blp.route(PATH, methods=["GET"])
@blp.operation(
    "showInbox",
    OperationPolicy(MANAGING, Scope.ANALYTICS),
    errors=(ErrorCode.SITE_NOT_FOUND, ErrorCode.SEARCH_ENGINE_UNAVAILABLE),
)
@blp.arguments(InboxQuerySchema, location="query")
@blp.response(200, InboxSchema)
def show_inbox(parameters: dict[str, Any]) -> dict[str, Any]:
    """List a site's queries with which visitors missed something in the last 30 days, and still would.

    They are ordered by how many visitors missed something. What finds something now leaves the list by itself. Finding
    that out is not charged and not in analytics; the 100 queries that most visitors missed something with are looked
    at.
    """
    page = {name: parameters[name] for name in ("limit", "offset")}
    current_runtime = runtime()
    refuse_other_site(current_caller(), parameters["site_id"])
    with current_runtime.database.read() as session:
        site = get_site(session, current_caller().account.id, parameters["site_id"])
        candidates = inbox.list_candidates(
            session, site, today(), ignored=parameters["ignored"], recent=current_runtime.recent_results
        )
    items, total = inbox.list_inbox(current_runtime.searcher, site_record(site), candidates, **page)
    return {"items": items, "total": total, **page}


@blp.route(PATH, methods=["PUT"])
@blp.operation("updateInbox", OperationPolicy(MANAGING, Scope.ANALYTICS), errors=(ErrorCode.SITE_NOT_FOUND,), body=True)
@blp.arguments(InboxChangeSchema)
@blp.response(200, InboxChangedSchema)
def update_inbox(change: dict[str, Any]) -> dict[str, Any]:
    """Leave a query out of the inbox from now on, or show it again."""
    refuse_other_site(current_caller(), change["site_id"])
    with runtime().database.write() as session:
        query = inbox.ignore_query(session, current_caller().account.id, **change)
    return {"success": True, "query": query, "ignored": change["ignored"]}
