"""The audit log."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.base import QuerySchema
from schemas.fields import MAX_INT64, Instant, RowNumber, Text, WholeNumber

KINDS = ("site", "search_settings", "key", "source", "member", "invitation", "account", "webhook", "identity")
ACTIONS = ("created", "changed", "deleted", "restored", "purged", "logged_in")
ACTOR_KINDS = ("member", "key", "operator", "system")


class AuditSelectionSchema(QuerySchema):
    """Parameters that select entries."""

    since = Instant(load_default=None, metadata={"description": "Only entries at or after this time."})
    until = Instant(load_default=None, metadata={"description": "Only entries before this time."})
    member_id = WholeNumber(
        low=1, high=MAX_INT64, load_default=None, metadata={"description": "Only actions of this member."}
    )
    kind = Text(load_default=None, choices=KINDS, metadata={"description": "Only changes of objects of this kind."})


class AuditQuerySchema(AuditSelectionSchema):
    """Parameters that select entries and a page of them."""

    limit = WholeNumber(low=1, high=100, load_default=50)
    before = WholeNumber(
        low=1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "`next_before` of the previous page, with otherwise equal parameters."},
    )


class ActorSchema(Schema):
    """The author of a change."""

    kind = fields.String(required=True, metadata={"enum": list(ACTOR_KINDS)})
    id = fields.String(required=True, allow_none=True, metadata={"description": "The member's or the key's ID."})
    name = fields.String(required=True, metadata={"description": "The member's email or the key's name."})
    address = fields.String(required=True, allow_none=True, metadata={"description": "IP address of the request."})


class ObjectSchema(Schema):
    """The changed object. It may no longer exist."""

    kind = fields.String(required=True, metadata={"enum": list(KINDS)})
    id = fields.String(required=True)
    name = fields.String(required=True)
    site_id = RowNumber(required=True, allow_none=True)


class ChangeSchema(Schema):
    """A changed field. For secrets and reordered lists, only `field` is present."""

    field = fields.String(required=True)
    before = fields.Raw(allow_none=True, metadata={"description": "The old value; null if there was none."})
    after = fields.Raw(allow_none=True, metadata={"description": "The new value; null if there is none."})
    added = fields.List(fields.Raw(), metadata={"description": "Items added to a list."})
    removed = fields.List(fields.Raw(), metadata={"description": "Items removed from a list."})


class AuditEntrySchema(Schema):
    """One change of one object."""

    id = RowNumber(required=True)
    created_at = Instant(required=True)
    actor = fields.Nested(ActorSchema, required=True)
    action = fields.String(required=True, metadata={"enum": list(ACTIONS)})
    object = fields.Nested(ObjectSchema, required=True)
    changes = fields.List(fields.Nested(ChangeSchema), required=True)


class AuditLogSchema(Schema):
    """Entries, newest first."""

    entries = fields.List(fields.Nested(AuditEntrySchema), required=True)
    total = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    next_before = RowNumber(required=True, allow_none=True)
