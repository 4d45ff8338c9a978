"""The inbox of queries that need attention."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.base import BodySchema
from schemas.fields import Flag, QueryFlag, QueryWholeNumber, WholeNumber
from schemas.search import MAX_INT64, QueryText
from schemas.sites import PageQuerySchema, SuccessSchema

INBOX_KINDS = ("no_results", "partial", "no_clicks")


class InboxQuerySchema(PageQuerySchema):
    """Parameters that select items."""

    site_id = QueryWholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, required=True, metadata={"description": "The site."})
    ignored = QueryFlag(
        load_default=False, metadata={"description": "Whether to list ignored queries instead of the others."}
    )


class InboxItemSchema(Schema):
    """A query that disappointed visitors in the last 30 days, and still would."""

    query = fields.String(required=True, metadata={"description": "In normal form."})
    kind = fields.String(
        required=True,
        metadata={
            "enum": list(INBOX_KINDS),
            "description": "`no_results`: it finds nothing. `partial`: no document has every word. `no_clicks`: at "
            "least five visitors found documents with every word and nobody clicked; only where clicks are reported.",
        },
    )
    searches = fields.Integer(required=True)
    visitors = fields.Integer(
        required=True, metadata={"description": "Number of visitors without the results they wanted."}
    )
    finds_now = fields.Integer(required=True, metadata={"description": "Number of documents that it finds now."})


class InboxSchema(Schema):
    """A page of the inbox."""

    items = fields.List(fields.Nested(InboxItemSchema), required=True)
    total = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    offset = fields.Integer(required=True)


class InboxChangeSchema(BodySchema):
    """A change of an item: ignore its query, or stop ignoring it."""

    site_id = WholeNumber(low=-MAX_INT64 - 1, high=MAX_INT64, required=True)
    query = QueryText(required=True)
    ignored = Flag(required=True)


class InboxChangedSchema(SuccessSchema):
    """The current state of the item."""

    query = fields.String(required=True, metadata={"description": "In normal form."})
    ignored = fields.Boolean(required=True)
