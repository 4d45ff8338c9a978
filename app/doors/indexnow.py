"""IndexNow: a host's owner says which of its pages changed, and its sources read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response

from app.apidoc.openapi import ApiBlueprint, described_errors, error_responses
from app.errors import ErrorCode, error_body
from app.operations.indexnow import Unprocessable, submit
from app.runtime import runtime
from app.web.auth import ANYONE
from app.web.policy import OperationPolicy
from app.web.responses import json_answer
from schemas.doors.indexnow import SubmissionAnswerSchema, SubmissionQuerySchema, SubmissionSchema
from schemas.errors import ErrorSchema

PATH = "/indexnow"

blp = ApiBlueprint(
    "indexnow",
    __name__,
    description="IndexNow, by which a CMS says which pages changed.",
    error_examples={"indexnow_unprocessable": error_body(Unprocessable("No source is on the host museum.example."))},
)
_POLICY = OperationPolicy(ANYONE, token_places=())
_CODES = {
    *(ErrorCode.VALIDATION_FAILED, ErrorCode.INSUFFICIENT_PERMISSION, ErrorCode.RATE_LIMIT_EXCEEDED),
    *(ErrorCode.INTERNAL_ERROR, ErrorCode.DATABASE_UNAVAILABLE, ErrorCode.COUNTERS_UNAVAILABLE, ErrorCode.SERVER_BUSY),
}
_BODY_CODES = {
    *(ErrorCode.INVALID_JSON, ErrorCode.REQUEST_TIMEOUT, ErrorCode.PAYLOAD_TOO_LARGE),
    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
}
_OWN_RESPONSES = {
    "202": {
        "description": "The key is proven. A run is under way; the addresses are read after it.",
        "content": {"application/json": {"schema": SubmissionAnswerSchema}},
    },
    **described_errors({422: ("unprocessable",)}, ErrorSchema, prefix="indexnow_"),
}


@blp.route(PATH, methods=["GET"])
@blp.declare("submitAddress", _POLICY, {**_OWN_RESPONSES, **error_responses(_CODES)})
@blp.arguments(SubmissionQuerySchema, location="query")
@blp.response(200, SubmissionAnswerSchema)
def submit_address(sent: dict[str, Any]) -> Response:
    """Say that a page was added, changed, or removed."""
    return _submit(None, sent, [sent["url"]])


@blp.route(PATH, methods=["POST"])
@blp.declare("submitAddresses", _POLICY, {**_OWN_RESPONSES, **error_responses(_CODES | _BODY_CODES)})
@blp.arguments(SubmissionSchema)
@blp.response(200, SubmissionAnswerSchema)
def submit_addresses(sent: dict[str, Any]) -> Response:
    """Say which pages of a host were added, changed, or removed."""
    return _submit(sent["host"], sent, sent["urlList"])


def _submit(host: str | None, sent: dict[str, Any], urls: Sequence[str]) -> Response:
    begins = submit(runtime(), host, sent["key"], sent["keyLocation"], urls)
    return json_answer({"success": True}, 200 if begins else 202)
