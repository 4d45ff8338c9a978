"""Analytics."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.base import QuerySchema
from schemas.fields import QueryWholeNumber, Text
from schemas.search import MAX_INT64, QueryText

PERIODS = {"7d": 7, "30d": 30, "90d": 90}
"""Name of a period to its number of UTC calendar days, today included."""


class AnalyticsQuerySchema(QuerySchema):
    """A choice of searches."""

    period = Text(
        load_default="30d", choices=tuple(PERIODS), metadata={"description": "Number of UTC days, including today."}
    )
    site_id = QueryWholeNumber(
        low=-MAX_INT64 - 1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "The site. Default: all sites of the account."},
    )

    limit = QueryWholeNumber(
        low=1, high=1000, load_default=10, metadata={"description": "Most items of each list of queries."}
    )


class QueryAnalyticsQuerySchema(QuerySchema):
    """A choice of one query of one site."""

    site_id = QueryWholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, required=True, metadata={"description": "The site."})
    q = QueryText(required=True, metadata={"description": "The query, as searched."})
    period = Text(
        load_default="30d", choices=tuple(PERIODS), metadata={"description": "Number of UTC days, including today."}
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


_OF_SEARCHES = {"description": "Part of the searches, from 0 to 1; null without searches."}
_CLICKED = {"description": "Part of the searches with a click, from 0 to 1; null without searches."}
_POSITION = {"description": "Mean position of the clicks that told it, from 1; null if none did."}


class TotalsSchema(Schema):
    """Totals and rates of a period."""

    total_searches = fields.Integer(required=True)
    avg_response_time_ms = fields.Integer(required=True)
    clicks = fields.Integer(required=True)
    click_through_rate = fields.Float(required=True, allow_none=True, metadata=_CLICKED)
    average_click_position = fields.Float(required=True, allow_none=True, metadata=_POSITION)
    zero_result_rate = fields.Float(required=True, allow_none=True, metadata=_OF_SEARCHES)


class AnalyticsSchema(Schema):
    """The searches of a period, and what was clicked."""

    total_searches = fields.Integer(required=True)
    unique_queries = fields.Integer(required=True)
    avg_response_time_ms = fields.Integer(required=True)
    clicks = fields.Integer(required=True, attribute="totals.clicks")
    click_through_rate = fields.Float(
        required=True, allow_none=True, attribute="totals.click_through_rate", metadata=_CLICKED
    )
    average_click_position = fields.Float(
        required=True, allow_none=True, attribute="totals.average_click_position", metadata=_POSITION
    )
    zero_result_rate = fields.Float(
        required=True, allow_none=True, attribute="totals.zero_result_rate", metadata=_OF_SEARCHES
    )
    top_queries = fields.List(fields.Nested(QueryCountSchema), required=True)
    zero_result_queries = fields.List(
        fields.Nested(QueryCountSchema),
        required=True,
        metadata={"description": "Searches without results; `count` counts those."},
    )
    partial_queries = fields.List(
        fields.Nested(QueryCountSchema),
        required=True,
        metadata={"description": "Searches of which no document has every word; `count` counts those."},
    )
    no_click_queries = fields.List(
        fields.Nested(QueryCountSchema),
        required=True,
        metadata={"description": "Queries that had results and no click; `count` counts all their searches."},
    )
    series = fields.List(fields.Nested(SearchDaySchema), required=True)
    previous = fields.Nested(
        TotalsSchema, required=True, metadata={"description": "The same of as many days before the period."}
    )


class QueryDaySchema(SearchDaySchema):
    """One UTC day of one query."""

    clicks = fields.Integer(required=True)


class ClickedAnchorSchema(Schema):
    """A section of a document that clicks led to."""

    anchor = fields.String(required=True)
    clicks = fields.Integer(required=True)


class ClickedDocumentSchema(Schema):
    """A document that was clicked among the results."""

    id = fields.String(required=True)
    title = fields.String(
        required=True, allow_none=True, metadata={"description": "As it is now; null if the document is gone."}
    )
    clicks = fields.Integer(required=True)
    average_position = fields.Float(required=True, allow_none=True, metadata=_POSITION)
    anchors = fields.List(
        fields.Nested(ClickedAnchorSchema),
        required=True,
        metadata={"description": "Sections that clicks led to, the most clicked first, at most 100."},
    )


class QueryAnalyticsSchema(Schema):
    """Analytics of one query."""

    query = fields.String(required=True, metadata={"description": "In its normal form."})
    searches = fields.Integer(required=True)
    clicks = fields.Integer(required=True)
    click_through_rate = fields.Float(required=True, allow_none=True, metadata=_CLICKED)
    average_click_position = fields.Float(required=True, allow_none=True, metadata=_POSITION)
    series = fields.List(fields.Nested(QueryDaySchema), required=True)
    clicked_documents = fields.List(
        fields.Nested(ClickedDocumentSchema), required=True, metadata={"description": "The 100 most clicked."}
    )
    finds_now = fields.Integer(required=True, metadata={"description": "Number of documents that match it now."})
