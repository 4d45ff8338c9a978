"""Pages behind links in emails: password resets, email addresses, and the weekly digest."""

from __future__ import annotations

from functools import partial

from flask import Response, request

from app.errors import ApiError, field_error
from app.operations.digests import read_token, unsubscribe
from app.operations.email_links import (
    check_confirmation,
    check_reset,
    confirm,
    request_reset,
    resend_confirmation,
    reset_password,
    show_change,
    undo_change,
)
from app.pages.actions import Action
from app.pages.forms import banner_of, field_problems, refill_on_error, shown_fields
from app.pages.layout import render, render_secret
from app.pages.negotiation import HOME
from app.runtime import runtime
from app.web.callers import current_client
from schemas.accounts import EmailConfirmSchema, EmailUndoSchema, PasswordForgotSchema, PasswordResetSchema


def show_forgot(error: ApiError | None = None) -> str:
    """Show the form that requests a reset link, or a contact if the service sends no email."""
    fields = shown_fields(PasswordForgotSchema(), {}, error)
    sends_email = runtime().settings.sends_email
    return render("password_forgot.html", fields=fields, banner=banner_of(error, fields), sends_email=sends_email)


send_link = Action(
    request_reset, "/login", "reset-requested", schema=PasswordForgotSchema, refill=show_forgot, actor=current_client
)


def show_reset() -> Response:
    """Show the form that sets a new password. Viewing it doesn't use up the link, since email scanners open links."""
    refill_on_error(_reset)
    check_reset(runtime(), request.args.get("token", ""))
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


set_password = Action(
    reset_password, "/login", "password-reset", schema=PasswordResetSchema, refill=_reset, actor=current_client
)


def show_confirmation() -> Response:
    """Show the page whose button confirms an email address. Viewing it changes nothing, since email scanners open
    links.
    """
    refill_on_error(_confirmation_page)
    return render_secret(_confirmation_page(email=check_confirmation(runtime(), request.args.get("token", "")).email))


def _button_page(template: str, error: ApiError | None = None, email: str = "") -> str:
    """Render a page whose button uses a link from an email."""
    has_ended = "token" in field_problems(error)
    return render(
        template,
        banner=None if has_ended else banner_of(error, []),
        has_ended=has_ended,
        email=email,
        token=request.values.get("token", ""),
    )


_confirmation_page = partial(_button_page, "email_confirm.html")
_undo_page = partial(_button_page, "email_undo.html")

confirm_email = Action(
    confirm, HOME, "email-confirmed", schema=EmailConfirmSchema, refill=_confirmation_page, actor=current_client
)
send_again = Action(resend_confirmation, HOME, "confirmation-sent")
undo_email_change = Action(
    undo_change, "/login", "email-restored", schema=EmailUndoSchema, refill=_undo_page, actor=current_client
)


def show_email_change() -> Response:
    """Show the page whose button undoes an email change. Viewing it changes nothing, since scanners open links."""
    refill_on_error(_undo_page)
    return render_secret(_undo_page(email=show_change(runtime(), request.args.get("token", ""))))


def show_unsubscribe() -> str:
    """Show the page whose button stops the weekly digest. Viewing it changes nothing, since scanners open links."""
    _account_of_link()
    return _digest_page(is_done=False)


def stop_digest() -> str:
    """Unsubscribe, by button or by an email client's one-click request (RFC 8058), which follows no redirects."""
    account_id = _account_of_link()
    with runtime().database.write() as session:
        unsubscribe(session, account_id)
    return _digest_page(is_done=True)


def _digest_page(*, is_done: bool) -> str:
    return render("digest_unsubscribe.html", is_done=is_done, token=request.args["token"])


def _account_of_link() -> int:
    account_id = read_token(request.args.get("token", ""), runtime().settings.secret_key)
    if account_id is None:
        raise field_error("token", "invalid", "is not valid; open the complete link from the email")
    return account_id
