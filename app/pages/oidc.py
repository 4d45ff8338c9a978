"""Logging in with the OpenID Connect provider: to it, and back from it."""

from __future__ import annotations

from flask import Response, g, make_response, request

from app.operations import oidc
from app.operations.logins import enter
from app.pages.forms import refill_on_error
from app.pages.layout import render
from app.pages.login_steps import show_choice, show_failure
from app.pages.redirects import local_path, see_other
from app.runtime import runtime
from app.web.request_checks import current_caller, current_client
from app.web.responses import cookie_header, cookie_of

COOKIE = "login_attempt"


def begin_login() -> Response:
    """Send somebody to the provider; with an invitation, to join an account."""
    refill_on_error(show_failure, statuses=FAILURES)
    next = local_path(request.args.get("next", ""))
    address, cookie = oidc.begin(runtime(), current_client(), next, request.args.get("invitation", ""))
    response = Response(status=303, headers={"Location": address, "Cache-Control": "no-store"})
    response.headers.add("Set-Cookie", _attempt_cookie(cookie))
    return response


def connect_login() -> Response:
    """Send a member to the provider, to be known by it from now on."""
    refill_on_error(show_failure, statuses=FAILURES)
    member_id = current_caller().member_id
    address, cookie = oidc.begin(runtime(), current_client(), "/profile/edit", connects=member_id)
    # The pages' policy keeps what forms lead to on this service; a link leads on.
    response = make_response(render("login_connect.html", address=address, provider=runtime().settings.provider_name))
    response.headers.add("Set-Cookie", _attempt_cookie(cookie))
    return response


def finish_login() -> Response:
    """Log somebody in who comes back, or let them choose the account."""
    refill_on_error(show_failure, statuses=FAILURES)
    member_id = g.caller.member_id if g.caller is not None else None
    members, is_asked, next = oidc.finish(
        runtime(), current_client(), request.cookies.get(COOKIE, ""), request.args.to_dict(), member_id
    )
    if is_asked:
        response = make_response(show_choice(members, next, needs_code=False))
    else:
        response = see_other(next)
        response.headers.add("Set-Cookie", cookie_header(request, enter(runtime(), current_client(), members[0])[2]))
    response.headers.add("Set-Cookie", _attempt_cookie(""))
    return response


FAILURES = frozenset({400, 401, 403, 404, 429, 503})
"""Statuses that lead back to the login, with what was wrong."""


def _attempt_cookie(value: str) -> str:
    return cookie_of(request, COOKIE, value, seconds=oidc.ATTEMPT_SECONDS, path="/login/oidc", samesite="Lax")
