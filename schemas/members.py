"""Members of an account."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.base import BodySchema, PagedSchema, SuccessSchema
from schemas.fields import Instant, RowNumber, Text

ROLES = ("owner", "editor", "viewer")


class MemberSchema(Schema):
    """A person with a login."""

    id = RowNumber(required=True)
    name = fields.String(required=True)
    email = fields.String(required=True)
    role = fields.String(required=True, metadata={"enum": list(ROLES)})
    created_at = Instant(required=True)


class MemberUpdateSchema(BodySchema):
    """A member's new role."""

    role = Text(required=True, choices=ROLES, metadata={"title": "Role"})


class MemberAnswerSchema(SuccessSchema):
    """The changed member."""

    member = fields.Nested(MemberSchema, required=True)


class MemberShowSchema(Schema):
    """One member."""

    member = fields.Nested(MemberSchema, required=True)


class MemberListSchema(PagedSchema):
    """Members of the account, oldest first."""

    members = fields.List(fields.Nested(MemberSchema), required=True)
