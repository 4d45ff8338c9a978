"""Clicks on results."""

from __future__ import annotations

from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.clock import now
from app.runtime import runtime
from app.services.access.callers import Caller
from app.services.analytics.clicks import make_click
from app.web.admission import current_admission
from app.web.auth import ANY_KEY_OR_ENGINE_KEY
from app.web.callers import current_caller, current_visitor
from app.web.policy import OperationPolicy
from schemas.base import SuccessSchema
from schemas.clicks import ClickSchema

blp = ApiBlueprint("clicks", __name__, description="Clicks on results, for analytics.")


@blp.route("/api/v1/click", methods=["POST"])
@blp.operation("reportClick", OperationPolicy(ANY_KEY_OR_ENGINE_KEY), body=True)
@blp.arguments(ClickSchema)
@blp.response(200, SuccessSchema)
def report_click(fields: dict[str, Any]) -> dict[str, Any]:
    """Report a click on a result, for analytics. Repeating the same click has no effect."""
    current_runtime = runtime()
    site_id = _site_of_key(current_caller())
    visitor = current_visitor(current_admission(), site_id, fields["session_id"])
    click = make_click(
        current_runtime.settings.secret_key,
        site_id,
        fields["id"],
        query_id=fields["query_id"],
        query=fields["query"],
        session_id=fields["session_id"],
        position=fields["position"],
        moment=now(),
        anchor=fields["anchor"],
        visitor=visitor.number,
        channel=visitor.channel,
    )
    if click is not None:
        current_runtime.events.record(click)
    return {"success": True}


def _site_of_key(caller: Caller) -> int:
    if caller.site is not None:
        return caller.site.id
    assert caller.key is not None, "the operation is for keys"
    return caller.key.site_id
