"""Checks of every request before its view, in order of precedence.

0 address limit of unidentified callers, 1 route and method, 2 identity, 3 request limits, 4 CSRF, 5 kind of key or role
of a member. Views check the rest: body, objects, state, and quota. The limit on concurrent threads comes before all
others, so that callers above it are rejected before anything slow happens.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable
from urllib.parse import urlsplit

from flask import Flask, Request, Response, g, request

from app.clock import now
from app.counters.base import (
    AnswerLost,
    ConsumeOutcome,
    CountersUnavailable,
    CredentialVersion,
    IntentRequest,
    Reservation,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
)
from app.counters.limiter import RequestLimitExceeded, RequestLimits
from app.errors import ApiError, ErrorCode
from app.operations.attempts import count_uncharged
from app.plans import QUOTA_REFUSALS
from app.runtime import Runtime, runtime
from app.services.access.callers import Caller, Client
from app.services.access.credentials import KeyRecord
from app.services.usage.cpu_limits import Spender, cpu_seconds, spender_of
from app.services.usage.quota import (
    ADDRESS_LIMIT,
    MINUTE_SECONDS,
    address_key,
    address_window,
    bucket_windows,
    logged_window,
    name_stranger,
    out_of_searches,
    preview_window,
    visitor_windows,
)
from app.web.auth import (
    SESSION_COOKIE,
    Access,
    find_token,
    identify_session,
    identify_token,
    missing_key,
)
from app.web.hosts import client_address, is_host, is_own_origin, refuse_foreign_form
from app.web.parsing import read_form_body
from app.web.permissions import find_refusal, refuse_other_site
from app.web.policy import SAFE_METHODS, OperationPolicy, policy_of

log = logging.getLogger(__name__)
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


def guard(app: Flask) -> None:
    """Run the checks before every view of ``app``."""
    app.before_request(_check)
    app.teardown_request(_leave_share)
    app.after_request(_settle_search)
    app.after_request(_note_cpu)
    app.after_request(_complete_rate_headers)


def current_caller() -> Caller:
    """The caller of an operation that requires identification."""
    caller: Caller = g.caller
    return caller


def current_client() -> Client:
    """The client that sent the request."""
    settings = runtime().settings
    address = client_address(request, settings.trusted_proxies)
    return Client(address, address_key(address, settings.secret_key), request.user_agent.string)


def address() -> str:
    """The hashed key of the caller's IP address."""
    return current_client().key


def _check() -> None:
    # Access through Flask's proxies is slow, and this runs for every request.
    req: Request = request._get_current_object()  # type: ignore[attr-defined]
    state = g._get_current_object()
    state.caller = None
    state.outcome = None
    state.further_charges = []
    state.uncounted = []
    policy = policy_of(req.endpoint)
    state.spender = None
    if policy.uncounted:
        return
    state.cpu_began = cpu_seconds()
    current_runtime = runtime()
    access = policy.access
    token = find_token(req, policy.token_places)
    caller, failure = _identify(current_runtime, req, access, token)
    if caller is not None and caller.kind == "session" and not (access.session or access.anyone):
        caller, failure = None, missing_key()
    share = _name_sharer(caller, policy, token)
    current_runtime.shares.enter(share)
    state.share_of = share
    state.caller = caller  # Error responses from here on are for this caller.
    state.spender = spender_of(caller, address())
    current_runtime.cpu_limits.check(state.spender)
    if caller is None:
        _consume_address(current_runtime, policy, token)
        if req.routing_exception is not None:
            raise req.routing_exception
        if not access.anyone:
            raise failure or missing_key()
        if policy.opens_session:
            refuse_foreign_form(req)
        return
    try:
        caller, outcome = _count(current_runtime, req, policy, caller, token)
        state.outcome = None if outcome is None else _charge_further(current_runtime, req, policy, caller, outcome)
    except ApiError as error:
        # The credentials have ended: the caller is unidentified.
        state.caller = None
        _consume_address(current_runtime, policy, token)
        raise req.routing_exception or error from error
    state.caller = caller
    current_runtime.usage_copies.note(caller.account.id)
    if caller.key is not None:
        current_runtime.keys_last_used.note(caller.key.id, _host_of_page(req) if caller.kind == "public" else None)
        if caller.kind == "private":
            _note_exposure(current_runtime, req, caller.key)
    if req.routing_exception is not None:
        raise req.routing_exception
    if policy.opens_session:
        refuse_foreign_form(req)
    elif caller.kind == "session" and req.method not in SAFE_METHODS:
        check_csrf(caller)
    refusal = find_refusal(req, policy, caller)
    if refusal is not None:
        raise refusal
    if caller.only_site_id is not None and req.view_args and "site_id" in req.view_args:
        refuse_other_site(caller, req.view_args["site_id"])


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
    """Record a private key that a web page sends, except for pages of this service, which only their user sees."""
    origin = req.environ.get("HTTP_ORIGIN")
    if origin is not None and not is_own_origin(req, origin):
        runtime.key_exposures.note(key, origin)


def _note_cpu(response: Response) -> Response:
    spender: Spender | None = g.get("spender")
    if spender is not None and not g.get("counters_away", False):
        runtime().cpu_limits.note(spender, cpu_seconds() - g.cpu_began)
    return response


def _leave_share(_error: BaseException | None) -> None:
    share = g.pop("share_of", None)
    if share is not None:
        runtime().shares.leave(share)


def _identify(
    runtime: Runtime, req: Request, access: Access, token: str | None
) -> tuple[Caller | None, ApiError | None]:
    """The caller, or the error of a failed identification."""
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
        g.uncounted = _uncounted_searches(req, policy, caller)
        return (caller if token is None else identify_token(runtime, req.path, policy.access, token, _UNSETTLED)), None
    except RequestLimitExceeded as error:
        if error.outcome is None or not _is_stale(caller, token, error.outcome):
            _count_refusal(runtime, req, policy, caller, error)
            raise
        outcome = error.outcome
    if token is not None and _is_stale(caller, token, outcome):
        previous = caller
        try:
            caller = identify_token(runtime, req.path, policy.access, token, outcome.credential_version)
        except Exception:
            _undo(runtime, outcome)
            raise
        is_counted_alike = caller.account.limits == previous.account.limits and _may(req, policy, caller) == _may(
            req, policy, previous
        )
        if outcome.refused is not None or not is_counted_alike:
            _undo(runtime, outcome)
            try:
                outcome = _consume_for(runtime, req, policy, caller)
            except RequestLimitExceeded as error:
                _count_refusal(runtime, req, policy, caller, error)
                raise
    return caller, outcome


def _bucket(policy: OperationPolicy, caller: Caller) -> tuple[WindowRequest, ...]:
    return bucket_windows(caller, charged=policy.charges, is_file=policy.is_file)


def _may(req: Request, policy: OperationPolicy, caller: Caller) -> bool:
    return find_refusal(req, policy, caller) is None


def _count_refusal(
    runtime: Runtime, req: Request, policy: OperationPolicy, caller: Caller, error: RequestLimitExceeded
) -> None:
    """Count a rejection by a limit of the plan, not of one visitor or member. Also count rejected searches."""
    if caller.member is not None:
        return
    plan = {window.key for window in _bucket(policy, caller)}
    if error.window.key not in plan:
        return
    minutely = error.window.seconds == MINUTE_SECONDS
    QUOTA_REFUSALS.labels("requests_per_minute" if minutely else "requests_per_day").inc()
    if _may(req, policy, caller) and _charge(req, policy)[0]:
        _note_refused(runtime, caller)


def _note_refused(runtime: Runtime, caller: Caller) -> None:
    try:
        runtime.counters.count_refusal(caller.account.id, now=now().timestamp())
    except CountersUnavailable as error:
        log.error("a rejected search could not be counted: %s", error)


_UNSETTLED = CredentialVersion(1, 0)
"""A credential version that no cache entry has, so that credentials are read from the database and not cached."""


def _is_stale(caller: Caller, token: str | None, outcome: ConsumeOutcome) -> bool:
    """Whether the caller's account may have changed since it was loaded. Sessions are loaded with every request."""
    return token is not None and (
        caller.credential_version is None or caller.credential_version != outcome.credential_version
    )


def _consume_for(runtime: Runtime, req: Request, policy: OperationPolicy, caller: Caller) -> ConsumeOutcome:
    bucket = _bucket(policy, caller)
    windows = visitor_windows(caller, address, reports=policy.reports_usage)
    header_windows = tuple(window.key for window in bucket + windows if window.seconds == MINUTE_SECONDS)
    reserve, intents = _reserve(req, policy, caller)
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


def _charge_further(
    runtime: Runtime, req: Request, policy: OperationPolicy, caller: Caller, outcome: ConsumeOutcome
) -> ConsumeOutcome:
    """Charge the other searches of a request with several. Charges either all searches or none, not even the first.

    Raises:
        RequestLimitExceeded: The account's request limits don't allow all of them.
    """
    reserve, intents = _reserve(req, policy, caller)
    first = outcome.reservation
    if reserve is None or first is None:
        return outcome
    bucket = _bucket(policy, caller)
    for intent in intents[1:]:
        limits = RequestLimits((), reserve, intent._replace(windows=bucket))
        try:
            further = runtime.limiter.check_request_limits(limits, now=now().timestamp())
        except CountersUnavailable as error:
            log.error("the counter store is unavailable: %s", error)
            g.uncounted.append(_uncounted(reserve, intent))
            continue
        except RequestLimitExceeded as error:
            _give_back(runtime, first)
            _count_refusal(runtime, req, policy, caller, error)
            raise
        outcome = outcome._replace(used_today=further.used_today)
        if further.reservation is None:
            _give_back(runtime, first)
            return outcome._replace(reservation=None)
        g.further_charges.append(further.reservation)
    return outcome


def _reserve(
    req: Request, policy: OperationPolicy, caller: Caller
) -> tuple[UsageReservation | None, list[IntentRequest]]:
    """The charge for each search of the request, if any, and the search intent that each query may continue."""
    charged, texts = _charge(req, policy)
    if not charged or not _may(req, policy, caller):
        return None, []
    gateway_site_id = None if caller.site is None else caller.site.id
    reserve = UsageReservation(caller.account.id, caller.account.limits.searches_per_day, gateway_site_id)
    return reserve, [IntentRequest(_visitor_name(caller, place), text) for place, text in enumerate(texts)]


def _uncounted_searches(req: Request, policy: OperationPolicy, caller: Caller) -> list[UncountedSearch]:
    """The searches that run now and are charged when the counter store is available again."""
    reserve, intents = _reserve(req, policy, caller)
    return [] if reserve is None else [_uncounted(reserve, intent) for intent in (intents or (None,))]


def _uncounted(reserve: UsageReservation, intent: IntentRequest | None) -> UncountedSearch:
    return UncountedSearch(reserve.account_id, reserve.gateway_site_id, now().timestamp(), intent)


def _charge(req: Request, policy: OperationPolicy) -> tuple[bool, list[str]]:
    """Whether the request is a charged search, and its queries if it is charged per search intent."""
    if req.method in ("HEAD", "OPTIONS"):
        return False, []
    if policy.searched_texts is not None:
        texts = _distinct_intents(policy.searched_texts())
        return bool(texts), texts
    charges = policy.charges_search
    return charges() if callable(charges) else charges, []


def _distinct_intents(texts: Iterable[str]) -> list[str]:
    """The distinct texts that aren't prefixes of others. Prefixes are keystrokes of the same intent."""
    distinct = dict.fromkeys(filter(None, texts))
    return [text for text in distinct if not any(other != text and other.startswith(text) for other in distinct)]


def _visitor_name(caller: Caller, place: int) -> str:
    """Name of the visitor behind an engine key: holder, IP address, and position of the query in the request."""
    return f"{holder(caller)}:{address()}" + (f":{place}" if place else "")


def holder(caller: Caller) -> str:
    """The holder of an engine key: an API key, or the site."""
    site_id = 0 if caller.site is None else caller.site.id
    return f"{site_id}:{caller.key.id if caller.key is not None else ''}"


def _name_sharer(caller: Caller | None, policy: OperationPolicy, token: str | None) -> str | int:
    """Name of the thread share that the request uses: of the account's keys, of the member, or of the IP address."""
    if caller is None:
        return _stranger(policy, token)
    return caller.account.id if caller.member is None else f"member {caller.member.id}"


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


def _undo(runtime: Runtime, outcome: ConsumeOutcome) -> None:
    if outcome.refused is not None:
        return
    try:
        runtime.counters.refund(reservation=outcome.reservation, windows=outcome.windows, now=now().timestamp())
    except AnswerLost as error:
        log.error("a request that was counted twice is refunded when the counter store responds: %s", error)
    except CountersUnavailable as error:
        log.error("a request stays counted twice; its search is refunded later: %s", error)
        if outcome.reservation is not None:
            runtime.late_charges.give_back(outcome.reservation)


def _refuse_write(error: CountersUnavailable) -> None:
    """While the counter store is unavailable, reads and searches continue and writes are rejected.

    Requests without a route write nothing."""
    log.error("the counter store is unavailable: %s", error)
    g.counters_away = True
    writes = request.method not in SAFE_METHODS and request.routing_exception is None
    if writes and not policy_of(request.endpoint).searches:
        raise error


def require_search() -> None:
    """Reject the search if it should have been charged but the daily quota is used up."""
    outcome: ConsumeOutcome | None = g.outcome
    if outcome is not None and outcome.reservation is None and outcome.used_today is not None:
        QUOTA_REFUSALS.labels("searches_per_day").inc()
        _note_refused(runtime(), current_caller())
        raise out_of_searches(outcome, current_caller().account.limits)


def note_failed_search() -> None:
    """Mark the search of this request as failed, whatever the response's status, so that it isn't charged."""
    g.search_failed = True


def count_preview() -> None:
    """Count an uncharged search on a preview page.

    Raises:
        RateLimited: The account's daily limit of such searches is reached.
    """
    count_uncharged(runtime(), (preview_window(current_caller().account.id),), "trial search")


def count_logged_search() -> bool:
    """Count a search logged with a public key, and return whether the visitor's IP address is within the limit.

    Raises:
        CountersUnavailable: The counter store is unavailable.
    """
    window = logged_window(current_caller().account.id, address())
    return runtime().counters.consume([window], now=now().timestamp()).allowed


def used_today() -> int:
    """Searches that the account has used today, including this one; 0 while the counter store is unavailable."""
    if g.get("counters_away", False):
        return 0
    outcome: ConsumeOutcome | None = g.outcome
    if outcome is not None and outcome.used_today is not None:
        return outcome.used_today
    current_runtime = runtime()
    caller = current_caller()
    return current_runtime.counters.usage_of_day(caller.account.id, now().date()).used


def check_csrf(caller: Caller) -> None:
    """Reject a session's write without the session's CSRF token.

    Raises:
        ApiError: 403 ``csrf_failed``.
    """
    token = request.headers.get("X-CSRF-Token", "")
    if not token and request.mimetype in FORM_TYPES:
        token = read_form_body(request).get("csrf_token", "")
    if not hmac.compare_digest(token.encode(), caller.csrf_token.encode()):
        raise ApiError(
            ErrorCode.CSRF_FAILED, "Send the session's token in X-CSRF-Token (in a form: in the field csrf_token)."
        )


def _settle_search(response: Response) -> Response:
    """Refund a failed search. Charge a search that ran without the counter store when the store is available again."""
    outcome: ConsumeOutcome | None = g.get("outcome")
    if response.status_code >= 400 or g.get("search_failed", False):
        if outcome is not None and outcome.reservation is not None:
            _give_back(runtime(), outcome.reservation)
            g.outcome = outcome._replace(reservation=None)
    else:
        for uncounted in g.get("uncounted", ()):
            runtime().late_charges.charge(uncounted)
    return response


def _give_back(runtime: Runtime, first: Reservation) -> None:
    """Refund all searches charged to the request."""
    for reservation in (first, *g.further_charges):
        try:
            runtime.counters.refund(reservation=reservation, now=now().timestamp())
        except AnswerLost as error:
            log.error("a failed search is refunded when the counter store responds: %s", error)
        except CountersUnavailable as error:
            log.error("a failed search is refunded later: %s", error)
            runtime.late_charges.give_back(reservation)
    g.further_charges = []


def _complete_rate_headers(response: Response) -> Response:
    """Add rate limit headers to responses sent before any limit was checked: those of an unused limit."""
    if policy_of(request.endpoint).without_rate_headers or g.get("preflight", False):
        return response
    if "X-RateLimit-Limit" not in response.headers:
        response.headers["X-RateLimit-Limit"] = str(ADDRESS_LIMIT)
        response.headers["X-RateLimit-Remaining"] = str(ADDRESS_LIMIT)
        response.headers["X-RateLimit-Reset"] = str(int(now().timestamp()) + MINUTE_SECONDS)
    return response
