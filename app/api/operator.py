"""The operator API: accounts, and their usage for invoices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from flask import Response, request

from app.apidoc.openapi import ApiBlueprint
from app.clock import today
from app.errors import ErrorCode, field_error
from app.operations import operator as operations
from app.operations.operator import account_not_found
from app.runtime import runtime
from app.services.operator_reports import describe_site, list_engine_usage, list_sites
from app.services.usage.account_usage import AccountFilter, describe, list_accounts, show_account
from app.services.usage.month_usage import MonthUsage, report_month
from app.web.auth import FOR_OPERATOR
from app.web.policy import OperationPolicy
from app.web.responses import CSV, csv_response, prefers
from app.wording import csv_lines
from schemas.base import NothingSchema, SuccessSchema
from schemas.operator import (
    EngineUsageListSchema,
    MonthQuerySchema,
    MonthReportSchema,
    OperatorAccountAnswerSchema,
    OperatorAccountCreateSchema,
    OperatorAccountListSchema,
    OperatorAccountQuerySchema,
    OperatorAccountShowSchema,
    OperatorAccountUpdateSchema,
    OperatorSiteListSchema,
    OperatorSiteQuerySchema,
    SuspensionSchema,
)

blp = ApiBlueprint(
    "operator",
    __name__,
    description="Accounts of all customers, for the operator of the service. Off unless `OPERATOR_TOKEN` is set.",
)

_POLICY = OperationPolicy(FOR_OPERATOR)
_ACCOUNT = "/api/operator/accounts/<int(signed=True):account_id>"
_ERRORS = (ErrorCode.ACCOUNT_NOT_FOUND,)


@blp.route("/api/operator/accounts", methods=["GET"])
@blp.operation("listAccounts", _POLICY)
@blp.arguments(OperatorAccountQuerySchema, location="query")
@blp.response(200, OperatorAccountListSchema)
def list_all_accounts(query: dict[str, Any]) -> dict[str, Any]:
    """List accounts with their usage and limits. Numbers of searches are up to a minute old."""
    current_runtime = runtime()
    limit, offset = query["limit"], query["offset"]
    selection = AccountFilter(query["q"], query.get("plan"), query.get("status"))
    with current_runtime.database.read() as session:
        listed = list_accounts(session, current_runtime.plans, today(), selection, query["sort"])
    page = [describe(*account) for account in listed[offset : offset + limit]]
    return {"accounts": page, "total": len(listed), "limit": limit, "offset": offset}


@blp.route("/api/operator/accounts", methods=["POST"])
@blp.operation("createAccount", _POLICY, body=True)
@blp.arguments(OperatorAccountCreateSchema)
@blp.response(201, OperatorAccountAnswerSchema)
def create_account(account_fields: dict[str, Any]) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Create an account: with a password, or as an invitation by email."""
    account_id = operations.create_account(runtime(), **{"password": None, "plan": None, **account_fields}).id
    return _account_response(account_id), 201, {"Location": f"/api/operator/accounts/{account_id}"}


@blp.route(_ACCOUNT, methods=["GET"])
@blp.operation("showAccount", _POLICY, errors=_ERRORS)
@blp.response(200, OperatorAccountShowSchema)
def show_one_account(account_id: int) -> dict[str, Any]:
    """Get one account."""
    return {"account": _describe(account_id)}


@blp.route(_ACCOUNT, methods=["PATCH"])
@blp.operation("updateAccount", _POLICY, errors=_ERRORS, body=True)
@blp.arguments(OperatorAccountUpdateSchema)
@blp.response(200, OperatorAccountAnswerSchema)
def update_account(changes: dict[str, Any], account_id: int) -> dict[str, Any]:
    """Change an account's plan or its own limits. They apply from the account's next request."""
    operations.change_plan(runtime(), account_id, plan=changes.get("plan"), overrides=changes.get("limits"))
    return _account_response(account_id)


@blp.route(_ACCOUNT, methods=["DELETE"])
@blp.operation("removeAccount", _POLICY, errors=_ERRORS, empty_body=True)
@blp.response(200, SuccessSchema)
def remove_account(account_id: int) -> dict[str, Any]:
    """Delete an account with all its sites, keys, documents, and analytics. It cannot be restored."""
    operations.delete_account(runtime(), account_id)
    return {"success": True}


@blp.route(_ACCOUNT + "/suspend", methods=["POST"])
@blp.operation("suspendAccount", _POLICY, errors=_ERRORS, body=True)
@blp.arguments(SuspensionSchema)
@blp.response(200, OperatorAccountAnswerSchema)
def suspend_account(suspension: dict[str, Any], account_id: int) -> dict[str, Any]:
    """Suspend an account. Its keys and members get 403 `account_suspended`, and crawls stop; no data is deleted.

    Suspending it again replaces the reason.
    """
    operations.suspend_account(runtime(), account_id, suspension["reason"])
    return _account_response(account_id)


@blp.route(_ACCOUNT + "/resume", methods=["POST"])
@blp.operation("resumeAccount", _POLICY, errors=_ERRORS, body=True)
@blp.arguments(NothingSchema, location="json_optional", required=False)
@blp.response(200, OperatorAccountAnswerSchema)
def resume_account(nothing: dict[str, Any], account_id: int) -> dict[str, Any]:
    """End the suspension of an account."""
    operations.resume_account(runtime(), account_id)
    return _account_response(account_id)


def _account_response(account_id: int) -> dict[str, Any]:
    return {"success": True, "account": _describe(account_id)}


def _describe(account_id: int) -> Mapping[str, Any]:
    with runtime().database.read() as session:
        account = show_account(session, runtime().plans, today(), account_id)
    if account is None:
        raise account_not_found()
    return account


@blp.route("/api/operator/sites", methods=["GET"])
@blp.operation("listAllSites", _POLICY)
@blp.arguments(OperatorSiteQuerySchema, location="query")
@blp.response(200, OperatorSiteListSchema)
def list_all_sites(query: dict[str, Any]) -> dict[str, Any]:
    """List the sites of all accounts with their engines."""
    limit, offset = query["limit"], query["offset"]
    with runtime().database.read() as session:
        sites = list_sites(session, account_id=query.get("account_id"), engine=query.get("engine"))
    page = [describe_site(site) for site in sites[offset : offset + limit]]
    return {"sites": page, "total": len(sites), "limit": limit, "offset": offset}


@blp.route("/api/operator/engines", methods=["GET"])
@blp.operation("listEngines", _POLICY)
@blp.response(200, EngineUsageListSchema)
def list_engines() -> dict[str, Any]:
    """List the search engines with the number of their sites and documents."""
    with runtime().database.read() as session:
        usages = list_engine_usage(session, runtime().engines)
    return {
        "engines": [
            {
                "engine": usage.identity,
                "configured": usage.is_configured,
                "sites": usage.sites,
                "documents": usage.documents,
            }
            for usage in usages
        ]
    }


_COLUMNS = ("month", "account_id", "email", "name", "plan", *(member.name for member in fields(MonthUsage)), "final")


@blp.route("/api/operator/usage", methods=["GET"])
@blp.operation("showUsage", _POLICY)
@blp.arguments(MonthQuerySchema, location="query")
@blp.response(200, MonthReportSchema)
@blp.alt_response(200, schema={"type": "string"}, content_type=CSV)
def show_usage(query: dict[str, Any]) -> dict[str, Any] | Response:
    """Report the usage of all accounts in a month, for invoices. With `Accept: text/csv`, get it as a table."""
    current_runtime = runtime()
    month = query["month"]
    if month > today():
        raise field_error("month", "out_of_range", "must not be in the future")
    with current_runtime.database.read() as session:
        report = report_month(session, current_runtime.counters, month)
    rows = [
        {
            "account_id": account.id,
            "email": account.email,
            "name": account.name,
            "plan": account.plan,
            **asdict(usage),
        }
        for account, usage in report.accounts
    ]
    response = {"month": f"{month:%Y-%m}", "final": report.is_final}
    if not prefers(request, CSV):
        return {**response, "accounts": rows}
    return csv_response(
        csv_lines([_COLUMNS, *(_cells({**response, **row}) for row in rows)]), f"usage-{month:%Y-%m}.csv"
    )


def _cells(row: Mapping[str, Any]) -> list[Any]:
    return [{**row, "final": str(row["final"]).lower()}[column] for column in _COLUMNS]
