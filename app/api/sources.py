"""Sources of a site, their runs, and the preview of a page."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from app.api.views import describe_source, merge_options
from app.apidoc.openapi import ApiBlueprint
from app.crawl.run.lookup import PageLookup, encode_dead_links, list_dead_links, twins_of_run
from app.crawl.sources import runs, sources
from app.errors import ErrorCode
from app.operations import sources as source_operations
from app.runtime import runtime
from app.web.auth import ANYONE, MANAGING
from app.web.callers import current_caller
from app.web.policy import OperationPolicy
from app.web.responses import CSV, csv_response, prefers
from schemas.base import NothingSchema, SuccessSchema
from schemas.sites import PageQuerySchema
from schemas.source_runs import (
    DeadLinkListSchema,
    HookSchema,
    PageLookupQuerySchema,
    PageLookupSchema,
    RunAnswerSchema,
    RunListSchema,
    RunRequestSchema,
    RunShowSchema,
)
from schemas.sources import (
    PreviewAnswerSchema,
    PreviewSchema,
    SourceAnswerSchema,
    SourceCreateSchema,
    SourceDeleteQuerySchema,
    SourceDeleteSchema,
    SourceListSchema,
    SourceShowSchema,
    SourceUpdateSchema,
)
from schemas.validation.keys import Scope

blp = ApiBlueprint("sources", __name__, description="Sources of a site's pages, crawled on request and on a schedule.")

SITE_SOURCES = "/api/sites/<int(signed=True):site_id>/sources"
SOURCE = SITE_SOURCES + "/<string:source_id>"
_POLICY = OperationPolicy(MANAGING, Scope.DOCUMENTS)
_ERRORS = (ErrorCode.SITE_NOT_FOUND, ErrorCode.SOURCE_NOT_FOUND)


@blp.route(SITE_SOURCES, methods=["GET"])
@blp.operation("listSources", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND,))
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, SourceListSchema)
def list_sources(page: dict[str, Any], site_id: int) -> dict[str, Any]:
    """List a site's sources, oldest first."""
    with runtime().database.read() as session:
        listed, total = sources.list_sources(session, current_caller().account.id, site_id, **page)
        newest = runs.newest_runs(session, [source.id for source in listed])
        rows = [describe_source(sources.view(source, newest.get(source.id)), current_caller()) for source in listed]
    return {"sources": rows, "total": total, **page}


@blp.route(SITE_SOURCES, methods=["POST"])
@blp.operation(
    "createSource",
    _POLICY,
    errors=(
        ErrorCode.SITE_NOT_FOUND,
        ErrorCode.SITE_INACTIVE,
        ErrorCode.SOURCE_LIMIT_REACHED,
        ErrorCode.BROWSER_UNAVAILABLE,
    ),
    body=True,
)
@blp.arguments(SourceCreateSchema)
@blp.response(201, SourceAnswerSchema)
def create_source(fields: dict[str, Any], site_id: int) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create a source. Its first run is queued immediately."""
    source = source_operations.create_source(runtime(), current_caller(), site_id, fields)
    location = f"/api/sites/{site_id}/sources/{source.id}"
    return {"success": True, "source": describe_source(source, current_caller())}, 201, {"Location": location}


@blp.route(SITE_SOURCES + "/preview", methods=["POST"])
@blp.operation("previewPage", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND,), body=True)
@blp.arguments(PreviewSchema)
@blp.response(200, PreviewAnswerSchema)
def preview_page(fields: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Preview a page: its document, or why it would be skipped. Nothing is stored."""
    preview = source_operations.preview_page(runtime(), current_caller(), site_id, fields)
    return {"document": preview.document, **({"reason": preview.reason} if preview.reason is not None else {})}


@blp.route(SITE_SOURCES + "/lookup", methods=["GET"])
@blp.operation("lookUpPage", _POLICY, errors=(ErrorCode.SITE_NOT_FOUND,))
@blp.arguments(PageLookupQuerySchema, location="query")
@blp.response(200, PageLookupSchema)
def look_up_page(query: dict[str, Any], site_id: int) -> PageLookup:
    """Look up a URL: whether it is indexed, and why not."""
    return source_operations.look_up_page(runtime(), current_caller(), site_id, query["url"])


@blp.route(SOURCE, methods=["GET"])
@blp.operation("showSource", _POLICY, errors=_ERRORS)
@blp.response(200, SourceShowSchema)
def show_source(site_id: int, source_id: str) -> dict[str, Any]:
    """Get a source with its newest run."""
    with runtime().database.read() as session:
        source = sources.get_source(session, current_caller().account.id, site_id, source_id)
        view = sources.view(source, runs.newest_runs(session, [source.id]).get(source.id))
    return {"source": describe_source(view, current_caller())}


@blp.put_and_patch(
    SOURCE,
    ("updateSource", "patchSource"),
    _POLICY,
    (*_ERRORS, ErrorCode.BROWSER_UNAVAILABLE),
    SourceUpdateSchema,
    SourceAnswerSchema,
)
def update_source(changes: dict[str, Any], site_id: int, source_id: str) -> dict[str, Any]:
    """Change a source. Changes take effect with the next run."""
    source = source_operations.update_source(runtime(), current_caller(), site_id, source_id, changes)
    return {"success": True, "source": describe_source(source, current_caller())}


@blp.route(SOURCE, methods=["DELETE"])
@blp.operation("deleteSource", _POLICY, errors=_ERRORS, body=True)
@blp.undocumented_body(SourceDeleteSchema)
@blp.arguments(SourceDeleteQuerySchema, location="query")
@blp.response(200, SuccessSchema)
def delete_source(body: dict[str, Any], query: dict[str, Any], site_id: int, source_id: str) -> dict[str, Any]:
    """Delete a source and its documents. `keep_documents=true` keeps them."""
    source_operations.delete_source(runtime(), current_caller(), site_id, source_id, **merge_options(query, body))
    return {"success": True}


@blp.route(SOURCE + "/run", methods=["POST"])
@blp.operation("runSource", _POLICY, errors=(*_ERRORS, ErrorCode.SITE_INACTIVE), body=True)
@blp.arguments(RunRequestSchema, location="json_optional", required=False)
@blp.response(200, RunAnswerSchema)
def run_source(fields: dict[str, Any], site_id: int, source_id: str) -> dict[str, Any]:
    """Start a run, or get the unfinished run."""
    return {
        "success": True,
        "run": source_operations.request_run(runtime(), current_caller(), site_id, source_id, fields),
    }


@blp.route(SOURCE + "/cancel", methods=["POST"])
@blp.operation("cancelRun", _POLICY, errors=(*_ERRORS, ErrorCode.RUN_NOT_FOUND), body=True)
@blp.arguments(NothingSchema, location="json_optional", required=False)
@blp.response(200, RunAnswerSchema)
def cancel_run(fields: dict[str, Any], site_id: int, source_id: str) -> dict[str, Any]:
    """Cancel the unfinished run. Its documents stay."""
    return {"success": True, "run": source_operations.cancel_run(runtime(), current_caller(), site_id, source_id)}


@blp.route(SOURCE + "/hook", methods=["POST"])
@blp.operation("renewHook", _POLICY, errors=_ERRORS, body=True)
@blp.arguments(NothingSchema, location="json_optional", required=False)
@blp.response(200, SourceAnswerSchema)
def renew_hook(fields: dict[str, Any], site_id: int, source_id: str) -> dict[str, Any]:
    """Replace a deploy hook's URL. The old URL stops working immediately."""
    source = source_operations.renew_hook(runtime(), current_caller(), site_id, source_id)
    return {"success": True, "source": describe_source(source, current_caller())}


@blp.route("/hooks/<string:secret>", methods=["POST"])
@blp.operation(
    "runSourceByHook",
    OperationPolicy(ANYONE, token_locations=()),
    errors=(
        *(ErrorCode.SOURCE_NOT_FOUND, ErrorCode.SITE_INACTIVE, ErrorCode.ACCOUNT_SUSPENDED),
        *(ErrorCode.REQUEST_TIMEOUT, ErrorCode.PAYLOAD_TOO_LARGE),
    ),
)
@blp.arguments(HookSchema, location="hook", required=False)
@blp.response(200, RunAnswerSchema)
def run_source_by_hook(fields: dict[str, Any], secret: str) -> dict[str, Any]:
    """Start a run of the source with this deploy hook, at most once a minute.

    During a run, the response contains the current run, and another run follows it. Bodies other than JSON objects are
    ignored.
    """
    return {"success": True, "run": source_operations.run_by_hook(runtime(), secret, fields["urls"])}


@blp.route(SOURCE + "/runs", methods=["GET"])
@blp.operation("listRuns", _POLICY, errors=_ERRORS)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, RunListSchema)
def list_runs(page: dict[str, Any], site_id: int, source_id: str) -> dict[str, Any]:
    """List a source's runs, newest first. The service keeps the last 50."""
    with runtime().database.read() as session:
        source = sources.get_source(session, current_caller().account.id, site_id, source_id)
        listed, total = runs.list_runs(session, source, **page)
    return {"runs": listed, "total": total, **page}


@blp.route(SOURCE + "/runs/<string:run_id>", methods=["GET"])
@blp.operation("showRun", _POLICY, errors=(*_ERRORS, ErrorCode.RUN_NOT_FOUND))
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, RunShowSchema)
def show_run(page: dict[str, Any], site_id: int, source_id: str, run_id: str) -> dict[str, Any]:
    """Get a run with the URLs that it skipped and the reasons."""
    with runtime().database.read() as session:
        source = sources.get_source(session, current_caller().account.id, site_id, source_id)
        run = runs.get_run(session, source, run_id)
        pages, total = runs.list_reported(session, run, **page)
        twins = twins_of_run(session, run, pages)
    reported_pages = [
        {
            "url": page.url,
            "reason": page.reason,
            **({"indexed": True} if page.status in runs.IN_INDEX else {}),
            **({"found_on": [page.found_on]} if page.found_on is not None else {}),
            **({"document": twins[page.url]} if page.url in twins else {}),
        }
        for page in pages
    ]
    return {"run": run, "pages": reported_pages, "total": total, **page}


@blp.route(SOURCE + "/dead-links", methods=["GET"])
@blp.operation("listDeadLinks", _POLICY, errors=_ERRORS)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, DeadLinkListSchema)
@blp.alt_response(200, schema={"type": "string"}, content_type=CSV)
def show_dead_links(page: dict[str, Any], site_id: int, source_id: str) -> dict[str, Any] | Response:
    """List dead links. With `Accept: text/csv`, get them as a table."""
    with runtime().database.read() as session:
        source = sources.get_source(session, current_caller().account.id, site_id, source_id)
        dead = list_dead_links(session, source, **page)
    if prefers(request, CSV):
        return csv_response(encode_dead_links(dead.links))
    run_id = None if dead.run is None else dead.run.id
    return {"dead_links": dead.links, "run_id": run_id, "total": dead.total, **page}
