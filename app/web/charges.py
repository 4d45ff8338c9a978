"""Charges for the searches of a request: reserving, searching, refunding, and counting rejections."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Set

from flask import Request, Response, g, request

from app.clock import now
from app.counters.limiter import RequestLimitExceeded, RequestLimits
from app.counters.values import (
    AnswerLost,
    ConsumeOutcome,
    CountersUnavailable,
    IntentRequest,
    Reservation,
    UncountedSearch,
    UsageReservation,
    WindowRequest,
)
from app.operations import searches
from app.operations.attempts import count_uncharged
from app.operations.searches import SearchOutcome
from app.plans import QUOTA_REFUSALS
from app.runtime import Runtime, runtime
from app.services.access.callers import Caller
from app.services.access.credentials import SiteRecord
from app.services.search.search import Visitor
from app.services.usage.quota import (
    MINUTE_SECONDS,
    bucket_windows,
    logged_window,
    out_of_searches,
    preview_window,
)
from app.web.callers import address, current_caller, holder
from app.web.permissions import find_refusal
from app.web.policy import OperationPolicy
from backends.query import SearchQuery

log = logging.getLogger(__name__)


def plan_windows(policy: OperationPolicy, caller: Caller) -> tuple[WindowRequest, ...]:
    return bucket_windows(caller, charged=policy.charges, is_file=policy.is_file)


def is_permitted(req: Request, policy: OperationPolicy, caller: Caller) -> bool:
    return find_refusal(req, policy, caller) is None


def count_refusal(
    runtime: Runtime, req: Request, policy: OperationPolicy, caller: Caller, error: RequestLimitExceeded
) -> None:
    """Count a rejection by one of the plan's limits, and the rejected search; ignore other limits."""
    # Members search on pages of the dashboard, which have limits of their own.
    if caller.member is not None or caller.is_preview:
        return
    plan = {window.key for window in plan_windows(policy, caller)}
    if error.window.key not in plan:
        return
    minutely = error.window.seconds == MINUTE_SECONDS
    QUOTA_REFUSALS.labels("requests_per_minute" if minutely else "requests_per_day").inc()
    if is_permitted(req, policy, caller) and _charge(req, policy)[0]:
        _note_refused(runtime, caller)


def _note_refused(runtime: Runtime, caller: Caller) -> None:
    try:
        runtime.counters.count_refusal(caller.account.id, now=now().timestamp())
        runtime.usage_copies.note(caller.account.id)
    except CountersUnavailable as error:
        log.error("a rejected search could not be counted: %s", error)


def charge_further(
    runtime: Runtime, req: Request, policy: OperationPolicy, caller: Caller, outcome: ConsumeOutcome
) -> ConsumeOutcome:
    """Charge the remaining searches of a request with several. Either all are charged or none, including the first.

    Raises:
        RequestLimitExceeded: The account's request limits don't allow all of them.
    """
    reserve, intents = reserve_searches(req, policy, caller)
    first = outcome.reservation
    if reserve is None or first is None:
        return outcome
    bucket = plan_windows(policy, caller)
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
            count_refusal(runtime, req, policy, caller, error)
            raise
        # The response shows the usage after the last of the searches.
        outcome = outcome._replace(used_today=further.used_today)
        if further.reservation is None:
            _give_back(runtime, first)
            return outcome._replace(reservation=None)
        g.further_charges.append(further.reservation)
    return outcome


def reserve_searches(
    req: Request, policy: OperationPolicy, caller: Caller
) -> tuple[UsageReservation | None, list[IntentRequest]]:
    """Return the charge per search, or ``None``, and the search intent that each query may continue."""
    if caller.is_preview:
        return None, []
    charged, texts = _charge(req, policy)
    # A request that is about to be rejected for lack of permission must not be charged.
    if not charged or not is_permitted(req, policy, caller):
        return None, []
    gateway_site_id = None if caller.site is None else caller.site.id
    reserve = UsageReservation(caller.account.id, caller.account.limits.searches_per_day, gateway_site_id)
    return reserve, [IntentRequest(_visitor_name(caller, place), text) for place, text in enumerate(texts)]


def uncounted_searches(req: Request, policy: OperationPolicy, caller: Caller) -> list[UncountedSearch]:
    """Return the request's searches, to charge when the counter store is available again."""
    reserve, intents = reserve_searches(req, policy, caller)
    return [] if reserve is None else [_uncounted(reserve, intent) for intent in (intents or (None,))]


def _uncounted(reserve: UsageReservation, intent: IntentRequest | None) -> UncountedSearch:
    return UncountedSearch(reserve.account_id, reserve.gateway_site_id, now().timestamp(), intent)


def _charge(req: Request, policy: OperationPolicy) -> tuple[bool, list[str]]:
    """Return whether the request is a charged search, and its queries if it is charged per search intent."""
    # Responses to these methods contain no results.
    if req.method in ("HEAD", "OPTIONS"):
        return False, []
    if policy.searched_texts is not None:
        texts = _distinct_intents(policy.searched_texts())
        return bool(texts), texts
    charges = policy.charges_search
    return charges() if callable(charges) else charges, []


def _distinct_intents(texts: Iterable[str]) -> list[str]:
    """Return the distinct texts that aren't prefixes of other texts. A prefix belongs to the same search intent."""
    distinct = dict.fromkeys(filter(None, texts))
    return [text for text in distinct if not any(other != text and other.startswith(text) for other in distinct)]


def _visitor_name(caller: Caller, place: int) -> str:
    """Return an ID for a visitor with an engine key: holder, IP address, and position of the query in the request."""
    return f"{holder(caller)}:{address()}" + (f":{place}" if place else "")


def undo_count(runtime: Runtime, outcome: ConsumeOutcome) -> None:
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


def require_search() -> None:
    """Reject the search if it was to be charged but the daily quota is used up, or count it if it is a preview.

    Raises:
        ApiError: 429.
    """
    if current_caller().is_preview:
        count_preview()
        return
    outcome: ConsumeOutcome | None = g.outcome
    if outcome is not None and outcome.reservation is None and outcome.used_today is not None:
        QUOTA_REFUSALS.labels("searches_per_day").inc()
        _note_refused(runtime(), current_caller())
        raise out_of_searches(outcome, current_caller().account.limits)


def search_site(
    site: SiteRecord, search_query: SearchQuery, visitor: Visitor | None, fields: Set[str] | None = None
) -> SearchOutcome:
    """Search a site as :func:`app.operations.searches.search_site` does, with the charge reserved for the request.

    Raises:
        ApiError: As there; also 429 if the daily quota is used up.
        BackendUnavailable: The engine is unavailable.
    """
    require_search()
    # A response to HEAD contains no results, so it is not recorded as a visitor's search.
    return searches.search_site(runtime(), site, search_query, None if request.method == "HEAD" else visitor, fields)


def note_failed_search() -> None:
    """Mark this request's search as failed, regardless of the response status, so that it isn't charged."""
    g.search_failed = True


def count_preview() -> None:
    """Count an uncharged search on a preview page.

    Raises:
        RateLimited: The account has reached its daily limit for these searches.
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
    """Return the account's number of searches today, including this one; 0 while the counter store is unavailable."""
    if g.get("counters_away", False):
        return 0
    outcome: ConsumeOutcome | None = g.outcome
    if outcome is not None and outcome.used_today is not None:
        return outcome.used_today
    current_runtime = runtime()
    caller = current_caller()
    return current_runtime.counters.usage_of_day(caller.account.id, now().date()).used


def settle_search(response: Response) -> Response:
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
