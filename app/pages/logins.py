"""Registration, login, and logout, with a password or an OpenID Connect provider."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Response, g, make_response, request

from app.errors import ApiError, ErrorCode
from app.models import Member
from app.operations import oidc
from app.operations.logins import (
    AccountChoice,
    CodeRefused,
    choose_account,
    log_in,
    log_in_with_code,
    log_out,
    register,
)
from app.operations.logins import (
    enter as start_session,
)
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.negotiation import local_path, see_other, wants_page
from app.runtime import runtime
from app.services.access.sessions import offer_members
from app.web.callers import current_caller, current_client
from app.web.parsing import read_form_body
from app.web.responses import cookie_header, cookie_of, json_answer
from schemas.accounts import (
    AccountChoiceSchema,
    LoginCodeSchema,
    LoginSchema,
    RegisterSchema,
)
from schemas.forms import describe_form

_FORMS = {"/login": LoginSchema, "/register": RegisterSchema}
_LATER = (
    "code",
    "account_id",
)
"""Fields of later login steps, which the first form doesn't show."""


def show_entrance() -> str | Response:
    """Show the login or registration form. Callers with a session are redirected to the page they requested."""
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
    fields = shown_fields(_FORMS[request.path](), {}, error, leave_out=_LATER)
    return render(
        f"{request.path[1:]}.html",
        fields=fields,
        banner=banner_of(error, fields),
        next=following,
        is_open=runtime().settings.registration,
        provider=runtime().settings.provider_name,
        has_passwords=runtime().settings.password_login,
    )


def enter() -> Response:
    """Log in or register."""
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
    return log_out_to_home("logged-out")


def log_out_to_home(notice: str) -> Response:
    response = see_other("/", notice=notice)
    response.headers.add("Set-Cookie", cookie_header(request, None))
    return response


def show_code(error: CodeRefused, next: str) -> str:
    """Show the page that asks for a code after a correct password."""
    return render(
        "login_code.html",
        fields=shown_fields(LoginCodeSchema(), {}, leave_out=("proof",)),
        banner=None if error.code is ErrorCode.CODE_REQUIRED else error.message,
        proof=error.proof,
        next=next,
    )


def show_choice(members: Sequence[Member], next: str, *, needs_code: bool) -> str:
    """Show the page on which a user with several accounts chooses one."""
    offer = offer_members(members, runtime().settings.secret_key, needs_code=needs_code)
    return render("account_choice.html", members=members, offer=offer, next=next)


def choose_account_of_login() -> Response:
    """Log in to the chosen account."""
    refill_on_error(_render_next_step)
    _, _, cookie = choose_account(runtime(), current_client(), **read_form(AccountChoiceSchema()))
    response = see_other(local_path(request.form.get("next", "")))
    response.headers.add("Set-Cookie", cookie_header(request, cookie))
    return response


def _render_next_step(error: ApiError) -> str:
    if isinstance(error, CodeRefused):
        return show_code(error, local_path(request.form.get("next", "")))
    return show_failure(error)


def show_failure(error: ApiError) -> str:
    """Show a page with the error and a link back to the login form."""
    return render("login_failed.html", error=error)


ATTEMPT_COOKIE = "login_attempt"


def begin_login() -> Response:
    """Redirect to the provider: to log in, or to join an account with an invitation."""
    refill_on_error(show_failure, statuses=FAILURES)
    next = local_path(request.args.get("next", ""))
    address, cookie = oidc.begin(runtime(), current_client(), next, request.args.get("invitation", ""))
    response = Response(status=303, headers={"Location": address, "Cache-Control": "no-store"})
    response.headers.add("Set-Cookie", _attempt_cookie(cookie))
    return response


def connect_login() -> Response:
    """Send a member to the provider to connect an identity there."""
    refill_on_error(show_failure, statuses=FAILURES)
    member_id = current_caller().member_id
    address, cookie = oidc.begin(runtime(), current_client(), "/profile/edit", connects=member_id)
    # The content security policy forbids redirects from forms to other hosts, so the page contains a link.
    response = make_response(render("login_connect.html", address=address, provider=runtime().settings.provider_name))
    response.headers.add("Set-Cookie", _attempt_cookie(cookie))
    return response


def finish_login() -> Response:
    """Log in a user who returns from the provider, or let the user choose an account."""
    refill_on_error(show_failure, statuses=FAILURES)
    member_id = g.caller.member_id if g.caller is not None else None
    members, is_asked, next = oidc.finish(
        runtime(), current_client(), request.cookies.get(ATTEMPT_COOKIE, ""), request.args.to_dict(), member_id
    )
    if is_asked:
        response = make_response(show_choice(members, next, needs_code=False))
    else:
        response = see_other(next)
        response.headers.add(
            "Set-Cookie", cookie_header(request, start_session(runtime(), current_client(), members[0])[2])
        )
    response.headers.add("Set-Cookie", _attempt_cookie(""))
    return response


FAILURES = frozenset({400, 401, 403, 404, 429, 503})
"""Statuses of errors that are shown with a link back to the login form."""


def _attempt_cookie(value: str) -> str:
    return cookie_of(request, ATTEMPT_COOKIE, value, seconds=oidc.ATTEMPT_SECONDS, path="/login/oidc", samesite="Lax")
