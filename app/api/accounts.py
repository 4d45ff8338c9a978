"""Registration and login."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response, g, request

from app.api.views import user_answer
from app.apidoc.openapi import ApiBlueprint
from app.errors import ErrorCode
from app.models import Member
from app.operations.logins import log_in, log_out, register
from app.runtime import runtime
from app.web.auth import ANYONE
from app.web.policy import OperationPolicy
from app.web.request_checks import current_client
from app.web.responses import cookie_header, json_answer
from schemas.accounts import LoginAnswerSchema, LoginSchema, RegisterSchema, UserSchema
from schemas.base import NothingSchema
from schemas.sites import SuccessSchema

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

    If the e-mail belongs to several accounts, the answer lists those that have this password as `accounts`. The
    session is of the one in `account_id`; without that, of the account that the e-mail belongs to for longest, those
    where it is confirmed before all others. Members
    with one-time codes send a `code`, too; without it the answer is 401 `code_required`.
    """
    return logged_in(*log_in(runtime(), current_client(), **fields), status=200)


@blp.route("/logout", methods=["POST"])
@blp.operation("logout", OperationPolicy(ANYONE), errors=(ErrorCode.CSRF_FAILED,), body=True)
@blp.arguments(NothingSchema, location="json_optional", required=False)
@blp.response(200, SuccessSchema)
def logout(nothing: dict[str, Any]) -> Response:
    """End the session."""
    log_out(runtime(), g.caller)
    response = json_answer({"success": True})
    response.headers.add("Set-Cookie", cookie_header(request, None))
    return response


def logged_in(user: Member, csrf_token: str, cookie: str, members: Sequence[Member] = (), *, status: int) -> Response:
    """The answer that starts a session.

    Args:
        members: All whom the person could be.
    """
    answer = {"success": True, "user": UserSchema().dump(user_answer(user)), "csrf_token": csrf_token}
    if len(members) > 1:
        answer["accounts"] = [{"id": m.account_id, "name": m.account.name, "role": m.role} for m in members]
    response = json_answer(answer, status)
    response.headers.add("Set-Cookie", cookie_header(request, cookie))
    response.headers["Cache-Control"] = "no-store"
    return response
