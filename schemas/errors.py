"""The body of every error, for the OpenAPI document."""

from __future__ import annotations

from marshmallow import Schema, fields


class ErrorDetailSchema(Schema):
    """One problem of a request."""

    field = fields.String(required=True, metadata={"description": "Name of the parameter, or path into the body."})
    code = fields.String(required=True, metadata={"description": "Stable code of the problem."})
    message = fields.String(required=True)
    index = fields.Integer(metadata={"description": "Position of the invalid document in the batch, from 0."})
    id = fields.String(metadata={"description": "Id of the invalid document, if it has one."})
    position = fields.Integer(metadata={"description": "Position of the error in a filter, in characters from 0."})


class ErrorSchema(Schema):
    """The body of every error."""

    error = fields.String(required=True, metadata={"description": "Stable error code."})
    message = fields.String(required=True, metadata={"description": "Human-readable message."})
    details = fields.List(
        fields.Nested(ErrorDetailSchema), metadata={"description": "Individual problems; on 400 only."}
    )
    retry_after = fields.Integer(metadata={"description": "Seconds to wait; on 429 and 503 only."})


class RateLimitErrorSchema(Schema):
    """The body of a 429."""

    error = fields.String(required=True, metadata={"enum": ["rate_limit_exceeded"]})
    message = fields.String(required=True, metadata={"description": "Human-readable message."})
    retry_after = fields.Integer(required=True, metadata={"minimum": 1, "description": "Seconds to wait."})
