"""Accepting an invitation."""

from __future__ import annotations

from flask import Response, request

from app.errors import ApiError
from app.operations import members as member_operations
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.redirects import HOME, see_other
from app.runtime import runtime
from app.web.request_checks import current_client
from app.web.responses import cookie_header
from schemas.invitations import InvitationAcceptSchema


def show_invitation(token: str) -> str:
    """The invitation, and the form that accepts it."""
    return _invitation(token)


def _invitation(token: str, error: ApiError | None = None) -> str:
    shown = shown_fields(InvitationAcceptSchema(), {}, error)
    return render(
        "invitation.html",
        invitation=member_operations.open_invitation(runtime(), token),
        token=token,
        fields=shown,
        banner=_taken(error) or banner_of(error, shown),
        provider=runtime().settings.provider_name,
        has_passwords=runtime().settings.password_login,
    )


def _taken(error: ApiError | None) -> str | None:
    """The way out if the invitation's e-mail, which the form does not ask for, cannot be a member's now."""
    if error is None or not any(detail.field == "email" for detail in error.details):
        return None
    return (
        "This e-mail address is already a member’s of this account, or was another member’s until a few days ago, who "
        "can still have it back. Ask for an invitation to another address."
    )


def accept_invitation(token: str) -> Response:
    """Become a member, and log in."""
    refill_on_error(lambda error: _invitation(token, error))
    fields = read_form(InvitationAcceptSchema())
    _, _, cookie = member_operations.accept_invitation(runtime(), current_client(), token, **fields)
    response = see_other(HOME, notice="invitation-accepted")
    response.headers.add("Set-Cookie", cookie_header(request, cookie))
    return response
