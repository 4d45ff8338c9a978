"""A new password for people who have forgotten theirs."""

from __future__ import annotations

from flask import Response, request

from app.errors import ApiError
from app.operations.email_links import check_token, request_reset, reset_password
from app.pages.forms import banner_of, field_problems, read_form, refill_on_error, shown_fields
from app.pages.layout import render, render_secret
from app.pages.redirects import see_other
from app.runtime import runtime
from app.web.request_checks import current_client
from schemas.accounts import PasswordForgotSchema, PasswordResetSchema


def show_forgot() -> str:
    """The form that asks for a link, or whom to ask."""
    return _forgot()


def _forgot(error: ApiError | None = None) -> str:
    fields = shown_fields(PasswordForgotSchema(), {}, error)
    sends_mail = runtime().settings.sends_mail
    return render("password_forgot.html", fields=fields, banner=banner_of(error, fields), sends_mail=sends_mail)


def send_link() -> Response:
    """Have a link sent; the answer is the same for every address."""
    refill_on_error(_forgot)
    request_reset(runtime(), current_client(), **read_form(PasswordForgotSchema()))
    return see_other("/login", notice="reset-requested")


def show_reset() -> Response:
    """The form that sets a new password. To look at it does not use the link up: programs that check mails do so."""
    refill_on_error(_reset)
    check_token(runtime(), request.args.get("token", ""))
    return render_secret(_reset())


def _reset(error: ApiError | None = None) -> str:
    fields = shown_fields(PasswordResetSchema(), {}, error, leave_out=("token",))
    has_ended = "token" in field_problems(error)
    return render(
        "password_reset.html",
        fields=fields,
        banner=None if has_ended else banner_of(error, fields),
        has_ended=has_ended,
        token=request.values.get("token", ""),
    )


def set_password() -> Response:
    """Set the new password."""
    refill_on_error(_reset)
    reset_password(runtime(), current_client(), **read_form(PasswordResetSchema()))
    return see_other("/login", notice="password-reset")
