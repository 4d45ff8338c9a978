"""Members and invitations. A short-lived cookie passes the link of a new invitation to the next page."""

from __future__ import annotations

from flask import Response, request
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import ApiError
from app.models import Invitation
from app.operations import write
from app.operations.invitations import link_of
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.negotiation import SecretCookie, see_other
from app.pages.sites import read_paging
from app.runtime import runtime
from app.services.access.rights import Role
from app.services.accounts import invitations, members
from app.web.callers import current_caller
from app.web.hosts import base_url
from schemas.invitations import InvitationCreateSchema
from schemas.members import ROLES, MemberUpdateSchema

PATH = "/api/members"
LINK = SecretCookie("new_invitation")


def list_members() -> Response:
    """Show the account's members and invitations and, once, the link of a new invitation."""
    return LINK.show(render_members(), PATH)


def render_members(error: ApiError | None = None) -> str:
    """Render the page, after an error with the form that was submitted."""
    account_id = current_caller().account.id
    paging = read_paging()
    with runtime().database.read() as session:
        listed, total = members.list_members(session, account_id, **paging)
        invited, _ = invitations.list_invitations(session, account_id, limit=members.MAX_MEMBERS, offset=0)
        link, invitation = _fresh_link(session, account_id)
    fields = shown_fields(InvitationCreateSchema(), {"role": "editor"}, error if "email" in request.form else None)
    return render(
        "members.html",
        members=listed,
        total=total,
        paging=paging,
        invitations=invited,
        roles=ROLES,
        fields=fields,
        banner=banner_of(error, fields),
        link=link,
        new_invitation=invitation,
        now=now(),
        sends_email=runtime().settings.sends_email,
    )


def to_members(**_path: int) -> Response:
    """Redirect to the page of members and invitations, since single members have no page."""
    return see_other(PATH)


def update_member(member_id: int) -> Response:
    """Change the role of a member."""
    refill_on_error(render_members)
    caller, role = current_caller(), Role(read_form(MemberUpdateSchema())["role"])
    write(runtime(), caller, members.change_role, member_id, role, by=caller.member_id)
    is_own = caller.member_id == member_id
    return see_other("/dashboard" if is_own and role is not Role.OWNER else PATH, notice="role-changed")


def remove_member(member_id: int) -> Response:
    """Remove a member."""
    refill_on_error(render_members)
    caller = current_caller()
    write(runtime(), caller, members.remove_member, member_id, by=caller.member_id)
    return see_other("/login" if caller.member_id == member_id else PATH, notice="member-removed")


def _fresh_link(session: Session, account_id: int) -> tuple[str, Invitation | None]:
    """Return the link from the cookie, if it belongs to an invitation of this account."""
    token = LINK.read()
    if not token:
        return "", None
    try:
        invitation = invitations.get_open_invitation(session, token, runtime().settings.secret_key)
    except ApiError:
        return "", None
    if invitation.account_id != account_id:
        return "", None
    return link_of(base_url(), token), invitation
