"""Registration, login, and the profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response, request

from app.api.views import describe_user, profile_form
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.models import Member
from app.operations import accounts
from app.operations.logins import log_in, log_out, register
from app.runtime import runtime
from app.services.access.rights import Role
from app.web.admission import current_admission
from app.web.auth import ANYONE, LOGGED_IN, MANAGING
from app.web.callers import current_caller, current_client
from app.web.hosts import service_name
from app.web.policy import OperationPolicy
from app.web.responses import cookie_header, json_response
from schemas.accounts import (
    AccountDeleteSchema,
    CodesBegunSchema,
    CodesStateSchema,
    CurrentPasswordSchema,
    FirstCodeSchema,
    LoginAnswerSchema,
    LoginSchema,
    ProfileUpdateSchema,
    RecoveryCodesSchema,
    RegisterSchema,
    SessionListSchema,
    UserAnswerSchema,
    UserSchema,
)
from schemas.base import NothingSchema, SuccessSchema
from schemas.forms import UserFormAnswerSchema
from schemas.sites import PageQuerySchema
from schemas.validation.keys import Scope

blp = ApiBlueprint("accounts", __name__, description="Registration and login.")


@blp.route("/register", methods=["POST"])
@blp.operation(
    "register", OperationPolicy(ANYONE, opens_session=True), errors=(ErrorCode.INSUFFICIENT_PERMISSION,), body=True
)
@blp.arguments(RegisterSchema)
@blp.response(201, LoginAnswerSchema)
def register_account(fields: dict[str, Any]) -> Response:
    """Create an account and log in."""
    return logged_in(*register(runtime(), current_client(), **fields), status=201)


@blp.route("/login", methods=["POST"])
@blp.operation(
    "login",
    OperationPolicy(ANYONE, opens_session=True),
    errors=(ErrorCode.INVALID_CREDENTIALS, ErrorCode.CODE_REQUIRED, ErrorCode.INSUFFICIENT_PERMISSION),
    body=True,
)
@blp.arguments(LoginSchema)
@blp.response(200, LoginAnswerSchema)
def login(fields: dict[str, Any]) -> Response:
    """Log in and set the session cookie.

    If the email address belongs to several accounts with this password, the response lists them as `accounts`. The
    session belongs to the account in `account_id`. By default, it belongs to the account that has had the address for
    longest, preferring confirmed addresses. Members with two-factor authentication also send a `code`; without it the
    response is 401 `code_required`.
    """
    return logged_in(*log_in(runtime(), current_client(), **fields), status=200)


@blp.route("/logout", methods=["POST"])
@blp.operation("logout", OperationPolicy(ANYONE), errors=(ErrorCode.CSRF_FAILED,), body=True)
@blp.arguments(NothingSchema, location="json_optional", required=False)
@blp.response(200, SuccessSchema)
def logout(nothing: dict[str, Any]) -> Response:
    """End the session."""
    log_out(runtime(), current_admission().caller)
    response = json_response({"success": True})
    response.headers.add("Set-Cookie", cookie_header(request, None))
    return response


def logged_in(user: Member, csrf_token: str, cookie: str, members: Sequence[Member] = (), *, status: int) -> Response:
    """Return the response that starts a session.

    Args:
        members: All members that match the email address and password, one per account.
    """
    body = {"success": True, "user": UserSchema().dump(describe_user(user)), "csrf_token": csrf_token}
    if len(members) > 1:
        body["accounts"] = [{"id": m.account_id, "name": m.account.name, "role": m.role} for m in members]
    response = json_response(body, status)
    response.headers.add("Set-Cookie", cookie_header(request, cookie))
    # The response contains the cookie and the CSRF token of a session.
    response.headers["Cache-Control"] = "no-store"
    return response


profile_blp = ApiBlueprint(
    "profile",
    __name__,
    description="Name, email, password, two-factor authentication, and sessions; account deletion.",
)


@profile_blp.route("/profile/edit", methods=["GET"])
@profile_blp.operation("showProfileEditForm", OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True))
@profile_blp.response(200, UserFormAnswerSchema)
def show_edit_form() -> dict[str, Any]:
    """Get the form for editing the profile, with current values."""
    caller = current_caller()
    with runtime().database.read() as session:
        user = accounts.get_user(session, caller)
    return {"form": profile_form(caller, user), "user": describe_user(user)}


@profile_blp.route("/profile", methods=["PUT"])
@profile_blp.operation(
    "updateProfile",
    OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.VIEWER),
    errors=(ErrorCode.PASSWORD_INCORRECT,),
    body=True,
)
@profile_blp.arguments(ProfileUpdateSchema)
@profile_blp.response(200, UserAnswerSchema)
def update_profile(changes: dict[str, Any]) -> dict[str, Any]:
    """Change the name, email address, or password.

    With a session, changing the email address or password requires `current_password` and ends all other sessions.
    A key can't change the password.
    """
    return {"success": True, "user": describe_user(accounts.update_profile(runtime(), current_caller(), changes))}


@profile_blp.route("/profile", methods=["DELETE"])
@profile_blp.operation(
    "deleteAccount",
    OperationPolicy(MANAGING, Scope.ACCOUNT, whole_account=True, role=Role.OWNER),
    errors=(ErrorCode.PASSWORD_INCORRECT,),
    body=True,
)
@profile_blp.arguments(AccountDeleteSchema)
@profile_blp.response(200, SuccessSchema)
def delete_account(fields: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Delete the account and all its data."""
    accounts.delete_own_account(runtime(), current_caller(), **fields)
    return {"success": True}, 200, {"Set-Cookie": cookie_header(request, None)}


_OWN = OperationPolicy(LOGGED_IN, role=Role.VIEWER)
_PASSWORD_ERRORS = (ErrorCode.PASSWORD_INCORRECT,)


@profile_blp.route("/profile/totp", methods=["GET"])
@profile_blp.operation("showCodes", _OWN)
@profile_blp.response(200, CodesStateSchema)
def show_codes() -> dict[str, Any]:
    """Get the state of two-factor authentication."""
    with runtime().database.read() as session:
        user = accounts.get_user(session, current_caller())
    return {
        "enabled": user.codes_since is not None,
        "since": user.codes_since,
        "recovery_codes_left": len(user.recovery_hashes),
    }


@profile_blp.route("/profile/totp", methods=["POST"])
@profile_blp.operation("beginCodes", _OWN, errors=_PASSWORD_ERRORS, body=True)
@profile_blp.arguments(CurrentPasswordSchema)
@profile_blp.response(200, CodesBegunSchema)
def begin_codes(fields: dict[str, Any]) -> dict[str, Any]:
    """Begin setting up an authenticator app for two-factor authentication.

    It is turned on when `/profile/totp/confirm` gets the app's first code within 15 minutes. Until then, an app that
    is already set up keeps working.
    """
    secret, address = accounts.begin_codes(runtime(), current_caller(), fields["current_password"], service_name())
    return {"success": True, "secret": secret, "otpauth_url": address}


@profile_blp.route("/profile/totp/confirm", methods=["POST"])
@profile_blp.operation("confirmCodes", _OWN, body=True)
@profile_blp.arguments(FirstCodeSchema)
@profile_blp.response(200, RecoveryCodesSchema)
def confirm_codes(fields: dict[str, Any]) -> dict[str, Any]:
    """Turn on two-factor authentication with the app's first code, and get ten recovery codes."""
    return {"success": True, "recovery_codes": accounts.confirm_codes(runtime(), current_caller(), fields["code"])}


@profile_blp.route("/profile/totp", methods=["DELETE"])
@profile_blp.operation("removeCodes", _OWN, errors=_PASSWORD_ERRORS, body=True)
@profile_blp.arguments(CurrentPasswordSchema)
@profile_blp.response(200, SuccessSchema)
def remove_codes(fields: dict[str, Any]) -> dict[str, Any]:
    """Turn off two-factor authentication and delete the recovery codes."""
    accounts.remove_codes(runtime(), current_caller(), fields["current_password"])
    return {"success": True}


@profile_blp.route("/profile/sessions", methods=["GET"])
@profile_blp.operation("listSessions", _OWN)
@profile_blp.arguments(PageQuerySchema, location="query")
@profile_blp.response(200, SessionListSchema)
def list_sessions(page: dict[str, Any]) -> dict[str, Any]:
    """List your sessions, newest first."""
    listed, total = accounts.list_sessions(runtime(), current_caller(), **page)
    return {"sessions": listed, "total": total, **page}


@profile_blp.route("/profile/sessions", methods=["DELETE"])
@profile_blp.operation("endOtherSessions", _OWN, empty_body=True)
@profile_blp.response(200, SuccessSchema)
def end_other_sessions() -> dict[str, Any]:
    """End all your sessions except this one."""
    accounts.end_other_sessions(runtime(), current_caller())
    return {"success": True}


@profile_blp.route("/profile/sessions/<string:session_id>", methods=["DELETE"])
@profile_blp.operation("endSession", _OWN, errors=(ErrorCode.SESSION_NOT_FOUND,), empty_body=True)
@profile_blp.response(200, SuccessSchema)
def end_session(session_id: str) -> dict[str, Any]:
    """End one of your sessions. Ending the current one logs you out."""
    accounts.end_session(runtime(), current_caller(), session_id)
    return {"success": True}
