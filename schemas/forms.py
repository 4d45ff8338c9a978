"""Forms as JSON, derived from the schemas that validate their input."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from schemas.accounts import UserSchema
from schemas.fields import Flag, Instant, ItemList, Text
from schemas.keys import KeySchema
from schemas.sites import SiteSchema


class FormFieldSchema(Schema):
    """One field of a form."""

    name = fields.String(required=True)
    type = fields.String(
        required=True,
        metadata={
            "enum": [
                "text",
                "url",
                "email",
                "password",
                "checkbox",
                "select",
                "datetime-local",
                "textarea",
                "checkboxes",
                "list",
            ],
            "description": "`checkboxes` sends a list of some of its options, `list` a list of texts; "
            "both send null for no list.",
        },
    )
    label = fields.String(required=True)
    required = fields.Boolean(required=True)
    max_length = fields.Integer(required=True, allow_none=True)
    value = fields.Raw(required=True, allow_none=True)
    options = fields.List(fields.String(), metadata={"description": "Options of a select field or of checkboxes."})


class FormSchema(Schema):
    """A form: its fields, method, and action."""

    method = fields.String(required=True)
    action = fields.String(required=True)
    fields_ = fields.List(fields.Nested(FormFieldSchema), required=True, data_key="fields", attribute="fields")
    csrf_token = fields.String(metadata={"description": "For callers with a session."})


class FormAnswerSchema(Schema):
    """A form."""

    form = fields.Nested(FormSchema, required=True)


class SiteFormAnswerSchema(FormAnswerSchema):
    """A form and the site it edits."""

    site = fields.Nested(SiteSchema, required=True)


class KeyFormAnswerSchema(FormAnswerSchema):
    """A form and the key it edits."""

    key = fields.Nested(KeySchema, required=True)


class UserFormAnswerSchema(FormAnswerSchema):
    """A form and the user it edits."""

    user = fields.Nested(UserSchema, required=True)


def describe_form(schema: Schema, values: dict[str, Any], *, leave_out: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Describe the fields of a form whose input ``schema`` validates.

    Args:
        values: Values to fill in; never passwords.
        leave_out: Fields to omit from the form.
    """
    described = []
    for name, field in schema.fields.items():
        if name in leave_out:
            continue
        kind = _input_type(field)
        entry: dict[str, Any] = {
            "name": name,
            "type": kind,
            "label": field.metadata.get("title", name),
            "required": field.required,
            "max_length": getattr(field, "max_length", None),
            "value": None if kind == "password" else values.get(name),
        }
        if kind == "select":
            entry["options"] = list(field.choices)  # type: ignore[attr-defined]
        if kind == "checkboxes":
            entry["options"] = list(choices_of(field))
        described.append(entry)
    return described


def choices_of(field: fields.Field[Any]) -> tuple[str, ...]:
    """Return the possible values of a list's items; empty for any other field."""
    return field.item.choices if isinstance(field, ItemList) and isinstance(field.item, Text) else ()


def _input_type(field: fields.Field[Any]) -> str:
    if isinstance(field, Flag):
        return "checkbox"
    if isinstance(field, Instant):
        return "datetime-local"
    if isinstance(field, ItemList):
        return "checkboxes" if choices_of(field) else "list"
    if isinstance(field, Text):
        if field.choices:
            return "select"
        if (field.max_length or 0) > 1000 and field.metadata.get("format") is None:
            return "textarea"
    formats = {"uri": "url", "email": "email", "password": "password"}
    return formats.get(str(field.metadata.get("format")), "text")
