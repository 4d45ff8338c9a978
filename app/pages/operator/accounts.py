"""Accounts for operators: their usage and quotas, plan changes, and suspension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from app.clock import today
from app.errors import ApiError, ErrorCode
from app.operations import operator as operations
from app.operations.operator import account_not_found
from app.pages.forms import refill_on_error
from app.pages.layout import render
from app.pages.negotiation import see_other
from app.pages.operator.access import for_operators
from app.pages.plans import ROWS, quota_meters, read_asks
from app.plans import LIMIT_NAMES
from app.runtime import runtime
from app.services.operator_reports import list_sites
from app.services.usage.account_usage import AccountFilter, limits_of, list_account_usage, list_accounts
from app.web.callers import current_caller
from app.web.parsing import check_query_string, load_values, read_form_body
from app.web.policy import OPERATOR_AREA
from schemas.accounts import MAX_REASON_LENGTH
from schemas.operator import (
    ACCOUNT_ORDERS,
    ACCOUNT_STATUSES,
    OperatorAccountQuerySchema,
    OperatorAccountUpdateSchema,
    SuspensionSchema,
)

ORDER_NAMES = {
    "created_at": "Newest",
    "quota": "Most used quota",
    "searches": "Searches today",
    "documents": "Pages",
}


@for_operators
def show_accounts() -> str:
    """List accounts with their usage, with a form for searching, filtering, and sorting them."""
    check_query_string(request)
    # The form sends empty fields.
    arguments = {name: value for name, value in request.args.items() if value and name != "notice"}
    query = load_values(OperatorAccountQuerySchema(), arguments)
    limit, offset = query["limit"], query["offset"]
    selection = AccountFilter(query["q"], query.get("plan"), query.get("status"))
    current_runtime = runtime()
    with current_runtime.database.read() as session:
        listed = list_accounts(session, current_runtime.plans, today(), selection, query["sort"])
        page = listed[offset : offset + limit]
    filters: dict[str, str] = {name: arguments[name] for name in ("q", "plan", "status", "sort") if name in arguments}
    return render(
        "operator_accounts.html",
        accounts=[(usage, limits, None if limits is None else usage.share(limits)) for usage, limits in page],
        total=len(listed),
        paging={"limit": limit, "offset": offset},
        query={**query, "plan": selection.plan, "status": selection.status},
        keep=f"{urlencode(filters)}&" if filters else "",
        is_narrowed=bool(filters.keys() - {"sort"}),
        plans=list(current_runtime.plans),
        statuses=ACCOUNT_STATUSES,
        has_language_model=current_runtime.language_model is not None,
        orders={name: ORDER_NAMES[name] for name in ACCOUNT_ORDERS},
    )


@for_operators
def show_account(account_id: int) -> str:
    """Show an account with its usage, and forms that change its plan and suspend it.

    Raises:
        ApiError: 404.
    """
    return _account(account_id)


def _account(account_id: int, error: ApiError | None = None) -> str:
    current_runtime = runtime()
    with current_runtime.database.read() as session:
        usages = list_account_usage(session, today(), account_id)
        sites = list_sites(session, account_id=account_id)
    if not usages:
        raise account_not_found()
    usage = usages[0]
    limits = limits_of(current_runtime.plans, usage.account)
    form = {} if error is None else request.form
    own = {name: _limit_text(usage.account.limit_overrides, name) for name in LIMIT_NAMES}
    return render(
        "operator_account.html",
        account=usage.account,
        usage=usage,
        sites=sites,
        engines=current_runtime.engines,
        meters=()
        if limits is None
        else quota_meters(
            limits,
            searches=usage.searches_today,
            asks=read_asks(account_id, limits),
            pages=usage.documents,
            sites=usage.sites,
            keys=usage.keys,
        ),
        plans=list(current_runtime.plans),
        chosen_plan=form.get("plan", usage.account.plan),
        limits=[(name, label, form.get(f"limits.{name}", own[name])) for name, label in ROWS],
        plan_limits=None if limits is None else current_runtime.plans[usage.account.plan],
        reason=form.get("reason", usage.account.suspension_reason),
        max_reason=MAX_REASON_LENGTH,
        is_own=usage.account.id == current_caller().account.id,
        problems=[] if error is None else [detail.message for detail in error.details] or [error.message],
    )


def _limit_text(overrides: Mapping[str, Any], name: str) -> str:
    if name not in overrides:
        return ""
    return "unlimited" if overrides[name] is None else str(overrides[name])


@for_operators
def change_plan(account_id: int) -> Response:
    """Change an account's plan and its own limits.

    Raises:
        ApiError: 404; 400 for an unknown plan or a limit that is not a number.
    """
    refill_on_error(lambda error: _account(account_id, error))
    form = read_form_body(request)
    limits = {name: _read_limit(text) for name in LIMIT_NAMES if (text := form.get(f"limits.{name}", "").strip())}
    changes = load_values(OperatorAccountUpdateSchema(), {"plan": form.get("plan", ""), "limits": limits})
    operations.change_plan(runtime(), account_id, plan=changes["plan"], overrides=changes["limits"])
    return _to_account(account_id, "operator-plan-changed")


def _read_limit(text: str) -> int | str | None:
    """``"unlimited" -> None``, ``"5" -> 5``; validation reports other texts, which are returned unchanged."""
    if text.lower() == "unlimited":
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text


@for_operators
def suspend_account(account_id: int) -> Response:
    """Suspend an account, or replace the reason.

    Raises:
        ApiError: 404; 400 for a long reason; 403 for the operator's own account.
    """
    refill_on_error(lambda error: _account(account_id, error))
    reason = read_form_body(request).get("reason", "").replace("\r\n", "\n")
    suspension = load_values(SuspensionSchema(), {"reason": reason})
    if account_id == current_caller().account.id:
        raise ApiError(
            ErrorCode.INSUFFICIENT_PERMISSION,
            "This is your own account: suspending it would close this area for you. Use the command line.",
        )
    operations.suspend_account(runtime(), account_id, suspension["reason"])
    return _to_account(account_id, "operator-suspended")


@for_operators
def resume_account(account_id: int) -> Response:
    """End the suspension of an account.

    Raises:
        ApiError: 404.
    """
    operations.resume_account(runtime(), account_id)
    return _to_account(account_id, "operator-resumed")


def _to_account(account_id: int, notice: str) -> Response:
    return see_other(f"{OPERATOR_AREA}/accounts/{account_id}", notice=notice)
