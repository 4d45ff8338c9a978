"""Access to the operator area: a one-time code in each session, and the operator as the actor of changes."""

from __future__ import annotations

from functools import wraps
from typing import Any

from flask import Response

from app.errors import ApiError
from app.operations.logins import give_code
from app.pages.forms import banner_of, read_form, refill_on_error, shown_fields
from app.pages.layout import render
from app.pages.negotiation import View, see_other
from app.runtime import runtime
from app.services.access.rights import Role
from app.services.audit_log.actors import Actor, acting
from app.web.auth import LOGGED_IN
from app.web.callers import current_caller, current_client
from app.web.policy import OPERATOR_AREA, OperationPolicy
from schemas.accounts import SessionCodeSchema

OPERATING = OperationPolicy(LOGGED_IN, has_page=True, role=Role.VIEWER)
"""Policy of the area. Requests of callers who are not operators never reach it."""


def for_operators(view: View) -> View:
    """Return the view for sessions in which the operator gave a code; other sessions only get a form to give one.

    Two-factor authentication of the member is not enough: a session may be older, or opened with the identity provider.

    The audit log of a changed account names the person as the operator.
    """

    @wraps(view)
    def guarded(**path: Any) -> Any:
        member = current_caller().member
        assert member is not None
        assert member.is_operator
        if not (member.has_codes and current_caller().has_given_code):
            return _code_form(), 403
        with acting(Actor("operator", f"{member.name} (operator)", address=current_client().address)):
            return view(**path)

    return guarded


def _code_form(error: ApiError | None = None) -> str:
    member = current_caller().member
    assert member is not None
    fields = shown_fields(SessionCodeSchema(), {}, error)
    return render("operator_codes.html", has_codes=member.has_codes, fields=fields, banner=banner_of(error, fields))


def enter_code() -> Response:
    """Check an operator's code, and open the operator area to the session."""
    refill_on_error(_code_form)
    give_code(runtime(), current_client(), current_caller(), **read_form(SessionCodeSchema()))
    return see_other(OPERATOR_AREA)
