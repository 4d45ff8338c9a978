"""Syncs: sending all documents of a source, then removing the others."""

from __future__ import annotations

from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.runtime import runtime
from app.web.auth import MANAGING
from app.web.callers import current_caller
from app.web.permissions import choose_written_site
from app.web.policy import OperationPolicy
from schemas.base import SuccessSchema
from schemas.documents import SiteChoiceSchema
from schemas.syncs import SyncAnswerSchema, SyncBeginSchema, SyncFinishAnswerSchema, SyncFinishSchema, SyncShowSchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("syncs", __name__, description="Send all documents of a source, then remove those not sent.")

_POLICY = OperationPolicy(MANAGING, Scope.DOCUMENTS)
_SYNC_ERRORS = (ErrorCode.SITE_NOT_FOUND, ErrorCode.SYNC_NOT_FOUND)


@blp.route("/api/v1/sync", methods=["POST"])
@blp.operation(
    "beginSync",
    _POLICY,
    errors=(ErrorCode.SITE_NOT_FOUND, ErrorCode.SITE_INACTIVE, ErrorCode.SYNC_RUNNING),
    body=True,
)
@blp.arguments(SyncBeginSchema)
@blp.arguments(SiteChoiceSchema, location="query")
@blp.response(201, SyncAnswerSchema)
def begin_sync(body: dict[str, Any], query: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Begin a sync. Send every document of the source in bulk with `?sync=ID`, then finish the sync."""
    caller = current_caller()
    site_id = choose_written_site(caller, query["site_id"], body["site_id"])
    sync = runtime().syncs.begin(caller.account.id, site_id, body["source"], replace=body["replace"])
    return {"success": True, "sync": sync}, 201, {"Location": f"/api/v1/sync/{sync.id}"}


@blp.route("/api/v1/sync/<string:sync_id>", methods=["GET"])
@blp.operation("showSync", _POLICY, errors=_SYNC_ERRORS)
@blp.arguments(SiteChoiceSchema, location="query")
@blp.response(200, SyncShowSchema)
def show_sync(query: dict[str, Any], sync_id: str) -> dict[str, Any]:
    """Get a sync. Ended syncs are available for 24 hours."""
    caller = current_caller()
    site_id = choose_written_site(caller, query["site_id"], None)
    return {"sync": runtime().syncs.get(caller.account.id, site_id, sync_id)}


@blp.route("/api/v1/sync/<string:sync_id>", methods=["DELETE"])
@blp.operation("abandonSync", _POLICY, errors=_SYNC_ERRORS, empty_body=True)
@blp.arguments(SiteChoiceSchema, location="query")
@blp.response(200, SuccessSchema)
def abandon_sync(query: dict[str, Any], sync_id: str) -> dict[str, Any]:
    """Abandon a sync. Documents that were sent stay, and none are removed."""
    caller = current_caller()
    site_id = choose_written_site(caller, query["site_id"], None)
    runtime().syncs.abandon(caller.account.id, site_id, sync_id)
    return {"success": True}


@blp.route("/api/v1/sync/<string:sync_id>/finish", methods=["POST"])
@blp.operation(
    "finishSync",
    _POLICY,
    errors=(
        *_SYNC_ERRORS,
        ErrorCode.SITE_INACTIVE,
        ErrorCode.SYNC_REMOVES_TOO_MUCH,
        ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
    ),
    body=True,
)
@blp.arguments(SyncFinishSchema, location="json_optional", required=False)
@blp.arguments(SiteChoiceSchema, location="query")
@blp.response(200, SyncFinishAnswerSchema)
def finish_sync(body: dict[str, Any], query: dict[str, Any], sync_id: str) -> dict[str, Any]:
    """Finish a sync: remove the source's documents that weren't sent."""
    caller = current_caller()
    site_id = choose_written_site(caller, query["site_id"], body["site_id"])
    removed = runtime().syncs.finish(caller.account.id, site_id, sync_id, body["max_removed_percent"])
    return {"success": True, "removed": removed}
