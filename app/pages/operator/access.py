"""Access to the operator area: two-factor authentication, and the operator as the actor of changes."""

from __future__ import annotations

from functools import wraps
from typing import Any

from app.pages.layout import render
from app.pages.negotiation import View
from app.services.access.rights import Role
from app.services.audit_log.actors import Actor, acting
from app.web.auth import LOGGED_IN
from app.web.callers import current_caller, current_client
from app.web.policy import OperationPolicy

OPERATING = OperationPolicy(LOGGED_IN, has_page=True, role=Role.VIEWER)
"""Policy of the area. Requests of callers who are not operators never reach it."""


def for_operators(view: View) -> View:
    """Return the view for operators with two-factor authentication; others only learn how to turn it on.

    The audit log of a changed account names the person as the operator.
    """

    @wraps(view)
    def guarded(**path: Any) -> Any:
        member = current_caller().member
        assert member is not None
        assert member.is_operator
        if not member.has_codes:
            return render("operator_codes.html"), 403
        with acting(Actor("operator", f"{member.name} (operator)", address=current_client().address)):
            return view(**path)

    return guarded
