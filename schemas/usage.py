"""Usage reports, the search log, and client info."""

from __future__ import annotations

from marshmallow import Schema, fields
from marshmallow.validate import OneOf

from schemas.base import LenientBodySchema, QuerySchema, SuccessSchema
from schemas.fields import MONTH_PATTERN, Instant, Month, RowNumber, Text, WholeNumber
from schemas.search import MAX_SESSION_LENGTH, QueryText
from schemas.search_results import RemainingQuotaSchema
from schemas.source_runs import RunErrorSchema

OPERATIONS = ("search", "indexing")
MAX_REPORT_COUNT = 10_000


class UsageReportSchema(LenientBodySchema):
    """Operations that a client ran outside this service's search endpoint."""

    operation = Text(required=True, choices=OPERATIONS)
    count = WholeNumber(required=True, low=1, high=MAX_REPORT_COUNT)
    index = Text(required=True, min_length=1, max_length=255)


class UsageReportAnswerSchema(SuccessSchema):
    """The report was counted, or is a repetition of an earlier report."""

    duplicate = fields.Boolean(metadata={"description": "Present and true if this Idempotency-Key was used before."})


class SearchLogSchema(LenientBodySchema):
    """A search that a client ran outside this service's search endpoint."""

    query = QueryText(required=True)
    results_count = WholeNumber(required=True)
    session_id = Text(load_default=None, max_length=MAX_SESSION_LENGTH, allow_none=True)
    timestamp = Instant(load_default=None, allow_none=True, date_alone=False)


class SearchLogAnswerSchema(SuccessSchema):
    """The search was recorded."""

    counted = fields.Boolean(
        metadata={
            "description": "Present and false if the search is not in analytics, because more than 30 searches a "
            "minute were logged with public keys from this address."
        }
    )


class UsageLimitsSchema(Schema):
    """Limits of the plan."""

    max_indexed_pages = fields.Integer(required=True)
    search_queries_per_month = fields.Integer(required=True)
    unlimited = fields.Boolean(required=True)


class ClientInfoSchema(Schema):
    """A client's connection to the search engine, and its limits."""

    engine_host = fields.String(required=True, metadata={"format": "uri"})
    engine_key = fields.String(required=True, metadata={"description": "Secret key that can search only this index."})
    engine_public_key = fields.String(metadata={"description": "Key that is safe to use in a browser; may be absent."})
    active = fields.Boolean(required=True)
    ask = fields.Boolean(
        required=True, metadata={"description": "Whether visitors can ask questions (`POST /v1/ask`)."}
    )
    index = fields.String(required=True)
    domain = fields.String(required=True)
    plan = fields.String(required=True)
    limits = fields.Nested(RemainingQuotaSchema, required=True)
    usage_limits = fields.Nested(UsageLimitsSchema, required=True)


class DashboardUsageSchema(Schema):
    """Use of the service."""

    searches_this_month = fields.Integer(required=True)
    indexed_pages = fields.Integer(required=True)
    indexing_operations_this_month = fields.Integer(
        required=True,
        metadata={
            "description": "Documents written (each distinct ID of a batch once) and removed, and reported operations."
        },
    )
    refused_searches_this_month = fields.Integer(
        required=True,
        metadata={"description": "Searches rejected by the plan's daily search quota or request limits."},
    )
    most_indexed_pages_this_month = fields.Integer(
        required=True, metadata={"description": "Highest number of pages stored at any time in the month."}
    )
    pages_crawled_this_month = fields.Integer(
        required=True, metadata={"description": "Pages that crawls indexed or confirmed as unchanged."}
    )
    asks_today = fields.Integer(
        required=True, metadata={"description": "Questions (Ask) that count toward today's limit."}
    )


class MonthUsageSchema(Schema):
    """Usage of an account in a calendar month (UTC)."""

    searches = fields.Integer(required=True, metadata={"description": "Charged searches."})
    refused_searches = fields.Integer(
        required=True, metadata={"description": "Searches rejected by the plan's daily search quota or request limits."}
    )
    indexing_operations = fields.Integer(
        required=True,
        metadata={
            "description": "Documents written (each distinct ID of a batch once) and removed, and reported operations."
        },
    )
    most_documents = fields.Integer(
        required=True, metadata={"description": "Highest number of documents stored at any time in the month."}
    )
    pages_crawled = fields.Integer(
        required=True, metadata={"description": "Pages that crawls indexed or confirmed as unchanged."}
    )


class OwnMonthQuerySchema(QuerySchema):
    """The month to report."""

    month = Month(
        load_default=None,
        metadata={"description": "A month in UTC, from the account's first month to the current one, the default."},
    )


class OwnMonthSchema(MonthUsageSchema):
    """Usage of the account in a month, equal to the usage that the operator sees and invoices."""

    month = fields.String(required=True, metadata={"pattern": MONTH_PATTERN})
    final = fields.Boolean(
        required=True,
        metadata={"description": "Whether the figures no longer change, as from about an hour after the month."},
    )
    months = fields.List(
        fields.String(metadata={"pattern": MONTH_PATTERN}),
        required=True,
        metadata={"description": "All months that can be requested, newest first."},
    )


class DashboardLimitsSchema(Schema):
    """Limits of the plan."""

    max_sites = fields.Integer(required=True)
    max_api_keys = fields.Integer(required=True)
    searches_per_month = fields.Integer(required=True)
    asks_per_day = fields.Integer(required=True)
    unlimited = fields.Boolean(required=True)


class FailedSourceSchema(Schema):
    """A source whose newest run failed."""

    id = fields.String(required=True)
    site_id = RowNumber(required=True)
    site_name = fields.String(required=True)
    url = fields.String(required=True)
    error = fields.Nested(RunErrorSchema, required=True, allow_none=True)
    failed_at = Instant(required=True, allow_none=True)


class TroubleSchema(Schema):
    """A problem with a dependency of the account."""

    kind = fields.String(
        required=True,
        validate=OneOf(("engine", "index", "indexing", "database", "disk", "counters", "sources")),
    )
    title = fields.String(required=True, metadata={"description": "Description of the problem."})
    effect = fields.String(required=True, metadata={"description": "What still works, and what does not."})
    since = Instant(required=True, metadata={"description": "Time when it began or was detected."})


class ExposedKeySchema(Schema):
    """A private key that was used by a web page."""

    id = fields.String(required=True)
    name = fields.String(required=True)
    site_id = fields.Integer(required=True)
    site_name = fields.String(required=True)
    origin = fields.String(required=True, metadata={"description": "Origin of the page that last used it."})
    seen_at = Instant(required=True, metadata={"description": "Time when a page last used it, to within an hour."})


class DashboardSchema(Schema):
    """An overview of the account."""

    siteCount = fields.Integer(required=True)
    apiKeyCount = fields.Integer(required=True)
    plan = fields.String(required=True)
    usage = fields.Nested(DashboardUsageSchema, required=True)
    limits = fields.Nested(DashboardLimitsSchema, required=True)
    failed_sources = fields.List(fields.Nested(FailedSourceSchema), required=True)
    troubles = fields.List(
        fields.Nested(TroubleSchema),
        required=True,
        metadata={"description": "Current problems, most serious first."},
    )
    exposed_keys = fields.List(
        fields.Nested(ExposedKeySchema),
        required=True,
        metadata={
            "description": "Private keys that appear in web pages, where anyone can read them. Rotate them, and use "
            "public keys in the pages."
        },
    )
