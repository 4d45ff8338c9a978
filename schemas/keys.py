"""API keys."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.base import BodySchema, UpdateSchema
from schemas.fields import Flag, Instant, RowNumber, Text, WholeNumber

KEY_TYPES = ("public", "search", "private")


class KeySchema(Schema):
    """A key, without its token."""

    id = fields.String(required=True)
    site_id = RowNumber(required=True)
    name = fields.String(required=True)
    type = fields.String(required=True, metadata={"enum": list(KEY_TYPES)})
    prefix = fields.String(required=True)
    last4 = fields.String(required=True)
    status = fields.String(required=True, metadata={"enum": ["active", "disabled", "expired"]})
    active = fields.Boolean(required=True)
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    last_used_at = Instant(required=True, allow_none=True)
    expires_at = Instant(required=True, allow_none=True)


class KeyCreateSchema(BodySchema):
    """A new key."""

    name = Text(required=True, trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    type = Text(load_default="search", choices=KEY_TYPES, metadata={"title": "Type"})
    expires_at = Instant(load_default=None, allow_none=True, metadata={"title": "Expires at"})


class KeyUpdateSchema(UpdateSchema):
    """Changes of a key; omitted fields stay, ``expires_at: null`` removes the expiry. The type cannot change."""

    name = Text(trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    type = Text(choices=KEY_TYPES, metadata={"title": "Type"})
    expires_at = Instant(allow_none=True, metadata={"title": "Expires at"})


class KeyToggleSchema(BodySchema):
    """The state wanted; absent, the key is flipped."""

    active = Flag(load_default=None, allow_none=False)


class KeyRotateSchema(BodySchema):
    """Time for which the old token stays good."""

    overlap_seconds = WholeNumber(low=0, high=604_800, load_default=0)


class KeyAnswerSchema(Schema):
    """A key that was written."""

    success = fields.Boolean(required=True)
    key = fields.Nested(KeySchema, required=True)


class KeyTokenAnswerSchema(KeyAnswerSchema):
    """A key with its token, shown this once."""

    api_key = fields.String(required=True)


class KeyShowSchema(Schema):
    """One key."""

    key = fields.Nested(KeySchema, required=True)


class KeyListSchema(Schema):
    """Keys of a site, oldest first."""

    keys = fields.List(fields.Nested(KeySchema), required=True)
    total = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    offset = fields.Integer(required=True)
