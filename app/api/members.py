"""Members of the account."""

from __future__ import annotations

from typing import Any

from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.operations import write
from app.runtime import runtime
from app.services.access.rights import Role
from app.services.accounts import members
from app.web.auth import MANAGING
from app.web.callers import current_caller
from app.web.policy import OperationPolicy
from schemas.base import SuccessSchema
from schemas.members import MemberAnswerSchema, MemberListSchema, MemberShowSchema, MemberUpdateSchema
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
