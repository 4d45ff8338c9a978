"""Invitations to become a member of the account."""

from __future__ import annotations

from typing import Any

from flask import Response

from app.api.accounts import logged_in
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.models import Invitation
from app.operations import invitations as operations
from app.operations import write
from app.runtime import runtime
from app.services.access.rights import Role
from app.services.accounts import invitations
from app.web.auth import ANYONE, MANAGING
from app.web.callers import current_caller, current_client
from app.web.hosts import base_url
from app.web.policy import OperationPolicy
from schemas.accounts import LoginAnswerSchema
from schemas.base import NothingSchema, SuccessSchema
from schemas.forms import describe_form
from schemas.invitations import (
    InvitationAcceptSchema,
    InvitationCreateSchema,
    InvitationFormAnswerSchema,
    InvitationLinkAnswerSchema,
    InvitationListSchema,
)
from schemas.sites import PageQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("invitations", __name__, description="Invitations to become a member of the account.")

_POLICY = OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.OWNER)
_INVITATION = "/api/invitations/<string:invitation_id>"


# Responses with this header may contain the link of an invitation, which admits anyone who has it.
_NO_STORE = {"Cache-Control": "no-store"}


@blp.route("/api/invitations", methods=["GET"])
@blp.operation("listInvitations", _POLICY)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, InvitationListSchema)
def list_invitations(page: dict[str, Any]) -> dict[str, Any]:
    """List pending invitations, oldest first."""
    with runtime().database.read() as session:
        listed, total = invitations.list_invitations(session, current_caller().account.id, **page)
        return {"invitations": listed, "total": total, **page}


@blp.route("/api/invitations", methods=["POST"])
@blp.operation("createInvitation", _POLICY, errors=(ErrorCode.MEMBER_LIMIT_REACHED,), body=True)
@blp.arguments(InvitationCreateSchema)
@blp.response(201, InvitationLinkAnswerSchema)
def create_invitation(fields: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create an invitation. Its link works once, for seven days.

    The link is sent to the invited email address. If the service doesn't send email, the link is in `url` for you to
    share, and is never shown again. A key can't invite owners.
    """
    issued = operations.invite(runtime(), current_caller(), base_url(), fields["email"], Role(fields["role"]))
    return _link_response(*issued), 201, _NO_STORE


def _link_response(invitation: Invitation, token: str | None) -> dict[str, Any]:
    link = {} if token is None else {"url": operations.link_of(base_url(), token), "token": token}
    return {"success": True, "invitation": invitation, **link}


@blp.route(_INVITATION + "/renew", methods=["POST"])
@blp.operation("renewInvitation", _POLICY, errors=(ErrorCode.INVITATION_NOT_FOUND,), body=True)
@blp.arguments(NothingSchema, location="json_optional", required=False)
@blp.response(200, InvitationLinkAnswerSchema)
def renew_invitation(nothing: dict[str, Any], invitation_id: str) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Replace an invitation's link with a new one that works for seven days, and send it again."""
    return (
        _link_response(*operations.renew_invitation(runtime(), current_caller(), base_url(), invitation_id)),
        200,
        _NO_STORE,
    )


@blp.route(_INVITATION, methods=["DELETE"])
@blp.operation("revokeInvitation", _POLICY, errors=(ErrorCode.INVITATION_NOT_FOUND,), empty_body=True)
@blp.response(200, SuccessSchema)
def revoke_invitation(invitation_id: str) -> dict[str, Any]:
    """Revoke an invitation. Its link stops working."""
    caller = current_caller()
    write(runtime(), caller, invitations.revoke_invitation, invitation_id, by=caller.member_id)
    return {"success": True}


@blp.route("/invitations/<string:token>", methods=["GET"])
@blp.operation(
    "showInvitation",
    OperationPolicy(ANYONE),
    errors=(ErrorCode.INVITATION_NOT_FOUND, ErrorCode.ACCOUNT_SUSPENDED),
)
@blp.response(200, InvitationFormAnswerSchema)
def show_invitation(token: str) -> dict[str, Any]:
    """Get the form that accepts an invitation. `token` is the last part of its link."""
    form = {
        "method": "POST",
        "action": f"/invitations/{token}",
        "fields": describe_form(InvitationAcceptSchema(), {}),
    }
    return {"form": form, "invitation": operations.open_invitation(runtime(), token)}


@blp.route("/invitations/<string:token>", methods=["POST"])
@blp.operation(
    "acceptInvitation",
    OperationPolicy(ANYONE, opens_session=True),
    errors=(ErrorCode.INVITATION_NOT_FOUND, ErrorCode.INSUFFICIENT_PERMISSION, ErrorCode.ACCOUNT_SUSPENDED),
    body=True,
)
@blp.arguments(InvitationAcceptSchema)
@blp.response(201, LoginAnswerSchema)
def accept_invitation(fields: dict[str, Any], token: str) -> Response:
    """Become a member and log in."""
    return logged_in(*operations.accept_invitation(runtime(), current_client(), token, **fields), status=201)
