"""A site's search settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.operations import search_settings as settings_operations
from app.runtime import runtime
from app.services.access.roles import Role
from app.services.search.preview import QueryPreview
from app.services.search_settings import shown_settings
from app.services.sites import get_site
from app.web.auth import MANAGING
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from schemas.search_settings import (
    SearchSettingsAnswerSchema,
    SearchSettingsSchema,
    SearchSettingsWrittenSchema,
    SettingsPreviewAnswerSchema,
    SettingsPreviewSchema,
)
from schemas.sites import SuccessSchema
from schemas.validation.keys import Scope
from schemas.validation.problems import MAX_PROBLEMS, shown_name

blp = ApiBlueprint(
    "search-settings",
    __name__,
    description="A site's synonyms, stop words, pinned and hidden results, and field weights.",
)

PATH = "/sites/<int(signed=True):site_id>/search-settings"


@blp.route(PATH, methods=["GET"])
@blp.operation(
    "showSearchSettings",
    OperationPolicy(MANAGING, Scope.SITES, role=Role.EDITOR),
    errors=(ErrorCode.SITE_NOT_FOUND,),
)
@blp.response(200, SearchSettingsAnswerSchema)
def show_search_settings(site_id: int) -> dict[str, Any]:
    """Get the settings, with defaults filled in."""
    with runtime().database.read() as session:
        site = get_site(session, current_caller().account.id, site_id)
    return {"settings": shown_settings(site.search_settings)}


@blp.route(PATH, methods=["PUT"])
@blp.operation(
    "updateSearchSettings", OperationPolicy(MANAGING, Scope.SITES), errors=(ErrorCode.SITE_NOT_FOUND,), body=True
)
@blp.arguments(SearchSettingsSchema)
@blp.response(200, SearchSettingsWrittenSchema)
def update_search_settings(settings: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Replace all settings. They take effect with the next search; nothing is reindexed."""
    site, unknown = settings_operations.update_settings(runtime(), current_caller(), site_id, settings)
    answer = {"success": True, "settings": shown_settings(site.search_settings)}
    return _with_warnings(answer, _unknown(unknown))


@blp.route(PATH + "/preview", methods=["POST"])
@blp.operation(
    "previewSearchSettings",
    OperationPolicy(MANAGING, Scope.SITES),
    errors=(ErrorCode.SITE_NOT_FOUND, ErrorCode.SITE_INACTIVE, ErrorCode.SEARCH_ENGINE_UNAVAILABLE),
    body=True,
)
@blp.arguments(SettingsPreviewSchema)
@blp.response(200, SettingsPreviewAnswerSchema)
def preview_search_settings(body: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Compare what queries find now with what they would find. Nothing is saved, charged, or in analytics."""
    preview = settings_operations.preview(runtime(), current_caller(), site_id, body["settings"], body.get("queries"))
    queries = [
        {
            "query": each.query,
            "before": [document._asdict() for document in each.before],
            "after": [document._asdict() for document in each.after],
            "changed": each.changed,
        }
        for each in preview.queries
    ]
    return _with_warnings({"queries": queries}, _unknown(preview.unknown_ids) + _incomplete(preview.queries))


@blp.route("/sites/<int(signed=True):site_id>/learned-clicks", methods=["DELETE"])
@blp.operation("forgetClicks", OperationPolicy(MANAGING, Scope.SITES), errors=(ErrorCode.SITE_NOT_FOUND,))
@blp.response(200, SuccessSchema)
def forget_clicks(site_id: int) -> dict[str, Any]:
    """Take back what the site learned from clicks. It learns anew, from those that come from now on."""
    settings_operations.forget_clicks(runtime(), current_caller(), site_id)
    return {"success": True}


def _with_warnings(answer: dict[str, Any], warnings: Sequence[dict[str, str]]) -> dict[str, Any]:
    return {**answer, "warnings": warnings[:MAX_PROBLEMS]} if warnings else answer


def _unknown(ids: Sequence[str]) -> list[dict[str, str]]:
    return [{"code": "unknown_document", "message": f"No document has the id {shown_name(id)}."} for id in ids]


def _incomplete(queries: Sequence[QueryPreview]) -> list[dict[str, str]]:
    return [
        {
            "code": "preview_incomplete",
            "message": f"The search engine applies changed synonyms when they are saved: the preview of "
            f"{shown_name(each.query)} is without them.",
        }
        for each in queries
        if not each.is_exact
    ]
