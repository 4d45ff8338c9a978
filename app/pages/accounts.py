"""Registration and login, with a password or an OpenID Connect provider, and the profile.

The profile has the name, email address, password, two-factor authentication, sessions, and deletion of the account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response, make_response, request
from markupsafe import Markup

from app.errors import ApiError, ErrorCode
from app.models import Member
from app.operations import accounts, oidc
from app.operations.logins import (
    AccountChoice,
    CodeRejected,
    choose_account,
    log_in,
    log_in_with_code,
    log_out,
    register,
)
from app.operations.logins import enter as start_session
from app.pages.actions import Action
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.negotiation import local_path, see_other, wants_page
from app.runtime import runtime
from app.services.access.sessions import offer_members
from app.services.accounts.oidc import is_connected
from app.web.admission import current_admission
from app.web.callers import current_caller, current_client
from app.web.hosts import service_name
from app.web.parsing import read_form_body
from app.web.responses import cookie_header, cookie_of, json_response
from schemas.accounts import (
    AccountChoiceSchema,
    AccountDeleteSchema,
    CurrentPasswordSchema,
    FirstCodeSchema,
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
"""Fields of later login steps, which the first form doesn't show."""


def show_entrance() -> str | Response:
    """Show the login or registration form. Callers with a session are redirected to the page they requested."""
    schema = _FORMS[request.path]()
    has_passwords = runtime().settings.password_login
    if not wants_page():
        fields = describe_form(schema, {}, leave_out=_LATER)
        with_password = {"method": "POST", "action": request.path, "fields": fields}
        without = {"method": "GET", "action": "/login/oidc", "fields": []}
        return json_response({"form": with_password if has_passwords else without})
    caller = current_admission().caller
    if caller is not None and caller.kind == "session":
        return see_other(local_path(request.args.get("next", "")))
    if request.path == "/register" and not has_passwords:
        return see_other("/login", next=request.args.get("next"))
    return _entrance()


def _entrance(error: ApiError | None = None) -> str:
    following = local_path(request.values.get("next", ""))
    if isinstance(error, CodeRejected):
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
            cookie = log_in(runtime(), current_client(), **read_form(LoginSchema()), offers_choice=True)[2]
        except AccountChoice as choice:
            return make_response(show_choice(choice.members, following, needs_code=True))
    response = see_other(following)
    response.headers.add("Set-Cookie", cookie_header(request, cookie))
    return response


def leave() -> Response:
    """Log out."""
    log_out(runtime(), current_admission().caller)
    return _log_out_to_home("logged-out")


def _log_out_to_home(notice: str) -> Response:
    response = see_other("/", notice=notice)
    response.headers.add("Set-Cookie", cookie_header(request, None))
    return response


def show_code(error: CodeRejected, next: str) -> str:
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
    if isinstance(error, CodeRejected):
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
    caller = current_admission().caller
    member_id = None if caller is None else caller.member_id
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


def show_profile(error: ApiError | None = None) -> str:
    """Show the profile, with the error of a form on it."""
    caller = current_caller()
    with runtime().database.read() as session:
        user = accounts.get_user(session, caller)
        connected = runtime().provider is None or is_connected(session, user.id)
    sessions = [] if caller.member is None else accounts.list_sessions(runtime(), caller, limit=100, offset=0)[0]
    parts = _profile_parts(user, error if request.form else None)
    return render(
        "profile.html",
        user=user,
        account=user.account,
        sends_email=runtime().settings.sends_email,
        has_passwords=runtime().settings.password_login,
        provider="" if connected else runtime().settings.provider_name,
        sessions=sessions,
        **parts,
    )


def _profile_parts(user: Member, error: ApiError | None) -> dict[str, Any]:
    """Return the page's forms, with the error in the form that was submitted."""
    values = {"name": user.name, "email": user.email, "weekly_digest": user.account.weekly_digest}
    marks = {"delete": "reason", "password": "new_password", "email": "weekly_digest"}
    submitted = next((form for form, field in marks.items() if field in request.form), "details")
    if request.path.startswith("/profile/totp"):
        submitted = "codes_off" if request.method == "DELETE" else "codes"
    forms: dict[str, Any] = {
        "details": shown_fields(
            ProfileUpdateSchema(),
            values,
            error if submitted == "details" else None,
            leave_out=("new_password", "weekly_digest"),
        ),
        "password": shown_fields(
            ProfileUpdateSchema(),
            {},
            error if submitted == "password" else None,
            leave_out=("name", "email", "weekly_digest"),
        ),
        "email": shown_fields(
            ProfileUpdateSchema(),
            values,
            error if submitted == "email" else None,
            leave_out=("name", "email", "current_password", "new_password"),
        ),
        "codes": shown_fields(CurrentPasswordSchema(), {}, error if submitted == "codes" else None),
        "codes_off": shown_fields(CurrentPasswordSchema(), {}, error if submitted == "codes_off" else None),
        "delete": shown_fields(AccountDeleteSchema(), {}, error if submitted == "delete" else None),
    }
    forms["details"][-1]["optional"] = True  # The current password: only a new email needs it.
    return {"forms": forms, "failed": submitted if error else None, "banner": banner_of(error, forms[submitted])}


def update_profile() -> Response:
    """Save the name and email address, or the password."""
    refill_on_error(show_profile)
    changes = read_form(ProfileUpdateSchema(), leave_out_empty=("current_password",))
    accounts.update_profile(runtime(), current_caller(), changes)
    return see_other("/profile/edit", notice="password-changed" if "new_password" in changes else "profile-updated")


def delete_account() -> Response:
    """Delete the account."""
    refill_on_error(show_profile)
    accounts.delete_own_account(runtime(), current_caller(), **read_form(AccountDeleteSchema()))
    return _log_out_to_home("account-deleted")


PATH = "/profile/edit"


def to_profile(**_path: str) -> Response:
    """Redirect to the profile."""
    return see_other(PATH)


def begin_codes() -> str:
    """Begin setting up two-factor authentication, and show the secret for an authenticator app."""
    refill_on_error(show_profile)
    password = read_form(CurrentPasswordSchema())["current_password"]
    return _set_up(*accounts.begin_codes(runtime(), current_caller(), password, service_name()))


def _set_up(secret: str, address: str, error: ApiError | None = None) -> str:
    import segno  # Imported here because the import takes a tenth of a second.

    fields = shown_fields(FirstCodeSchema(), {}, error)
    image = segno.make(address, error="m", micro=False).svg_inline(scale=4, light="#fff")
    return render(
        "codes.html",
        image=Markup(image),  # noqa: S704
        secret=secret,
        address=address,
        fields=fields,
        banner=banner_of(error, fields),
    )


def _set_up_again(error: ApiError) -> str:
    begun = accounts.find_begun_codes(runtime(), current_caller(), service_name())
    return show_profile(error) if begun is None else _set_up(*begun, error)


def confirm_codes() -> str:
    """Turn on two-factor authentication, and show the recovery codes once."""
    refill_on_error(_set_up_again)
    code = read_form(FirstCodeSchema())["code"]
    return render("codes.html", recovery_codes=accounts.confirm_codes(runtime(), current_caller(), code))


remove_codes = Action(accounts.remove_codes, PATH, "codes-off", schema=CurrentPasswordSchema, refill=show_profile)
end_session = Action(accounts.end_session, PATH, "session-ended")
end_other_sessions = Action(accounts.end_other_sessions, PATH, "sessions-ended")
