"""Health of the service, for supervisors and load balancers."""

from __future__ import annotations

from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.runtime import runtime
from app.services.health import check_readiness
from app.web.auth import ANYONE
from app.web.policy import OperationPolicy
from schemas.health import HealthSchema, ReadinessSchema

blp = ApiBlueprint("health", __name__, description="Health and readiness of the service.")


@blp.route("/healthz", methods=["GET"])
@blp.operation("showHealth", OperationPolicy(ANYONE, uncounted=True))
@blp.response(200, HealthSchema)
def show_health() -> dict[str, Any]:
    """Check that the process responds."""
    return {"status": "ok"}


@blp.route("/readyz", methods=["GET"])
@blp.operation(
    "showReadiness",
    OperationPolicy(ANYONE, uncounted=True),
    errors=(ErrorCode.DATABASE_UNAVAILABLE, ErrorCode.COUNTERS_UNAVAILABLE, ErrorCode.SEARCH_ENGINE_UNAVAILABLE),
)
@blp.response(200, ReadinessSchema)
def show_readiness() -> dict[str, Any]:
    """Check that the database, the counter store, and the search engine are ready."""
    current_runtime = runtime()
    check_readiness(current_runtime.database, current_runtime.counters, current_runtime.engines)
    return {"status": "ok", "checks": {"database": "ok", "counters": "ok", "search": "ok"}}
