"""The profile: name, e-mail address, password, two-factor authentication, sessions, and deleting the account."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from markupsafe import Markup

from app.errors import ApiError
from app.models import Member
from app.operations import accounts
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.logins import log_out_to_home
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.services.accounts import oidc
from app.web.callers import current_caller
from app.web.hosts import service_name
from schemas.accounts import (
    AccountDeleteSchema,
    CurrentPasswordSchema,
    FirstCodeSchema,
    ProfileUpdateSchema,
)


def show_profile() -> str:
    """Show the profile."""
    return render_profile()


def render_profile(error: ApiError | None = None) -> str:
    """Render the profile, with the error of a form on it."""
    caller = current_caller()
    with runtime().database.read() as session:
        user = accounts.get_user(session, caller)
        is_connected = runtime().provider is None or oidc.is_connected(session, user.id)
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
    """Return the page's forms, with the error in the form that was submitted."""
    values = {"name": user.name, "email": user.email, "weekly_digest": user.account.weekly_digest}
    marks = {"delete": "reason", "password": "new_password", "mails": "weekly_digest"}
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
        "mails": shown_fields(
            ProfileUpdateSchema(),
            values,
            error if submitted == "mails" else None,
            leave_out=("name", "email", "current_password", "new_password"),
        ),
        "codes": shown_fields(CurrentPasswordSchema(), {}, error if submitted == "codes" else None),
        "codes_off": shown_fields(CurrentPasswordSchema(), {}, error if submitted == "codes_off" else None),
        "delete": shown_fields(AccountDeleteSchema(), {}, error if submitted == "delete" else None),
    }
    forms["details"][-1]["optional"] = True  # The current password: only a new e-mail needs it.
    return {"forms": forms, "failed": submitted if error else None, "banner": banner_of(error, forms[submitted])}


def update_profile() -> Response:
    """Save the name and e-mail address, or the password."""
    refill_on_error(render_profile)
    changes = read_form(ProfileUpdateSchema(), leave_out_empty=("current_password",))
    accounts.update_profile(runtime(), current_caller(), changes)
    return see_other("/profile/edit", notice="password-changed" if "new_password" in changes else "profile-updated")


def delete_account() -> Response:
    """Delete the account."""
    refill_on_error(render_profile)
    accounts.delete_own_account(runtime(), current_caller(), **read_form(AccountDeleteSchema()))
    return log_out_to_home("account-deleted")


PATH = "/profile/edit"


def to_profile(**_path: str) -> Response:
    """Redirect to the profile."""
    return see_other(PATH)


def begin_codes() -> str:
    """Begin setting up two-factor authentication, and show the secret for an authenticator app."""
    refill_on_error(render_profile)
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
    return render_profile(error) if begun is None else _set_up(*begun, error)


def confirm_codes() -> str:
    """Turn on two-factor authentication, and show the recovery codes once."""
    refill_on_error(_set_up_again)
    code = read_form(FirstCodeSchema())["code"]
    return render("codes.html", recovery_codes=accounts.confirm_codes(runtime(), current_caller(), code))


def remove_codes() -> Response:
    """Turn off two-factor authentication."""
    refill_on_error(render_profile)
    accounts.remove_codes(runtime(), current_caller(), read_form(CurrentPasswordSchema())["current_password"])
    return see_other(PATH, notice="codes-off")


def end_session(session_id: str) -> Response:
    """End a session."""
    accounts.end_session(runtime(), current_caller(), session_id)
    return see_other(PATH, notice="session-ended")


def end_other_sessions() -> Response:
    """End all sessions except the caller's."""
    accounts.end_other_sessions(runtime(), current_caller())
    return see_other(PATH, notice="sessions-ended")
