"""Policies of operations: permitted callers, rate limits, charges, and properties of responses.

The application doesn't start if a view has no policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flask import Flask, Request
from flask.sansio.app import App
from werkzeug.exceptions import NotFound

from app.services.access.rights import Role
from app.web.auth import ANYONE, BEARER, Access, TokenLocation
from schemas.validation.keys import Scope

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICIES = "operation_policies"


@dataclass(frozen=True, slots=True)
class OperationPolicy:
    """Rules that hold for every request of one operation.

    Attributes:
        access: Callers who may use it.
        scope: Scope that a private key needs; ``None`` if every private key may use it.
        whole_account: Whether it affects the whole account, so that keys for one site may not use it.
        uncounted: Whether it skips identification and request limits. Requires access for anyone.
        without_rate_headers: Whether its responses lack ``X-RateLimit-*``.
        searches: Whether it searches or suggests, and therefore continues while the counter store is unavailable.
        charges_search: Whether it charges a search to the daily quota, or a function that decides for a request.
        searched_texts: Returns the queries of a request in normal form. Each is charged once per search
            intent; empty queries are not charged.
        reports_usage: Whether it also counts toward the limit of usage reports.
        opens_session: Whether it logs a user in or prepares a login, so that it rejects forms of other origins.
        reflects_nothing: Whether its responses contain no text that strangers can choose, so that they may be
            compressed for every caller.
        has_page: Whether it serves a page to browsers.
        is_file: Whether it serves a file to agents, with request limits of its own.
        role: Required role of members. By default, viewers may read and editors may write.
        token_places: Places in a request where the caller's key may be.
    """

    access: Access
    scope: Scope | None = None
    whole_account: bool = False
    uncounted: bool = False
    without_rate_headers: bool = False
    searches: bool = False
    charges_search: bool | Callable[[Request], bool] = False
    searched_texts: Callable[[Request], Sequence[str]] | None = None
    reports_usage: bool = False
    opens_session: bool = False
    reflects_nothing: bool = False
    has_page: bool = False
    is_file: bool = False
    role: Role | None = None
    token_locations: tuple[TokenLocation, ...] = BEARER

    def __post_init__(self) -> None:
        if self.uncounted and not self.access.anyone:
            raise ValueError("An uncounted operation doesn't check its caller, so it must be open to anyone.")

    def role_for(self, method: str) -> Role:
        """Return the required role for a request with this method."""
        return self.role or (Role.VIEWER if method in SAFE_METHODS else Role.EDITOR)

    @property
    def charges(self) -> bool:
        """Whether any request of the operation charges a search."""
        return self.searched_texts is not None or self.charges_search is not False


_NOWHERE = OperationPolicy(ANYONE)
"""For requests without a matching route, which get a 404 or 405: open to anyone, and counted."""


class MissingPolicy(Exception):
    """A view has no policy."""


OPERATOR_AREA = "/operator"


def is_in_operator_area(path: str) -> bool:
    """Whether a path belongs to the pages for the service's operators."""
    return path == OPERATOR_AREA or path.startswith(f"{OPERATOR_AREA}/")


def hide_route(request: Request) -> OperationPolicy:
    """Treat a request as if its URL did not exist, and return the policy for such requests.

    Nothing then distinguishes the response from any other 404: not the allowed methods, the headers, or the limits.
    """
    request.url_rule = None
    request.view_args = None
    request.routing_exception = NotFound()
    return _NOWHERE


def set_policy(app: App, endpoint: str, policy: OperationPolicy) -> None:
    """Set the policy of ``endpoint`` of ``app``."""
    app.extensions.setdefault(_POLICIES, {None: _NOWHERE})[endpoint] = policy


def policies(app: Flask) -> dict[str, OperationPolicy]:
    """Return the policies of all operations, by endpoint."""
    return {endpoint: policy for endpoint, policy in app.extensions[_POLICIES].items() if endpoint is not None}


def require_policies(app: Flask) -> None:
    """Check that every route has a policy.

    Raises:
        MissingPolicy: Its message names their endpoints.
    """
    missing = {rule.endpoint for rule in app.url_map.iter_rules()} - policies(app).keys()
    if missing:
        raise MissingPolicy(f"Set a policy with set_policy or @blp.operation for: {', '.join(sorted(missing))}.")


def policy_of(app: App, endpoint: str | None) -> OperationPolicy:
    """Return the policy of ``endpoint`` of ``app``; ``None`` means a request without a route.

    Raises:
        KeyError: The endpoint was added after startup, without a policy.
    """
    declared: dict[str | None, OperationPolicy] = app.extensions[_POLICIES]
    return declared[endpoint]
