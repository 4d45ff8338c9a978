"""Policies of operations: whom each is for, and how it is counted, charged, answered and compressed.

Every view has one, or the application does not start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flask import Flask, current_app
from flask.sansio.app import App

from app.services.access.rights import Role
from app.web.auth import ANYONE, BEARER, Access, TokenPlace
from schemas.validation.keys import Scope

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICIES = "operation_policies"


@dataclass(frozen=True, slots=True)
class OperationPolicy:
    """Rules that hold for every request of one operation.

    Attributes:
        access: Which callers it is for.
        scope: What a private key needs if it does not have all scopes; ``None``: every private key will do.
        whole_account: Whether it is about the whole account, so that it is not for keys of one site alone.
        uncounted: Whether it is answered without asking who calls, and counts in no request limit; for anyone only.
        without_rate_headers: Whether its answers lack ``X-RateLimit-*``.
        searches: Whether it searches or suggests, so that it goes on without counters.
        charges_search: Whether it charges a search of the day's quota, or what tells that of the current request.
        searched_texts: Returns the texts that the current request searches, in normal form: each is then charged once
            per intent, and empty texts are not charged.
        reports_usage: Whether it counts in the window of usage reports, too.
        opens_session: Whether it makes somebody known or helps them to it, so that it takes no form of another origin.
        reflects_nothing: Whether its answer holds no text that strangers choose, so that it may be compressed for
            anybody.
        has_page: Whether it answers people with a page.
        is_file: Whether it answers agents with a file, so that it has request limits of its own.
        role: The role that a member must have; by default, viewers may read, and editors write.
        token_places: Where a caller's key may stand.
    """

    access: Access
    scope: Scope | None = None
    whole_account: bool = False
    uncounted: bool = False
    without_rate_headers: bool = False
    searches: bool = False
    charges_search: bool | Callable[[], bool] = False
    searched_texts: Callable[[], Sequence[str]] | None = None
    reports_usage: bool = False
    opens_session: bool = False
    reflects_nothing: bool = False
    has_page: bool = False
    is_file: bool = False
    role: Role | None = None
    token_places: tuple[TokenPlace, ...] = BEARER

    def __post_init__(self) -> None:
        if self.uncounted and not self.access.anyone:
            raise ValueError("Nobody asks who calls an uncounted operation, so it is for anyone.")

    def role_for(self, method: str) -> Role:
        """The role that a member must have for a request with this method."""
        return self.role or (Role.VIEWER if method in SAFE_METHODS else Role.EDITOR)

    @property
    def charges(self) -> bool:
        """Tell whether some of its requests charge a search."""
        return self.searched_texts is not None or self.charges_search is not False


_NOWHERE = OperationPolicy(ANYONE)
"""For requests that no route fits, which are answered 404 or 405: anyone may ask, and is counted."""


class MissingPolicy(Exception):
    """A view without a policy: nothing says whom it is for."""


def set_policy(app: App, endpoint: str, policy: OperationPolicy) -> None:
    """Say what holds for the operation at ``endpoint`` of ``app``."""
    app.extensions.setdefault(_POLICIES, {None: _NOWHERE})[endpoint] = policy


def policies(app: Flask) -> dict[str, OperationPolicy]:
    """Endpoint to policy, of all operations."""
    return {endpoint: policy for endpoint, policy in app.extensions[_POLICIES].items() if endpoint is not None}


def require_policies(app: Flask) -> None:
    """Let no application start that has a route without a policy.

    Raises:
        MissingPolicy: Its message names their endpoints.
    """
    missing = {rule.endpoint for rule in app.url_map.iter_rules()} - policies(app).keys()
    if missing:
        raise MissingPolicy(f"Say by set_policy or @blp.operation whom these are for: {', '.join(sorted(missing))}.")


def policy_of(endpoint: str | None) -> OperationPolicy:
    """The policy of ``endpoint`` in the current application; ``None`` if no route fits.

    Raises:
        KeyError: The endpoint has none, having come after the start.
    """
    declared: dict[str | None, OperationPolicy] = current_app.extensions[_POLICIES]
    return declared[endpoint]
