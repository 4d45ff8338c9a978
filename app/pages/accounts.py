"""Registering, logging in and out, and the profile."""

from __future__ import annotations

from typing import Any

from flask import Response, g, make_response, request

from app.errors import ApiError
from app.models import Member
from app.operations import accounts
from app.operations.logins import AccountChoice, CodeRefused, log_in, log_in_with_code, log_out, register
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.login_steps import show_choice, show_code
from app.pages.negotiation import wants_page
from app.pages.redirects import local_path, see_other
from app.runtime import runtime
from app.services.accounts import identities
from app.web.parsing import read_form_body
from app.web.request_checks import current_caller, current_client
from app.web.responses import cookie_header, json_answer
from schemas.accounts import (
    AccountDeleteSchema,
    CurrentPasswordSchema,
    LoginCodeSchema,
    LoginSchema,
    ProfileUpdateSchema,
    RegisterSchema,
)
from schemas.forms import describe_form

_FORMS = {"/login": LoginSchema, "/register": RegisterSchema}
_LATER = (
    "code",
    "account_id",
)
"""What is asked for as a second step."""


def show_entrance() -> str | Response:
    """The login or the registration form, or on to where they lead for whom is logged in."""
    schema = _FORMS[request.path]()
    has_passwords = runtime().settings.password_login
    if not wants_page():
        fields = describe_form(schema, {}, leave_out=_LATER)
        with_password = {"method": "POST", "action": request.path, "fields": fields}
        without = {"method": "GET", "action": "/login/oidc", "fields": []}
        return json_answer({"form": with_password if has_passwords else without})
    if g.caller is not None and g.caller.kind == "session":
        return see_other(local_path(request.args.get("next", "")))
    if request.path == "/register" and not has_passwords:
        return see_other("/login", next=request.args.get("next"))
    return _entrance()


def _entrance(error: ApiError | None = None) -> str:
    following = local_path(request.values.get("next", ""))
    if isinstance(error, CodeRefused):
        return show_code(error, following)
    shown = shown_fields(_FORMS[request.path](), {}, error, leave_out=_LATER)
    return render(
        f"{request.path[1:]}.html",
        fields=shown,
        banner=banner_of(error, shown),
        next=following,
        is_open=runtime().settings.registration,
        provider=runtime().settings.provider_name,
        has_passwords=runtime().settings.password_login,
    )


def enter() -> Response:
    """Log in, or register."""
    refill_on_error(_entrance)
    form = read_form_body(request)
    following = local_path(form.get("next", ""))
    if request.path == "/register":
        cookie = register(runtime(), current_client(), **read_form(RegisterSchema()))[2]
    elif "proof" in form:
        cookie = log_in_with_code(runtime(), current_client(), **read_form(LoginCodeSchema()))[2]
    else:
        try:
            cookie = log_in(runtime(), current_client(), **read_form(LoginSchema()), asks=True)[2]
        except AccountChoice as choice:
            return make_response(show_choice(choice.members, following, needs_code=True))
    response = see_other(following)
    response.headers.add("Set-Cookie", cookie_header(request, cookie))
    return response


def leave() -> Response:
    """Log out."""
    log_out(runtime(), g.caller)
    return _gone("logged-out")


def _gone(notice: str) -> Response:
    response = see_other("/", notice=notice)
    response.headers.add("Set-Cookie", cookie_header(request, None))
    return response


def show_profile() -> str:
    """Name, e-mail, password, one-time codes, sessions, and the end of the account."""
    return render_profile()


def render_profile(error: ApiError | None = None) -> str:
    """The same, after a form of it that failed."""
    caller = current_caller()
    with runtime().database.read() as session:
        user = accounts.get_user(session, caller)
        is_connected = runtime().provider is None or identities.is_connected(session, user.id)
    sessions = [] if caller.member is None else accounts.list_sessions(runtime(), caller, limit=100, offset=0)[0]
    parts = _profile_parts(user, error if request.form else None)
    return render(
        "profile.html",
        user=user,
        account=user.account,
        sends_mail=runtime().settings.sends_mail,
        has_passwords=runtime().settings.password_login,
        provider="" if is_connected else runtime().settings.provider_name,
        sessions=sessions,
        **parts,
    )


def _profile_parts(user: Member, error: ApiError | None) -> dict[str, Any]:
    """The page's forms; an error belongs to the one that was sent."""
    values = {"name": user.name, "email": user.email, "weekly_digest": user.account.weekly_digest}
    marks = {"delete": "reason", "password": "new_password", "mails": "weekly_digest"}
    sent = next((form for form, field in marks.items() if field in request.form), "details")
    if request.path.startswith("/profile/totp"):
        sent = "codes_off" if request.method == "DELETE" else "codes"
    forms: dict[str, Any] = {
        "details": shown_fields(
            ProfileUpdateSchema(),
            values,
            error if sent == "details" else None,
            leave_out=("new_password", "weekly_digest"),
        ),
        "password": shown_fields(
            ProfileUpdateSchema(),
            {},
            error if sent == "password" else None,
            leave_out=("name", "email", "weekly_digest"),
        ),
        "mails": shown_fields(
            ProfileUpdateSchema(),
            values,
            error if sent == "mails" else None,
            leave_out=("name", "email", "current_password", "new_password"),
        ),
        "codes": shown_fields(CurrentPasswordSchema(), {}, error if sent == "codes" else None),
        "codes_off": shown_fields(CurrentPasswordSchema(), {}, error if sent == "codes_off" else None),
        "delete": shown_fields(AccountDeleteSchema(), {}, error if sent == "delete" else None),
    }
    forms["details"][-1]["optional"] = True  # The current password: only a new e-mail needs it.
    return {"forms": forms, "failed": sent if error else None, "banner": banner_of(error, forms[sent])}


def update_profile() -> Response:
    """Save name and e-mail, or the password."""
    refill_on_error(render_profile)
    changes = read_form(ProfileUpdateSchema(), leave_out_empty=("current_password",))
    accounts.update_profile(runtime(), current_caller(), changes)
    return see_other("/profile/edit", notice="password-changed" if "new_password" in changes else "profile-updated")


def delete_account() -> Response:
    """Delete the account."""
    refill_on_error(render_profile)
    accounts.delete_own_account(runtime(), current_caller(), **read_form(AccountDeleteSchema()))
    return _gone("account-deleted")
