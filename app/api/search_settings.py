"""A site's search settings."""

from __future__ import annotations

from typing import Any

from app.errors import ErrorCode
from app.runtime import runtime
from app.services.indexing.stored_documents import known_ids
from app.services.search_settings import change_settings, named_ids, shown_settings
from app.services.sites import get_site
from app.web.actions import changing
from app.web.auth import MANAGING
from app.web.openapi import ApiBlueprint
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from schemas.search_settings import SearchSettingsAnswerSchema, SearchSettingsSchema, SearchSettingsWrittenSchema
from schemas.validation.problems import MAX_PROBLEMS, shown_name

blp = ApiBlueprint(
    "search-settings",
    __name__,
    description="A site's synonyms, stop words, pinned and hidden results, and field weights.",
)

PATH = "/sites/<int(signed=True):site_id>/search-settings"


@blp.route(PATH, methods=["GET"])
@blp.operation("showSearchSettings", OperationPolicy(MANAGING), errors=(ErrorCode.SITE_NOT_FOUND,))
@blp.response(200, SearchSettingsAnswerSchema)
def show_search_settings(site_id: int) -> dict[str, Any]:
    """Get the settings, with defaults filled in."""
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
    return {"settings": shown_settings(site.search_settings)}


@blp.route(PATH, methods=["PUT"])
@blp.operation("updateSearchSettings", OperationPolicy(MANAGING), errors=(ErrorCode.SITE_NOT_FOUND,), body=True)
@blp.arguments(SearchSettingsSchema)
@blp.response(200, SearchSettingsWrittenSchema)
def update_search_settings(settings: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Replace all settings. They take effect with the next search; nothing is reindexed."""
    caller = current_caller()
    with changing(caller) as session:
        site = change_settings(session, caller.account.id, site_id, settings)
        named = named_ids(site.search_settings)
        known = known_ids(session, site.id, named)
    unknown = [id for id in named if id not in known]
    answer: dict[str, Any] = {"success": True, "settings": shown_settings(site.search_settings)}
    if unknown:
        answer["warnings"] = [
            {"code": "unknown_document", "message": f"No document has the id {shown_name(id)}."}
            for id in unknown[:MAX_PROBLEMS]
        ]
    return answer
