"""Base classes of all schemas, and the bodies of errors."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from marshmallow import EXCLUDE, RAISE, Schema, ValidationError, fields, missing, post_load

from schemas.fields import Flag, Number, WholeNumber
from schemas.validation.problems import MAX_PROBLEMS, UNKNOWN, Problem, printable_name, unknown_field


class RequestSchema(Schema):
    """Base of the schemas that read a part of a request.

    Attributes:
        rejected_nulls: Names whose ``null`` is an error, while any other ``null`` stands for an absent value. ``None``
            if each field decides.
    """

    rejected_nulls: tuple[str, ...] | None = None

    error_messages: Any = {  # noqa: RUF012
        "unknown": UNKNOWN,
        "type": Problem("must be a JSON object", "type"),
    }

    def __init__(self, **options: Any):
        super().__init__(**options)
        self._constant_defaults = {
            name: field.load_default
            for name, field in self.load_fields.items()
            if not field.required and not callable(field.load_default)
        }

    def _deserialize(self, data: Any, *, error_store: Any, unknown: Any = RAISE, index: Any = None, **how: Any) -> Any:
        """Load one object as marshmallow does, but with no calls for absent fields, where marshmallow makes ten each,
        and report a limited number of unknown fields."""
        if how["many"] or how["partial"] is not None or not isinstance(data, Mapping):
            return super()._deserialize(data, error_store=error_store, unknown=unknown, index=index, **how)
        if self.rejected_nulls is not None:
            rejected = self.rejected_nulls
            data = {name: value for name, value in data.items() if value is not None or name in rejected}
        loaded, known_names = {}, set()
        for name, field in self.load_fields.items():
            key = field.data_key or name
            known_names.add(key)
            try:
                if key not in data and name in self._constant_defaults:
                    value = self._constant_defaults[name]
                else:
                    value = field.deserialize(data.get(key, missing), key, data)
            except ValidationError as error:
                error_store.store_error(error.messages, key, index=index)
                continue
            if value is not missing:
                loaded[field.attribute or name] = value
        if unknown == RAISE:
            for name in islice((name for name in data if name not in known_names), MAX_PROBLEMS + 1):
                error_store.store_error([unknown_field(name, known_names)], printable_name(name), index)
        return loaded


class BodySchema(RequestSchema):
    """A JSON body in which unknown fields are errors."""

    class Meta:
        unknown = RAISE


class NothingSchema(BodySchema):
    """An empty body, which may be absent."""


class UpdateSchema(BodySchema):
    """A change: omitted fields keep their values, an empty body is an error."""

    @post_load
    def _reject_nothing(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        if not data:
            raise ValidationError([Problem("must change at least one field", "required")])
        return data


class LenientBodySchema(BodySchema):
    """A JSON body whose unknown fields are ignored."""

    class Meta:
        unknown = EXCLUDE


class QuerySchema(RequestSchema):
    """Query parameters; unknown ones are ignored.

    Attributes:
        repeated: Names of repeatable parameters, which become lists. For other parameters, the first value counts.
    """

    repeated: tuple[str, ...] = ()
    rejected_nulls = None  # A query string has none.

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Let a field read text."""
        field_obj.allow_none = field_obj.load_default is None
        if isinstance(field_obj, WholeNumber | Number | Flag):
            field_obj.reads_text = True

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
    id = fields.String(metadata={"description": "ID of the invalid document, if it has one."})
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
