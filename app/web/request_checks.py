"""Checks of every request before its view, in order of precedence.

0 address limit of unidentified callers, 1 route and method, 2 identity, 3 request limits, 4 CSRF, 5 kind of key or role
of a member. Views check the rest: body, objects, state, and quota. The limit on concurrent threads comes before all
others, so that callers above it are rejected before anything slow happens.
"""

from __future__ import annotations

import hmac
import logging
from urllib.parse import urlsplit

from flask import Request
from werkzeug.exceptions import NotFound

from app.counters.limiter import RequestLimitExceeded, RequestLimits
from app.counters.values import ConsumeOutcome, CountersUnavailable, CredentialVersion
from app.errors import ApiError, ErrorCode
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.access.credentials import KeyRecord
from app.services.usage.cpu_limits import spenders_of
from app.services.usage.quota import OPERATOR_WINDOW, address_window, name_stranger
from app.web.admission import Admission
from app.web.auth import (
    SESSION_COOKIE,
    find_token,
    identify_session,
    identify_token,
    invalid_operator_token,
    is_operator_token,
    missing_key,
)
from app.web.charges import Charge, charge_of, consume, consume_further, count_rejection, uncounted_searches, undo_count
from app.web.hosts import is_host, is_own_origin, reject_foreign_form
from app.web.parsing import read_form_body
from app.web.permissions import reject_other_site
from app.web.policy import SAFE_METHODS, hide_route, is_in_operator_area

log = logging.getLogger(__name__)
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


def check(req: Request, admission: Admission) -> None:
    """Run the checks, and complete the admission.

    Raises:
        ApiError, HTTPException: The request is rejected.
    """
    runtime, access = admission.runtime, admission.policy.access
    token = find_token(req, admission.policy.token_locations)
    if access.operator and is_operator_token(token, runtime.settings.operator_tokens):
        _admit_operator(req, admission)
        return
    caller, failure = _identify(req, admission, token)
    if is_in_operator_area(req.path) and not (caller is not None and caller.is_operator):
        admission.policy = hide_route(req)
        access = admission.policy.access
    # A session on an operation for keys is treated as missing, so that a page of another site cannot use a visitor's
    # cookie there.
    if caller is not None and caller.kind == "session" and not (access.session or access.operator or access.anyone):
        caller, failure = None, missing_key(req, admission.policy.token_locations)
    # Before any limit is counted, since counting may wait for the counter store.
    _enter_shares(admission, caller, token)
    admission.caller = caller  # From here on, error responses are for this caller.
    admission.spenders = spenders_of(caller, admission.address)
    runtime.cpu_limits.check(admission.spenders)
    if caller is None:
        _count_stranger(req, admission, token)
        if req.routing_exception is not None:
            raise req.routing_exception
        if access.operator:
            raise _find_operator_error(runtime, token)
        if not access.anyone:
            raise failure or missing_key(req, admission.policy.token_locations)
        if admission.policy.opens_session:
            reject_foreign_form(req)
        return
    try:
        caller, charge = _count(req, admission, caller, token)
        if charge.further_limits:
            consume_further(admission, charge)
    except ApiError as error:
        # The credentials are no longer valid, so the caller is unidentified.
        admission.caller = None
        _count_stranger(req, admission, token)
        rejection = _find_operator_error(runtime, token) if access.operator else error
        raise req.routing_exception or rejection from error
    runtime.usage_copies.record(caller.account.id, None if admission.outcome is None else admission.outcome.day)
    if caller.key is not None:
        runtime.keys_last_used.record(caller.key.id, _host_of_page(req) if caller.key.type == "public" else None)
        if caller.kind == "private":
            _record_exposure(runtime, req, caller.key)
    if req.routing_exception is not None:
        raise req.routing_exception
    # An operator API that is turned off must look like an unknown path, even to callers with a valid key.
    if access.operator and not runtime.settings.operator_tokens:
        raise NotFound
    if admission.policy.opens_session:
        reject_foreign_form(req)
    # Keys need no CSRF token: unlike cookies, browsers don't send them on their own.
    elif caller.kind == "session" and req.method not in SAFE_METHODS and not access.operator:
        check_csrf(req, caller)
    if charge.permission_error is not None:
        raise charge.permission_error
    if req.view_args and "site_id" in req.view_args and caller.only_site_id is not None:
        reject_other_site(caller, req.view_args["site_id"])


def _admit_operator(req: Request, admission: Admission) -> None:
    """Count a request of the operator, and attribute its changes to the operator."""
    admission.is_operator = True
    admission.runtime.shares.enter("operator", admission.runtime.shares.max_per_caller)
    admission.shares.append("operator")
    try:
        consume(admission, RequestLimits((OPERATOR_WINDOW,)))
    except CountersUnavailable as error:
        _reject_write(req, admission, error)


def _find_operator_error(runtime: Runtime, token: str | None) -> Exception:
    """Return the error for a caller without the operator token; a 404 while the operator API is off."""
    return invalid_operator_token(token) if runtime.settings.operator_tokens else NotFound()


def _host_of_page(req: Request) -> str | None:
    """Host of the external page that sent the request, from ``Origin`` or ``Referer``, or ``None``."""
    origin = req.headers.get("Origin") or req.headers.get("Referer", "")
    try:
        page = urlsplit(origin)
    except ValueError:
        return None
    if not is_host(page.netloc) or is_own_origin(req, f"{page.scheme}://{page.netloc}"):
        return None
    return page.netloc.lower()


def _record_exposure(runtime: Runtime, req: Request, key: KeyRecord) -> None:
    """Record that a web page sends a private key, except on this service's own pages, which only the user sees."""
    origin = req.environ.get("HTTP_ORIGIN")
    if origin is not None and not is_own_origin(req, origin):
        runtime.key_exposures.record(key, origin)


def _identify(req: Request, admission: Admission, token: str | None) -> tuple[Caller | None, ApiError | None]:
    """Return the caller and ``None``, or ``None`` and the error if identification failed."""
    try:
        if token is not None:
            return identify_token(admission.runtime, req.path, admission.policy.access, token), None
        cookie = req.cookies.get(SESSION_COOKIE)
        return (None if cookie is None else identify_session(admission.runtime, cookie)), None
    except ApiError as error:
        return None, error


def _count(req: Request, admission: Admission, caller: Caller, token: str | None) -> tuple[Caller, Charge]:
    """Count the request toward its caller's limits. Returns the caller with current credentials, and the charge."""
    charge = charge_of(req, admission, caller)
    try:
        outcome = consume(admission, charge.limits)
    except CountersUnavailable as error:
        _reject_write(req, admission, error)
        if token is not None:
            caller, charge = _identify_again(req, admission, token, _UNSETTLED)
        admission.uncounted = uncounted_searches(charge)
        return caller, charge
    except RequestLimitExceeded as error:
        # Ignore limits from outdated credentials: the plan may have been upgraded since.
        if error.outcome is None or not _is_stale(caller, token, error.outcome):
            count_rejection(admission, charge, error)
            raise
        outcome = error.outcome
    if token is not None and _is_stale(caller, token, outcome):
        counted = charge.limits
        try:
            caller, charge = _identify_again(req, admission, token, outcome.credential_version)
        except Exception:
            undo_count(admission.runtime, outcome)
            raise
        # The first count used outdated rights or limits, so the request is counted again with the current ones.
        if outcome.rejected is not None or charge.limits != counted:
            undo_count(admission.runtime, outcome)
            try:
                outcome = consume(admission, charge.limits)
            except RequestLimitExceeded as error:
                count_rejection(admission, charge, error)
                raise
    admission.outcome = outcome
    return caller, charge


def _identify_again(
    req: Request, admission: Admission, token: str, credential_version: CredentialVersion | None
) -> tuple[Caller, Charge]:
    """Return the caller with credentials of the current version, and the caller's charge."""
    caller = identify_token(admission.runtime, req.path, admission.policy.access, token, credential_version)
    admission.caller = caller
    return caller, charge_of(req, admission, caller)


_UNSETTLED = CredentialVersion(1, 0)
"""A credential version that no cache entry has, so that credentials are read from the database and not cached."""


def _is_stale(caller: Caller, token: str | None, outcome: ConsumeOutcome) -> bool:
    """Whether the caller's account may have changed since it was loaded. Sessions are loaded with every request."""
    return token is not None and (
        caller.credential_version is None or caller.credential_version != outcome.credential_version
    )


def _enter_shares(admission: Admission, caller: Caller | None, token: str | None) -> None:
    """Enter the request's shares of threads: the account's for keys, the member's and all members', or an address's."""
    shares = admission.runtime.shares
    turns: tuple[tuple[str | int, int | None, str | None], ...]
    if caller is None:
        turns = ((_stranger(admission, token), shares.max_per_caller, None),)
    elif caller.member is None:
        turns = ((caller.account.id, shares.max_per_caller, None),)
    else:
        # The member's share comes first: requests that wait for it do not keep the other members waiting.
        members = f"members {caller.account.id}"
        turns = ((f"member {caller.member.id}", shares.max_of_member, members), (members, shares.max_of_members, None))
    for share, limit, group in turns:
        shares.enter(share, limit, group)
        admission.shares.append(share)


def _stranger(admission: Admission, token: str | None) -> str:
    policy = admission.policy
    is_open_page = policy.access.anyone and (policy.has_page or policy.opens_session)
    return name_stranger(admission.address, is_reader=is_open_page and token is None)


def _count_stranger(req: Request, admission: Admission, token: str | None) -> None:
    try:
        consume(admission, RequestLimits((address_window(_stranger(admission, token)),)))
    except CountersUnavailable as error:
        _reject_write(req, admission, error)


def _reject_write(req: Request, admission: Admission, error: CountersUnavailable) -> None:
    """Reject writes while the counter store is unavailable. Reads, searches, and requests without a route continue."""
    log.error("the counter store is unavailable: %s", error)
    admission.counters_away = True
    if req.method not in SAFE_METHODS and req.routing_exception is None and not admission.policy.searches:
        raise error


def check_csrf(req: Request, caller: Caller) -> None:
    """Reject a session's write without the session's CSRF token.

    Raises:
        ApiError: 403 ``csrf_failed``.
    """
    token = req.headers.get("X-CSRF-Token", "")
    if not token and req.mimetype in FORM_TYPES:
        token = read_form_body(req).get("csrf_token", "")
    # Encoded, because ``compare_digest`` rejects text that is not ASCII.
    if not hmac.compare_digest(token.encode(), caller.csrf_token.encode()):
        raise ApiError(
            ErrorCode.CSRF_FAILED, "Send the session's token in X-CSRF-Token (in a form: in the field csrf_token)."
        )
