"""Documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import islice
from typing import Any

import orjson
from flask import Response, request

from app.api.views import merge_options
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode, field_error
from app.runtime import runtime
from app.services.document_list import (
    Cursor,
    Selection,
    encode,
    encode_into,
    read_page,
    select_documents,
    walk,
    walk_ids,
)
from app.services.search.encoding import parse_fields
from app.services.sites import get_site
from app.storage.database import Database
from app.web.auth import INDEXING, MANAGING
from app.web.callers import current_caller, load_site
from app.web.permissions import choose_written_site
from app.web.policy import OperationPolicy
from app.web.responses import json_response, prefers
from schemas.documents import (
    BulkAnswerSchema,
    BulkQuerySchema,
    BulkSchema,
    ChangeAnswerSchema,
    ChangeDocumentsSchema,
    DeleteAnswerSchema,
    DeleteDocumentsSchema,
    DestroyAnswerSchema,
    DestroyQuerySchema,
    DestroySchema,
    DocumentListQuerySchema,
    DocumentListSchema,
    SiteChoiceSchema,
)
from schemas.validation.documents import RECOMMENDED_BATCH
from schemas.validation.keys import Scope

blp = ApiBlueprint("documents", __name__, description="Add, list, change, and remove documents.")

JSON_LINES = "application/x-ndjson"
LINES_AT_ONCE = 65_536
"""Minimum size in bytes of a chunk in a streamed response."""

REMOVED_AT_ONCE = 1_000

_POLICY = OperationPolicy(MANAGING, Scope.DOCUMENTS)
_ERRORS = (ErrorCode.SITE_NOT_FOUND, ErrorCode.SITE_INACTIVE, ErrorCode.SEARCH_ENGINE_UNAVAILABLE)
_TEXT = {"type": "string"}


@blp.route("/api/v1/index/bulk", methods=["POST"])
@blp.operation(
    "indexDocuments",
    OperationPolicy(INDEXING, Scope.DOCUMENTS),
    errors=(*_ERRORS, ErrorCode.BATCH_TOO_LARGE, ErrorCode.DOCUMENT_LIMIT_REACHED, ErrorCode.SYNC_NOT_FOUND),
    body=True,
)
@blp.doc(
    requestBody={
        "content": {
            JSON_LINES: {"schema": _TEXT},
            "text/csv": {"schema": _TEXT},
        }
    }
)
@blp.arguments(BulkSchema, location="documents")
@blp.arguments(BulkQuerySchema, location="query")
@blp.response(200, BulkAnswerSchema)
def index_documents(body: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
    """Add or replace documents, all or none. They are durable and searchable when the request returns."""
    caller = current_caller()
    site_id = choose_written_site(caller, query["site_id"], body["site_id"])
    batch = body["documents"]
    outcome = runtime().writer.put(
        caller.account.id, caller.account.limits, site_id, batch.documents, sync_id=query["sync"]
    )
    response: dict[str, Any] = {
        "success": True,
        "indexed": outcome.indexed,
        "created": outcome.created,
        "updated": outcome.updated,
    }
    if batch.sent_count > RECOMMENDED_BATCH:
        response["warnings"] = [
            {"code": "batch_above_recommended", "message": f"Send at most {RECOMMENDED_BATCH} documents per request."}
        ]
    return response


@blp.route("/api/v1/index/destroy", methods=["DELETE"])
@blp.operation(
    "deleteDocument",
    OperationPolicy(INDEXING, Scope.DOCUMENTS),
    errors=(*_ERRORS, ErrorCode.DOCUMENT_NOT_FOUND),
    body=True,
)
@blp.arguments(DestroySchema, location="json_optional", required=False)
@blp.arguments(DestroyQuerySchema, location="query")
@blp.response(200, DestroyAnswerSchema)
def delete_document(body: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
    """Remove a document. Send its ID in the body or in `?id=`."""
    caller = current_caller()
    site_ids = query.pop("site_id"), body.pop("site_id")
    options = merge_options(query, body)
    if "id" not in options:
        raise field_error("id", "required", "is required")
    site_id = choose_written_site(caller, *site_ids)
    runtime().writer.remove(caller.account.id, site_id, options["id"])
    return {"success": True, "deleted": 1}


@blp.route("/api/v1/documents", methods=["GET"])
@blp.operation(
    "listDocuments",
    _POLICY,
    errors=(ErrorCode.SITE_NOT_FOUND, ErrorCode.INVALID_FILTER, ErrorCode.ANSWER_TOO_LARGE),
)
@blp.arguments(DocumentListQuerySchema, location="query")
@blp.response(200, DocumentListSchema)
@blp.alt_response(200, schema=_TEXT, content_type=JSON_LINES)
def list_documents(query: dict[str, Any]) -> Response:
    """List documents, last changed first. With `Accept: application/x-ndjson`, stream all of them, one per line."""
    current_runtime = runtime()
    caller = current_caller()
    with current_runtime.database.read() as session:
        site = get_site(session, caller.account.id, choose_written_site(caller, query["site_id"], None))
    ids = None if query["id"] is None else list(dict.fromkeys(query["id"]))
    selection = select_documents(site, source=query["source"] or None, ids=ids, filters=query["filters"])
    cursor = Cursor.decode(query["cursor"], selection) if query["cursor"] else None
    fields = parse_fields(query["fields"])
    if prefers(request, JSON_LINES):
        response = Response(_lines(current_runtime.database, selection, cursor, fields), content_type=JSON_LINES)
    else:
        documents: list[bytes] = []
        add = encode_into(documents, current_runtime.searcher.new_budget(), fields, may_end_early=ids is None)
        page = read_page(current_runtime.database, site, selection, cursor, query["limit"], add)
        fragments = [orjson.Fragment(document) for document in documents]
        response = json_response({"documents": fragments, "total": page.total, "next_cursor": page.next_cursor})
    response.vary.add("Accept")
    return response


def _lines(database: Database, selection: Selection, cursor: Cursor | None, fields: Set[str] | None) -> Iterator[bytes]:
    """Yield documents as JSON Lines, in chunks."""
    waiting = bytearray()
    for document in walk(database, selection, None if cursor is None else cursor.position):
        waiting += encode(document, fields) + b"\n"
        if len(waiting) >= LINES_AT_ONCE:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


@blp.route("/api/v1/documents", methods=["PATCH"])
@blp.operation(
    "changeDocuments",
    _POLICY,
    errors=(*_ERRORS, ErrorCode.BATCH_TOO_LARGE, ErrorCode.DOCUMENT_NOT_FOUND),
    body=True,
)
@blp.arguments(ChangeDocumentsSchema)
@blp.arguments(SiteChoiceSchema, location="query")
@blp.response(200, ChangeAnswerSchema)
def change_documents(body: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
    """Replace fields of documents, all or none. Omitted fields stay unchanged; `null` removes a field."""
    caller = current_caller()
    site_id = choose_written_site(caller, query["site_id"], body["site_id"])
    updated = runtime().writer.change(caller.account.id, site_id, body["documents"])
    return {"success": True, "updated": updated}


@blp.route("/api/v1/documents/delete", methods=["POST"])
@blp.operation(
    "deleteDocuments",
    _POLICY,
    errors=(*_ERRORS, ErrorCode.BATCH_TOO_LARGE, ErrorCode.INVALID_FILTER),
    body=True,
)
@blp.arguments(DeleteDocumentsSchema)
@blp.arguments(SiteChoiceSchema, location="query")
@blp.response(200, DeleteAnswerSchema)
def delete_documents(body: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
    """Remove documents by ID, by filter, or all. Unknown IDs are skipped."""
    current_runtime = runtime()
    caller = current_caller()
    site_id = choose_written_site(caller, query["site_id"], body["site_id"])
    if body["ids"] is not None:
        deleted = current_runtime.writer.remove_ids(caller.account.id, site_id, list(dict.fromkeys(body["ids"])))
        return {"success": True, "deleted": deleted}
    site = load_site(site_id)
    selection = select_documents(site, filters=body["filters"] or "")
    deleted = current_runtime.writer.remove_all(
        caller.account.id, site_id, _batches(walk_ids(current_runtime.database, selection)), up_to=site.revision
    )
    return {"success": True, "deleted": deleted}


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(ids)
    while batch := list(islice(remaining, REMOVED_AT_ONCE)):
        yield batch
