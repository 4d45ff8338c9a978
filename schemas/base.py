"""What all schemas share."""

from __future__ import annotations

from typing import Any

from marshmallow import EXCLUDE, RAISE, Schema, ValidationError, post_load

from schemas.problems import UNKNOWN, Problem


class BodySchema(Schema):
    """A JSON body in which a misspelt field is an error."""

    error_messages: Any = {  # noqa: RUF012
        "unknown": UNKNOWN,
        "type": Problem("must be a JSON object", "type"),
    }

    class Meta:
        unknown = RAISE


class NothingSchema(BodySchema):
    """A body that holds nothing; it may be absent."""


class UpdateSchema(BodySchema):
    """A change: omitted fields stay, an empty body is an error."""

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
    """Query parameters; unknown ones are ignored."""

    error_messages = BodySchema.error_messages

    class Meta:
        unknown = EXCLUDE
