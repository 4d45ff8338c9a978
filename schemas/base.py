"""Base classes of all schemas, and the bodies of errors."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from marshmallow import EXCLUDE, RAISE, Schema, ValidationError, fields, post_load

from schemas.validation.problems import MAX_PROBLEMS, UNKNOWN, Problem, printable_name, unknown_field


class BodySchema(Schema):
    """A JSON body in which unknown fields are errors."""

    error_messages: Any = {  # noqa: RUF012
        "unknown": UNKNOWN,
        "type": Problem("must be a JSON object", "type"),
    }

    class Meta:
        unknown = RAISE

    def _deserialize(self, data: Any, *, error_store: Any, unknown: Any = RAISE, **kwargs: Any) -> Any:
        """Report a limited number of unknown fields, while marshmallow would report all."""
        if unknown != RAISE or not isinstance(data, Mapping):
            return super()._deserialize(data, error_store=error_store, unknown=unknown, **kwargs)
        loaded = super()._deserialize(data, error_store=error_store, unknown=EXCLUDE, **kwargs)
        known_names = {name if field.data_key is None else field.data_key for name, field in self.load_fields.items()}
        for name in islice((name for name in data if name not in known_names), MAX_PROBLEMS + 1):
            error_store.store_error([unknown_field(name, known_names)], printable_name(name), kwargs.get("index"))
        return loaded


class NothingSchema(BodySchema):
    """An empty body, which may be absent."""


class UpdateSchema(BodySchema):
    """A change: omitted fields keep their values, an empty body is an error."""

    @post_load
    def _refuse_nothing(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        if not data:
            raise ValidationError([Problem("must change at least one field", "required")])
        return data


class LenientBodySchema(BodySchema):
    """A JSON body whose unknown fields are ignored."""

    class Meta:
        unknown = EXCLUDE


class QuerySchema(Schema):
    """Query parameters; unknown ones are ignored.

    Attributes:
        repeated: Names of repeatable parameters, which become lists. For other parameters, the first value counts.
    """

    repeated: tuple[str, ...] = ()

    error_messages = BodySchema.error_messages

    class Meta:
        unknown = EXCLUDE


class SuccessSchema(Schema):
    """The operation succeeded."""

    success = fields.Boolean(required=True)


class PagedSchema(Schema):
    """A part of a list, with the length of the whole list and the requested paging."""

    total = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    offset = fields.Integer(required=True)


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
