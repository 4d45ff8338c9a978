"""Forms of the profile about logging in: one-time codes, and sessions."""

from __future__ import annotations

from flask import Response
from markupsafe import Markup

from app.errors import ApiError
from app.operations import accounts
from app.pages.accounts import render_profile
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.redirects import see_other
from app.runtime import runtime
from app.web.hosts import service_name
from app.web.request_checks import current_caller
from schemas.accounts import CurrentPasswordSchema, FirstCodeSchema

PATH = "/profile/edit"


def to_profile(**_path: str) -> Response:
    """On to the page that shows all of it."""
    return see_other(PATH)


def begin_codes() -> str:
    """Begin to set codes up, and show what an app needs for it."""
    refill_on_error(render_profile)
    password = read_form(CurrentPasswordSchema())["current_password"]
    return _set_up(*accounts.begin_codes(runtime(), current_caller(), password, service_name()))


def _set_up(secret: str, address: str, error: ApiError | None = None) -> str:
    import segno  # Builds tables for a tenth of a second when it is imported.

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
    """Switch codes on, and show the recovery codes, this once."""
    refill_on_error(_set_up_again)
    code = read_form(FirstCodeSchema())["code"]
    return render("codes.html", recovery_codes=accounts.confirm_codes(runtime(), current_caller(), code))


def remove_codes() -> Response:
    """Switch codes off."""
    refill_on_error(render_profile)
    accounts.remove_codes(runtime(), current_caller(), read_form(CurrentPasswordSchema())["current_password"])
    return see_other(PATH, notice="codes-off")


def end_session(session_id: str) -> Response:
    """End a session."""
    accounts.end_session(runtime(), current_caller(), session_id)
    return see_other(PATH, notice="session-ended")


def end_other_sessions() -> Response:
    """End all sessions but this one."""
    accounts.end_other_sessions(runtime(), current_caller())
    return see_other(PATH, notice="sessions-ended")
