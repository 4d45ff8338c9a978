"""The profile of the account's user."""

from __future__ import annotations

from typing import Any

from flask import request

from app.api.forms import profile_form
from app.api.views import user_answer
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.operations import profile
from app.runtime import runtime
from app.services.access.roles import Role
from app.web.auth import MANAGING
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from app.web.responses import cookie_header
from schemas.accounts import AccountDeleteSchema, ProfileUpdateSchema, UserAnswerSchema
from schemas.forms import UserFormAnswerSchema
from schemas.sites import SuccessSchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("profile", __name__, description="Name, e-mail, and password; account deletion.")


@blp.route("/profile/edit", methods=["GET"])
@blp.operation("showProfileEditForm", OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True))
@blp.response(200, UserFormAnswerSchema)
def show_edit_form() -> dict[str, Any]:
    """Get the form for editing the profile, filled in."""
    caller = current_caller()
    with runtime().database.read() as session:
        user = profile.get_user(session, caller)
    return {"form": profile_form(caller, user), "user": user_answer(user)}


@blp.route("/profile", methods=["PUT"])
@blp.operation(
    "updateProfile",
    OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.VIEWER),
    errors=(ErrorCode.PASSWORD_INCORRECT,),
    body=True,
)
@blp.arguments(ProfileUpdateSchema)
@blp.response(200, UserAnswerSchema)
def update_profile(changes: dict[str, Any]) -> dict[str, Any]:
    """Change the name, e-mail, or password.

    With a session, a new e-mail or password needs `current_password` and ends all other sessions. A key cannot change
    the password.
    """
    return {"success": True, "user": user_answer(profile.update_profile(runtime(), current_caller(), changes))}


@blp.route("/profile", methods=["DELETE"])
@blp.operation(
    "deleteAccount",
    OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.OWNER),
    errors=(ErrorCode.PASSWORD_INCORRECT,),
    body=True,
)
@blp.arguments(AccountDeleteSchema)
@blp.response(200, SuccessSchema)
def delete_account(fields: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Delete the account and all its data."""
    profile.delete_account(runtime(), current_caller(), **fields)
    return {"success": True}, 200, {"Set-Cookie": cookie_header(request, None)}
