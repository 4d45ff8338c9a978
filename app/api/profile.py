"""The profile of the account's user."""

from __future__ import annotations

from typing import Any

from flask import request

from app.api.forms import profile_form
from app.api.views import user_answer
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.operations import accounts
from app.runtime import runtime
from app.services.access.rights import Role
from app.web.auth import LOGGED_IN, MANAGING
from app.web.hosts import service_name
from app.web.policy import OperationPolicy
from app.web.request_checks import current_caller
from app.web.responses import cookie_header
from schemas.accounts import (
    AccountDeleteSchema,
    CodesBegunSchema,
    CodesStateSchema,
    CurrentPasswordSchema,
    FirstCodeSchema,
    ProfileUpdateSchema,
    RecoveryCodesSchema,
    SessionListSchema,
    UserAnswerSchema,
)
from schemas.forms import UserFormAnswerSchema
from schemas.sites import PageQuerySchema, SuccessSchema
from schemas.validation.keys import Scope

blp = ApiBlueprint(
    "profile", __name__, description="Name, e-mail, password, one-time codes, and sessions; account deletion."
)


@blp.route("/profile/edit", methods=["GET"])
@blp.operation("showProfileEditForm", OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True))
@blp.response(200, UserFormAnswerSchema)
def show_edit_form() -> dict[str, Any]:
    """Get the form for editing the profile, filled in."""
    caller = current_caller()
    with runtime().database.read() as session:
        user = accounts.get_user(session, caller)
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
    return {"success": True, "user": user_answer(accounts.update_profile(runtime(), current_caller(), changes))}


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
    accounts.delete_own_account(runtime(), current_caller(), **fields)
    return {"success": True}, 200, {"Set-Cookie": cookie_header(request, None)}


_OWN = OperationPolicy(LOGGED_IN, role=Role.VIEWER)
_PASSWORD_ERRORS = (ErrorCode.PASSWORD_INCORRECT,)


@blp.route("/profile/totp", methods=["GET"])
@blp.operation("showCodes", _OWN)
@blp.response(200, CodesStateSchema)
def show_codes() -> dict[str, Any]:
    """Tell whether one-time codes are on."""
    with runtime().database.read() as session:
        user = accounts.get_user(session, current_caller())
    return {
        "enabled": user.codes_since is not None,
        "since": user.codes_since,
        "recovery_codes_left": len(user.recovery_hashes),
    }


@blp.route("/profile/totp", methods=["POST"])
@blp.operation("beginCodes", _OWN, errors=_PASSWORD_ERRORS, body=True)
@blp.arguments(CurrentPasswordSchema)
@blp.response(200, CodesBegunSchema)
def begin_codes(fields: dict[str, Any]) -> dict[str, Any]:
    """Begin to set up an app for one-time codes.

    They are switched on when `/profile/totp/confirm` gets the app's first code, within 15 minutes. An app that is in
    use goes on until then.
    """
    secret, address = accounts.begin_codes(runtime(), current_caller(), fields["current_password"], service_name())
    return {"success": True, "secret": secret, "otpauth_url": address}


@blp.route("/profile/totp/confirm", methods=["POST"])
@blp.operation("confirmCodes", _OWN, body=True)
@blp.arguments(FirstCodeSchema)
@blp.response(200, RecoveryCodesSchema)
def confirm_codes(fields: dict[str, Any]) -> dict[str, Any]:
    """Switch one-time codes on with the app's first code, and get ten recovery codes."""
    return {"success": True, "recovery_codes": accounts.confirm_codes(runtime(), current_caller(), fields["code"])}


@blp.route("/profile/totp", methods=["DELETE"])
@blp.operation("removeCodes", _OWN, errors=_PASSWORD_ERRORS, body=True)
@blp.arguments(CurrentPasswordSchema)
@blp.response(200, SuccessSchema)
def remove_codes(fields: dict[str, Any]) -> dict[str, Any]:
    """Switch one-time codes off. Recovery codes end with them."""
    accounts.remove_codes(runtime(), current_caller(), fields["current_password"])
    return {"success": True}


@blp.route("/profile/sessions", methods=["GET"])
@blp.operation("listSessions", _OWN)
@blp.arguments(PageQuerySchema, location="query")
@blp.response(200, SessionListSchema)
def list_sessions(page: dict[str, Any]) -> dict[str, Any]:
    """List your sessions, newest first."""
    found, total = accounts.list_sessions(runtime(), current_caller(), **page)
    return {"sessions": found, "total": total, **page}


@blp.route("/profile/sessions", methods=["DELETE"])
@blp.operation("endOtherSessions", _OWN, empty_body=True)
@blp.response(200, SuccessSchema)
def end_other_sessions() -> dict[str, Any]:
    """End all of your sessions but this one."""
    accounts.end_other_sessions(runtime(), current_caller())
    return {"success": True}


@blp.route("/profile/sessions/<string:session_id>", methods=["DELETE"])
@blp.operation("endSession", _OWN, errors=(ErrorCode.SESSION_NOT_FOUND,), empty_body=True)
@blp.response(200, SuccessSchema)
def end_session(session_id: str) -> dict[str, Any]:
    """End one of your sessions, with its next request; of this one, that is to log out."""
    accounts.end_session(runtime(), current_caller(), session_id)
    return {"success": True}
