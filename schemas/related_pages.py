"""Related pages and popular pages."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema

from schemas.base import QuerySchema
from schemas.documents import Identifier
from schemas.fields import MAX_INT64, RowNumber, Text, WholeNumber
from schemas.search import MAX_FILTER_LENGTH
from schemas.search_results import SearchWarningSchema
from schemas.validation.documents import MAX_ID_LENGTH, MAX_URL_LENGTH
from schemas.validation.problems import Problem

MAX_PAGES = 10
DEFAULT_PAGES = 4
MAX_PERIOD_DAYS = 90
DEFAULT_PERIOD_DAYS = 7


class _PageListQuerySchema(QuerySchema):
    """Parameters of a request for pages."""

    limit = WholeNumber(
        low=1, high=MAX_PAGES, load_default=DEFAULT_PAGES, metadata={"description": "Maximum number of pages."}
    )
    filters = Text(
        load_default="",
        max_length=MAX_FILTER_LENGTH,
        metadata={"description": "Filter expression in the engine's syntax that the pages must match."},
    )
    site_id = WholeNumber(
        low=-MAX_INT64 - 1,
        high=MAX_INT64,
        load_default=None,
        metadata={"description": "The site of the pages. Default: the key's site."},
    )


class RelatedPagesQuerySchema(_PageListQuerySchema):
    """Parameters of a request for related pages: the page's `id` or its `url`."""

    id = Identifier(
        load_default=None,
        min_length=1,
        max_length=MAX_ID_LENGTH,
        metadata={"description": "The page's id. Either `id` or `url` is required."},
    )
    url = Text(
        load_default=None,
        min_length=1,
        max_length=MAX_URL_LENGTH,
        metadata={
            "description": "The page's URL, or its path. A URL that is not indexed is looked up without its query, and "
            "with or without a final slash."
        },
    )

    @validates_schema(skip_on_field_errors=True)
    def _check_page(self, data: dict[str, Any], **kwargs: Any) -> None:
        if data["id"] is None and data["url"] is None:
            raise ValidationError({"id": [Problem("is required, or url is", "required")]})
        if data["id"] is not None and data["url"] is not None:
            raise ValidationError({"url": [Problem("cannot be combined with id", "conflict")]})


class PopularPagesQuerySchema(_PageListQuerySchema):
    """Parameters of a request for popular pages."""

    period = WholeNumber(
        low=1,
        high=MAX_PERIOD_DAYS,
        load_default=DEFAULT_PERIOD_DAYS,
        metadata={"description": "Number of days whose clicks count, including today (UTC)."},
    )


class SiteOfPageSchema(Schema):
    """The site of a page, in a collection."""

    id = RowNumber(required=True)
    label = fields.String(required=True)


class ListedPageSchema(Schema):
    """A related or popular page."""

    id = fields.String(required=True)
    title = fields.String(required=True)
    url = fields.String(required=True)
    excerpt = fields.String(required=True, metadata={"description": "Empty if the document has none."})
    site = fields.Nested(SiteOfPageSchema, metadata={"description": "With a collection's key only."})


class PageListSchema(Schema):
    """Pages, best first."""

    pages = fields.List(fields.Nested(ListedPageSchema), required=True)
    warnings = fields.List(
        fields.Nested(SearchWarningSchema),
        metadata={"description": "Unknown query parameters; absent if there are none."},
    )
