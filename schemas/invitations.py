"""Invitations to become a member of an account."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.accounts import Email, chosen_password
from schemas.base import BodySchema, PagedSchema, SuccessSchema
from schemas.fields import Instant, Text
from schemas.forms import FormAnswerSchema
from schemas.members import ROLES


class InvitationSchema(Schema):
    """A pending invitation, without its link."""

    id = fields.String(required=True)
    email = fields.String(required=True)
    role = fields.String(required=True, metadata={"enum": list(ROLES)})
    created_at = Instant(required=True)
    expires_at = Instant(required=True)


class InvitationCreateSchema(BodySchema):
    """The invited person."""

    email = Email(required=True, metadata={"title": "Email"})
    role = Text(load_default="editor", choices=ROLES, metadata={"title": "Role"})


class InvitationLinkAnswerSchema(SuccessSchema):
    """An invitation. If the service sends no email, it includes the link, which is never shown again."""

    invitation = fields.Nested(InvitationSchema, required=True)
    url = fields.Url(
        metadata={
            "description": "The link to accept the invitation, which works once. Absent if the service sends email: "
            "then only the email to the invited address contains it."
        }
    )
    token = fields.String(metadata={"description": "The last part of the link; absent without `url`."})


class InvitationListSchema(PagedSchema):
    """Pending invitations, oldest first."""

    invitations = fields.List(fields.Nested(InvitationSchema), required=True)


class InvitationAcceptSchema(BodySchema):
    """A new member."""

    name = Text(required=True, trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    password = chosen_password(required=True, metadata={"title": "Password"})


class InvitedSchema(Schema):
    """The account that the invitation is for."""

    account = fields.String(required=True, metadata={"description": "The account's name."})
    email = fields.String(required=True)
    role = fields.String(required=True, metadata={"enum": list(ROLES)})
    expires_at = Instant(required=True)


class InvitationFormAnswerSchema(FormAnswerSchema):
    """The form for accepting an invitation, and the invitation."""

    invitation = fields.Nested(InvitedSchema, required=True)
