"""Documents: bulk indexing and removal."""

from __future__ import annotations

from typing import Any

from app.api import examples
from app.errors import ErrorCode, field_error
from app.runtime import runtime
from app.web.auth import INDEXING
from app.web.openapi import ApiBlueprint
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from app.web.site_selection import choose_written_site
from schemas.documents import (
    BulkAnswerSchema,
    BulkSchema,
    DestroyAnswerSchema,
    DestroyQuerySchema,
    DestroySchema,
    SiteChoiceSchema,
)
from schemas.validation.documents import RECOMMENDED_BATCH

blp = ApiBlueprint("documents", __name__, description="Add, replace, and remove documents.")

_ERRORS = (ErrorCode.SITE_NOT_FOUND, ErrorCode.SITE_INACTIVE, ErrorCode.SEARCH_ENGINE_UNAVAILABLE)


@blp.route("/api/v1/index/bulk", methods=["POST"])
@blp.operation(
    "indexDocuments",
    OperationPolicy(INDEXING),
    errors=(*_ERRORS, ErrorCode.BATCH_TOO_LARGE, ErrorCode.DOCUMENT_LIMIT_REACHED),
    body=True,
)
@blp.arguments(BulkSchema, example=examples.BULK)
@blp.arguments(SiteChoiceSchema, location="query")
@blp.response(200, BulkAnswerSchema, example=examples.BULK_ANSWER)
def index_documents(body: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
    """Add or replace documents, all or nothing. They are durable and searchable once the request returns."""
    caller = current_caller()
    site_id = choose_written_site(caller, query["site_id"], body["site_id"])
    sent = body["documents"]
    outcome = runtime().writer.put(caller.account.id, caller.account.limits, site_id, sent.documents)
    answer: dict[str, Any] = {
        "success": True,
        "indexed": outcome.indexed,
        "created": outcome.created,
        "updated": outcome.updated,
    }
    if sent.sent_count > RECOMMENDED_BATCH:
        answer["warnings"] = [
            {"code": "batch_above_recommended", "message": f"Send at most {RECOMMENDED_BATCH} documents per request."}
        ]
    return answer


@blp.route("/api/v1/index/destroy", methods=["DELETE"])
@blp.operation("deleteDocument", OperationPolicy(INDEXING), errors=(*_ERRORS, ErrorCode.DOCUMENT_NOT_FOUND), body=True)
@blp.arguments(DestroySchema, location="json_optional", required=False, example=examples.DESTROY)
@blp.arguments(DestroyQuerySchema, location="query")
@blp.response(200, DestroyAnswerSchema, example=examples.DESTROY_ANSWER)
def delete_document(body: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
    """Remove a document. Its id is in the body or in `?id=`."""
    caller = current_caller()
    document_id = _document_id(query["id"], body["id"])
    site_id = choose_written_site(caller, query["site_id"], body["site_id"])
    runtime().writer.remove(caller.account.id, site_id, document_id)
    return {"success": True, "deleted": 1}


def _document_id(in_query: str | None, in_body: str | None) -> str:
    document_id = in_query if in_body is None else in_body
    if document_id is None:
        raise field_error("id", "required", "is required")
    if in_query is not None and in_query != document_id:
        raise field_error("id", "conflict", "in the query and in the body differ")
    return document_id
