"""Steps of a login between the proof of who somebody is and their session: a code, and the choice of an account."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Response, request

from app.errors import ApiError, ErrorCode
from app.models import Member
from app.operations.logins import CodeRefused, choose_account
from app.pages.forms import read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.redirects import local_path, see_other
from app.runtime import runtime
from app.services.access.sessions import offer_members
from app.web.request_checks import current_client
from app.web.responses import cookie_header
from schemas.accounts import AccountChoiceSchema, LoginCodeSchema


def show_code(error: CodeRefused, next: str) -> str:
    """The page that asks for a code, after a right password."""
    return render(
        "login_code.html",
        fields=shown_fields(LoginCodeSchema(), {}, leave_out=("proof",)),
        banner=None if error.code is ErrorCode.CODE_REQUIRED else error.message,
        proof=error.proof,
        next=next,
    )


def show_choice(members: Sequence[Member], next: str, *, needs_code: bool) -> str:
    """The page that asks which account somebody wants."""
    offer = offer_members(members, runtime().settings.secret_key, needs_code=needs_code)
    return render("account_choice.html", members=members, offer=offer, next=next)


def choose() -> Response:
    """Log in to the account that somebody chose."""
    refill_on_error(_next_step)
    _, _, cookie = choose_account(runtime(), current_client(), **read_form(AccountChoiceSchema()))
    response = see_other(local_path(request.form.get("next", "")))
    response.headers.add("Set-Cookie", cookie_header(request, cookie))
    return response


def _next_step(error: ApiError) -> str:
    if isinstance(error, CodeRefused):
        return show_code(error, local_path(request.form.get("next", "")))
    return show_failure(error)


def show_failure(error: ApiError) -> str:
    """The way back to the login, with what was wrong."""
    return render("login_failed.html", error=error)
