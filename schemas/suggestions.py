"""Suggestions for a prefix."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.analytics import PERIODS
from schemas.base import BodySchema, QuerySchema
from schemas.fields import MAX_INT64, Text, WholeNumber
from schemas.remedies import NormalQuery
from schemas.search import MAX_FILTER_LENGTH, MAX_QUERY_BYTES
from schemas.search_results import SearchWarningSchema

MAX_SUGGESTIONS = 20
DEFAULT_SUGGESTIONS = 8
PREFIX_DESCRIPTION = "The text typed so far; empty returns the site's most frequent queries."
LIMIT_DESCRIPTION = "Maximum number of suggestions."


class SuggestQuerySchema(QuerySchema):
    """Parameters of a request for suggestions."""

    q = Text(load_default="", max_bytes=MAX_QUERY_BYTES, metadata={"description": PREFIX_DESCRIPTION})
    limit = WholeNumber(
        low=1, high=MAX_SUGGESTIONS, load_default=DEFAULT_SUGGESTIONS, metadata={"description": LIMIT_DESCRIPTION}
    )
    filters = Text(
        load_default="",
        max_length=MAX_FILTER_LENGTH,
        metadata={
            "description": "Filter expression in the engine's syntax that documents with suggested titles must match."
        },
    )
    site_id = WholeNumber(
        low=-MAX_INT64 - 1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "The site to search. Default: the key's site."},
    )


class SuggestionSchema(Schema):
    """A suggestion."""

    text = fields.String(required=True)
    kind = fields.String(required=True, metadata={"enum": ["query", "title"]})
    url = fields.String(metadata={"description": "URL of the document with this title; absent for a query."})


class SuggestionsSchema(Schema):
    """Queries that at least three visitors made in 30 days and whose words all match, followed by document titles."""

    suggestions = fields.List(fields.Nested(SuggestionSchema), required=True)


class SuggestAnswerSchema(SuggestionsSchema):
    """Suggestions, with warnings about the request."""

    warnings = fields.List(
        fields.Nested(SearchWarningSchema),
        metadata={"description": "Unknown query parameters; absent if there are none."},
    )


class HideSuggestionSchema(BodySchema):
    """A query that must never be suggested, and the analytics page that lists it."""

    q = NormalQuery(required=True)
    period = Text(load_default="30d", choices=tuple(PERIODS))
    list = Text(load_default="", max_length=50)
