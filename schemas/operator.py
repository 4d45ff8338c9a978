"""The operator API: accounts, and their usage in a month."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from schemas.accounts import MAX_REASON_LENGTH, Email, chosen_password
from schemas.base import BodySchema, PagedSchema, QuerySchema, UpdateSchema
from schemas.fields import (
    MAX_INT64,
    MAX_INTEGER,
    MONTH_PATTERN,
    Month,
    RowNumber,
    Text,
    WholeNumber,
)
from schemas.sites import PageQuerySchema
from schemas.usage import MonthUsageSchema

ACCOUNT_STATUSES = ("active", "suspended")
ACCOUNT_ORDERS = ("created_at", "quota", "searches", "documents")


def _limit() -> WholeNumber:
    return WholeNumber(high=MAX_INTEGER - 1, allow_none=True)


class OwnLimitsSchema(BodySchema):
    """An account's own limits, which override its plan's. `null` is unlimited; for absent limits, the plan's apply."""

    requests_per_minute = _limit()
    requests_per_day = _limit()
    searches_per_day = _limit()
    documents = _limit()
    keys = _limit()
    sites = _limit()
    asks_per_day = _limit()


class OperatorAccountQuerySchema(PageQuerySchema):
    """A selection of accounts, and their order."""

    q = Text(
        load_default="",
        max_length=254,
        metadata={"description": "Part of the name or email address, in any case, or the account's ID."},
    )
    plan = Text(max_length=32)
    status = Text(choices=ACCOUNT_STATUSES)
    sort = Text(
        load_default="created_at",
        choices=ACCOUNT_ORDERS,
        metadata={
            "description": "Newest or highest first. `quota`: the account's most used quota; `searches`: of today, "
            "then of this month."
        },
    )


class OperatorAccountCreateSchema(BodySchema):
    """A new account and its owner."""

    name = Text(required=True, trim=True, min_length=1, max_length=100)
    email = Email(required=True)
    password = chosen_password(
        metadata={
            "description": "The owner's password. Without it, the owner receives an email with a link to choose one."
        }
    )
    plan = Text(min_length=1, max_length=32, metadata={"description": "Default: the setting `DEFAULT_PLAN`."})


class OperatorAccountUpdateSchema(UpdateSchema):
    """Changes to an account's plan and limits."""

    plan = Text(min_length=1, max_length=32)
    limits = fields.Nested(
        OwnLimitsSchema,
        metadata={"description": "Replaces all of the account's own limits; an empty object removes them."},
    )


class SuspensionSchema(BodySchema):
    """A suspension."""

    reason = Text(
        load_default="",
        trim=True,
        max_length=MAX_REASON_LENGTH,
        metadata={"description": "Message shown to the account's members and API clients."},
    )


class AccountUsageSchema(Schema):
    """Current usage of an account, up to a minute old."""

    searches_today = fields.Integer(required=True)
    searches_this_month = fields.Integer(required=True)
    asks_this_month = fields.Integer(
        required=True, metadata={"description": "Questions to the language model (Ask), as analytics recorded them."}
    )
    documents = fields.Integer(required=True)
    sites = fields.Integer(required=True)
    keys = fields.Integer(required=True, metadata={"description": "Includes disabled and expired keys."})


def _quota() -> fields.Integer:
    return fields.Integer(required=True, allow_none=True)


def _moment(**kwargs: Any) -> fields.String:
    return fields.String(required=True, metadata={"format": "date-time"}, **kwargs)


class QuotasSchema(Schema):
    """Limits in force for an account; `null` is unlimited."""

    requests_per_minute = _quota()
    requests_per_day = _quota()
    searches_per_day = _quota()
    documents = _quota()
    keys = _quota()
    sites = _quota()
    asks_per_day = _quota()


class OperatorAccountSchema(Schema):
    """An account, with its usage and limits."""

    id = RowNumber(required=True)
    email = fields.String(required=True, metadata={"description": "Email address of the account's first owner."})
    name = fields.String(required=True)
    plan = fields.String(required=True)
    limits = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(allow_none=True),
        required=True,
        metadata={"description": "The account's own limits, which override its plan's; `null` is unlimited."},
    )
    status = fields.String(required=True, metadata={"enum": list(ACCOUNT_STATUSES)})
    suspended_at = _moment(allow_none=True)
    suspension_reason = fields.String(required=True)
    created_at = _moment()
    usage = fields.Nested(AccountUsageSchema, required=True)
    quotas = fields.Nested(
        QuotasSchema,
        required=True,
        allow_none=True,
        metadata={"description": "Limits in force; `null` if the plan is no longer in the plans file."},
    )


class OperatorAccountListSchema(PagedSchema):
    """Accounts."""

    accounts = fields.List(fields.Nested(OperatorAccountSchema), required=True)


class OperatorAccountShowSchema(Schema):
    """One account."""

    account = fields.Nested(OperatorAccountSchema, required=True)


class OperatorAccountAnswerSchema(OperatorAccountShowSchema):
    """The created or changed account."""

    success = fields.Boolean(required=True)


class OperatorSiteQuerySchema(PageQuerySchema):
    """A selection of sites."""

    account_id = WholeNumber(
        low=-MAX_INT64 - 1, high=MAX_INT64, metadata={"description": "Only the sites of this account."}
    )
    engine = Text(
        max_length=255, metadata={"description": "Only the sites of this engine, such as `typesense:second`."}
    )


class OperatorSiteSchema(Schema):
    """A site and its engine."""

    id = RowNumber(required=True)
    account_id = RowNumber(required=True)
    name = fields.String(required=True)
    url = fields.String(required=True)
    engine = fields.String(
        required=True, metadata={"description": "Kind of the engine, with its name if the URL gives one."}
    )
    documents = fields.Integer(required=True)


class OperatorSiteListSchema(PagedSchema):
    """Sites of all accounts, by ID, without deleted sites."""

    sites = fields.List(fields.Nested(OperatorSiteSchema), required=True)


class EngineUsageSchema(Schema):
    """A search engine, with the sites whose index is on it."""

    engine = fields.String(required=True)
    configured = fields.Boolean(
        required=True,
        metadata={"description": "Whether `SEARCH_URL` has the engine; otherwise, all searches of its sites fail."},
    )
    sites = fields.Integer(required=True)
    documents = fields.Integer(required=True)


class EngineUsageListSchema(Schema):
    """The engines of `SEARCH_URL` in order, then engines on which only existing sites are."""

    engines = fields.List(fields.Nested(EngineUsageSchema), required=True)


class MonthQuerySchema(QuerySchema):
    """The month to report."""

    month = Month(required=True, metadata={"description": "A month in UTC, at the latest the current one."})


class AccountMonthSchema(MonthUsageSchema):
    """Usage of one account in one month."""

    account_id = RowNumber(required=True)
    email = fields.String(required=True)
    name = fields.String(required=True)
    plan = fields.String(required=True, metadata={"description": "The current plan."})


class MonthReportSchema(Schema):
    """Usage of all accounts in a month (UTC), oldest account first. Deleted accounts are not included."""

    month = fields.String(required=True, metadata={"pattern": MONTH_PATTERN})
    final = fields.Boolean(
        required=True,
        metadata={"description": "Whether the figures no longer change, as from about an hour after the month."},
    )
    accounts = fields.List(fields.Nested(AccountMonthSchema), required=True)
