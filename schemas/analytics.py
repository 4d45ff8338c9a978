"""Analytics."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.base import QuerySchema
from schemas.fields import QueryWholeNumber, Text
from schemas.search import MAX_INT64

PERIODS = {"7d": 7, "30d": 30, "90d": 90}
"""Name of a period to its number of UTC calendar days, today included."""


class AnalyticsQuerySchema(QuerySchema):
    """Which searches."""

    period = Text(
        load_default="30d", choices=tuple(PERIODS), metadata={"description": "Number of UTC days, including today."}
    )
    site_id = QueryWholeNumber(
        low=-MAX_INT64 - 1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "The site. Default: all sites of the account."},
    )


class QueryCountSchema(Schema):
    """A query in its normal form, and how often it was searched for."""

    query = fields.String(required=True)
    count = fields.Integer(required=True)


class SearchDaySchema(Schema):
    """One UTC day."""

    date = fields.String(required=True, metadata={"format": "date"})
    searches = fields.Integer(required=True)
    zero_results = fields.Integer(required=True)


class AnalyticsSchema(Schema):
    """The searches of a period."""

    total_searches = fields.Integer(required=True)
    unique_queries = fields.Integer(required=True)
    avg_response_time_ms = fields.Integer(required=True)
    top_queries = fields.List(fields.Nested(QueryCountSchema), required=True)
    zero_result_queries = fields.List(fields.Nested(QueryCountSchema), required=True)
    series = fields.List(fields.Nested(SearchDaySchema), required=True)
