"""Accounts, logins, and the profile."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema
from marshmallow.validate import OneOf

from schemas.base import BodySchema, PagedSchema, SuccessSchema, UpdateSchema
from schemas.fields import MAX_INT64, Flag, Instant, RowNumber, Text, WholeNumber
from schemas.validation.problems import Problem

_LOCAL = re.compile(r"[^\s@\"(),:;<>\[\]\\\x00-\x1f\x7f]{1,64}")
_LABEL = re.compile(r"[0-9A-Za-z\u0080-\U0010ffff](?:[0-9A-Za-z\u0080-\U0010ffff-]{0,61}[0-9A-Za-z\u0080-\U0010ffff])?")

MIN_PASSWORD_LENGTH = 10
MAX_PASSWORD_LENGTH = 1024
MAX_REASON_LENGTH = 500
"""Maximum length of the operator's message to members of a suspended account, in characters."""


def is_email(text: str) -> bool:
    """Whether ``text`` has the form ``local@domain`` with a domain of at least two labels (or ``localhost``)."""
    local, separator, domain = text.rpartition("@")
    if not separator or len(text) > 254 or not _LOCAL.fullmatch(local):
        return False
    if local.startswith(".") or local.endswith(".") or ".." in local:
        return False
    labels = domain.split(".")
    return (len(labels) > 1 or domain == "localhost") and all(_LABEL.fullmatch(label) for label in labels)


class Email(Text):
    """An email address."""

    def __init__(self, **kwargs: Any):
        kwargs.setdefault("metadata", {}).setdefault("format", "email")
        super().__init__(min_length=1, max_length=254, trim=True, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        email = super()._deserialize(value, attr, data, **kwargs)
        if not is_email(email):
            raise ValidationError([Problem("must be an email address", "invalid_email")])
        return email


def chosen_password(**kwargs: Any) -> Text:
    """Return a field for a new password."""
    metadata = {"format": "password", **kwargs.pop("metadata", {})}
    return Text(min_length=MIN_PASSWORD_LENGTH, max_length=MAX_PASSWORD_LENGTH, metadata=metadata, **kwargs)


def _known_password(**kwargs: Any) -> Text:
    metadata = {"format": "password", **kwargs.pop("metadata", {})}
    return Text(min_length=1, max_length=MAX_PASSWORD_LENGTH, metadata=metadata, **kwargs)


def _code(**kwargs: Any) -> Text:
    return Text(max_length=64, **kwargs)


class UserSchema(Schema):
    """The person behind an account."""

    id = RowNumber(required=True)
    name = fields.String(required=True)
    email = fields.String(required=True)
    plan = fields.String(required=True)
    created_at = Instant(required=True)


class RegisterSchema(BodySchema):
    """A new account."""

    name = Text(required=True, trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    email = Email(required=True, metadata={"title": "Email"})
    password = chosen_password(required=True, metadata={"title": "Password"})


class LoginSchema(BodySchema):
    """The login of a member."""

    email = Text(required=True, trim=True, min_length=1, max_length=254, metadata={"title": "Email", "format": "email"})
    password = _known_password(required=True, metadata={"title": "Password"})
    code = _code(
        load_default="",
        metadata={
            "title": "Code",
            "description": "A one-time code or a recovery code, for members with two-factor authentication.",
        },
    )
    account_id = WholeNumber(
        low=1,
        high=MAX_INT64,
        metadata={"title": "Account", "description": "The account, if the email address belongs to several."},
    )


class AccountChoiceSchema(BodySchema):
    """The account chosen on the page that lists the user's accounts."""

    offer = Text(required=True, max_length=10_000)
    account_id = WholeNumber(low=1, high=MAX_INT64, required=True)


class EmailConfirmSchema(BodySchema):
    """The token of the link that confirms an email address."""

    token = Text(required=True, max_length=1_000)


class PasswordForgotSchema(BodySchema):
    """The email address of a user who forgot the password."""

    email = Email(required=True, metadata={"title": "Email"})


class PasswordResetSchema(BodySchema):
    """A new password, and the token of the link that allows it."""

    token = Text(required=True, max_length=100)
    new_password = chosen_password(required=True, metadata={"title": "New password"})


class EmailUndoSchema(BodySchema):
    """The token of the link that reverts a change of email address."""

    token = Text(required=True, max_length=100)


class AccountSchema(Schema):
    """An account that the user belongs to."""

    id = RowNumber(required=True)
    name = fields.String(required=True)
    role = fields.String(required=True, metadata={"description": "The member's role in the account."})


class LoginAnswerSchema(SuccessSchema):
    """The session's user; the session cookie is in the response headers."""

    user = fields.Nested(UserSchema, required=True)
    csrf_token = fields.String(required=True, metadata={"description": "Value of `X-CSRF-Token` for writes."})
    accounts = fields.List(
        fields.Nested(AccountSchema),
        metadata={"description": "The accounts with this email address and password, if there are several."},
    )


class ProfileUpdateSchema(UpdateSchema):
    """Changes to the profile. Omitted fields stay unchanged.

    With a session, a new email or password needs the current password. A key cannot change the password.
    """

    name = Text(trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    email = Email(metadata={"title": "Email"})
    current_password = _known_password(metadata={"title": "Current password"})
    new_password = chosen_password(metadata={"title": "New password"})
    weekly_digest = Flag(
        metadata={
            "title": "Weekly digest",
            "description": "Whether to send a weekly email about searches without good results.",
        }
    )

    @validates_schema(skip_on_field_errors=True)
    def _a_password_is_given_for_something(self, data: dict[str, Any], **kwargs: Any) -> None:
        if "current_password" in data and not data.keys() & {"new_password", "email"}:
            raise ValidationError({"new_password": [Problem("is required with current_password", "required")]})


class UserAnswerSchema(SuccessSchema):
    """The updated user."""

    user = fields.Nested(UserSchema, required=True)


class AccountDeleteSchema(BodySchema):
    """The deletion of an account."""

    password = _known_password(required=True, metadata={"title": "Password"})
    reason = Text(load_default="", max_length=2000, metadata={"title": "Reason"})


class LoginCodeSchema(BodySchema):
    """The second step of a login: a code, after the password."""

    proof = Text(required=True, max_length=1000)
    code = _code(required=True, metadata={"title": "Code"})


class CurrentPasswordSchema(BodySchema):
    """The current password of the logged-in user."""

    current_password = _known_password(required=True, metadata={"title": "Current password"})


class SessionCodeSchema(BodySchema):
    """A code that is given in a session, for the operator area."""

    code = _code(required=True, metadata={"title": "Code"})


class FirstCodeSchema(BodySchema):
    """The first code from the authenticator app."""

    code = _code(required=True, metadata={"title": "Code"})


class CodesStateSchema(Schema):
    """Two-factor authentication of a member."""

    enabled = fields.Boolean(required=True)
    since = Instant(
        required=True, allow_none=True, metadata={"description": "When two-factor authentication was turned on."}
    )
    recovery_codes_left = fields.Integer(required=True)


class CodesBegunSchema(SuccessSchema):
    """The secret for an authenticator app."""

    secret = fields.String(required=True, metadata={"description": "The secret in base32, to type into the app."})
    otpauth_url = fields.String(
        required=True, metadata={"description": "URL to open in the app, or to show as a QR code."}
    )


class RecoveryCodesSchema(SuccessSchema):
    """Recovery codes. They are not shown again."""

    recovery_codes = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "Each code allows one login, instead of a one-time code."},
    )


class SessionSchema(Schema):
    """A session of the member."""

    id = fields.String(required=True)
    created_at = Instant(required=True)
    last_used_at = Instant(required=True, metadata={"description": "Time of the last use, up to five minutes old."})
    browser = fields.String(
        required=True, metadata={"description": "Browser and system, such as `Firefox on Windows`; empty if unknown."}
    )
    address = fields.String(
        required=True,
        metadata={"description": "The network of the login: a /24 for IPv4, a /64 for IPv6; empty if unknown."},
    )
    opened_with = fields.String(
        required=True,
        allow_none=True,
        validate=OneOf(("password", "code", "recovery_code", "provider")),
        metadata={"description": "How the session was opened; `null` for sessions older than this field."},
    )
    current = fields.Boolean(required=True, metadata={"description": "Whether this is the session of the request."})


class SessionListSchema(PagedSchema):
    """Sessions of the member, newest first."""

    sessions = fields.List(fields.Nested(SessionSchema), required=True)
