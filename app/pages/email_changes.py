"""The page that undoes a changed e-mail, for whoever has the link in the mail to the old address."""

from __future__ import annotations

from flask import Response, request

from app.errors import ApiError
from app.operations.email_links import show_change, undo_change
from app.pages.forms import banner_of, field_problems, read_form, refill_on_error
from app.pages.layout import render, render_secret
from app.pages.redirects import see_other
from app.runtime import runtime
from app.web.request_checks import current_client
from schemas.accounts import EmailUndoSchema


def show_email_change() -> Response:
    """The page with the button: to look at it changes nothing, since programs that check mails open every link."""
    refill_on_error(_page)
    return render_secret(_page(email=show_change(runtime(), request.args.get("token", ""))))


def undo_email_change() -> Response:
    """Undo the change."""
    refill_on_error(_page)
    undo_change(runtime(), current_client(), **read_form(EmailUndoSchema()))
    return see_other("/login", notice="email-restored")


def _page(error: ApiError | None = None, email: str = "") -> str:
    has_ended = "token" in field_problems(error)
    return render(
        "email_undo.html",
        banner=None if has_ended else banner_of(error, []),
        has_ended=has_ended,
        email=email,
        token=request.values.get("token", ""),
    )
