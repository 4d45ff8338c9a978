"""What each operation is: whom it is for, and how it is counted, charged, answered and compressed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import Flask, current_app
from flask.sansio.app import App

from app.web.auth import ANYONE, Access
from schemas.validation.keys import Scope

_POLICIES = "operation_policies"


@dataclass(frozen=True, slots=True)
class OperationPolicy:
    """What holds for every request of one operation.

    Attributes:
        access: Which callers it is for.
        scope: What a private key needs if it does not have all scopes; ``None``: every private key will do.
        whole_account: Whether it is about the whole account, so that it is not for keys of one site alone.
        uncounted: Whether it is answered without asking who calls, and counts in no request limit.
        without_rate_headers: Whether its answers lack ``X-RateLimit-*``.
        searches: Whether it searches or suggests, so that it goes on without counters.
        charges_search: Whether it charges a search of the day's quota, or what tells that of the current request.
        searched_text: Gives what the current request searches, in normal form: the search is then charged once an
            intent; an empty text is not charged.
        reports_usage: Whether it counts in the window of usage reports, too.
        opens_session: Whether it makes somebody known or helps them to it, so that it takes no form of another origin.
        reflects_nothing: Whether its answer holds no text that strangers choose, so that it may be compressed for
            anybody.
        has_page: Whether it answers people with a page.
    """

    access: Access = ANYONE
    scope: Scope | None = None
    whole_account: bool = False
    uncounted: bool = False
    without_rate_headers: bool = False
    searches: bool = False
    charges_search: bool | Callable[[], bool] = False
    searched_text: Callable[[], str] | None = None
    reports_usage: bool = False
    opens_session: bool = False
    reflects_nothing: bool = False
    has_page: bool = False

    @property
    def charges(self) -> bool:
        """Tell whether some of its requests charge a search."""
        return self.searched_text is not None or self.charges_search is not False


OPEN = OperationPolicy()
"""For anyone, counted, with nothing special; also what holds where no operation is."""


def set_policy(app: App, endpoint: str, policy: OperationPolicy) -> None:
    """Say what holds for the operation at ``endpoint`` of ``app``."""
    app.extensions.setdefault(_POLICIES, {})[endpoint] = policy


def policies(app: Flask) -> dict[str, OperationPolicy]:
    """Endpoint to policy, of those that have another one than ``OPEN``."""
    declared: dict[str, OperationPolicy] = app.extensions.setdefault(_POLICIES, {})
    return declared


def policy_of(endpoint: str | None) -> OperationPolicy:
    """What holds for a request to ``endpoint`` of the current application; ``None`` if no route fits."""
    declared: dict[str | None, OperationPolicy] = current_app.extensions[_POLICIES]
    return declared.get(endpoint, OPEN)
