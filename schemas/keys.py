"""API keys."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields

from schemas.base import BodySchema, PagedSchema, SuccessSchema, UpdateSchema
from schemas.fields import Flag, Instant, ItemList, RowNumber, Text, WholeNumber
from schemas.validation.keys import MAX_ORIGIN_LENGTH, SCOPES, normalize_allowed_origin
from schemas.validation.problems import Problem

KEY_TYPES = ("public", "search", "private")
MAX_ALLOWED_ORIGINS = 100


class Scopes(ItemList):
    """Scopes of a private key, without duplicates, in the API's order; ``null`` for all."""

    def __init__(self, **kwargs: Any):
        metadata = {
            "title": "Scopes",
            "description": "Scopes of a private key; null: all. An empty list allows only operations that need no "
            "scope.",
        }
        super().__init__(Text(choices=SCOPES), high=100, allow_none=True, metadata=metadata, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        scopes = super()._deserialize(value, attr, data, **kwargs)
        return [scope for scope in SCOPES if scope in scopes]


class AllowedOrigin(Text):
    """An origin of web pages, as browsers send it; its host may begin with ``*.``."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        try:
            return normalize_allowed_origin(super()._deserialize(value, attr, data, **kwargs))
        except ValueError as error:
            raise ValidationError([Problem(str(error), "invalid_origin")]) from error


class AllowedOrigins(ItemList):
    """Origins of the pages that may use a public key, without duplicates; ``null`` for all."""

    def __init__(self, **kwargs: Any):
        metadata = {
            "title": "Allowed origins",
            "description": "Origins of the pages that may use a public key, such as `https://example.com` and "
            "`https://*.example.com` (all subdomains); null: all pages. Only browsers enforce this.",
        }
        item = AllowedOrigin(min_length=1, max_length=MAX_ORIGIN_LENGTH, trim=True)
        super().__init__(item, low=1, high=MAX_ALLOWED_ORIGINS, allow_none=True, metadata=metadata, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return list(dict.fromkeys(super()._deserialize(value, attr, data, **kwargs)))


def _site_only(**kwargs: Any) -> Flag:
    description = "Whether a private key is restricted to its own site."
    return Flag(metadata={"title": "Only this site", "description": description}, **kwargs)


class KeySchema(Schema):
    """A key, without its token."""

    id = fields.String(required=True)
    site_id = RowNumber(required=True)
    name = fields.String(required=True)
    type = fields.String(required=True, metadata={"enum": list(KEY_TYPES)})
    prefix = fields.String(required=True)
    last4 = fields.String(required=True)
    status = fields.String(required=True, metadata={"enum": ["active", "disabled", "expired"]})
    active = fields.Boolean(required=True, attribute="is_usable")
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    last_used_at = Instant(required=True, allow_none=True)
    expires_at = Instant(required=True, allow_none=True)
    scopes = fields.List(
        fields.String(metadata={"enum": list(SCOPES)}),
        required=True,
        allow_none=True,
        metadata={"description": "Scopes of a private key; null: all. Other keys have null."},
    )
    site_only = fields.Boolean(
        required=True, metadata={"description": "Whether a private key is restricted to its own site."}
    )
    allowed_origins = fields.List(
        fields.String(),
        required=True,
        allow_none=True,
        metadata={"description": "Origins of the pages that may use a public key; null: all. Other keys have null."},
    )


class KeyCreateSchema(BodySchema):
    """A new key."""

    name = Text(required=True, trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    type = Text(load_default="search", choices=KEY_TYPES, metadata={"title": "Type"})
    expires_at = Instant(load_default=None, allow_none=True, metadata={"title": "Expires at"})
    scopes = Scopes(load_default=None)
    site_only = _site_only(load_default=False)
    allowed_origins = AllowedOrigins(load_default=None)


class KeyUpdateSchema(UpdateSchema):
    """Changes to a key. Omitted fields stay unchanged. The type cannot change.

    ``null`` removes an expiry, gives a private key all scopes, and allows all origins.
    """

    name = Text(trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    type = Text(choices=KEY_TYPES, metadata={"title": "Type"})
    expires_at = Instant(allow_none=True, metadata={"title": "Expires at"})
    scopes = Scopes()
    site_only = _site_only()
    allowed_origins = AllowedOrigins()


FIELDS_OF_TYPES = {"scopes": "private", "site_only": "private", "allowed_origins": "public"}
"""Maps fields that only one type of key has to that type."""


def unsuitable_fields(key_type: str) -> tuple[str, ...]:
    """Return the fields that a form for keys of this type omits, including the type, which cannot change."""
    return ("type", *(name for name, only in FIELDS_OF_TYPES.items() if only != key_type))


class KeyToggleSchema(BodySchema):
    """The requested state; if absent, the state is toggled."""

    active = Flag(load_default=None, allow_none=False)


class KeyRotateSchema(BodySchema):
    """Time for which the old token remains valid."""

    overlap_seconds = WholeNumber(low=0, high=604_800, load_default=0)


class KeyAnswerSchema(SuccessSchema):
    """The key after the change."""

    key = fields.Nested(KeySchema, required=True)


class KeyTokenAnswerSchema(KeyAnswerSchema):
    """A key with its new token."""

    api_key = fields.String(required=True)


class KeyShowSchema(Schema):
    """One key, with its token if it is public."""

    key = fields.Nested(KeySchema, required=True)
    api_key = fields.String(
        metadata={"description": "The token of a public key. Absent for other keys, and for older public keys."}
    )


class KeyListSchema(PagedSchema):
    """Keys of a site, oldest first."""

    keys = fields.List(fields.Nested(KeySchema), required=True)
