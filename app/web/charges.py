"""Charges for the searches of a request: reserving, searching, refunding, and counting rejections."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from flask import Request

from app.clock import now
from app.counters.limiter import RequestLimitExceeded, RequestLimits, shown_window
from app.counters.values import (
    ConsumeOutcome,
    CountersUnavailable,
    IntentRequest,
    ResponseLost,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
)
from app.errors import ApiError
from app.operations import searches
from app.operations.attempts import count_uncharged
from app.operations.searches import SearchOutcome
from app.plans import QUOTA_REJECTIONS
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.access.credentials import SiteRecord
from app.services.search.search import Visitor
from app.services.usage.quota import (
    MINUTE_SECONDS,
    bucket_windows,
    logged_window,
    out_of_searches,
    preview_window,
    visitor_windows,
)
from app.web.admission import Admission
from app.web.callers import holder
from app.web.permissions import find_permission_error
from app.web.policy import OperationPolicy
from backends.query import SearchQuery

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Charge:
    """The windows and searches that a request counts and charges, computed once for its caller.

    Attributes:
        permission_error: The 403 for a caller who may not use the operation; ``None`` otherwise. Raised after counting.
        plan_windows: Windows that the account's requests share.
        limits: Limits of the request, with its first search.
        further_limits: Limits of each further search.
    """

    permission_error: ApiError | None
    plan_windows: tuple[WindowRequest, ...]
    limits: RequestLimits
    further_limits: tuple[RequestLimits, ...] = ()


def charge_of(req: Request, admission: Admission, caller: Caller) -> Charge:
    """Return the charge of a request, which depends on the caller's rights and plan."""
    policy, account = admission.policy, caller.account
    permission_error = find_permission_error(req, policy, caller)
    # Only callers with engine keys have a bucket of their own for searches.
    plan = bucket_windows(caller, charged=caller.kind == "engine" and policy.charges, is_file=policy.is_file)
    windows = plan + visitor_windows(caller, admission.address, reports=policy.reports_usage)
    credentials_of = None if caller.kind == "session" else account.id
    is_charged, texts = (False, []) if caller.is_preview else _find_searches(req, policy)
    # A request that is about to be rejected for lack of permission must not be charged.
    if not is_charged or permission_error is not None:
        return Charge(permission_error, plan, RequestLimits(windows, credentials_of=credentials_of))
    site_id = None if caller.site is None else caller.site.id
    reserve = UsageReservation(account.id, account.limits.searches_per_day, site_id)
    if not texts:
        return Charge(None, plan, RequestLimits(windows, reserve, credentials_of=credentials_of))
    # Requests that continue an intent do not count toward the plan's request limits.
    visitor = f"{holder(caller)}:{admission.address}"
    first, *further = [
        IntentRequest(f"{visitor}:{position}" if position else visitor, text, plan)
        for position, text in enumerate(texts)
    ]
    return Charge(
        None,
        plan,
        RequestLimits(windows[len(plan) :], reserve, first, credentials_of),
        tuple(RequestLimits((), reserve, intent) for intent in further),
    )


def _find_searches(req: Request, policy: OperationPolicy) -> tuple[bool, list[str]]:
    """Return whether the request is a charged search, and its queries if it is charged per search intent."""
    # Responses to these methods contain no results.
    if req.method in ("HEAD", "OPTIONS"):
        return False, []
    if policy.searched_texts is not None:
        texts = _distinct_intents(policy.searched_texts(req))
        return bool(texts), texts
    charges = policy.charges_search
    return charges(req) if callable(charges) else charges, []


def _distinct_intents(texts: Iterable[str]) -> list[str]:
    """``["tra", "tram", "bus"] -> ["tram", "bus"]``: a prefix belongs to the same search intent."""
    distinct = dict.fromkeys(filter(None, texts))
    return [text for text in distinct if not any(other != text and other.startswith(text) for other in distinct)]


def consume(admission: Admission, limits: RequestLimits) -> ConsumeOutcome:
    """Count a request, and let the headers of its response describe its limit.

    Raises:
        RequestLimitExceeded: A limit is reached; nothing was counted.
        CountersUnavailable: The counter store is unavailable.
    """
    moment = now().timestamp()
    try:
        outcome = admission.runtime.limiter.check_request_limits(limits, now=moment)
    except RequestLimitExceeded as error:
        admission.window = error.window
        raise
    except CountersUnavailable:
        admission.window = shown_window(limits.unused(moment))
        raise
    admission.window = shown_window(outcome.windows)
    return outcome


def consume_further(admission: Admission, charge: Charge) -> None:
    """Charge the remaining searches of a request with several. Either all are charged or none, including the first.

    Raises:
        RequestLimitExceeded: The account's request limits don't allow all of them.
    """
    for limits in charge.further_limits:
        outcome = admission.outcome
        if outcome is None or outcome.reservation is None:
            return
        try:
            next_outcome = consume(admission, limits)
        except CountersUnavailable as error:
            log.error("the counter store is unavailable: %s", error)
            admission.uncounted += _uncounted(limits)
            continue
        except RequestLimitExceeded as error:
            _give_back(admission)
            count_rejection(admission, charge, error)
            raise
        # The response shows the usage after the last of the searches.
        admission.outcome = outcome._replace(used_today=next_outcome.used_today)
        if next_outcome.reservation is None:
            _give_back(admission)
        else:
            admission.further_charges.append(next_outcome.reservation)


def uncounted_searches(charge: Charge) -> list[UncountedSearch]:
    """Return the request's searches, to charge when the counter store is available again."""
    return [search for limits in (charge.limits, *charge.further_limits) for search in _uncounted(limits)]


def _uncounted(limits: RequestLimits) -> list[UncountedSearch]:
    reserve, intent = limits.reserve, limits.intent
    if reserve is None:
        return []
    intent = None if intent is None else intent._replace(windows=())
    return [UncountedSearch(reserve.account_id, reserve.gateway_site_id, now().timestamp(), intent)]


def count_rejection(admission: Admission, charge: Charge, error: RequestLimitExceeded) -> None:
    """Count a rejection by one of the plan's limits, and the rejected search; ignore other limits."""
    caller = admission.caller
    # Members search on pages of the dashboard, which have limits of their own.
    if caller is None or caller.member is not None or caller.is_preview:
        return
    if error.window.key not in {window.key for window in charge.plan_windows}:
        return
    minutely = error.window.seconds == MINUTE_SECONDS
    QUOTA_REJECTIONS.labels("requests_per_minute" if minutely else "requests_per_day").inc()
    if charge.limits.reserve is not None:
        _record_rejection(admission.runtime, caller)


def _record_rejection(runtime: Runtime, caller: Caller) -> None:
    try:
        runtime.counters.count_rejection(caller.account.id, now=now().timestamp())
        runtime.usage_copies.record(caller.account.id)
    except CountersUnavailable as error:
        log.error("a rejected search could not be counted: %s", error)


def undo_count(runtime: Runtime, outcome: ConsumeOutcome) -> None:
    if outcome.rejected is not None:
        return
    try:
        runtime.counters.refund(reservation=outcome.reservation, windows=outcome.windows, now=now().timestamp())
    except ResponseLost as error:
        log.error("a request that was counted twice is refunded when the counter store responds: %s", error)
    except CountersUnavailable as error:
        log.error("a request stays counted twice; its search is refunded later: %s", error)
        if outcome.reservation is not None:
            runtime.late_charges.give_back(outcome.reservation)


def require_search(admission: Admission) -> None:
    """Reject the search if it was to be charged but the daily quota is used up, or count it if it is a preview.

    Raises:
        ApiError: 429.
    """
    caller, outcome = admission.known_caller, admission.outcome
    if caller.is_preview:
        count_preview(admission)
    elif outcome is not None and outcome.reservation is None and outcome.used_today is not None:
        QUOTA_REJECTIONS.labels("searches_per_day").inc()
        _record_rejection(admission.runtime, caller)
        raise out_of_searches(outcome, caller.account.limits)


def run_charged_search(
    admission: Admission,
    site: SiteRecord,
    search_query: SearchQuery,
    visitor: Visitor | None,
) -> SearchOutcome:
    """Search a site as :func:`app.operations.searches.search_site` does, with the charge reserved for the request.

    Raises:
        ApiError: 429 if the daily quota is used up; 400 for an invalid query or a response that would be too large.
        BackendUnavailable: The engine is unavailable.
    """
    require_search(admission)
    # A response to HEAD contains no results, so it is not recorded as a visitor's search.
    visitor = None if admission.method == "HEAD" else visitor
    return searches.search_site(admission.runtime, site, search_query, visitor)


def count_preview(admission: Admission) -> None:
    """Count an uncharged search on a preview page.

    Raises:
        RateLimited: The account has reached its daily limit for these searches.
    """
    window = preview_window(admission.known_caller.account.id)
    count_uncharged(admission.runtime, (window,), "trial search")


def count_logged_search(admission: Admission) -> bool:
    """Count a search logged with a public key, and return whether the visitor's IP address is within the limit.

    Raises:
        CountersUnavailable: The counter store is unavailable.
    """
    window = logged_window(admission.known_caller.account.id, admission.address)
    return admission.runtime.counters.consume([window], now=now().timestamp()).allowed


def used_today(admission: Admission) -> int:
    """Return the account's number of searches today, including this one; 0 while the counter store is unavailable."""
    if admission.counters_away:
        return 0
    outcome = admission.outcome
    if outcome is not None and outcome.used_today is not None:
        return outcome.used_today
    return admission.runtime.counters.usage_of_day(admission.known_caller.account.id, now().date()).used


def settle_search(admission: Admission, status: int) -> None:
    """Refund a failed search. Charge a search that ran without the counter store when the store is available again."""
    if status >= 400 or admission.search_failed:
        _give_back(admission)
    else:
        for uncounted in admission.uncounted:
            admission.runtime.late_charges.charge(uncounted)


def _give_back(admission: Admission) -> None:
    """Refund all searches charged to the request."""
    outcome = admission.outcome
    if outcome is None or outcome.reservation is None:
        return
    for reservation in (outcome.reservation, *admission.further_charges):
        try:
            admission.runtime.counters.refund(reservation=reservation, now=now().timestamp())
        except ResponseLost as error:
            log.error("a failed search is refunded when the counter store responds: %s", error)
        except CountersUnavailable as error:
            log.error("a failed search is refunded later: %s", error)
            admission.runtime.late_charges.give_back(reservation)
    admission.outcome, admission.further_charges = outcome._replace(reservation=None), []
