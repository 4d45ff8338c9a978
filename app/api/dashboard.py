"""The account at a glance."""

from __future__ import annotations

from app.apidoc.openapi import ApiBlueprint
from app.clock import today
from app.operations.dashboard import Dashboard, get_dashboard
from app.runtime import runtime
from app.web.auth import MANAGING
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from schemas.usage import DashboardSchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("dashboard", __name__, description="Counts, usage, and limits of the account.")


@blp.route("/dashboard", methods=["GET"])
@blp.operation("showDashboard", OperationPolicy(MANAGING, Scope.SITES, whole_account=True))
@blp.response(200, DashboardSchema)
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
