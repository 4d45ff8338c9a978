"""The page that confirms an e-mail, for whoever has the link in the mail, and the button that sends another."""

from __future__ import annotations

from flask import Response, request

from app.errors import ApiError
from app.operations.email_links import ask_again, check_confirmation, confirm
from app.pages.forms import banner_of, field_problems, read_form, refill_on_error
from app.pages.layout import render, render_secret
from app.pages.redirects import HOME, see_other
from app.runtime import runtime
from app.web.request_checks import current_caller, current_client
from schemas.accounts import EmailConfirmSchema


def show_confirmation() -> Response:
    """The page with the button: to look at it changes nothing, since programs that check mails open every link."""
    refill_on_error(_page)
    return render_secret(_page(email=check_confirmation(runtime(), request.args.get("token", "")).email))


def confirm_email() -> Response:
    """Confirm the e-mail."""
    refill_on_error(_page)
    confirm(runtime(), current_client(), **read_form(EmailConfirmSchema()))
    return see_other(HOME, notice="email-confirmed")


def send_again() -> Response:
    """Have another link sent."""
    ask_again(runtime(), current_caller())
    return see_other(HOME, notice="confirmation-sent")


def _page(error: ApiError | None = None, email: str = "") -> str:
    has_ended = "token" in field_problems(error)
    return render(
        "email_confirm.html",
        banner=None if has_ended else banner_of(error, []),
        has_ended=has_ended,
        email=email,
        token=request.values.get("token", ""),
    )
