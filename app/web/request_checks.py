"""Checks of every request before its view, in order of precedence.

0 address limit of unidentified callers, 1 route and method, 2 identity, 3 request limits, 4 CSRF, 5 kind of key or role
of a member. Views check the rest: body, objects, state, and quota. The limit on concurrent threads comes before all
others, so that callers above it are rejected before anything slow happens.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

from flask import Flask, Request, Response, g, request
from flask.ctx import _AppCtxGlobals
from werkzeug.exceptions import NotFound

from app.clock import now
from app.counters.limiter import RequestLimitExceeded, RequestLimits
from app.counters.values import ConsumeOutcome, CountersUnavailable, CredentialVersion
from app.errors import ApiError, ErrorCode
from app.runtime import Runtime, runtime
from app.services.access.callers import Caller
from app.services.access.credentials import KeyRecord
from app.services.usage.cpu_limits import STREAM_SECONDS, cpu_seconds, spenders_of
from app.services.usage.quota import (
    ADDRESS_LIMIT,
    MINUTE_SECONDS,
    OPERATOR_WINDOW,
    address_window,
    name_stranger,
    visitor_windows,
)
from app.web.auth import (
    SESSION_COOKIE,
    Access,
    find_token,
    identify_session,
    identify_token,
    invalid_operator_token,
    is_operator_token,
    missing_key,
)
from app.web.callers import address
from app.web.charges import (
    charge_further,
    count_refusal,
    is_permitted,
    plan_windows,
    reserve_searches,
    settle_search,
    uncounted_searches,
    undo_count,
)
from app.web.hosts import is_host, is_own_origin, refuse_foreign_form
from app.web.parsing import read_form_body
from app.web.permissions import find_refusal, refuse_other_site
from app.web.policy import SAFE_METHODS, OperationPolicy, hide_route, is_in_operator_area, policy_of

log = logging.getLogger(__name__)
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


def guard(app: Flask) -> None:
    """Run the checks before every view of ``app``."""
    app.before_request(_check)
    app.teardown_request(_end_request)
    app.after_request(settle_search)
    app.after_request(_keep_open)
    app.after_request(_complete_rate_headers)


def _check() -> None:
    # Access through Flask's proxies is slow, and this runs for every request.
    req: Request = request._get_current_object()  # type: ignore[attr-defined]
    state = g._get_current_object()
    state.caller = None
    state.outcome = None
    state.further_charges = []
    state.uncounted = []
    policy = policy_of(req.endpoint)
    state.spenders = ()
    if policy.uncounted:
        return
    state.cpu_began = cpu_seconds()
    current_runtime = runtime()
    access = policy.access
    token = find_token(req, policy.token_places)
    if access.operator and is_operator_token(token, current_runtime.settings.operator_tokens):
        _admit_operator(current_runtime)
        return
    caller, failure = _identify(current_runtime, req, access, token)
    if is_in_operator_area(req.path) and not (caller is not None and caller.is_operator):
        policy = hide_route(req)
        access = policy.access
    # A session on an operation for keys is treated as missing, so that a page of another site cannot use a visitor's
    # cookie there.
    if caller is not None and caller.kind == "session" and not (access.session or access.operator or access.anyone):
        caller, failure = None, missing_key(req, policy.token_places)
    # Before any limit is counted, since counting may wait for the counter store.
    _enter_shares(current_runtime, state, caller, policy, token)
    state.caller = caller  # From here on, error responses are for this caller.
    state.spenders = spenders_of(caller, address())
    current_runtime.cpu_limits.check(state.spenders)
    if caller is None:
        _consume_address(current_runtime, policy, token)
        if req.routing_exception is not None:
            raise req.routing_exception
        if access.operator:
            raise _refuse_operator(current_runtime, token)
        if not access.anyone:
            raise failure or missing_key(req, policy.token_places)
        if policy.opens_session:
            refuse_foreign_form(req)
        return
    try:
        caller, outcome = _count(current_runtime, req, policy, caller, token)
        state.outcome = None if outcome is None else charge_further(current_runtime, req, policy, caller, outcome)
    except ApiError as error:
        # The credentials are no longer valid, so the caller is unidentified.
        state.caller = None
        _consume_address(current_runtime, policy, token)
        refusal = _refuse_operator(current_runtime, token) if access.operator else error
        raise req.routing_exception or refusal from error
    state.caller = caller
    current_runtime.usage_copies.note(caller.account.id)
    if caller.key is not None:
        current_runtime.keys_last_used.note(caller.key.id, _host_of_page(req) if caller.key.type == "public" else None)
        if caller.kind == "private":
            _note_exposure(current_runtime, req, caller.key)
    if req.routing_exception is not None:
        raise req.routing_exception
    # An operator API that is turned off must look like an unknown path, even to callers with a valid key.
    if access.operator and not current_runtime.settings.operator_tokens:
        raise NotFound
    if policy.opens_session:
        refuse_foreign_form(req)
    # Keys need no CSRF token: unlike cookies, browsers don't send them on their own.
    elif caller.kind == "session" and req.method not in SAFE_METHODS and not access.operator:
        check_csrf(caller)
    forbidden = find_refusal(req, policy, caller)
    if forbidden is not None:
        raise forbidden
    if caller.only_site_id is not None and req.view_args and "site_id" in req.view_args:
        refuse_other_site(caller, req.view_args["site_id"])


def _admit_operator(runtime: Runtime) -> None:
    """Count a request of the operator, and attribute its changes to the operator."""
    g.operator = True
    runtime.shares.enter("operator", runtime.shares.most)
    g.shares = ["operator"]
    try:
        runtime.limiter.check_request_limits(RequestLimits((OPERATOR_WINDOW,)), now=now().timestamp())
    except CountersUnavailable as error:
        _refuse_write(error)


def _refuse_operator(runtime: Runtime, token: str | None) -> Exception:
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


def _note_exposure(runtime: Runtime, req: Request, key: KeyRecord) -> None:
    """Record that a web page sends a private key, except on this service's own pages, which only the user sees."""
    origin = req.environ.get("HTTP_ORIGIN")
    if origin is not None and not is_own_origin(req, origin):
        runtime.key_exposures.note(key, origin)


def _keep_open(response: Response) -> Response:
    """Let a streamed body count toward the caller's CPU time and threads until its last byte has been sent."""
    state = g._get_current_object()
    state.is_streamed = response.is_streamed and "shares" in state
    if state.is_streamed:
        # A body is made after the request has ended for Flask, so it gets the values that it needs.
        current_runtime = runtime()
        response.response = _count_stream(current_runtime, state, response.iter_encoded())
        # A client may disconnect before the first byte, when the stream has not begun.
        response.call_on_close(partial(_settle, current_runtime, state))
    return response


def _count_stream(runtime: Runtime, state: _AppCtxGlobals, body: Iterator[bytes]) -> Iterator[bytes]:
    try:
        for chunk in body:
            yield chunk
            # A stream may last for minutes. Meanwhile, the caller's other requests are limited.
            if state.spenders and cpu_seconds() - state.cpu_began >= STREAM_SECONDS:
                _note_cpu(runtime, state)
    finally:
        _settle(runtime, state)


def _end_request(_error: BaseException | None) -> None:
    # At teardown, which also runs after an error or a broken connection. A lost place would never be freed.
    if not g.get("is_streamed", False):
        _settle(runtime(), g._get_current_object())


def _settle(runtime: Runtime, state: _AppCtxGlobals) -> None:
    """Leave the caller's share of threads, and count the CPU time of the request."""
    for share in reversed(state.pop("shares", ())):
        runtime.shares.leave(share)
    if state.get("spenders"):
        _note_cpu(runtime, state)


def _note_cpu(runtime: Runtime, state: _AppCtxGlobals) -> None:
    moment = cpu_seconds()
    if not state.get("counters_away", False):
        runtime.cpu_limits.note(state.spenders, moment - state.cpu_began)
    state.cpu_began = moment


def _identify(
    runtime: Runtime, req: Request, access: Access, token: str | None
) -> tuple[Caller | None, ApiError | None]:
    """Return the caller and ``None``, or ``None`` and the error if identification failed."""
    try:
        if token is not None:
            return identify_token(runtime, req.path, access, token), None
        cookie = req.cookies.get(SESSION_COOKIE)
        return (None if cookie is None else identify_session(runtime, cookie)), None
    except ApiError as error:
        return None, error


def _count(
    runtime: Runtime, req: Request, policy: OperationPolicy, caller: Caller, token: str | None
) -> tuple[Caller, ConsumeOutcome | None]:
    """Count the request toward its caller's limits.

    Returns:
        The caller with current credentials, and the outcome of counting; ``None`` without the counter store.
    """
    try:
        outcome = _consume_for(runtime, req, policy, caller)
    except CountersUnavailable as error:
        _refuse_write(error)
        g.uncounted = uncounted_searches(req, policy, caller)
        return (caller if token is None else identify_token(runtime, req.path, policy.access, token, _UNSETTLED)), None
    except RequestLimitExceeded as error:
        # Ignore limits from outdated credentials: the plan may have been upgraded since.
        if error.outcome is None or not _is_stale(caller, token, error.outcome):
            count_refusal(runtime, req, policy, caller, error)
            raise
        outcome = error.outcome
    if token is not None and _is_stale(caller, token, outcome):
        previous = caller
        try:
            caller = identify_token(runtime, req.path, policy.access, token, outcome.credential_version)
        except Exception:
            undo_count(runtime, outcome)
            raise
        has_same_rights = is_permitted(req, policy, caller) == is_permitted(req, policy, previous)
        has_same_limits = caller.account.limits == previous.account.limits
        # The first count used outdated limits, so the request is counted again with the current ones.
        if outcome.refused is not None or not (has_same_rights and has_same_limits):
            undo_count(runtime, outcome)
            try:
                outcome = _consume_for(runtime, req, policy, caller)
            except RequestLimitExceeded as error:
                count_refusal(runtime, req, policy, caller, error)
                raise
    return caller, outcome


_UNSETTLED = CredentialVersion(1, 0)
"""A credential version that no cache entry has, so that credentials are read from the database and not cached."""


def _is_stale(caller: Caller, token: str | None, outcome: ConsumeOutcome) -> bool:
    """Whether the caller's account may have changed since it was loaded. Sessions are loaded with every request."""
    return token is not None and (
        caller.credential_version is None or caller.credential_version != outcome.credential_version
    )


def _consume_for(runtime: Runtime, req: Request, policy: OperationPolicy, caller: Caller) -> ConsumeOutcome:
    bucket = plan_windows(policy, caller)
    windows = visitor_windows(caller, address, reports=policy.reports_usage)
    header_windows = tuple(window.key for window in bucket + windows if window.seconds == MINUTE_SECONDS)
    reserve, intents = reserve_searches(req, policy, caller)
    # Requests that continue an intent do not count toward the plan's request limits.
    intent = intents[0]._replace(windows=bucket) if intents else None
    if intent is None:
        windows = bucket + windows
    return runtime.limiter.check_request_limits(
        RequestLimits(
            windows=windows,
            reserve=reserve,
            intent=intent,
            credentials_of=None if caller.kind == "session" else caller.account.id,
            header_keys=header_windows,
        ),
        now=now().timestamp(),
    )


def _enter_shares(
    runtime: Runtime, state: _AppCtxGlobals, caller: Caller | None, policy: OperationPolicy, token: str | None
) -> None:
    """Enter the request's shares of threads: the account's for keys, the member's and all members', or an address's."""
    shares, state.shares = runtime.shares, []

    def enter(share: str | int, limit: int | None, group: str | None = None) -> None:
        shares.enter(share, limit, group)
        state.shares.append(share)

    if caller is None:
        enter(_stranger(policy, token), shares.most)
    elif caller.member is None:
        enter(caller.account.id, shares.most)
    else:
        # The member's share comes first: requests that wait for it do not keep the other members waiting.
        members = f"members {caller.account.id}"
        enter(f"member {caller.member.id}", shares.max_of_member, members)
        enter(members, shares.max_of_members)


def _stranger(policy: OperationPolicy, token: str | None) -> str:
    is_open_page = policy.access.anyone and (policy.has_page or policy.opens_session)
    return name_stranger(address(), is_reader=is_open_page and token is None)


def _consume_address(runtime: Runtime, policy: OperationPolicy, token: str | None) -> None:
    """Count a request of an unidentified caller."""
    window = address_window(_stranger(policy, token))
    try:
        runtime.limiter.check_request_limits(RequestLimits((window,)), now=now().timestamp())
    except CountersUnavailable as error:
        _refuse_write(error)


def _refuse_write(error: CountersUnavailable) -> None:
    """Reject writes while the counter store is unavailable. Reads, searches, and requests without a route continue."""
    log.error("the counter store is unavailable: %s", error)
    g.counters_away = True
    writes = request.method not in SAFE_METHODS and request.routing_exception is None
    if writes and not policy_of(request.endpoint).searches:
        raise error


def check_csrf(caller: Caller) -> None:
    """Reject a session's write without the session's CSRF token.

    Raises:
        ApiError: 403 ``csrf_failed``.
    """
    token = request.headers.get("X-CSRF-Token", "")
    if not token and request.mimetype in FORM_TYPES:
        token = read_form_body(request).get("csrf_token", "")
    # Encoded, because ``compare_digest`` rejects text that is not ASCII.
    if not hmac.compare_digest(token.encode(), caller.csrf_token.encode()):
        raise ApiError(
            ErrorCode.CSRF_FAILED, "Send the session's token in X-CSRF-Token (in a form: in the field csrf_token)."
        )


def _complete_rate_headers(response: Response) -> Response:
    """Add headers of an unused rate limit to responses that were created before any limit was checked."""
    if policy_of(request.endpoint).without_rate_headers or g.get("preflight", False):
        return response
    if "X-RateLimit-Limit" not in response.headers:
        response.headers["X-RateLimit-Limit"] = str(ADDRESS_LIMIT)
        response.headers["X-RateLimit-Remaining"] = str(ADDRESS_LIMIT)
        response.headers["X-RateLimit-Reset"] = str(int(now().timestamp()) + MINUTE_SECONDS)
    return response
