"""The JSON API: one blueprint per resource."""

from __future__ import annotations

from flask_smorest import Api

from app.api import (
    accounts,
    analytics,
    asks,
    audit_log,
    clicks,
    collections,
    documents,
    health,
    imports,
    invitations,
    keys,
    members,
    operator,
    related_pages,
    search,
    search_settings,
    sites,
    sources,
    suggestions,
    syncs,
    usage,
    webhooks,
)

BLUEPRINTS = (
    search.blp,
    suggestions.blp,
    related_pages.blp,
    asks.blp,
    usage.client_info_blp,
    documents.blp,
    syncs.blp,
    imports.blp,
    usage.blp,
    clicks.blp,
    analytics.blp,
    analytics.inbox_blp,
    sites.blp,
    collections.blp,
    search_settings.blp,
    keys.blp,
    sources.blp,
    usage.dashboard_blp,
    accounts.profile_blp,
    members.blp,
    invitations.blp,
    audit_log.blp,
    webhooks.blp,
    accounts.blp,
    operator.blp,
    health.blp,
)


def register(api: Api) -> None:
    """Register every blueprint."""
    for blueprint in BLUEPRINTS:
        api.register_blueprint(blueprint)
