"""The JSON API, one blueprint per noun."""

from __future__ import annotations

from flask_smorest import Api

from app.api import (
    accounts,
    analytics,
    audit_log,
    clicks,
    client_info,
    dashboard,
    documents,
    health,
    imports,
    inbox,
    invitations,
    keys,
    members,
    profile,
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
    client_info.blp,
    documents.blp,
    syncs.blp,
    imports.blp,
    usage.blp,
    clicks.blp,
    analytics.blp,
    inbox.blp,
    sites.blp,
    search_settings.blp,
    keys.blp,
    sources.blp,
    dashboard.blp,
    profile.blp,
    members.blp,
    invitations.blp,
    audit_log.blp,
    webhooks.blp,
    accounts.blp,
    health.blp,
)


def register(api: Api) -> None:
    """Register every blueprint."""
    for blueprint in BLUEPRINTS:
        api.register_blueprint(blueprint)
