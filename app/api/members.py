"""Members of the account and invitations."""

from __future__ import annotations

from typing import Any

from flask import Response

from app.api.accounts import logged_in
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.models import Invitation
from app.operations import members as member_operations
from app.operations import write
from app.runtime import runtime
from app.services.access.rights import Role
from app.services.accounts import invitations, members
from app.web.auth import ANYONE, MANAGING
from app.web.callers import current_caller, current_client
from app.web.hosts import base_url
from app.web.policy import OperationPolicy
from schemas.accounts import LoginAnswerSchema
from schemas.base import NothingSchema, SuccessSchema
from schemas.forms import describe_form
from schemas.members import (
    InvitationAcceptSchema,
    InvitationCreateSchema,
    InvitationFormAnswerSchema,
    InvitationLinkAnswerSchema,
    InvitationListSchema,
    MemberAnswerSchema,
    MemberListSchema,
    MemberShowSchema,
    MemberUpdateSchema,
)
from schemas.sites import PageQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("members", __name__, description="Members of the account: people with their own login.")

_POLICY = OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.OWNER)
_MEMBER = "/api/members/<int(signed=True):member_id>"
_CHANGE_ERRORS = (ErrorCode.MEMBER_NOT_FOUND, ErrorCode.LAST_OWNER)


@blp.route("/api/members", methods=["GET"])
@blp.operation("listMembers", _POLICY)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, MemberListSchema)
def list_members(page: dict[str, Any]) -> dict[str, Any]:
    """List the account's members, oldest first."""
    with runtime().database.read() as session:
        listed, total = members.list_members(session, current_caller().account.id, **page)
        return {"members": listed, "total": total, **page}


@blp.route(_MEMBER, methods=["GET"])
@blp.operation("showMember", _POLICY, errors=(ErrorCode.MEMBER_NOT_FOUND,))
@blp.response(200, MemberShowSchema)
def show_member(member_id: int) -> dict[str, Any]:
    """Get a member."""
    with runtime().database.read() as session:
        return {"member": members.get_member(session, current_caller().account.id, member_id)}


@blp.put_and_patch(
    _MEMBER, ("updateMember", "patchMember"), _POLICY, _CHANGE_ERRORS, MemberUpdateSchema, MemberAnswerSchema
)
def update_member(fields: dict[str, Any], member_id: int) -> dict[str, Any]:
    """Change a member's role. It takes effect with the member's next request. A key can't promote or demote owners."""
    caller = current_caller()
    member = write(runtime(), caller, members.change_role, member_id, Role(fields["role"]), by=caller.member_id)
    return {"success": True, "member": member}


@blp.route(_MEMBER, methods=["DELETE"])
@blp.operation("removeMember", _POLICY, errors=_CHANGE_ERRORS, empty_body=True)
@blp.response(200, SuccessSchema)
def remove_member(member_id: int) -> dict[str, Any]:
    """Remove a member and end all of the member's sessions. A key can't remove owners."""
    caller = current_caller()
    write(runtime(), caller, members.remove_member, member_id, by=caller.member_id)
    return {"success": True}


invitations_blp = ApiBlueprint("invitations", __name__, description="Invitations to become a member of the account.")

_INVITATION = "/api/invitations/<string:invitation_id>"
# Responses with this header may contain the link of an invitation, which admits anyone who has it.
_NO_STORE = {"Cache-Control": "no-store"}


@invitations_blp.route("/api/invitations", methods=["GET"])
@invitations_blp.operation("listInvitations", _POLICY)
@invitations_blp.arguments(PageQuerySchema, location="query")
@invitations_blp.response(200, InvitationListSchema)
def list_invitations(page: dict[str, Any]) -> dict[str, Any]:
    """List pending invitations, oldest first."""
    with runtime().database.read() as session:
        listed, total = invitations.list_invitations(session, current_caller().account.id, **page)
        return {"invitations": listed, "total": total, **page}


@invitations_blp.route("/api/invitations", methods=["POST"])
@invitations_blp.operation("createInvitation", _POLICY, errors=(ErrorCode.MEMBER_LIMIT_REACHED,), body=True)
@invitations_blp.arguments(InvitationCreateSchema)
@invitations_blp.response(201, InvitationLinkAnswerSchema)
def create_invitation(fields: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create an invitation. Its link works once, for seven days.

    The link is sent to the invited e-mail address. If the service doesn't send mail, the link is in `url` for you to
    share, and is never shown again. A key can't invite owners.
    """
    issued = member_operations.invite(runtime(), current_caller(), base_url(), fields["email"], Role(fields["role"]))
    return _link_answer(*issued), 201, _NO_STORE


def _link_answer(invitation: Invitation, token: str | None) -> dict[str, Any]:
    link = {} if token is None else {"url": member_operations.link_of(base_url(), token), "token": token}
    return {"success": True, "invitation": invitation, **link}


@invitations_blp.route(_INVITATION + "/renew", methods=["POST"])
@invitations_blp.operation("renewInvitation", _POLICY, errors=(ErrorCode.INVITATION_NOT_FOUND,), body=True)
@invitations_blp.arguments(NothingSchema, location="json_optional", required=False)
@invitations_blp.response(200, InvitationLinkAnswerSchema)
def renew_invitation(nothing: dict[str, Any], invitation_id: str) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Replace an invitation's link with a new one that works for seven days, and send it again."""
    return (
        _link_answer(*member_operations.renew_invitation(runtime(), current_caller(), base_url(), invitation_id)),
        200,
        _NO_STORE,
    )


@invitations_blp.route(_INVITATION, methods=["DELETE"])
@invitations_blp.operation("revokeInvitation", _POLICY, errors=(ErrorCode.INVITATION_NOT_FOUND,), empty_body=True)
@invitations_blp.response(200, SuccessSchema)
def revoke_invitation(invitation_id: str) -> dict[str, Any]:
    """Revoke an invitation. Its link stops working."""
    caller = current_caller()
    write(runtime(), caller, invitations.revoke_invitation, invitation_id, by=caller.member_id)
    return {"success": True}


@invitations_blp.route("/invitations/<string:token>", methods=["GET"])
@invitations_blp.operation(
    "showInvitation",
    OperationPolicy(ANYONE),
    errors=(ErrorCode.INVITATION_NOT_FOUND, ErrorCode.ACCOUNT_SUSPENDED),
)
@invitations_blp.response(200, InvitationFormAnswerSchema)
def show_invitation(token: str) -> dict[str, Any]:
    """Get the form that accepts an invitation. `token` is the last part of its link."""
    form = {
        "method": "POST",
        "action": f"/invitations/{token}",
        "fields": describe_form(InvitationAcceptSchema(), {}),
    }
    return {"form": form, "invitation": member_operations.open_invitation(runtime(), token)}


@invitations_blp.route("/invitations/<string:token>", methods=["POST"])
@invitations_blp.operation(
    "acceptInvitation",
    OperationPolicy(ANYONE, opens_session=True),
    errors=(ErrorCode.INVITATION_NOT_FOUND, ErrorCode.INSUFFICIENT_PERMISSION, ErrorCode.ACCOUNT_SUSPENDED),
    body=True,
)
@invitations_blp.arguments(InvitationAcceptSchema)
@invitations_blp.response(201, LoginAnswerSchema)
def accept_invitation(fields: dict[str, Any], token: str) -> Response:
    """Become a member and log in."""
    return logged_in(*member_operations.accept_invitation(runtime(), current_client(), token, **fields), status=201)
