"""The way to the search engine, and what a client may use."""

from __future__ import annotations

from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.plans import per_month, shown
from app.runtime import runtime
from app.services.access.engine_keys import CredentialsStopped, direct_keys, gateway_keys
from app.web.auth import ANY_KEY
from app.web.hosts import base_url
from app.web.permissions import own_site
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller, used_today
from backends.errors import BackendUnavailable
from schemas.usage import ClientInfoSchema

blp = ApiBlueprint("client-info", __name__, description="Connection details for search clients.")


@blp.route("/v1/client-info", methods=["GET"])
@blp.operation("showClientInfo", OperationPolicy(ANY_KEY), errors=(ErrorCode.SEARCH_ENGINE_UNAVAILABLE,))
@blp.response(200, ClientInfoSchema)
def show_client_info() -> tuple[dict[str, Any], int, dict[str, str]]:
    """Get the engine's URL and keys for this key's site, the site's state, and the plan's limits."""
    current_runtime = runtime()
    caller = current_caller()
    key = caller.key
    assert key is not None
    site = own_site(caller)
    engine = current_runtime.engines.get_engine(site.engine)
    direct = bool(current_runtime.settings.search_public_url) and engine.issues_credentials
    if direct and site.active:
        try:
            engine_key, public_key = direct_keys(current_runtime.database, engine, key, site)
        except CredentialsStopped as error:
            raise BackendUnavailable("The key or the site changed at this moment.", retry_after=1) from error
    else:
        engine_key, public_key = gateway_keys(key, site, current_runtime.settings.secret_key)
    limits = caller.account.limits
    monthly = per_month(limits.searches_per_day)
    answer = {
        "engine_host": current_runtime.settings.search_public_url if direct else f"{base_url()}/engine",
        "engine_key": engine_key,
        "engine_public_key": public_key,
        "active": site.active,
        "index": site.engine_index if direct else site.index,
        "domain": site.domain,
        "plan": caller.account.plan,
        "limits": {
            "daily_limit": shown(limits.searches_per_day),
            "used_today": used_today(),
            "unlimited": limits.searches_per_day is None,
        },
        "usage_limits": {
            "max_indexed_pages": shown(limits.documents),
            "search_queries_per_month": shown(monthly),
            "unlimited": limits.documents is None and monthly is None,
        },
    }
    return answer, 200, {"Cache-Control": "no-store"}
