"""Collections of sites."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.base import BodySchema, PagedSchema, SuccessSchema, UpdateSchema
from schemas.fields import Instant, ItemList, Number, RowNumber, Text, WholeNumber
from schemas.search import MAX_FILTER_LENGTH

MAX_SITES = 10


class CollectionSiteSchema(BodySchema):
    """A site that a collection searches."""

    site_id = WholeNumber(required=True, low=1)
    weight = Number(
        load_default=1.0,
        low=0.1,
        high=10,
        metadata={"description": "Factor for the scores of the site's hits. Above 1, they move up."},
    )
    filters = Text(
        load_default="",
        trim=True,
        max_length=MAX_FILTER_LENGTH,
        metadata={"description": "Condition for the site's documents, in the portable syntax. Default: all documents."},
    )
    label = Text(
        load_default="",
        trim=True,
        max_length=100,
        metadata={"description": "Name of the site in the results. Default: the site's name."},
    )


def _sites(**kwargs: bool) -> ItemList:
    return ItemList(fields.Nested(CollectionSiteSchema), low=1, high=MAX_SITES, metadata={"title": "Sites"}, **kwargs)


class CollectionCreateSchema(BodySchema):
    """A new collection."""

    name = Text(required=True, trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    sites = _sites(required=True)


class CollectionUpdateSchema(UpdateSchema):
    """Changes to a collection. Omitted fields stay unchanged; `sites` replaces the list."""

    name = Text(trim=True, min_length=1, max_length=100, metadata={"title": "Name"})
    sites = _sites()


class CollectionProblemSchema(Schema):
    """A site that a collection names but does not search."""

    site_id = RowNumber(required=True)
    name = fields.String(required=True, allow_none=True, metadata={"description": "Null if it no longer exists."})
    reason = fields.String(required=True, metadata={"enum": ["deleted", "paused"]})


class SearchedSiteSchema(Schema):
    """A site that a collection searches."""

    site_id = RowNumber(required=True)
    weight = fields.Float(required=True)
    filters = fields.String(required=True)
    label = fields.String(required=True)


class CollectionSchema(Schema):
    """A collection."""

    id = RowNumber(required=True)
    name = fields.String(required=True)
    index = fields.String(required=True, metadata={"description": "Name of the collection's index at the gateway."})
    sites = fields.List(fields.Nested(SearchedSiteSchema), required=True)
    problems = fields.List(fields.Nested(CollectionProblemSchema), required=True)
    created_at = Instant(required=True)
    updated_at = Instant(required=True)


class CollectionShowSchema(Schema):
    """One collection."""

    collection = fields.Nested(CollectionSchema, required=True)


class CollectionAnswerSchema(SuccessSchema, CollectionShowSchema):
    """A created or changed collection."""


class CollectionListSchema(PagedSchema):
    """A page of the account's collections."""

    collections = fields.List(fields.Nested(CollectionSchema), required=True)
