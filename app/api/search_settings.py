"""A site's search settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from flask import request
from werkzeug.http import parse_etags

from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.models import Site
from app.operations import change
from app.operations import search_settings as settings_operations
from app.runtime import runtime
from app.services import search_settings
from app.services.access.rights import Role
from app.services.search.preview import QueryPreview
from app.services.search_settings import list_learned, settings_tag, settings_with_defaults
from app.web.auth import MANAGING
from app.web.callers import current_caller, load_site
from app.web.policy import OperationPolicy
from backends.base import SearchBackend
from schemas.base import SuccessSchema
from schemas.search_settings import SearchSettingsAnswerSchema, SearchSettingsSchema, SearchSettingsWrittenSchema
from schemas.settings_previews import LearnedClicksSchema, SettingsPreviewAnswerSchema, SettingsPreviewSchema
from schemas.validation.keys import Scope
from schemas.validation.problems import MAX_PROBLEMS, printable_name

blp = ApiBlueprint(
    "search-settings",
    __name__,
    description="A site's synonyms, stop words, pinned and hidden results, rules, ranks, and field weights.",
)

SettingsResponse = tuple[dict[str, Any], int, dict[str, str]]
_TAG = {"ETag": {"schema": {"type": "string"}, "description": "Version of the settings, for `If-Match`."}}
_IF_MATCH = [
    {
        "name": "If-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The `ETag` of the settings to replace. Without it, the last writer wins.",
    }
]
_POLICY = OperationPolicy(MANAGING, Scope.SITES)
_READING = OperationPolicy(MANAGING, Scope.SITES, role=Role.EDITOR)
_ERRORS = (ErrorCode.SITE_NOT_FOUND,)
PATH = "/sites/<int(signed=True):site_id>/search-settings"


@blp.route(PATH, methods=["GET"])
@blp.operation("showSearchSettings", _READING, errors=_ERRORS)
@blp.response(200, SearchSettingsAnswerSchema, headers=_TAG)
def show_search_settings(site_id: int) -> SettingsResponse:
    """Get the settings, with defaults filled in."""
    site = load_site(site_id)
    return {"settings": settings_with_defaults(site.search_settings)}, 200, _tagged(site)


@blp.route(PATH, methods=["PUT"])
@blp.operation("updateSearchSettings", _POLICY, errors=(*_ERRORS, ErrorCode.CHANGED_MEANWHILE), body=True)
@blp.doc(parameters=_IF_MATCH)
@blp.arguments(SearchSettingsSchema)
@blp.response(200, SearchSettingsWrittenSchema, headers=_TAG)
def update_search_settings(settings: dict[str, Any], site_id: int) -> SettingsResponse:
    """Replace all settings. They take effect with the next search; nothing is reindexed.

    Send the `ETag` from GET as `If-Match` to avoid overwriting changes that others made in the meantime.
    """
    site, unknown = settings_operations.update_settings(
        runtime(), current_caller(), site_id, settings, _expected_tags()
    )
    response = {"success": True, "settings": settings_with_defaults(site.search_settings)}
    warnings = _unusable(site_id, settings) + _unknown(unknown)
    warnings += _limits(runtime().engines.get_engine(site.engine), settings)
    return _with_warnings(response, warnings), 200, _tagged(site)


@blp.route(PATH + "/preview", methods=["POST"])
@blp.operation(
    "previewSearchSettings",
    _POLICY,
    errors=(*_ERRORS, ErrorCode.SITE_INACTIVE, ErrorCode.SEARCH_ENGINE_UNAVAILABLE),
    body=True,
)
@blp.arguments(SettingsPreviewSchema)
@blp.response(200, SettingsPreviewAnswerSchema)
def preview_search_settings(body: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Compare results of queries under current and new settings. Nothing is saved, charged, or recorded."""
    preview = settings_operations.preview(runtime(), current_caller(), site_id, body["settings"], body.get("queries"))
    queries = [
        {
            "query": previewed.query,
            "before": [{"id": document.id, "title": document.title} for document in previewed.before],
            "after": [{"id": document.id, "title": document.title} for document in previewed.after],
            "changed": previewed.changed,
        }
        for previewed in preview.queries
    ]
    warnings = _unusable(site_id, body["settings"]) + _unknown(preview.unknown_ids) + _incomplete(preview.queries)
    return _with_warnings({"queries": queries}, warnings + _limits(preview.engine, body["settings"]))


def _tagged(site: Site) -> dict[str, str]:
    return {"ETag": f'"{settings_tag(site.search_settings)}"'}


def _expected_tags() -> Set[str] | None:
    """Return the entity tags in ``If-Match``, including weak tags from proxies; ``None`` if any version matches."""
    header = request.headers.get("If-Match")
    tags = parse_etags(header)
    return None if header is None or tags.star_tag else tags.as_set(include_weak=True)


def _limits(engine: SearchBackend, settings: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return warnings about the engine's limits if the settings use ranks."""
    ranks = settings["boosts"] or settings["rank_field"] or settings["recency"]
    if not engine.rank_limits or not (ranks or any("boost" in rule["do"] for rule in settings["rules"])):
        return []
    return [{"code": "engine_limit", "message": engine.rank_limits}]


def _unusable(site_id: int, settings: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return warnings about semantic search and questions that are turned on, but cannot work."""
    warnings = (
        settings_operations.meaning_warning(runtime(), site_id, settings),
        settings_operations.ask_warning(runtime(), current_caller().account.limits, settings),
    )
    return [{"code": warning[0], "message": warning[1]} for warning in warnings if warning is not None]


@blp.route("/sites/<int(signed=True):site_id>/learned-clicks", methods=["GET"])
@blp.operation("listLearnedClicks", _READING, errors=_ERRORS)
@blp.response(200, LearnedClicksSchema)
def list_learned_clicks(site_id: int) -> dict[str, Any]:
    """List the queries whose results are reordered by clicks, with the documents that move up."""
    with runtime().database.read() as session:
        learned = list_learned(session, current_caller().account.id, site_id)
    return {
        "queries": [
            {"query": query, "documents": [{"id": id, "gain": gain} for id, gain in documents.items()]}
            for query, documents in learned.items()
        ]
    }


@blp.route("/sites/<int(signed=True):site_id>/learned-clicks", methods=["DELETE"])
@blp.operation("forgetClicks", _POLICY, errors=_ERRORS, empty_body=True)
@blp.response(200, SuccessSchema)
def forget_clicks(site_id: int) -> dict[str, Any]:
    """Delete the ranking that the site learned from clicks. Only new clicks count from now on."""
    change(runtime(), current_caller(), search_settings.forget_clicks, site_id)
    return {"success": True}


def _with_warnings(response: dict[str, Any], warnings: Sequence[dict[str, str]]) -> dict[str, Any]:
    return {**response, "warnings": warnings[:MAX_PROBLEMS]} if warnings else response


def _unknown(ids: Sequence[str]) -> list[dict[str, str]]:
    return [{"code": "unknown_document", "message": f"No document has the ID {printable_name(id)}."} for id in ids]


def _incomplete(queries: Sequence[QueryPreview]) -> list[dict[str, str]]:
    return [
        {
            "code": "preview_incomplete",
            "message": f"The search engine applies changed synonyms when they are saved, so the preview of "
            f"{printable_name(previewed.query)} doesn't include them.",
        }
        for previewed in queries
        if not previewed.is_exact
    ]
