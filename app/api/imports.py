"""Imports of files."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from flask import request
from marshmallow import ValidationError

from app.api.views import describe_source
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.operations import imports
from app.operations import sources as source_operations
from app.operations.imports import ImportOutcome
from app.runtime import runtime
from app.web.auth import MANAGING
from app.web.callers import current_caller
from app.web.parsing import FILE_TYPES, invalid, read_file_body, read_json
from app.web.policy import OperationPolicy
from schemas.documents import DocumentSchema
from schemas.imports import ImportAnswerSchema, ImportQuerySchema
from schemas.sources import ConfigAnswerSchema, ConfigQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint(
    "imports",
    __name__,
    description="Import files: exports of other systems, CSV, JSON Lines, DocSearch configurations.",
)


_POLICY = OperationPolicy(MANAGING, Scope.DOCUMENTS)
_FILE = {
    "required": True,
    "description": "The unchanged file.",
    "content": {
        **{kind: {"schema": {"type": "string", "format": "binary"}} for kind in FILE_TYPES},
        "application/json": {"schema": {"type": "array", "items": DocumentSchema}},
        **{kind: {"schema": {"type": "string"}} for kind in ("text/csv", "application/x-ndjson")},
    },
}


_CONFIG = {
    "required": True,
    "description": "The unchanged configuration.",
    "content": {"application/json": {"schema": {"type": "object", "additionalProperties": True}}},
}


@blp.route("/api/sites/<int(signed=True):site_id>/import", methods=["POST"])
@blp.operation(
    "importFile",
    _POLICY,
    errors=(
        ErrorCode.SITE_NOT_FOUND,
        ErrorCode.SITE_INACTIVE,
        ErrorCode.DOCUMENT_LIMIT_REACHED,
        ErrorCode.SEARCH_ENGINE_UNAVAILABLE,
    ),
    body=True,
)
@blp.doc(requestBody=_FILE)
@blp.arguments(ImportQuerySchema, location="query")
@blp.response(200, ImportAnswerSchema)
def import_file(query: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Import a file of documents, or a PDF, an office file, an e-book, or a similar file as one document.

    Documents with existing IDs are replaced. Invalid lines are skipped and reported. If the import fails, the error
    message contains the number of documents that were indexed.
    """
    form = query["format"]
    file = BytesIO(read_file_body(request, is_page=form == imports.ONE_PAGE))
    content = imports.SentFile(file, form, query["map"], query["url"], request.content_type or "")
    return _import_response(imports.import_file(runtime(), current_caller(), site_id, content))


def _import_response(outcome: ImportOutcome) -> dict[str, Any]:
    return {
        "success": True,
        "indexed": outcome.indexed,
        "created": outcome.created,
        "updated": outcome.updated,
        "skipped": outcome.skipped,
        "problems": [
            {
                "line": problem.line,
                **({} if problem.record is None else {"record": problem.record}),
                "field": problem.field,
                "code": problem.problem.code,
                "message": problem.message,
            }
            for problem in outcome.problems
        ],
    }


@blp.route("/api/sites/<int(signed=True):site_id>/import-config", methods=["POST"])
@blp.operation(
    "importConfig",
    _POLICY,
    errors=(ErrorCode.SITE_NOT_FOUND, ErrorCode.SITE_INACTIVE, ErrorCode.SOURCE_LIMIT_REACHED),
    body=True,
)
@blp.doc(requestBody=_CONFIG)
@blp.arguments(ConfigQuerySchema, location="query")
@blp.response(201, ConfigAnswerSchema)
def import_config(query: dict[str, Any], site_id: int) -> dict[str, Any]:
    """Create the sources of a DocSearch scraper configuration, all or none. Their first runs are queued."""
    try:
        sources, ignored = source_operations.import_config(runtime(), current_caller(), site_id, read_json(request))
    except ValidationError as error:
        raise invalid(error) from error
    return {
        "success": True,
        "sources": [describe_source(source, current_caller()) for source in sources],
        "ignored": ignored,
    }
