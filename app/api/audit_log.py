"""The audit log."""

from __future__ import annotations

from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.models import AuditEntry
from app.runtime import runtime
from app.services.access.rights import Role
from app.services.audit_log.entries import Selection
from app.services.audit_log.entries import list_entries as list_chosen_entries
from app.web.auth import MANAGING
from app.web.callers import current_caller
from app.web.policy import OperationPolicy
from schemas.audit_log import AuditLogSchema, AuditQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("audit-log", __name__, description="Changes to the account, and who made them.")


@blp.route("/api/audit-log", methods=["GET"])
@blp.operation("listAuditEntries", OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.OWNER))
@blp.arguments(AuditQuerySchema, location="query")
@blp.response(200, AuditLogSchema)
def list_entries(query: dict[str, Any]) -> dict[str, Any]:
    """List the changes of the last 400 days, newest first, each with the person, key, or service that made it."""
    limit, before = query.pop("limit"), query.pop("before")
    with runtime().database.read() as session:
        page = list_chosen_entries(session, Selection(current_caller().account.id, **query), limit=limit, before=before)
    return {
        "entries": [_entry_fields(entry) for entry in page.entries],
        "total": page.total,
        "limit": limit,
        "next_before": page.next_before,
    }


def _entry_fields(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "created_at": entry.created_at,
        "actor": {
            "kind": entry.actor_kind,
            "id": entry.actor_id,
            "name": entry.actor_name,
            "address": entry.address,
        },
        "action": entry.action,
        "object": {
            "kind": entry.kind,
            "id": entry.object_id,
            "name": entry.object_name,
            "site_id": entry.site_id,
        },
        "changes": entry.changes,
    }
