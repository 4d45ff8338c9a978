"""Statistics on searches, and the inbox of queries that need attention."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema
from marshmallow.validate import OneOf

from schemas.base import BodySchema, PagedSchema, QuerySchema, SuccessSchema
from schemas.fields import MAX_INT64, Flag, Text, WholeNumber
from schemas.search import MAX_SESSION_LENGTH, QueryText
from schemas.sites import PageQuerySchema
from schemas.validation.problems import Problem

CHANNELS = ("api", "box", "gateway", "google", "algolia", "agent")
"""Channels of searches."""
PERIODS = {"7d": 7, "28d": 28, "30d": 30, "90d": 90}
"""Maps each period name to its number of UTC calendar days, including today."""


MAX_DAYS = 1_000
"""Maximum number of days in a custom date range."""


class Day(fields.Date):
    """A UTC calendar day, such as ``2031-05-14``."""

    default_error_messages = Text.default_error_messages

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> date:
        try:
            if len(value) != len("2031-05-14"):
                raise ValueError(value)
            return date.fromisoformat(value)
        except ValueError as error:
            raise ValidationError([Problem("must be a date such as 2031-05-14", "invalid_date")]) from error


class PeriodSchema(QuerySchema):
    """A named period that ends today."""

    period = Text(
        load_default="30d", choices=tuple(PERIODS), metadata={"description": "Number of UTC days, including today."}
    )


class DaysSchema(QuerySchema):
    """A date range, which takes precedence over a named period."""

    first = Day(
        data_key="from",
        load_default=None,
        metadata={"description": "The first UTC day, instead of `period`."},
    )
    last = Day(
        data_key="to",
        load_default=None,
        metadata={"description": f"The last UTC day, at most {MAX_DAYS:,} days from the first. Default: today."},
    )

    @validates_schema
    def _check_days(self, data: dict[str, Any], **kwargs: Any) -> None:
        first, last = data.get("first"), data.get("last") or datetime.now(UTC).date()
        if first is None and data.get("last") is not None:
            raise ValidationError({"from": [Problem("is required with to", "required")]})
        if first is not None and not 0 <= (last - first).days < MAX_DAYS:
            message = f"must be at most {MAX_DAYS:,} days, and not later than to"
            raise ValidationError({"from": [Problem(message, "out_of_range")]})


def days_of(parameters: Mapping[str, Any], today: date) -> tuple[date, int]:
    """Return the last UTC day selected by :class:`PeriodSchema` or :class:`DaysSchema`, and the number of days."""
    last = parameters["last"] or today
    if parameters["first"] is None:
        return last, PERIODS[parameters["period"]]
    return last, (last - parameters["first"]).days + 1


class _SearchesSchema(PeriodSchema):
    site_id = WholeNumber(
        low=-MAX_INT64 - 1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "The site. Default: all sites of the account."},
    )
    limit = WholeNumber(
        low=1, high=1000, load_default=10, metadata={"description": "Maximum number of items in each list of queries."}
    )


class AnalyticsQuerySchema(DaysSchema, _SearchesSchema):
    """Parameters that select searches. Generated clients may use their order: add new ones at the end."""

    channel = Text(
        load_default=None,
        choices=CHANNELS,
        metadata={"description": "Only searches through this channel. Default: all."},
    )


class _SearchesOfQuerySchema(PeriodSchema):
    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, required=True, metadata={"description": "The site."})
    q = QueryText(required=True, metadata={"description": "The query, as searched."})


class QueryAnalyticsQuerySchema(DaysSchema, _SearchesOfQuerySchema):
    """Parameters that select one query on one site."""


class VisitorQuerySchema(QuerySchema):
    """One session of a visitor at a site."""

    site_id = WholeNumber(
        low=-MAX_INT64 - 1, high=MAX_INT64, required=True, metadata={"description": "The site; it may be deleted."}
    )
    session_id = Text(
        required=True,
        min_length=1,
        max_length=MAX_SESSION_LENGTH,
        metadata={"description": "The session ID that searches and clicks were sent with."},
    )


class VisitorErasureSchema(SuccessSchema):
    """Numbers of erased searches, clicks, and questions."""

    searches = fields.Integer(required=True, metadata={"description": "Number of erased searches."})
    clicks = fields.Integer(required=True, metadata={"description": "Number of erased clicks."})
    questions = fields.Integer(required=True, metadata={"description": "Number of erased questions."})


class QueryCountSchema(Schema):
    """A query in its normal form, and its number of searches."""

    query = fields.String(required=True)
    count = fields.Integer(required=True)


class SearchDaySchema(Schema):
    """One UTC day."""

    date = fields.String(required=True, metadata={"format": "date"})
    searches = fields.Integer(required=True)
    zero_results = fields.Integer(required=True)
    clicks = fields.Integer(required=True)


_OF_SEARCHES = {"description": "Share of the searches, from 0 to 1; null without searches."}
_CLICKED = {"description": "Share of the searches with a click, from 0 to 1; null without searches."}
_MIXED = {"description": "Number of searches whose hits were also ranked by meaning."}
_POSITION = {"description": "Mean position of the clicks that reported a position, from 1; null without such clicks."}


class TotalsSchema(Schema):
    """Totals and rates of a period."""

    total_searches = fields.Integer(required=True)
    avg_response_time_ms = fields.Integer(required=True)
    mixed_searches = fields.Integer(required=True, metadata=_MIXED)
    clicks = fields.Integer(required=True)
    click_through_rate = fields.Float(required=True, allow_none=True, metadata=_CLICKED)
    average_click_position = fields.Float(required=True, allow_none=True, metadata=_POSITION)
    zero_result_rate = fields.Float(required=True, allow_none=True, metadata=_OF_SEARCHES)


class TrendDaySchema(SearchDaySchema):
    """One UTC day, with its rates."""

    click_through_rate = fields.Float(required=True, allow_none=True, metadata=_CLICKED)
    zero_result_rate = fields.Float(required=True, allow_none=True, metadata=_OF_SEARCHES)


class ChannelCountSchema(Schema):
    """Searches of one channel."""

    channel = fields.String(required=True, validate=OneOf(CHANNELS))
    searches = fields.Integer(required=True)
    zero_results = fields.Integer(required=True)
    clicks = fields.Integer(required=True)


class PageCountSchema(Schema):
    """Searches from one page of the site."""

    page = fields.String(required=True, metadata={"description": "Its path."})
    searches = fields.Integer(required=True)
    zero_results = fields.Integer(required=True)
    zero_result_rate = fields.Float(required=True, allow_none=True, metadata=_OF_SEARCHES)


class ClickedPageSchema(Schema):
    """A document that visitors clicked, for any query."""

    site_id = fields.Integer(required=True)
    id = fields.String(required=True)
    title = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "Its current title; null if the document no longer exists."},
    )
    clicks = fields.Integer(required=True)
    average_position = fields.Float(required=True, allow_none=True, metadata=_POSITION)


class AnalyticsSchema(Schema):
    """The searches and clicks of a period."""

    total_searches = fields.Integer(required=True)
    unique_queries = fields.Integer(required=True)
    avg_response_time_ms = fields.Integer(required=True, attribute="totals.avg_response_time_ms")
    mixed_searches = fields.Integer(required=True, attribute="totals.mixed_searches", metadata=_MIXED)
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
        metadata={"description": "Queries without results; `count` is the number of such searches."},
    )
    partial_queries = fields.List(
        fields.Nested(QueryCountSchema),
        required=True,
        metadata={
            "description": "Queries for which no document has every word; `count` is the number of such searches."
        },
    )
    no_click_queries = fields.List(
        fields.Nested(QueryCountSchema),
        required=True,
        metadata={
            "description": "Queries with results but without clicks; `count` is the number of all their searches."
        },
    )
    series = fields.List(fields.Nested(TrendDaySchema), required=True)
    channels = fields.List(
        fields.Nested(ChannelCountSchema),
        required=True,
        metadata={"description": "Searches by channel, regardless of the `channel` parameter."},
    )
    clicked_pages = fields.List(
        fields.Nested(ClickedPageSchema), required=True, metadata={"description": "Documents, most clicked first."}
    )
    pages = fields.List(
        fields.Nested(PageCountSchema),
        required=True,
        metadata={"description": "Pages from which visitors searched, most searches first."},
    )
    from_date = fields.Date(required=True, data_key="from", metadata={"description": "The first UTC day."})
    to_date = fields.Date(required=True, data_key="to", metadata={"description": "The last UTC day."})
    previous = fields.Nested(
        TotalsSchema, required=True, metadata={"description": "Totals of the preceding period of the same length."}
    )


class QueryDaySchema(SearchDaySchema):
    """One UTC day of one query."""


class ClickedAnchorSchema(Schema):
    """A section of a document that clicks led to."""

    anchor = fields.String(required=True)
    clicks = fields.Integer(required=True)


class ClickedDocumentSchema(Schema):
    """A document clicked in the results of the query."""

    id = fields.String(required=True)
    title = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "Its current title; null if the document no longer exists."},
    )
    clicks = fields.Integer(required=True)
    average_position = fields.Float(required=True, allow_none=True, metadata=_POSITION)
    anchors = fields.List(
        fields.Nested(ClickedAnchorSchema),
        required=True,
        metadata={"description": "Sections that clicks led to, most clicked first, at most 100."},
    )


class QueryAnalyticsSchema(Schema):
    """Analytics of one query."""

    query = fields.String(required=True, metadata={"description": "The query in its normal form."})
    searches = fields.Integer(required=True)
    clicks = fields.Integer(required=True)
    click_through_rate = fields.Float(required=True, allow_none=True, metadata=_CLICKED)
    average_click_position = fields.Float(required=True, allow_none=True, metadata=_POSITION)
    series = fields.List(fields.Nested(QueryDaySchema), required=True)
    clicked_documents = fields.List(
        fields.Nested(ClickedDocumentSchema), required=True, metadata={"description": "The 100 most clicked documents."}
    )
    finds_now = fields.Integer(required=True, metadata={"description": "Number of documents that match it now."})


INBOX_KINDS = ("no_results", "partial", "no_clicks", "unanswered")


class InboxQuerySchema(PageQuerySchema):
    """Parameters that select items."""

    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, required=True, metadata={"description": "The site."})
    ignored = Flag(
        load_default=False, metadata={"description": "Whether to list ignored queries instead of the others."}
    )


class InboxItemSchema(Schema):
    """A query that disappointed visitors in the last 30 days, and would still disappoint them."""

    query = fields.String(required=True, metadata={"description": "In normal form."})
    kind = fields.String(
        required=True,
        metadata={
            "enum": list(INBOX_KINDS),
            "description": "`no_results`: it finds nothing. `partial`: no document has every word. `no_clicks`: at "
            "least five visitors found documents with every word and nobody clicked; only where clicks are reported. "
            "`unanswered`: a question to Ask that the documents did not answer when it was asked last.",
        },
    )
    searches = fields.Integer(
        required=True, metadata={"description": "Number of searches; of questions, if it is `unanswered`."}
    )
    visitors = fields.Integer(
        required=True, metadata={"description": "Number of visitors without the results they wanted."}
    )
    finds_now = fields.Integer(required=True, metadata={"description": "Number of documents that it finds now."})


class InboxSchema(PagedSchema):
    """A page of the inbox."""

    items = fields.List(fields.Nested(InboxItemSchema), required=True)


class InboxChangeSchema(BodySchema):
    """A change of an item: ignore its query, or stop ignoring it."""

    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, required=True)
    query = QueryText(required=True)
    ignored = Flag(required=True)


class InboxChangedSchema(SuccessSchema):
    """The current state of the item."""

    query = fields.String(required=True, metadata={"description": "In normal form."})
    ignored = fields.Boolean(required=True)
