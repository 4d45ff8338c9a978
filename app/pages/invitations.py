"""Invitations: forms on the page of members, and the page behind an invitation's link."""

from __future__ import annotations

from flask import Response, request

from app.errors import ApiError
from app.models import Invitation
from app.operations import invitations as operations
from app.operations import write
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.members import LINK, PATH, render_members
from app.pages.negotiation import HOME, see_other
from app.runtime import runtime
from app.services.access.rights import Role
from app.services.accounts import invitations
from app.web.callers import current_caller, current_client
from app.web.hosts import base_url
from app.web.responses import cookie_header
from schemas.invitations import InvitationAcceptSchema, InvitationCreateSchema


def create_invitation() -> Response:
    """Create an invitation."""
    refill_on_error(render_members)
    fields = read_form(InvitationCreateSchema())
    return _to_link(*operations.invite(runtime(), current_caller(), base_url(), fields["email"], Role(fields["role"])))


def renew_invitation(invitation_id: str) -> Response:
    """Renew the link of an invitation."""
    refill_on_error(render_members)
    return _to_link(*operations.renew_invitation(runtime(), current_caller(), base_url(), invitation_id))


def revoke_invitation(invitation_id: str) -> Response:
    """Revoke an invitation."""
    refill_on_error(render_members)
    caller = current_caller()
    write(runtime(), caller, invitations.revoke_invitation, invitation_id, by=caller.member_id)
    return see_other(PATH, notice="invitation-revoked")


def _to_link(invitation: Invitation, token: str | None) -> Response:
    return see_other(PATH, notice="invitation-sent") if token is None else LINK.see_other(PATH, token)


def show_invitation(token: str, error: ApiError | None = None) -> str:
    """Show the invitation and the form that accepts it."""
    fields = shown_fields(InvitationAcceptSchema(), {}, error)
    return render(
        "invitation.html",
        invitation=operations.open_invitation(runtime(), token),
        token=token,
        fields=fields,
        banner=_unavailable_email(error) or banner_of(error, fields),
        provider=runtime().settings.provider_name,
        has_passwords=runtime().settings.password_login,
    )


def _unavailable_email(error: ApiError | None) -> str | None:
    """Return the message if the invited email address, which isn't a field of the form, can't become a member's."""
    if error is None or not any(detail.field == "email" for detail in error.details):
        return None
    return (
        "This email address already belongs to a member of this account, or belonged to another member until a few "
        "days ago, who can still reclaim it. Ask for an invitation to another email address."
    )


def accept_invitation(token: str) -> Response:
    """Become a member and log in."""
    refill_on_error(lambda error: show_invitation(token, error))
    fields = read_form(InvitationAcceptSchema())
    _, _, cookie = operations.accept_invitation(runtime(), current_client(), token, **fields)
    response = see_other(HOME, notice="invitation-accepted")
    response.headers.add("Set-Cookie", cookie_header(request, cookie))
    return response
